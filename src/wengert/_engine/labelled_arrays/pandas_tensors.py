"""SeriesTensor, TableTensor: a Series and a DataFrame while their values are traced or recorded.

They have the meaning of pandas for what they support: operators and ufuncs, reductions, and the
selection of elements by labels and positions.  Everything else of pandas raises an error that says
so; `to_numpy()` and `values` give the tensor of the values.

Elements are selected by pandas itself: it applies the selection to an object with the same labels
whose values are positions (`_positions`), so that all its forms mean the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pandas as pd

from wengert._engine.core.handle import Handle, dtype_of, is_traced, shape_of, value_of, wrap
from wengert._engine.core.other_libraries import LabelledTensor
from wengert._engine.tensor.operators import BINARY, COMPARISONS, UNARY
from wengert.errors import ArgumentError, OperandError, ReadOnlyError, TraceError, at, user_line

from .pandas_functions import PandasReductions, PandasWindows, call_function, call_ufunc
from .pandas_labels import CLASSES, SeriesAxes, TableAxes, axes_of, elementwise, given, product

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from wengert._engine.core.types import Array

__all__ = ["SeriesTensor", "TableTensor", "axes_of", "constant"]

# Methods whose result is a selection of elements, which does not depend on their values.
SELECTIONS = frozenset(
    """copy drop droplevel head reindex reindex_like rename rename_axis set_axis shift
    sort_index squeeze swaplevel tail take transpose truncate unstack xs""".split()
)
HELD = (  # pandas itself asks an operand for its attribute `_values`
    "pandas was given an object whose values are differentiated or traced, and its own objects "
    "hold plain numbers. Use the values, "
    "x.to_numpy(), with functions of NumPy (np.bincount in place of groupby)"
)
_INTEGERS = ("floordiv", "mod")  # pandas divides an integer by zero in its own way


class LabelledValues(PandasReductions, PandasWindows, LabelledTensor):
    """The base of both classes.

    Attributes
    ----------
    labels : SeriesAxes or TableAxes
    values : Tensor
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = 2000.0
    __pandas_priority__ = 6000  # pandas leaves operators to this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, labels: SeriesAxes | TableAxes, values: Array) -> None:
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "values", values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._positions().index.tolist()}: {self.values!r})"

    # ---- attributes ------------------------------------------------------------------------------

    @property
    def index(self) -> pd.Index:
        """The index."""
        index: pd.Index = self.labels.index
        return index

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        shape: tuple[int, ...] = self.labels.shape
        return shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))

    @property
    def empty(self) -> bool:
        """Whether there are no elements."""
        return self.size == 0

    @property
    def T(self) -> Any:
        """The transpose."""
        return self._selected(self._positions().T)

    def to_numpy(self, dtype: DTypeLike | None = None, copy: bool = False) -> Any:
        """The values: a tensor, for which everything is as in NumPy."""
        values = self.values if dtype is None else self.values.astype(np.dtype(dtype))
        if isinstance(values, Handle) and not copy:
            return wrap(values.node)  # what is assigned to its elements is not assigned here
        return values.copy()

    def __getattr__(self, name: str) -> Any:
        if name in SELECTIONS:
            return self._selection(name)
        if name == "_values":
            raise OperandError(HELD + at(user_line()) + ".")
        if name.startswith("_") or not hasattr(self._library_class, name):
            if not name.startswith("_") and name in self.keys():
                return self[name]
            raise AttributeError(f"a {self._library_class.__name__} has no attribute {name!r}")
        raise OperandError(
            f"{self._library_class.__name__}.{name} is not supported while its values are "
            "differentiated or traced. Write it with operators, sums and selections, or use the "
            f"values, x.to_numpy(), with functions of NumPy{at(user_line())}."
        )

    def __setattr__(self, name: str, value: object) -> None:
        self._refuse_assignment()

    def __setitem__(self, key: object, value: object) -> None:
        self._refuse_assignment()

    def _refuse_assignment(self) -> NoReturn:
        raise ReadOnlyError(
            f"assignment to a {self._library_class.__name__} whose values are differentiated or "
            "traced. Use x.where(condition, other), or copy the values, x.to_numpy().copy(), and "
            f"assign to these{at(user_line())}."
        )

    # ---- selections ------------------------------------------------------------------------------

    def _positions(self) -> Any:
        count = np.arange(self.size)
        if isinstance(self.labels, SeriesAxes):
            return pd.Series(count, self.labels.index, name=self.labels.name)
        return pd.DataFrame(count.reshape(self.shape), self.labels.index, self.labels.columns)

    def _selected(self, found: Any) -> Any:
        """The elements at the positions that pandas found; NaN where it found none."""
        if not isinstance(found, pd.Series | pd.DataFrame):
            return self.values.reshape(-1)[int(found)]
        if isinstance(found, pd.DataFrame) and len(set(found.dtypes)) > 1:
            found = found.astype(float)  # NaN in some columns
        axes, positions = axes_of(found)
        places = np.asarray(positions)
        if places.dtype.kind == "f":
            missing = np.isnan(places)
            if dtype_of(self.values).kind not in "fc":
                raise OperandError(
                    "elements of integers or booleans that do not exist would be NaN. Convert "
                    f"them first, x.astype(float){at(user_line())}."
                )
            taken = self.values.reshape(-1)[np.where(missing, 0, places).astype(np.intp)]
            return axes.wrap(np.where(missing, np.nan, taken))
        if np.array_equal(places.ravel(), np.arange(self.size)):
            return axes.wrap(self.values.reshape(places.shape))
        return axes.wrap(self.values.reshape(-1)[places])

    def _selection(self, name: str) -> Callable[..., Any]:
        method = getattr(self._positions(), name)

        def select(*args: Any, **kwargs: Any) -> Any:
            refused = {"fill_value", "inplace", "freq"} & kwargs.keys()
            if refused or (name == "shift" and len(args) > 1):
                raise ArgumentError(
                    f"{name} of values that are differentiated or traced takes no "
                    f"{', '.join(sorted(refused)) or 'freq'}{at(user_line())}."
                )
            return self._selected(method(*map(known_key, args), **kwargs))

        return select

    def __getitem__(self, key: object) -> Any:
        return self._selected(self._positions()[known_key(key)])

    @property
    def loc(self) -> Locations:
        """Selection by labels."""
        return Locations(self, "loc")

    @property
    def iloc(self) -> Locations:
        """Selection by positions."""
        return Locations(self, "iloc")

    at = property(lambda self: Locations(self, "at"))
    iat = property(lambda self: Locations(self, "iat"))

    def __contains__(self, key: object) -> bool:
        return key in self.keys()

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        raise OperandError(
            f"a {self._library_class.__name__} as a boolean is ambiguous. Use any() or "
            f"all(){at(user_line())}."
        )

    # ---- elementwise -----------------------------------------------------------------------------

    def abs(self) -> Any:
        """Absolute values."""
        return elementwise(np.abs, self)

    def isna(self) -> Any:
        """Whether each element is NaN."""
        return elementwise(np.isnan, self)

    def notna(self) -> Any:
        """Whether each element is not NaN."""
        return elementwise(lambda x: ~np.isnan(x), self)

    def fillna(self, value: object) -> Any:
        """The elements, with a number, or an object with these labels, in place of NaN."""
        return self._named(lambda x, y: np.where(np.isnan(value_of(x)), y, x), value)

    def clip(self, lower: Any = None, upper: Any = None) -> Any:
        """The elements between two numbers."""
        for bound in (lower, upper):
            if shape_of(bound) != () or isinstance(bound, LabelledTensor):
                raise ArgumentError(
                    "clip of values that are differentiated or traced takes numbers. Use "
                    f"np.maximum(x, lower) and np.minimum(x, upper){at(user_line())}."
                )
        known = [None if b is None or value_of(b) is not b else b for b in (lower, upper)]
        if any(b is not None and np.isnan(b) for b in known):
            raise ArgumentError(f"clip: a bound is NaN. Leave it out{at(user_line())}.")
        return elementwise(lambda x: np.clip(x, lower, upper), self)

    def round(self, decimals: int = 0) -> Any:
        """The elements rounded."""
        return elementwise(lambda x: np.round(x, decimals), self)

    def where(self, cond: object, other: object = np.nan) -> Any:
        """The elements where a condition is true, and `other` elsewhere."""
        return self._named(lambda x, c, y: np.where(c, x, y), cond, other)

    def mask(self, cond: object, other: object = np.nan) -> Any:
        """The elements where a condition is false, and `other` elsewhere."""
        return self._named(lambda x, c, y: np.where(c, y, x), cond, other)

    def _named(self, function: Callable[..., Any], *others: object) -> Any:
        """An elementwise function of it and others, with its own labels and name."""
        return self.labels.wrap(given(elementwise(function, self, *others))[1])

    def astype(self, dtype: DTypeLike) -> Any:
        """The elements as another dtype."""
        return elementwise(lambda x: x.astype(np.dtype(dtype)), self)

    def dot(self, other: object) -> Any:
        """The product ``self @ other``."""
        return product(self, other)

    def __matmul__(self, other: object) -> Any:
        return product(self, other)

    def __rmatmul__(self, other: object) -> Any:
        return product(other, self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **kwargs: Any) -> Any:
        return call_ufunc(ufunc, method, args, kwargs)

    def __array_function__(
        self, func: Any, types: tuple[type[Any], ...], args: tuple[Any, ...], kwargs: dict[Any, Any]
    ) -> Any:
        return call_function(func, args, kwargs)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Any:
        return np.asarray(self.values, dtype)


