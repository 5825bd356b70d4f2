"""Indices of pandas.

    SeriesAxes   the index and the name of a Series
    TableAxes    the index and the columns of a DataFrame
    CLASSES      the classes of labels with traced values, set by pandas_tensors.py
    axes_of      the labels and the values of a Series or a DataFrame

Labels with values make an object of pandas if the values are plain, and a `SeriesTensor` or a
`TableTensor` if they are traced or recorded.

Operands of the operators of `SeriesTensor` and `TableTensor`.

pandas aligns operands by their labels.  Here labels must be equal, in the same order, and other
operands raise an error: which elements a result has would depend on labels, and missing ones would
be NaN.  Arrays and tensors are matched by position, as in pandas.

    elementwise   an elementwise function of operands, at least one of which has labels
    product       the operator @
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from wengert._engine.core.handle import Handle, shape_of
from wengert._engine.core.other_libraries import LabelledTensor
from wengert.errors import DtypeError, OperandError, ShapeError, at, user_line

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


def given(x: object) -> tuple[SeriesAxes | TableAxes | None, Array]:
    """The labels of an operand, None for an array, and its values."""
    if isinstance(x, LabelledTensor):
        return x.labels, x.values
    if isinstance(x, pd.Series | pd.DataFrame):
        try:
            return axes_of(x)
        except Refused as refused:
            raise DtypeError(
                f"{refused.kind} as operand: its elements must be numbers of one dtype. Convert "
                f"it first, x.astype(float) or x.to_numpy(float){at(user_line())}."
            ) from None
    if isinstance(x, Handle | np.ndarray | np.generic | int | float | complex):
        return None, x  # type: ignore[return-value]
    if isinstance(x, list | tuple):
        return None, np.asarray(x)
    raise OperandError(
        f"a {type(x).__name__} as operand of a Series or a DataFrame with traced values. Use "
        f"numbers, arrays, and objects with the same labels{at(user_line())}."
    )


def elementwise(function: Callable[..., Any], *operands: object, rows: bool = False) -> Any:
    """``function(*operands)`` elementwise, with the labels of the operands.

    Parameters
    ----------
    function : callable
        An elementwise function of arrays.
    *operands
    rows : bool
        Whether the labels of a Series beside a DataFrame are those of rows, not of columns.
    """
    pairs = [given(x) for x in operands]
    found = [axes for axes, _ in pairs if axes is not None]
    tables = [axes for axes in found if isinstance(axes, TableAxes)]
    axes = _of_tables(tables, found, rows) if tables else _of_series(found)
    values = [_fitted(own, x, axes, rows) for own, x in pairs]
    result = function(*values)
    if isinstance(result, tuple):
        return tuple([axes.wrap(r) for r in result])
    return axes.wrap(result)


def _of_series(found: Sequence[Any]) -> SeriesAxes:
    first = found[0]
    for other in found[1:]:
        _check_equal(first.index, other.index, "the indices of two Series")
    names = [axes.name for axes in found]
    same = all(n is names[0] or n == names[0] for n in names)
    return SeriesAxes(_named_alike([a.index for a in found]), names[0] if same else None)


def _of_tables(tables: Sequence[TableAxes], found: Sequence[Any], rows: bool) -> TableAxes:
    first = tables[0]
    for other in tables[1:]:
        _check_equal(first.index, other.index, "the indices of two DataFrames")
        _check_equal(first.columns, other.columns, "the columns of two DataFrames")
    for axes in found:
        if isinstance(axes, SeriesAxes):
            labels = first.index if rows else first.columns
            which = "the rows of a DataFrame" if rows else "the columns of a DataFrame"
            _check_equal(labels, axes.index, f"{which} and the index of a Series")
    return TableAxes(
        _named_alike([a.index for a in tables]), _named_alike([a.columns for a in tables])
    )


def _named_alike(indices: Sequence[pd.Index]) -> pd.Index:
    """The first index, without its name if another has another one."""
    first = indices[0]
    return first if all(i.names == first.names for i in indices) else first.rename(None)


def _check_equal(a: pd.Index, b: pd.Index, what: str) -> None:
    if not same_index(a, b):
        raise ShapeError(
            f"{what} differ: {_short(a)} and {_short(b)}. pandas would align them and fill with "
            "NaN; make them equal before, x.reindex(y.index), or match elements by position, "
            f"x.to_numpy(){at(user_line())}."
        )


def _short(index: pd.Index) -> str:
    shown = ", ".join([repr(x) for x in index[:3]])
    return f"[{shown}{', ...' if len(index) > 3 else ''}] of length {len(index)}"


def _fitted(own: Any, x: Any, axes: SeriesAxes | TableAxes, rows: bool) -> Any:
    """The values of an operand, which broadcast to the shape of the labels."""
    if isinstance(own, SeriesAxes) and isinstance(axes, TableAxes):
        return x.reshape((-1, 1)) if rows else x
    shape = shape_of(x)
    if own is None and shape != ():
        target = axes.shape
        fits = shape == target or (
            len(target) == 2
            and (shape in ((target[1],), (1, target[1]), (target[0], 1)) and not rows)
        )
        if rows and shape == (target[0],):
            return x.reshape((-1, 1))
        if not fits:
            raise ShapeError(
                f"an array of shape {shape} beside labels of shape {target}. Arrays are matched "
                f"by position, so the shapes must be equal{at(user_line())}."
            )
    return x


def product(x: object, y: object) -> Any:
    """``x @ y``: the labels that are summed over must be equal."""
    (a, u), (b, v) = given(x), given(y)
    if a is not None and b is not None:
        inner = a.columns if isinstance(a, TableAxes) else a.index
        _check_equal(inner, b.index, "the labels that a product sums over")
    result = np.matmul(u, v)
    rows = a.index if isinstance(a, TableAxes) else None
    columns = b.columns if isinstance(b, TableAxes) else None
    shape = shape_of(result)
    if len(shape) == 0 or len(shape) > 2:
        return result
    if a is None and len(shape_of(u)) == 2:
        rows = pd.RangeIndex(shape[0])
    if b is None and len(shape_of(v)) == 2:
        columns = pd.RangeIndex(shape[-1])
    if rows is not None and columns is not None:
        return TableAxes(rows, columns).wrap(result)
    index = columns if rows is None else rows
    return result if index is None else SeriesAxes(index).wrap(result)
