"""The replacements of numpy, scipy and math in converted functions.

A module is replaced by one with the same names, whose functions also accept tensors.  Names without
a replacement are those of the module itself.

    replacement        the replacement of a module, or of a function or class of one
    REPLACED_MODULES   modules and their replacements, as far as they have been used
    has_replacement    whether an object has one
    isinstance_        the replacement of `isinstance`
    new_array          the replacement of ``numpy.ndarray(...)``
    buffer_of          a new array, elements of which are assigned later, as a tensor
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np

from wengert._engine.core.array_states import is_unshared, is_unshared_view
from wengert._engine.core.conversion_hook import NAMESPACES, NUMPY_NAMESPACES
from wengert._engine.core.handle import Handle, describe, is_traced, shape_of, value_of, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.op import lookup
from wengert._engine.core.other_libraries import LabelledTensor
from wengert._engine.core.recording import current_trace
from wengert._engine.ops.indexing.window_functions import applied
from wengert.errors import at, user_line

# Functions that create arrays, in which traced values may be stored later.
_CREATION = (
    "zeros ones empty full eye identity tri zeros_like ones_like empty_like full_like array "
    "asarray asanyarray ascontiguousarray asfortranarray fromiter frombuffer fromfunction arange "
    "linspace logspace geomspace copy diag indices mgrid ogrid"
).split()


class Namespace(ModuleType):
    """A replacement of a module.

    Parameters
    ----------
    real : module
        The module that is replaced.
    tensor_module : module or None
        The module whose names take precedence.
    """

    def __init__(self, real: ModuleType, tensor_module: ModuleType | None) -> None:
        super().__init__(real.__name__, real.__doc__)
        self.__dict__["_modules"] = real, tensor_module

    def __getattr__(self, name: str) -> Any:
        real, tensor_module = self.__dict__["_modules"]
        value = _attribute(real, tensor_module, name)
        if not name.startswith("_"):
            self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.__dict__["_modules"][0], name, value)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_modules"][0])

    def __repr__(self) -> str:
        return repr(self.__dict__["_modules"][0])


def _attribute(real: ModuleType, tensor_module: ModuleType | None, name: str) -> Any:
    """The attribute of a replaced module."""
    if real.__name__ in NUMPY_NAMESPACES:
        if name in _CREATION:
            return _creation_function(tensor_module, name)
        if name in ("ndenumerate", "nditer"):
            return getattr(import_module("wengert._engine.frontend.running.iterables"), name)
        if name == "random":  # wengert.random has other generators
            return real.random
    if real is math:
        return _math_attribute(name)
    full = f"{real.__name__}.{name}"
    if full in NAMESPACES and isinstance(getattr(real, name, None), ModuleType):
        return replacement(getattr(real, name))
    if tensor_module is not None and name in (getattr(tensor_module, "__all__", None) or ()):
        return getattr(tensor_module, name)
    if tensor_module is not None and name in vars(tensor_module).get("_PLAIN_FUNCTIONS", ()):
        return getattr(tensor_module, name)  # refuses tensors, and names what to use instead
    return getattr(real, name)


@functools.cache
def _namespace(name: str) -> Namespace:
    real = sys.modules[name]
    target = NAMESPACES[name]
    return Namespace(real, None if target == "math" else import_module(target))


REPLACED_MODULES: dict[int, tuple[Any, Any]] = {}  # by identity: the module, its replacement
_function_replacements: dict[int, tuple[Any, Any]] = {}
_REPLACED_TYPES = (BuiltinFunctionType, FunctionType, type)
_REPLACED_PACKAGES = ("numpy", "scipy", "math", "wengert.numpy")


def replacement(x: Any) -> Any:
    """The object to use instead of `x` in a converted function; `x` itself for most objects."""
    known = REPLACED_MODULES.get(id(x))
    if known is not None:
        return known[1]
    cls = type(x)
    if cls is ModuleType or isinstance(x, ModuleType):
        name = x.__name__
        if name not in NAMESPACES or sys.modules.get(name) is not x:
            return x
        namespace = _namespace(name)
        REPLACED_MODULES[id(x)] = x, namespace  # keeps the module, so no other object has its id
        return namespace
    if isinstance(x, _REPLACED_TYPES) or cls.__name__ == "_ArrayFunctionDispatcher":
        known = _function_replacements.get(id(x))
        if known is not None and known[0] is x:
            return known[1]
        return _function_replacement(x)
    return x


def _function_replacement(x: object) -> Any:
    """The replacement of a function or class imported from a replaced module."""
    module = getattr(x, "__module__", None)
    name = getattr(x, "__name__", None)
    if type(module) is not str or type(name) is not str:
        return x
    if not module.startswith(_REPLACED_PACKAGES):
        return x
    substitute = x
    package = "wengert.numpy" if module.startswith("wengert.numpy") else module
    parts = package.split(".")
    for count in range(len(parts), 0, -1):
        candidate = ".".join(parts[:count])
        real = sys.modules.get(candidate)
        if candidate in NAMESPACES and real is not None and vars(real).get(name) is x:
            substitute = getattr(_namespace(candidate), name)
            break
    if len(_function_replacements) > 4096:
        _function_replacements.clear()
    _function_replacements[id(x)] = x, substitute
    return substitute


def has_replacement(x: object) -> bool:
    """Whether an object is replaced in converted functions."""
    return replacement(x) is not x


# ---- creation functions --------------------------------------------------------------------------


@functools.cache
def _creation_function(module: ModuleType | None, name: str) -> Any:
    create = getattr(module, name)
    if not callable(create):
        return _IndexedCreation(create)
    make = _created_uninitialized if name in ("empty", "empty_like") else _created
    return functools.wraps(create)(functools.partial(make, create))


class _IndexedCreation:
    """`numpy.mgrid` and `numpy.ogrid`."""

    def __init__(self, grid: Any) -> None:
        self._grid = grid

    def __getitem__(self, key: Any) -> Any:
        return _as_tensor(self._grid[key])


def _created(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a creation function, as a tensor with a known value."""
    if args and getattr(type(args[0]), "is_window", False):  # elements of unknown number
        return applied(function.__name__, args, kwargs)
    if args and isinstance(args[0], LabelledTensor):
        args = (args[0].values, *args[1:])
    return _as_tensor(function(*args, **kwargs))


