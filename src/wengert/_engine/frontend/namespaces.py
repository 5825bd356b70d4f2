"""Namespaces: the replacements of numpy, scipy and math in user functions.

A module is exchanged for one with the same names, whose functions take tensors too.  Names that are
not defined here are those of the module itself.

    exchanged     the replacement of a module, or of a function or class of one
    isinstance_   the replacement of `isinstance`
    new_array     the replacement of ``numpy.ndarray(...)``
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

from wengert._engine.core.conversion_hook import NAMESPACES
from wengert._engine.core.handle import Handle, describe, is_traced, shape_of, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import current_trace
from wengert.errors import at, user_line

# Functions that make arrays, to be filled with values that may be traced.
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
        The user's module, which has the names that are not defined here.
    ours : module or None
        The module whose names have priority.
    """

    def __init__(self, real: ModuleType, ours: ModuleType | None) -> None:
        super().__init__(real.__name__, real.__doc__)
        self.__dict__["_modules"] = real, ours

    def __getattr__(self, name: str) -> Any:
        real, ours = self.__dict__["_modules"]
        found = _defined(real, ours, name)
        if not name.startswith("_"):
            self.__dict__[name] = found
        return found

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.__dict__["_modules"][0], name, value)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_modules"][0])

    def __repr__(self) -> str:
        return repr(self.__dict__["_modules"][0])


def _defined(real: ModuleType, ours: ModuleType | None, name: str) -> Any:
    """The value of a name of a replaced module."""
    if real.__name__ in ("numpy", "wengert.numpy"):
        if name in _CREATION:
            return _creation(name)
        if name == "random":  # ours are functions of other generators
            return real.random
    if real is math:
        return _of_math(name)
    full = f"{real.__name__}.{name}"
    if full in NAMESPACES and isinstance(getattr(real, name, None), ModuleType):
        return replacement(getattr(real, name))
    if ours is not None and name in (getattr(ours, "__all__", None) or ()):
        return getattr(ours, name)
    return getattr(real, name)


@functools.cache
def _namespace(name: str) -> Namespace:
    real = sys.modules[name]
    target = NAMESPACES[name]
    return Namespace(real, None if target == "math" else import_module(target))


_functions: dict[int, tuple[Any, Any]] = {}
_KINDS = (BuiltinFunctionType, FunctionType, type)
_ROOTS = ("numpy", "scipy", "math", "wengert.numpy")


def replacement(x: Any) -> Any:
    """The object to use instead of one that a user function refers to; `x` itself for most."""
    cls = type(x)
    if cls is ModuleType or isinstance(x, ModuleType):
        name = x.__name__
        return _namespace(name) if name in NAMESPACES and sys.modules.get(name) is x else x
    if isinstance(x, _KINDS) or type(x).__name__ == "_ArrayFunctionDispatcher":
        known = _functions.get(id(x))
        if known is not None and known[0] is x:
            return known[1]
        return _function(x)
    return x


def _function(x: object) -> Any:
    """The replacement of a function or class imported from a replaced module."""
    module = getattr(x, "__module__", None)
    name = getattr(x, "__name__", None)
    if type(module) is not str or type(name) is not str:
        return x
    if not module.startswith(_ROOTS):
        return x
    made = x
    package = "wengert.numpy" if module.startswith("wengert.numpy") else module
    for candidate in (package, package.rpartition(".")[0], package.partition(".")[0]):
        real = sys.modules.get(candidate)
        if candidate in NAMESPACES and real is not None and vars(real).get(name) is x:
            made = getattr(_namespace(candidate), name)
            break
    if len(_functions) > 4096:
        _functions.clear()
    _functions[id(x)] = x, made
    return made


def has_replacement(x: object) -> bool:
    """Whether a function that refers to an object needs a replacement of it."""
    return replacement(x) is not x


# ---- arrays that are filled ----------------------------------------------------------------------


