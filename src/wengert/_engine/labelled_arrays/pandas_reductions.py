"""Sums and moments of `SeriesTensor` and `TableTensor`, with the meaning of pandas.

NaN is skipped (``skipna=True``), `std` and `var` divide by n - 1 (``ddof=1``), and a DataFrame is
reduced along its rows (``axis=0``).

    PandasReductions   the methods, as a mixin
    METHODS            their names
    Axis               the argument `axis`
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from wengert._engine.core.handle import dtype_of, value_of
from wengert.errors import ArgumentError, at, user_line

from .pandas_labels import SeriesAxes, TableAxes

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