class Locations:
    """The attributes `loc`, `iloc`, `at` and `iat`.

    Parameters
    ----------
    of : LabelledValues
    name : str
    """

    __slots__ = ("_name", "_of")

    def __init__(self, of: LabelledValues, name: str) -> None:
        self._of, self._name = of, name

    def __getitem__(self, key: object) -> Any:
        found = getattr(self._of._positions(), self._name)[known_key(key)]
        return self._of._selected(found)

    def __setitem__(self, key: object, value: object) -> None:
        self._of._refuse_assignment()


def known_key(key: object) -> Any:
    """A key of pandas; a mask must be known."""
    if isinstance(key, tuple):
        return tuple(map(known_key, key))
    values = key.values if isinstance(key, LabelledTensor) else key
    if not isinstance(values, Handle):
        return key
    if is_traced(values):
        raise TraceError(
            "the elements of an object of pandas that a mask selects: their number depends on "
            "values, which are not known while a graph is built. Use x.where(mask), whose other "
            f"elements are NaN, which sums skip{at(user_line())}."
        )
    known = value_of(values)
    if not isinstance(key, LabelledTensor):
        return known
    if isinstance(key.labels, SeriesAxes):
        return pd.Series(known, key.labels.index)
    return pd.DataFrame(known, key.labels.index, key.labels.columns)