@functools.cache
def _creation(name: str) -> Any:
    ours = getattr(import_module(NAMESPACES["numpy"]), name)
    if not callable(ours):
        return _Indexed(ours)
    return functools.wraps(ours)(functools.partial(_made, ours))


class _Indexed:
    """`numpy.mgrid` and `numpy.ogrid`."""

    def __init__(self, ours: Any) -> None:
        self._ours = ours

    def __getitem__(self, key: Any) -> Any:
        return _buffer(self._ours[key])


def _made(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """An array made by a function of NumPy, as a tensor with a known value."""
    return _buffer(function(*args, **kwargs))


def _buffer(made: object) -> Any:
    if type(made) is not np.ndarray or made.dtype.kind not in "biufc":
        return made
    # Without a trace, integers and booleans that are stored are plain numbers.
    if made.dtype.kind not in "fc" and current_trace() is None:
        return made
    return wrap(constant(made))


def new_array(*args: Any, **kwargs: Any) -> Any:
    """``np.ndarray(shape)``."""
    return _buffer(np.ndarray(*args, **kwargs))


def isinstance_(x: object, classes: Any) -> bool:
    """``isinstance``, where a tensor counts as the type of its value in NumPy."""
    if isinstance(x, classes):
        return True
    if not isinstance(x, Handle):
        return False
    spec = describe(x)
    if spec.shape:
        kind: type = np.ndarray
    elif spec.weak:
        kind = type(np.zeros((), spec.dtype).item())
    else:
        kind = spec.dtype.type
    given = classes if isinstance(classes, tuple) else getattr(classes, "__args__", (classes,))
    return any(issubclass(kind, c) if isinstance(c, type) else isinstance_(x, c) for c in given)


# ---- math ----------------------------------------------------------------------------------------

_MATH = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "fabs": "absolute", "gamma": "scipy.special.gamma",
    "lgamma": "scipy.special.gammaln", "erf": "scipy.special.erf", "erfc": "scipy.special.erfc",
    "pow": "float_power", "dist": "", "fsum": "",
}  # fmt: skip
_SAME = (
    "cbrt copysign cos cosh degrees exp exp2 expm1 fmod hypot isfinite isinf isnan log10 log1p "
    "log2 nextafter radians sin sinh sqrt tan tanh ldexp isclose gcd lcm"
).split()


@functools.cache
def _of_math(name: str) -> Any:
    python = getattr(math, name)
    if not callable(python):
        return python
    special = {"log": _log, "floor": _rounded("floor"), "ceil": _rounded("ceil"),
               "trunc": _rounded("trunc"), "fsum": _fsum, "prod": _prod, "dist": _dist}  # fmt: skip
    if name in special:
        return functools.wraps(python)(
            functools.partial(_number_function, python, cast(Callable[..., Any], special[name]))
        )
    ours = _MATH.get(name) or (name if name in _SAME else None)
    if ours is None:
        return python
    of_tensors = functools.partial(_of_namespace, *ours.rpartition(".")[::2])
    return functools.wraps(python)(functools.partial(_number_function, python, of_tensors))


def _of_namespace(module: str, name: str, *args: Any, **kwargs: Any) -> Any:
    return getattr(import_module(NAMESPACES[module or "numpy"]), name)(*args, **kwargs)


def _number_function(
    python: Callable[..., Any], ours: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """A function of `math`, of tensors too."""
    given = [a for a in args if isinstance(a, Handle)]
    listed = args and isinstance(args[0], list | tuple)
    if listed:
        given += [
            a for x in args if isinstance(x, list | tuple) for a in x if isinstance(a, Handle)
        ]
    if not given:
        return python(*args, **kwargs)
    if not listed and python not in (math.fsum, math.prod, math.dist):
        args = tuple([_scalar(a) if isinstance(a, Handle) else a for a in args])
    return ours(*args, **kwargs)


def _scalar(x: Any) -> Any:
    """A number for a function of `math`, which takes the arrays that NumPy converts to numbers."""
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
