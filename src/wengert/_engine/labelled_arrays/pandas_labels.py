"""Indices of pandas.

    SeriesAxes   the index and the name of a Series
    TableAxes    the index and the columns of a DataFrame
    CLASSES      the classes of labels with traced values, set by pandas_tensors.py
    axes_of      the labels and the values of a Series or a DataFrame

Labels with values make an object of pandas if the values are plain, and a `SeriesTensor` or a
`TableTensor` if they are traced or recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from wengert._engine.core.handle import Handle, shape_of

from .labels import Axes, Refused, refuse_jacobian

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


CLASSES: dict[str, Callable[[Any, Any], Any]] = {}


def same_index(a: pd.Index, b: pd.Index) -> bool:
    """Whether two indices have the same labels, in the same order."""
    return a is b or bool(a.equals(b))


def _identical(a: pd.Index, b: pd.Index) -> bool:
    return a is b or bool(a.identical(b) and a.dtype == b.dtype)


class SeriesAxes:
    """The index and the name of a Series."""

    __slots__ = ("index", "name")

    def __init__(self, index: pd.Index, name: Any = None) -> None:
        self.index, self.name = index, name

    @property
    def shape(self) -> tuple[int, ...]:
        """The length."""
        return (len(self.index),)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SeriesAxes)
            and (self.name is other.name or bool(self.name == other.name))
            and _identical(self.index, other.index)
        )

    def __hash__(self) -> int:
        return hash((len(self.index), self.name))

    def wrap(self, values: Any) -> Any:
        """A Series, or a SeriesTensor."""
        if isinstance(values, Handle):
            return CLASSES["Series"](self, values)
        return pd.Series(values, index=self.index, name=self.name)

    def of_derivative(self) -> SeriesAxes:
        """The same index and name."""
        return self

    def agrees(self, other: Axes) -> bool:
        """Whether the indices are the same."""
        return isinstance(other, SeriesAxes) and same_index(self.index, other.index)

    def jacobian(self, argument: Axes | None, values: Any, what: str) -> Any:
        """A table of a row for each label of the output, a column for each of the argument."""
        if isinstance(argument, SeriesAxes):
            columns = argument.index
        elif argument is None and len(shape_of(values)) == 2:
            columns = pd.RangeIndex(shape_of(values)[1])
        else:
            refuse_jacobian(what, "the derivative of a Series by more than one axis has no labels")
        return TableAxes(self.index, columns).wrap(values)

    def jacobian_of_array(self, values: Any, what: str) -> Any:
        """A table of a row for each element of the output, a column for each label."""
        shape = shape_of(values)
        if len(shape) != 2:
            refuse_jacobian(what, "the derivative of an array of several axes by a Series")
        return TableAxes(pd.RangeIndex(shape[0]), self.index).wrap(values)


class TableAxes:
    """The index and the columns of a DataFrame."""

    __slots__ = ("columns", "index")

    def __init__(self, index: pd.Index, columns: pd.Index) -> None:
        self.index, self.columns = index, columns

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows and of columns."""
        return (len(self.index), len(self.columns))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TableAxes)
            and _identical(self.index, other.index)
            and _identical(self.columns, other.columns)
        )

    def __hash__(self) -> int:
        return hash(self.shape)

    def wrap(self, values: Any) -> Any:
        """A DataFrame, or a TableTensor."""
        if isinstance(values, Handle):
            return CLASSES["DataFrame"](self, values)
        return pd.DataFrame(values, index=self.index, columns=self.columns)

    def of_derivative(self) -> TableAxes:
        """The same index and columns."""
        return self

    def agrees(self, other: Axes) -> bool:
        """Whether index and columns are the same."""
        return (
            isinstance(other, TableAxes)
            and same_index(self.index, other.index)
            and same_index(self.columns, other.columns)
        )

    def jacobian(self, argument: Axes | None, values: Any, what: str) -> Any:
        """Refused: there are more than two axes."""
        refuse_jacobian(what, "the Jacobian of a DataFrame has more than two axes")

    def jacobian_of_array(self, values: Any, what: str) -> Any:
        """Refused: there are more than two axes."""
        refuse_jacobian(what, "the Jacobian with respect to a DataFrame has more than two axes")


def axes_of(x: Any) -> tuple[SeriesAxes | TableAxes, Array]:
    """The labels and the values of a Series or a DataFrame.

    Raises
    ------
    Refused
        Its elements are not numbers of one dtype of NumPy.
    """
    name = type(x).__name__
    dtypes = [x.dtype] if isinstance(x, pd.Series) else list(dict.fromkeys(x.dtypes))
    if not dtypes:
        raise Refused("a DataFrame without columns", "Give it columns of floats")
    if len(dtypes) > 1:
        found = ", ".join(map(str, dtypes))
        raise Refused(
            f"a {name} of several dtypes ({found})",
            "Select the columns of floats, x.select_dtypes(float), or convert it, x.astype(float)",
        )
    dtype = dtypes[0]
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biufc":
        raise Refused(
            f"a {name} of dtype {dtype}",
            "Select the columns of numbers, and convert them to a dtype of NumPy, x.astype(float)",
        )
    if isinstance(x, pd.Series):
        return SeriesAxes(x.index, x.name), x.to_numpy()
    return TableAxes(x.index, x.columns), x.to_numpy()
