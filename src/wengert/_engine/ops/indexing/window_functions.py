"""NumPy's functions of windows: their registration, and reductions.

Elements outside of a window are given values that do not affect the result: zeros for a sum, ones
for a product, the greatest value for what sorts, so that they come last.

Scans and sorting are in window_sorting.py, joins and products in window_joining.py.

function       register a function under NumPy's names
applied        a function of NumPy, or a method, with windows among its arguments
has_windows    whether there are windows among arguments
as_window, first_window, flat, from_start, line, of_axis    arguments as windows
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, shape_of
from wengert._engine.core.op import lookup
from wengert.errors import TraceError, at, user_line

from ..elementwise.selection import where
from .slice_ends import SliceRange
from .window_operators import elementwise, moved_to_start, without_selection
from .windows import Window

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Axes, Operand

Function = Callable[..., Any]
FUNCTIONS: dict[str, Function] = {}


_OF_SEQUENCES = frozenset(("concatenate", "hstack", "stack", "vstack", "column_stack"))


def function(*names: str) -> Callable[[Function], Function]:
    """Register a function under NumPy's names (a decorator); its first argument is a window."""

    def register(f: Function) -> Function:
        FUNCTIONS.update(dict.fromkeys(names, f))
        return f

    return register


def has_windows(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether there are windows among the arguments of a function of NumPy."""
    return any(
        getattr(type(a), "is_window", False)
        or (type(a) in (list, tuple) and any(getattr(type(b), "is_window", False) for b in a))
        for a in (*args, *kwargs.values())
    )


def applied(name: str, given: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A function of NumPy with windows among its arguments."""
    args = [without_selection(a) for a in given]
    kwargs = {name: without_selection(a) for name, a in kwargs.items()}
    function = FUNCTIONS.get(name)
    if function is None:
        raise first_window(args, name).refusal(f"np.{name}")
    if args and name not in _OF_SEQUENCES:
        args[0] = as_window(args[0])
    try:
        return function(*args, **kwargs)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:
            raise first_window(args, name).refusal(f"np.{name} with these arguments") from error
        raise


def first_window(args: Sequence[Any], name: str) -> Window:
    """The first window among the arguments of a function."""
    for a in args:
        if isinstance(a, Window):
            return a
        if isinstance(a, list | tuple):
            return first_window(a, name)
    raise TraceError(
        f"np.{name} does not support a slice with traced bounds as a keyword argument"
        f"{at(user_line())}."
    )


def as_window(x: object) -> Window:
    """An array or list as a window of all of it."""
    if isinstance(x, Window):
        return x
    return Window(x if isinstance(x, Handle) else np.asarray(x), {})


def from_start(x: Window) -> Window:
    """A window whose elements begin at the start of each axis."""
    for axis in x.ranges:
        x = moved_to_start(x, axis)
    return x


def flat(x: Window) -> Window:
    """A window of one axis."""
    if x.ndim == 1:
        return from_start(x)
    if x.ndim == 0:
        return Window(x.whole.reshape((1,)), {})
    if not x.ranges:
        return Window(x.whole.reshape((-1,)), {})
    if list(x.ranges) == [0]:
        inner = int(np.prod([n for n in shape_of(x.whole)[1:]]))
        x = from_start(x)
        return Window(x.whole.reshape((-1,)), {0: SliceRange(0, x.length(0) * inner)})
    raise x.refusal("the elements in one axis")


def line(x: Window, axis: int | None) -> tuple[Window, int]:
    """A window from the start of an axis, and the axis; flat for None."""
    if axis is None:
        return flat(x), 0
    axis = axis % x.ndim
    return (moved_to_start(x, axis) if axis in x.ranges else x), axis


def of_axis(a: Window, axis: int) -> list[int]:
    """The axis if it is sliced, for `Window.filled`."""
    return [axis] if axis in a.ranges else []


# ---- reductions --------------------------------------------------------------------------------


def _kept(result: Any, x: Window, axis: Axes, keepdims: bool) -> Any:
    """A reduction with axes of length one instead of those that were reduced."""
    if not keepdims:
        return result
    reduced = x.axes(axis)
    index = tuple(None if k in reduced else slice(None) for k in range(x.ndim))
    return result[index]


def _reduction(name: str) -> Function:
    def run(
        a: Window,
        axis: Axes = None,
        dtype: object = None,
        out: None = None,
        keepdims: bool = False,
        initial: Operand | None = None,
        where: Array | bool = True,
    ) -> Any:
        if dtype is not None:
            a = a.astype(dtype)
        if out is not None:
            raise a.refusal(f"np.{name} with out=")
        if where is not True:
            a = _function_of_where(name, where, a)
        result = _kept(a.reduced(name, int(name == "prod"), axis), a, axis, keepdims)
        if initial is None:
            return result
        return result * initial if name == "prod" else result + initial

    return run


def _function_of_where(name: str, condition: Array | bool, a: Window) -> Any:
    neutral = 1 if name in ("prod", "all") else 0
    return elementwise(where, "add", condition, a, np.asarray(neutral, a.dtype)[()])


for _name in ("sum", "prod"):
    function(_name)(_reduction(_name))


def _nonzero(a: Window) -> Window:
    return elementwise(lookup("not_equal"), "not_equal", a, 0)


@function("any")
def _any(a: Window, axis: Axes = None, out: None = None, keepdims: bool = False) -> Any:
    return _kept(_nonzero(a).reduced("any", False, axis), a, axis, keepdims)


@function("all")
def _all(a: Window, axis: Axes = None, out: None = None, keepdims: bool = False) -> Any:
    return _kept(_nonzero(a).reduced("all", True, axis), a, axis, keepdims)


@function("mean")
def _mean(a: Window, axis: Axes = None, dtype: object = None, out: None = None,
          keepdims: bool = False) -> Any:  # fmt: skip
    a = a if dtype is None else a.astype(dtype)
    lengths, count = a.shape, 1
    for k in a.axes(axis):
        count = count * lengths[k]
    return _kept(a.reduced("sum", 0, axis) / count, a, axis, keepdims)


def _extreme(name: str) -> Function:
    def run(a: Window, axis: Axes = None, out: None = None, keepdims: bool = False,
            initial: Operand | None = None) -> Any:  # fmt: skip
        result = _kept(a.extreme(name, axis, initial is not None), a, axis, keepdims)
        if initial is None:
            return result
        return lookup("maximum" if name == "max" else "minimum")(result, initial)

    return run


function("max", "amax")(_extreme("max"))
function("min", "amin")(_extreme("min"))


@function("ptp")
def _ptp(a: Window, axis: Axes = None) -> Any:
    return a.max(axis) - a.min(axis)


@function("count_nonzero")
def _count_nonzero(a: Window, axis: Axes = None) -> Any:
    return _nonzero(a).reduced("sum", 0, axis)


@function("var")
def _var(a: Window, axis: Axes = None, dtype: object = None, out: None = None, ddof: float = 0,
         keepdims: bool = False, correction: float | None = None) -> Any:  # fmt: skip
    lengths = a.shape
    count: Any = 1
    for k in a.axes(axis):
        count = count * lengths[k]
    deviations = a - _kept(a.mean(axis), a, axis, True)
    squares = elementwise(lookup("square"), "multiply", deviations) if a.dtype.kind != "c" else (
        elementwise(lambda z: (z * z.conj()).real, "multiply", deviations)
    )  # fmt: skip
    freedom = lookup("maximum")(count - (ddof if correction is None else correction), 0)
    return _kept(squares.sum(axis) / freedom, a, axis, keepdims)


@function("std")
def _std(a: Window, *args: object, **kwargs: object) -> Any:
    variance = _var(a, *args, **kwargs)
    return np.sqrt(variance)


@function("average")
def _average(a: Window, axis: Axes = None, weights: Array | None = None) -> Any:
    if weights is None:
        return a.mean(axis)
    if axis is None and a.ndim == as_window(weights).ndim:
        return (a * weights).sum() / as_window(weights).sum()
    raise a.refusal("np.average with weights along one axis")


@function("norm")
def _norm(x: Window, ord: float | None = None, axis: Axes = None, keepdims: bool = False) -> Any:
    if not (
        ord is None or (x.ndim == 1 and ord in (1, 2, np.inf)) or (axis is not None and ord == 2)
    ):
        raise x.refusal(f"np.linalg.norm with ord={ord}")
    if ord in (1, np.inf):
        sizes = abs(x)
        return _kept(sizes.sum(axis) if ord == 1 else sizes.max(axis), x, axis, keepdims)
    axes = None if axis is None else axis if isinstance(axis, tuple) else (axis % x.ndim,)
    sliced = [k for k in x.ranges if axes is None or k in axes]
    if len(sliced) < len(x.ranges):
        squares = elementwise(lookup("square"), "multiply", x)
        return _kept(np.sqrt(squares.reduced("sum", 0, axis)), x, axis, keepdims)
    return _kept(lookup("norm2")(x.filled(0, sliced), axis=axes), x, axis, keepdims)


@function("logsumexp")
def _logsumexp(a: Window, axis: Axes = None) -> Any:
    return a.reduced("logsumexp", -np.inf, axis)


def _ignoring_nan(name: str, neutral: float) -> Function:
    def run(a: Window, axis: Axes = None) -> Any:
        fill = {"max": -np.inf, "min": np.inf}.get(name, neutral)
        filled = elementwise(
            lambda x: where(np.isnan(x), np.asarray(fill, a.dtype)[()], x), "add", a
        )
        return getattr(filled, name)(axis)

    return run


for _name, _neutral in (("sum", 0), ("prod", 1)):
    function(f"nan{_name}")(_ignoring_nan(_name, _neutral))


@function("nanmean")
def _nanmean(a: Window, axis: Axes = None) -> Any:
    known = elementwise(lambda x: ~np.isnan(x), "add", a)
    return FUNCTIONS["nansum"](a, axis) / known.sum(axis)


# ---- methods ---------------------------------------------------------------------------------

_UFUNC_METHODS = {
    ("add", "reduce"): "sum", ("multiply", "reduce"): "prod", ("maximum", "reduce"): "max",
    ("minimum", "reduce"): "min", ("logical_and", "reduce"): "all", ("logical_or", "reduce"): "any",
    ("add", "accumulate"): "cumsum", ("multiply", "accumulate"): "cumprod",
    ("maximum", "accumulate"): "cummax", ("minimum", "accumulate"): "cummin",
}  # fmt: skip


def _ufunc_method(self: Window, ufunc: np.ufunc, method: str, a: Window, axis: int = 0) -> Any:
    """``np.add.reduce(x)``, ``np.maximum.accumulate(x)`` ..."""
    name = _UFUNC_METHODS.get((ufunc.__name__, method))
    if name is None:
        raise self.refusal(f"np.{ufunc.__name__}.{method}")
    return FUNCTIONS[name](a, axis)


def _array_function(
    self: Window, func: Function, types: object, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    return applied(func.__name__, args, kwargs)


def _method(name: str) -> Function:
    def run(self: Window, *args: object, **kwargs: object) -> Any:
        return applied(name, (self, *args), kwargs)

    return run


for _name in (
    "sum prod mean max min any all std var cumsum cumprod argmax argmin argsort clip ptp take "
    "nonzero ravel searchsorted round dot"
).split():
    setattr(Window, _name, _method(_name))
setattr(Window, "flatten", _method("ravel"))  # noqa: B010
setattr(Window, "ufunc_method", _ufunc_method)  # noqa: B010
setattr(Window, "__array_function__", _array_function)  # noqa: B010
