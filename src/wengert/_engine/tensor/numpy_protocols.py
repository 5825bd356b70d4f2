"""NumPy's protocols: NumPy's functions dispatch to operations when called with tensors.

`__array_ufunc__` looks up the operation of a ufunc in the registry; `__array_function__` the
function that `wengert.numpy` has registered with `@implements`.  `out=` makes the given tensor
refer to the result; `where=` selects.  A function without counterpart raises an error: converting
to plain numbers would lose the derivative silently.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from wengert._engine.core.dispatch import quick_unary
from wengert._engine.core.handle import Handle, dtype_of, shape_of, value_of
from wengert._engine.core.lazy_import import load_families
from wengert._engine.core.node import Node
from wengert._engine.core.op import REGISTRY
from wengert._engine.core.other_libraries import beside_tensors, has_own_functions, is_of_pandas
from wengert._engine.kinds.elementwise import Elementwise
from wengert._engine.ops import casts
from wengert._engine.ops.elementwise import selection
from wengert.errors import (
    ConversionError,
    DtypeError,
    NotDifferentiableError,
    ShapeError,
    at,
    user_line,
)

from .operand_conversion import NUMERIC, has_own_ufuncs, operands, without_lists

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
UFUNCS: dict[np.ufunc, Callable[..., Any]] = {}
# Operations of ufuncs of one operand, which are looked up first.
SINGLE: dict[np.ufunc, Callable[[Any], Any]] = {}
METHODS: dict[str, Callable[..., Any]] = {}
NAMESPACE: list[Any] = []


def implements(*functions: Any) -> Callable[[Any], Any]:
    """Register a function as the implementation of NumPy functions for tensors (a decorator)."""

    def register(ours: Any) -> Any:
        for function in functions:
            if isinstance(function, np.ufunc):
                UFUNCS[function] = ours
                SINGLE.pop(function, None)
            else:
                FUNCTIONS[function] = ours
        return ours

    return register


def implements_method(method: str) -> Callable[[Any], Any]:
    """Register a function as `ufunc.reduce`, `.accumulate`, `.outer`, ... for tensors."""

    def register(ours: Any) -> Any:
        METHODS[method] = ours
        return ours

    return register


def operation_of(ufunc: np.ufunc) -> Callable[..., Any]:
    """The operation of a ufunc.

    Raises
    ------
    NotDifferentiableError
        There is none.
    """
    ours = UFUNCS.get(ufunc) or _registered(ufunc)
    is_numpys = getattr(np, ufunc.__name__, None) is ufunc
    if ours is None and not is_numpys:  # SciPy's, loaded lazily
        load_families(lambda: _registered(ufunc) is not None, "special")
        ours = UFUNCS.get(ufunc)
    if ours is None:
        module = "numpy" if is_numpys else "scipy.special"
        raise NotDifferentiableError(
            f"{module}.{ufunc.__name__} was called with a tensor, and wengert has no operation for "
            "it. Convert with .detach().numpy() if no derivative is wanted, or register one "
            f"(wengert.extend){at(user_line())}."
        )
    return ours


def _registered(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """The operation registered for a ufunc."""
    for op in cast(Any, REGISTRY).values():
        registered_ufunc: Any = getattr(op, "ufunc", None)
        if registered_ufunc is not None:
            UFUNCS.setdefault(registered_ufunc, op)
            if (
                UFUNCS[registered_ufunc] is op
                and isinstance(op, Elementwise)
                and len(op.rules) == 1
            ):
                SINGLE[registered_ufunc] = quick_unary(op)
    return UFUNCS.get(ufunc)


class Protocols:
    """Mixin: the methods of NumPy's protocols."""

    __slots__ = ()
    __array_priority__ = 1000.0
    __pandas_priority__ = 5000  # above pandas' classes: Series * tensor is a tensor

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and method == "__call__":
            quick = SINGLE.get(ufunc)
            if quick is not None:
                return quick(args[0])
        if method == "__call__":
            tensor_class = type(self)
            for a in args:
                if type(a) is not tensor_class and type(a) not in NUMERIC:
                    if any(map(is_of_pandas, args)):
                        pairs = [beside_tensors(a) if is_of_pandas(a) else a for a in args]
                        return ufunc(*pairs, **kwargs)
                    args = operands(args)
                    if any(map(has_own_ufuncs, args)):
                        return NotImplemented  # NumPy then calls the method of its class
                    break
            if kwargs:
                return _call_with(ufunc, args, kwargs)
            ours = UFUNCS.get(ufunc)
            return operation_of(ufunc)(*args) if ours is None else ours(*args)
        if method == "outer":  # other methods take indices, or convert their operands
            args = operands(args)
        out = kwargs.pop("out", None)
        result = METHODS[method](ufunc, *args, **kwargs)
        return result if out is None else deliver(result, out)

    def __array_function__(
        self, func: Any, types: tuple[type[Any], ...], args: tuple[Any, ...], kwargs: dict[Any, Any]
    ) -> Any:
        ours = FUNCTIONS.get(func)
        if len(types) > 1 and any(map(has_own_functions, args)):
            return NotImplemented  # NumPy then calls the method of its class
        if ours is not None:
            for a in args:
                if type(a) is list or type(a) is tuple:
                    args, kwargs = without_lists(func, args, kwargs)
                    break
            return ours(*args, **kwargs)
        module = getattr(func, "__module__", "numpy")
        raise NotDifferentiableError(
            f"{module}.{func.__name__} was called with a tensor, and wengert has no counterpart "
            "for it. Convert with .detach().numpy() if no derivative is wanted, or write it with "
            f"other functions{at(user_line())}."
        )

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The module whose functions accept tensors: wengert.numpy."""
        return NAMESPACE[0]


def _call_with(ufunc: np.ufunc, args: Any, kwargs: dict[str, Any]) -> Any:
    out = kwargs.pop("out", None)
    mask = kwargs.pop("where", True)
    dtype = kwargs.pop("dtype", None)
    kwargs.pop("casting", None)
    kwargs.pop("order", None)
    params = {"axis": kwargs.pop("axis")} if "axis" in kwargs and ufunc.signature else {}
    if kwargs.pop("subok", True) is not True or kwargs:
        raise NotDifferentiableError(
            f"numpy.{ufunc.__name__} with {', '.join(kwargs) or 'subok=False'} has no counterpart "
            f"for tensors. Leave it out{at(user_line())}."
        )
    if dtype is not None:
        args = [casts.astype(a, dtype) for a in args]
    # Elements outside of the mask are computed too; their warnings are suppressed.
    with np.errstate(all="ignore") if mask is not True else contextlib.nullcontext():
        result = operation_of(ufunc)(*args, **params)
    if mask is not True:
        results = result if isinstance(result, tuple) else (result,)
        pairs = zip(results, out or [None] * len(results), strict=True)
        selected = [selection.where(mask, r, r.dtype.type(0) if o is None else o) for r, o in pairs]
        result = tuple(selected) if isinstance(result, tuple) else selected[0]
    return result if out is None else deliver(result, out)


def deliver(result: Array | tuple[Array, ...], out: Array | tuple[Array | None, ...]) -> Any:
    """Write results to `out=`, with NumPy's casting rule; return the targets."""
    outs = out if isinstance(out, tuple) else (out,)
    results = result if isinstance(result, tuple) else (result,)
    targets = []
    for r, o in zip(results, outs, strict=True):
        targets.append(r if o is None else _deliver_one(r, o))
    return tuple(targets) if isinstance(result, tuple) else targets[0]