def _created_uninitialized(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The same for a creation function that leaves the elements as they are in memory.

    A graph has zeros, so that it is the same graph in every process (its program is cached).
    """
    array = function(*args, **kwargs)
    if type(array) is np.ndarray and array.dtype.kind in "biufc" and current_trace() is not None:
        array.fill(0)
    return _as_tensor(array)


def _as_tensor(array: object) -> Any:
    if type(array) is not np.ndarray or array.dtype.kind not in "biufc":
        return array
    # Outside of a trace, arrays of integers and booleans only ever store plain numbers.
    if array.dtype.kind not in "fc" and current_trace() is None:
        return array
    return wrap(constant(array))


def buffer_of(x: Any) -> Any:
    """An array that only the caller's expression refers to, as a tensor; anything else as it is."""
    if type(x) is not np.ndarray:
        return x
    if is_unshared(x):
        return _as_tensor(x)
    return _as_tensor(x.copy()) if is_unshared_view(x) else x


def new_array(*args: Any, **kwargs: Any) -> Any:
    """``np.ndarray(shape)``."""
    has_memory = len(args) > 2 or "buffer" in kwargs
    make = _created if has_memory else _created_uninitialized
    return make(np.ndarray, *args, **kwargs)


def isinstance_(x: object, classes: Any) -> bool:
    """``isinstance``, where a tensor counts as an array, a NumPy scalar or a Python number."""
    if isinstance(x, classes):
        return True
    if not isinstance(x, Handle):
        return False
    spec = describe(x)
    if spec.shape:
        numpy_type: type = np.ndarray
    elif spec.weak:
        numpy_type = type(np.zeros((), spec.dtype).item())
    else:
        numpy_type = spec.dtype.type
    candidates = classes if isinstance(classes, tuple) else getattr(classes, "__args__", (classes,))
    return any(
        issubclass(numpy_type, c) if isinstance(c, type) else isinstance_(x, c) for c in candidates
    )


# ---- math ----------------------------------------------------------------------------------------

_NUMPY_NAME = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "fabs": "absolute", "gamma": "scipy.special.gamma",
    "lgamma": "scipy.special.gammaln", "erf": "scipy.special.erf", "erfc": "scipy.special.erfc",
    "pow": "float_power", "dist": "", "fsum": "",
}  # fmt: skip
_SAME_NAME = (
    "cbrt copysign cos cosh degrees exp exp2 expm1 fmod hypot isfinite isinf isnan log10 log1p "
    "log2 nextafter radians sin sinh sqrt tan tanh ldexp isclose gcd lcm"
).split()


