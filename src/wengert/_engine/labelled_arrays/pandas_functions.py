"""Functions of `SeriesTensor` and `TableTensor`: NumPy's, reductions and moving windows.

    PandasReductions    the methods, as a mixin
    METHODS             their names
    Axis                the argument `axis`
    PandasWindows       the methods `rolling`, `diff`, `pct_change` and `dropna`, as a mixin
    Rolling             what `rolling(n)` gives: windows of n rows, each of which ends at its label
    call_function       the result of a function of NumPy
    call_ufunc          the result of a ufunc

NaN is skipped (``skipna=True``), `std` and `var` divide by n - 1 (``ddof=1``), and a DataFrame is
reduced along its rows (``axis=0``).

`np.sum` and a few others call the method of the object, so that NaN is skipped; `np.std` and
`np.var` divide by n, also for objects of pandas.  `np.flip` and others return objects of pandas,
and are refused here.  All others convert their arguments to arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from wengert._engine.core.handle import dtype_of, value_of
from wengert._engine.core.other_libraries import LabelledTensor, is_of_pandas
from wengert.errors import ArgumentError, OperandError, at, user_line

from .pandas_labels import SeriesAxes, TableAxes, elementwise, given, product

Axis = int | str | None
METHODS = "sum prod mean median min max var std any all".split()
_SKIPPING = "sum prod mean median min max var std".split()


class PandasReductions:
    """Mixin: reductions and cumulative sums."""

    __slots__ = ()
    labels: Any
    values: Any

    def sum(self, axis: Axis = 0, skipna: bool = True) -> Any:
        """The sum."""
        return self._reduced("sum", axis, skipna)

    def prod(self, axis: Axis = 0, skipna: bool = True) -> Any:
        """The product."""
        return self._reduced("prod", axis, skipna)

    def mean(self, axis: Axis = 0, skipna: bool = True) -> Any:
        """The mean."""
        return self._reduced("mean", axis, skipna)

    def median(self, axis: Axis = 0, skipna: bool = True) -> Any:
        """The median."""
        return self._reduced("median", axis, skipna)

    def min(self, axis: Axis = 0, skipna: bool = True) -> Any:
        """The smallest element."""
        return self._reduced("min", axis, skipna)

    def max(self, axis: Axis = 0, skipna: bool = True) -> Any:
        """The largest element."""
        return self._reduced("max", axis, skipna)

    def var(self, axis: Axis = 0, skipna: bool = True, ddof: int = 1) -> Any:
        """The variance, divided by n - ddof."""
        return self._reduced("var", axis, skipna, ddof=ddof)

    def std(self, axis: Axis = 0, skipna: bool = True, ddof: int = 1) -> Any:
        """The standard deviation, of the variance divided by n - ddof."""
        return self._reduced("std", axis, skipna, ddof=ddof)

    def any(self, axis: Axis = 0) -> Any:
        """Whether some element is true; NaN is not."""
        if dtype_of(self.values).kind in "fc":
            return (self.notna() & self.ne(0)).any(axis)  # type: ignore[attr-defined]
        return self._reduced("any", axis, False)

    def all(self, axis: Axis = 0) -> Any:
        """Whether all elements are true."""
        return self._reduced("all", axis, False)

    def cumsum(self, axis: Axis = 0, skipna: bool = True) -> Any:
        """Sums up to each element; NaN stays NaN, and is skipped in the others."""
        return self._cumulative(np.cumsum, 0.0, axis, skipna)

    def cumprod(self, axis: Axis = 0, skipna: bool = True) -> Any:
        """Products up to each element."""
        return self._cumulative(np.cumprod, 1.0, axis, skipna)

    def _cumulative(
        self, function: Callable[..., Any], neutral: float, axis: Axis, skipna: bool
    ) -> Any:
        k, x = self._axis(axis), self.values
        if dtype_of(x).kind not in "fc" or not skipna:
            return self.labels.wrap(function(x, axis=k or 0))
        missing = np.isnan(value_of(x))
        sums = function(np.where(missing, neutral, x), axis=k or 0)
        return self.labels.wrap(np.where(missing, np.nan, sums))

    def _reduced(self, name: str, axis: Axis, skipna: bool, **options: Any) -> Any:
        k = self._axis(axis)
        skips = skipna and name in _SKIPPING and dtype_of(self.values).kind in "fc"
        function = getattr(np, f"nan{name}" if skips else name)
        result = function(self.values, axis=k, **options)
        if isinstance(self.labels, SeriesAxes) or k is None:
            return result
        return SeriesAxes(self.labels.columns if k == 0 else self.labels.index).wrap(result)

    def _axis(self, axis: Axis) -> int | None:
        """The axis of the values: 0 or 1, or None for both of a table."""
        is_table = isinstance(self.labels, TableAxes)
        if axis in (0, "index", "rows") or (axis is None and not is_table):
            return 0
        if is_table and axis in (1, "columns"):
            return 1
        if axis is None and is_table:
            if int(pd.__version__.split(".")[0]) < 3:
                raise ArgumentError(
                    "axis=None of a DataFrame means both axes in pandas 3, and the rows in earlier "
                    f"versions. Give axis=0 or 1, or use x.to_numpy(){at(user_line())}."
                )
            return None
        raise ArgumentError(
            f"axis={axis!r} of a {'DataFrame' if is_table else 'Series'}: must be 0"
            f"{', 1 or None' if is_table else ''}{at(user_line())}."
        )


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "mean": np.mean,
    "median": np.median,
    "min": np.min,
    "max": np.max,
}
MOMENTS: dict[str, Callable[..., Any]] = {"var": np.var, "std": np.std}


class Rolling:
    """Windows of rows; the first rows, whose windows are not full, are NaN.

    Parameters
    ----------
    of : LabelledValues
    window : int
        The number of rows of a window.
    """

    def __init__(self, of: Any, window: int) -> None:
        self._of, self._window = of, window

    def __getattr__(self, name: str) -> Any:
        if name in REDUCTIONS:
            return lambda: self._reduced(REDUCTIONS[name])
        if name in MOMENTS:
            return lambda ddof=1: self._reduced(lambda x, axis: MOMENTS[name](x, axis, ddof=ddof))
        raise AttributeError(
            f"rolling windows of values that are differentiated or traced have no {name!r}, only "
            f"{', '.join([*REDUCTIONS, *MOMENTS])}"
        )

    def _reduced(self, function: Callable[..., Any]) -> Any:
        values, length = self._of.values.astype(float), self._of.shape[0]
        count = min(self._window - 1, length)  # rows without a full window
        rows = np.arange(length - count)[:, None] + np.arange(self._window)
        missing = np.full((count, *self._of.shape[1:]), np.nan)
        if count == length:
            return self._of.labels.wrap(missing)
        return self._of.labels.wrap(np.concatenate((missing, function(values[rows], axis=1))))


class PandasWindows:
    """Mixin: windows, changes, and elements that are not NaN."""

    __slots__ = ()

    def rolling(self: Any, window: int, **options: object) -> Rolling:
        """Windows of a number of rows, with `sum mean median min max var std`."""
        if options or isinstance(window, bool) or not isinstance(window, int) or window < 1:
            given = ", ".join(options) or repr(window)
            raise ArgumentError(
                f"rolling of values that are differentiated or traced was given {given}. It takes "
                "a positive number of rows, and no options; for others use the values, "
                f"x.to_numpy(), with functions of NumPy{at(user_line())}."
            )
        return Rolling(self, window)

    def diff(self: Any, periods: int = 1) -> Any:
        """Differences of each element and the one `periods` before it."""
        return self - self.shift(periods)

    def pct_change(self: Any, periods: int = 1) -> Any:
        """The change of each element relative to the one `periods` before it."""
        return self / self.shift(periods) - 1.0

    def dropna(self: Any) -> Any:
        """The elements, or the rows of a table, without NaN, whose number must be known."""
        kept = self.notna()
        return self[kept.all(axis=1) if self.ndim == 2 else kept]


_OF_METHODS = {*METHODS, "cumsum", "cumprod", "clip", "round"} - {"median"}
_SPELLED = {"amin": "min", "amax": "max", "around": "round"}
_OF_PANDAS = frozenset(
    """argmax argmin argpartition argsort choose compress diagonal flip nonzero partition put ravel
    repeat resize searchsorted squeeze swapaxes take trace transpose""".split()
)


def call_function(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``func(*args, **kwargs)``, where an argument is a SeriesTensor or a TableTensor."""
    name = _SPELLED.get(func.__name__, func.__name__)
    if args and isinstance(args[0], LabelledTensor):
        if name in _OF_METHODS:
            return _method(name, args, kwargs)
        if name in _OF_PANDAS:
            raise OperandError(
                f"numpy.{name} of a {args[0].__class__.__name__} with traced values is not "
                "supported, since its result would be an object of pandas. Use the values, "
                f"x.to_numpy(){at(user_line())}."
            )
    return func(*map(_values, args), **{k: _values(a) for k, a in kwargs.items()})


