"""Moving windows of `SeriesTensor` and `TableTensor`, with the meaning of pandas.

PandasWindows   the methods `rolling`, `diff`, `pct_change` and `dropna`, as a mixin
Rolling         what `rolling(n)` gives: windows of n rows, each of which ends at its label
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line

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