@functools.cache
def _math_attribute(name: str) -> Any:
    math_function = getattr(math, name)
    if not callable(math_function):
        return math_function
    special = {"log": _log, "floor": _rounded("floor"), "ceil": _rounded("ceil"),
               "trunc": _rounded("trunc"), "fsum": _fsum, "prod": _prod, "dist": _dist}  # fmt: skip
    if name in special:
        return functools.wraps(math_function)(
            functools.partial(_call_math, math_function, cast(Callable[..., Any], special[name]))
        )
    numpy_name = _NUMPY_NAME.get(name) or (name if name in _SAME_NAME else None)
    if numpy_name is None:
        return math_function
    of_tensors = functools.partial(_call_namespace, *numpy_name.rpartition(".")[::2])
    return functools.wraps(math_function)(functools.partial(_call_math, math_function, of_tensors))


def _call_namespace(module: str, name: str, *args: Any, **kwargs: Any) -> Any:
    return getattr(import_module(NAMESPACES[module or "numpy"]), name)(*args, **kwargs)


def _call_math(
    math_function: Callable[..., Any],
    tensor_function: Callable[..., Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Call a function of `math`, or, if an argument is a tensor, the corresponding one of NumPy."""
    tensors = [a for a in args if isinstance(a, Handle)]
    takes_sequences = args and isinstance(args[0], list | tuple)
    if takes_sequences:
        tensors += [
            a for x in args if isinstance(x, list | tuple) for a in x if isinstance(a, Handle)
        ]
    if not tensors:
        return math_function(*args, **kwargs)
    if not takes_sequences and math_function not in (math.fsum, math.prod, math.dist):
        args = tuple([_scalar(a) if isinstance(a, Handle) else a for a in args])
        _check_domain(math_function, args, kwargs)
    return tensor_function(*args, **kwargs)


def _check_domain(
    math_function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raise what `math` raises for values that are known, where NumPy returns NaN or infinity.

    Raises
    ------
    ValueError, OverflowError
    """
    values = [value_of(a) for a in args]
    if not any(isinstance(v, Handle) for v in values):
        math_function(*values, **kwargs)


def _scalar(x: Any) -> Any:
    """An argument of a function of `math`: a tensor of one element, as a number.

    Raises the TypeError of ``float(x)`` for other shapes.
    """
    shape = shape_of(x)
    if not shape:
        return x
    try:
        float(np.empty([n if isinstance(n, int) else 2 for n in shape]))
    except TypeError as error:
        raise TypeError(f"{error}{at(user_line())}") from None
    return x.reshape(())


def _log(x: object, base: Any = None) -> Any:
    log = lookup("log")
    return log(x) if base is None else log(x) / log(base)


def _rounded(name: str) -> Callable[[Any], Any]:
    def integer(x: Any) -> Any:
        if not is_traced(x):
            return getattr(math, name)(x)
        return lookup(name)(x).astype(np.int64)

    return integer


def _fsum(values: Any) -> Any:
    return sum(values[1:], values[0] * 1.0)


def _prod(values: Any, start: Any = 1) -> Any:
    for x in values:
        start = start * x
    return start


def _dist(p: Any, q: Any) -> Any:
    return lookup("sqrt")(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)))