class SeriesTensor(LabelledValues):
    """A Series while its values are traced or recorded."""

    __slots__ = ()
    _library_class: type = pd.Series
    __class__: Any = property(lambda self: pd.Series)

    @property
    def name(self) -> Any:
        """The name."""
        return self.labels.name

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        return dtype_of(self.values)

    def keys(self) -> pd.Index:
        """The labels."""
        return self.index

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Pairs of a label and an element."""
        return zip(self.index, self.values, strict=True)


class TableTensor(LabelledValues):
    """A DataFrame while its values are traced or recorded."""

    __slots__ = ()
    _library_class: type = pd.DataFrame
    __class__: Any = property(lambda self: pd.DataFrame)

    @property
    def columns(self) -> pd.Index:
        """The labels of the columns."""
        columns: pd.Index = self.labels.columns
        return columns

    @property
    def dtypes(self) -> pd.Series[Any]:
        """The dtype of each column."""
        return pd.Series([dtype_of(self.values)] * self.shape[1], index=self.columns)

    def keys(self) -> pd.Index:
        """The labels of the columns."""
        return self.columns

    def __iter__(self) -> Iterator[Any]:
        return iter(self.columns)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Pairs of a label and a column."""
        for k, label in enumerate(self.columns):
            yield label, SeriesAxes(self.index, label).wrap(self.values[:, k])


def constant(x: object) -> LabelledValues:
    """An object of pandas with its values as they are, as an operand of tensors."""
    axes, values = given(x)
    assert axes is not None
    return SeriesTensor(axes, values) if isinstance(axes, SeriesAxes) else TableTensor(axes, values)


# ---- operators -----------------------------------------------------------------------------------


def _install() -> None:
    for name, ufunc_name in {**BINARY, **COMPARISONS}.items():
        if name == "matmul":
            continue
        ufunc = getattr(np, ufunc_name)
        setattr(LabelledValues, f"__{name}__", _operator(name, ufunc, reflected=False))
        if name in BINARY:
            setattr(LabelledValues, f"__r{name}__", _operator(name, ufunc, reflected=True))
        if name not in ("and", "or", "xor", "lshift", "rshift"):
            setattr(LabelledValues, name, _method(name, ufunc, reflected=False))
        if name in ("add", "sub", "mul", "truediv", "pow"):
            setattr(LabelledValues, f"r{name}", _method(name, ufunc, reflected=True))
    for name, ufunc_name in UNARY.items():
        ufunc = getattr(np, ufunc_name)
        setattr(LabelledValues, f"__{name}__", lambda self, _u=ufunc: elementwise(_u, self))
    LabelledValues.div, LabelledValues.rdiv = LabelledValues.truediv, LabelledValues.rtruediv  # type: ignore[attr-defined]


def _check(name: str, x: object, y: object) -> None:
    kinds = [np.dtype(getattr(a, "dtype", type(a))).kind for a in (x, y)]
    if name in _INTEGERS and all(kind in "iub" for kind in kinds):
        raise OperandError(
            "pandas divides an integer by zero in its own way, so // and % of integers are not "
            f"supported while values are traced. Convert them, x.astype(float){at(user_line())}."
        )


def _operator(
    name: str, ufunc: np.ufunc, reflected: bool
) -> Callable[[LabelledValues, object], Any]:
    def call(self: LabelledValues, other: object) -> Any:
        operands = (other, self) if reflected else (self, other)
        if name in _INTEGERS:
            _check(name, self.values, other)
        return elementwise(ufunc, *operands)

    return call


def _method(name: str, ufunc: np.ufunc, reflected: bool) -> Callable[..., Any]:
    def call(self: LabelledValues, other: object, axis: int | str = "columns") -> Any:
        operands = (other, self) if reflected else (self, other)
        if name in _INTEGERS:
            _check(name, self.values, other)
        return elementwise(ufunc, *operands, rows=self.ndim == 2 and axis in (0, "index", "rows"))

    call.__name__ = name
    return call


_install()
CLASSES.update(Series=SeriesTensor, DataFrame=TableTensor)