def _method(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, *rest = args
    options = {k: a for k, a in kwargs.items() if a is not None and k not in ("keepdims", "where")}
    if kwargs.get("keepdims") is True or "where" in kwargs or "out" in options:
        raise OperandError(
            f"numpy.{name} of an object of pandas takes neither keepdims, where nor out. Use the "
            f"values, x.to_numpy(){at(user_line())}."
        )
    if name in ("clip", "round"):
        return getattr(x, name)(*rest, **options)
    if "axis" not in options and not rest:
        options["axis"] = None if name not in ("cumsum", "cumprod") else 0
    if name in ("std", "var"):
        options.setdefault("ddof", 0)
    return getattr(x, name)(*rest, **options)


def _values(x: Any) -> Any:
    if isinstance(x, LabelledTensor) or is_of_pandas(x):
        return given(x)[1]
    if type(x) in (list, tuple):
        return type(x)(map(_values, x))
    return x


def call_ufunc(ufunc: np.ufunc, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a ufunc, with the labels of its operands."""
    if method != "__call__":
        return getattr(ufunc, method)(*map(_values, args), **kwargs)
    if kwargs:
        raise OperandError(
            f"numpy.{ufunc.__name__} of an object of pandas with traced values takes no "
            f"{', '.join(kwargs)}. Use the values, x.to_numpy(){at(user_line())}."
        )
    if ufunc is np.matmul:
        return product(*args)
    return elementwise(ufunc, *args)