def _deliver_one(result: Any, out: Any) -> Any:
    if isinstance(out, Handle):
        out._assign(fitted(result, out, "out="))  # type: ignore[attr-defined]
        return out
    if isinstance(result, Handle) and type(result.node) is Node:
        raise ConversionError(
            "out= (or an in-place operator) names a plain array, but the result is recorded for a "
            "derivative, which a plain array cannot hold. Make the array a tensor "
            f"(wengert.tensor(array), or np.zeros(n, like=x)){at(user_line())}."
        )
    np.copyto(out, value_of(result), casting="same_kind")
    return out


def fitted(result: Array, target: Any, what: str) -> Any:
    """`result` with the shape and dtype of `target`, as NumPy's in-place operations require."""
    shape = shape_of(result)
    if shape != target.shape:
        raise ShapeError(
            f"{what}: the result has shape {shape}, which does not fit into shape {target.shape}. "
            f"Write it as a new array{at(user_line())}."
        )
    dtype = dtype_of(result)
    if dtype == target.dtype:
        return result
    if not np.can_cast(dtype, target.dtype, "same_kind"):
        raise DtypeError(
            f"{what}: a result of {dtype} cannot be cast to {target.dtype} by the rule "
            f"'same_kind'. Cast the target first, x = x.astype({str(dtype)!r}){at(user_line())}."
        )
    return casts.astype(result, target.dtype)
