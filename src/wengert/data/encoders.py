"""Invertible encoders that are fitted to data.

    OneHot     one-hot encoding of categories
    MinMax     scale columns to a range
    Standard   scale columns to mean 0 and standard deviation 1

    fit(x), transform(x), fit_transform(x), inverse_transform(z)

Columns are the last axis; all other axes are samples.  `MinMax` and `Standard` are differentiable
functions of tensors.  Constant columns are shifted but not scaled, which avoids a division by 0 and
keeps the inverse exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, shape_of, value_of

from ..errors import ArgumentError, DtypeError, ShapeError, StructureError, at, user_line

__all__ = ["Encoder", "MinMax", "OneHot", "Standard"]


class Encoder:
    """Base class of encoders: define `fit`, `transform` and `inverse_transform`."""

    def fit(self, x: Any) -> Any:
        """Fit the encoder to data and return it."""
        raise StructureError(f"{type(self).__name__} does not define fit(x){at(user_line())}.")

    def transform(self, x: Any) -> Any:
        """Encode data."""
        raise StructureError(
            f"{type(self).__name__} does not define transform(x){at(user_line())}."
        )

    def inverse_transform(self, z: Any) -> Any:
        """Decode data."""
        raise StructureError(
            f"{type(self).__name__} does not define inverse_transform(z){at(user_line())}."
        )

    def fit_transform(self, x: Any) -> Any:
        """Fit the encoder to data and encode them."""
        return self.fit(x).transform(x)

    def __call__(self, x: Any) -> Any:
        """Encode data; for `Dataset.map`."""
        return self.transform(x)


def _fitted(encoder: Any, attribute: str) -> Any:
    value = getattr(encoder, attribute, None)
    if value is None:
        name = type(encoder).__name__
        raise StructureError(f"{name} is not fitted. Call fit(x) first{at(user_line())}.")
    return value


class _Affine(Encoder):
    """Shift and scale columns: z = (x - shift) / scale + low."""

    _low = 0.0

    def _validated(self, x: Any) -> Any:
        """Samples as a float64 matrix, after checks."""
        x = np.asarray(value_of(x))
        name = type(self).__name__
        if x.dtype.kind not in "biuf":
            raise DtypeError(
                f"{name}.fit was given an array of {x.dtype}. Pass real numbers{at(user_line())}."
            )
        if x.ndim == 0 or x.size == 0:
            raise ShapeError(
                f"{name}.fit was given an array of shape {x.shape}, which has no samples. Pass an "
                f"array with columns on the last axis{at(user_line())}."
            )
        rows = x.reshape(-1, x.shape[-1]) if x.ndim > 1 else x.reshape(-1, 1)
        rows = rows.astype(np.float64)
        if not np.isfinite(rows).all():
            column = int(np.flatnonzero(~np.isfinite(rows).all(axis=0))[0])
            raise ArgumentError(
                f"{name}.fit: column {column} has a NaN or an infinity. Fill in or remove missing "
                f"values first{at(user_line())}."
            )
        self._is_1d = x.ndim == 1
        return rows

    def _for_columns(self, values: Any, x: Any) -> Any:
        """One number for each column of `x`, in its dtype."""
        if not isinstance(x, Handle):
            x = np.asarray(x)
        shape = shape_of(x)
        if self._is_1d:
            values = values[0]
        elif not shape or shape[-1] != len(values):
            raise ShapeError(
                f"{type(self).__name__} was fitted to {len(values)} columns and was given an array "
                f"of shape {shape}. The last axis must have length {len(values)}{at(user_line())}."
            )
        dtype = x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)
        return np.asarray(values, dtype)

    def transform(self, x: Any) -> Any:
        """Encode data; floats keep their dtype, integers become float64."""
        scale = self._for_columns(_fitted(self, "scale_"), x)
        x = x if isinstance(x, Handle) else np.asarray(x)
        out = (x - self._for_columns(self.shift_, x)) / scale
        return out + self._low if self._low else out

    def inverse_transform(self, z: Any) -> Any:
        """Decode data."""
        scale = self._for_columns(_fitted(self, "scale_"), z)
        z = z if isinstance(z, Handle) else np.asarray(z)
        z = z - self._low if self._low else z
        return z * scale + self._for_columns(self.shift_, z)

    shift_: Any = None
    scale_: Any = None


class Standard(_Affine):
    """Scale columns to mean 0 and standard deviation 1.

    Attributes
    ----------
    shift_ : array, shape (columns,)
        Means, in float64.
    scale_ : array, shape (columns,)
        Standard deviations (divisor n, not n - 1); 1 for constant columns.

    Raises
    ------
    ArgumentError
        In `fit`: NaN or infinities.
    ShapeError
        No data, or in `transform` a different number of columns.
    StructureError
        `transform` before `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.data.encoders import Standard
    >>> x = np.array([[0.0, 5.0], [4.0, 5.0]])
    >>> scaler = Standard()
    >>> scaler.fit_transform(x)
    array([[-1.,  0.],
           [ 1.,  0.]])
    >>> scaler.inverse_transform(scaler.transform(x))
    array([[0., 5.],
           [4., 5.]])
    """

    def fit(self, x: Any) -> Standard:
        """Compute means and standard deviations; return the encoder."""
        rows = self._validated(x)
        low, high = rows.min(axis=0), rows.max(axis=0)
        constant = low == high
        size = np.maximum(np.abs(low), np.abs(high))
        size = np.where(size > 0, size, 1.0)  # so that squares neither overflow nor underflow
        scaled = rows / size
        mean = scaled.mean(axis=0)
        deviation = np.sqrt(np.mean(np.square(scaled - mean), axis=0)) * size
        self.shift_ = np.where(constant, low, mean * size)
        self.scale_ = np.where(constant | (deviation == 0), 1.0, deviation)
        return self

    def __repr__(self) -> str:
        return f"Standard({_fitted_text(self.shift_)})"


class MinMax(_Affine):
    """Scale columns to a range.

    Parameters
    ----------
    feature_range : (float, float), default (0, 1)

    Attributes
    ----------
    shift_ : array, shape (columns,)
        Minima.
    scale_ : array, shape (columns,)
        Maximum minus minimum, over the length of the range; 1 for constant columns, which are
        mapped to the lower bound.

    Raises
    ------
    ArgumentError
        An empty range; in `fit`, NaN, infinities, or an overflow of maximum minus minimum.
    ShapeError
        No data, or in `transform` a different number of columns.
    StructureError
        `transform` before `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.data.encoders import MinMax
    >>> MinMax((-1, 1)).fit_transform(np.array([[0, 7], [5, 7], [10, 7]]))
    array([[-1., -1.],
           [ 0., -1.],
           [ 1., -1.]])
    """

    def __init__(self, feature_range: tuple[float, float] = (0.0, 1.0)) -> None:
        low, high = feature_range
        if not low < high:
            raise ArgumentError(
                f"MinMax(feature_range={feature_range}): the lower bound must be less than the "
                f"upper bound{at(user_line())}."
            )
        self.feature_range = float(low), float(high)
        self._low = float(low)

    def fit(self, x: Any) -> MinMax:
        """Compute minima and maxima; return the encoder."""
        rows = self._validated(x)
        low, high = rows.min(axis=0), rows.max(axis=0)
        with np.errstate(over="ignore"):
            extent = high - low
        if not np.isfinite(extent).all():
            raise ArgumentError(
                f"MinMax.fit: a column has values from {low.min()} to {high.max()}, whose "
                f"difference overflows float64. Scale it down first{at(user_line())}."
            )
        scale = extent / (self.feature_range[1] - self.feature_range[0])
        self.shift_, self.scale_ = low, np.where(scale == 0, 1.0, scale)
        return self

    def __repr__(self) -> str:
        return f"MinMax({self.feature_range}, {_fitted_text(self.shift_)})"


def _fitted_text(values: Any) -> str:
    return "not fitted" if values is None else f"{len(values)} columns"


class OneHot(Encoder):
    """One-hot encoding of categories: vectors with a single 1.

    Parameters
    ----------
    dtype : dtype, default float64
        Dtype of the vectors.
    unknown : {"error", "ignore"}
        Whether a category unknown from `fit` is an error or encoded as a vector of zeros.

    Attributes
    ----------
    categories_ : list of array
        Sorted, for each column.

    Raises
    ------
    ArgumentError
        An unknown category; in `inverse_transform`, a vector without a unique maximum.
    ShapeError
        The data have neither shape (n,), labels, nor (n, c), columns of labels.
    DtypeError
        Categories that cannot be sorted.

    Examples
    --------
    >>> from wengert.data.encoders import OneHot
    >>> encoder = OneHot()
    >>> encoder.fit_transform(["no", "yes", "no"])
    array([[1., 0.],
           [0., 1.],
           [1., 0.]])
    >>> encoder.inverse_transform([[0.2, 0.8]])
    array(['yes'], dtype='<U3')
    """

    def __init__(self, dtype: Any = np.float64, unknown: str = "error") -> None:
        if unknown not in ("error", "ignore"):
            raise ArgumentError(
                f"OneHot(unknown={unknown!r}): expected 'error' or 'ignore'{at(user_line())}."
            )
        self.dtype, self.unknown = np.dtype(dtype), unknown
        self.categories_: list[Any] | None = None

    def fit(self, x: Any) -> OneHot:
        """Find the categories; return the encoder."""
        x, self._is_1d = self._columns(x), np.ndim(x) == 1
        if not len(x):
            raise ShapeError(
                f"OneHot.fit was given no samples. Pass at least one{at(user_line())}."
            )
        try:
            self.categories_ = [np.unique(column) for column in x.T]
        except TypeError as error:
            raise DtypeError(
                f"OneHot.fit: {error}. Pass categories of one type, for example "
                f"strings{at(user_line())}."
            ) from error
        for categories in self.categories_:
            if categories.dtype.kind == "f" and np.isnan(categories).any():
                self.categories_ = None
                raise ArgumentError(
                    "OneHot.fit: NaN cannot be a category. Fill in or remove missing values first"
                    f"{at(user_line())}."
                )
        return self

    def transform(self, x: Any) -> Any:
        """Encode data; the vectors of all columns are concatenated along the last axis."""
        known = _fitted(self, "categories_")
        columns = self._columns(x)
        if columns.shape[1] != len(known):
            raise ShapeError(
                f"OneHot was fitted to {len(known)} columns and was given {columns.shape[1]}. Pass "
                f"{len(known)} columns{at(user_line())}."
            )
        pairs = zip(columns.T, known, strict=True)
        encoded = [self._encode_column(c, k, n) for n, (c, k) in enumerate(pairs)]
        return np.concatenate(encoded, axis=1)

    def _encode_column(self, column: Any, categories: Any, number: int) -> Any:
        kinds = {a.dtype.kind if a.dtype.kind in "USO" else "number" for a in (column, categories)}
        if len(kinds) != 1:
            raise DtypeError(
                f"OneHot: column {number} has dtype {column.dtype}, but was fitted to "
                f"{categories.dtype}. Pass the same type of categories{at(user_line())}."
            )
        try:
            index = np.minimum(np.searchsorted(categories, column), len(categories) - 1)
        except TypeError as error:
            raise DtypeError(
                f"OneHot: column {number}: {error}. Pass categories of one type{at(user_line())}."
            ) from error
        found = np.asarray(categories[index] == column)
        if self.unknown == "error" and not found.all():
            odd = column[np.argmin(found)]
            raise ArgumentError(
                f"OneHot: {odd!r} in column {number} is not among the {len(categories)} categories "
                f"that it was fitted to. Fit it to all categories, or pass unknown='ignore'"
                f"{at(user_line())}."
            )
        out = np.zeros((len(column), len(categories)), self.dtype)
        rows = np.flatnonzero(found)
        out[rows, index[rows]] = 1
        return out

    def inverse_transform(self, z: Any) -> Any:
        """The category of the largest element of each vector, which may contain probabilities."""
        known = _fitted(self, "categories_")
        z, ends = np.asarray(value_of(z)), np.cumsum([len(k) for k in known])
        if z.ndim != 2 or z.shape[1] != ends[-1]:
            raise ShapeError(
                f"OneHot.inverse_transform was given an array of shape {z.shape}. Pass shape "
                f"(n, {ends[-1]}){at(user_line())}."
            )
        columns = []
        for k, end in zip(known, ends, strict=True):
            part = z[:, end - len(k) : end]
            unclear = np.isnan(part).any(axis=1) | (len(k) > 1) & (np.ptp(part, axis=1) == 0)
            if unclear.any():
                raise ArgumentError(
                    f"OneHot.inverse_transform: vector {int(np.argmax(unclear))} has no unique "
                    f"maximum and corresponds to no category{at(user_line())}."
                )
            columns.append(k[np.argmax(part, axis=1)])
        return columns[0] if self._is_1d else np.stack(columns, axis=1)

    def _columns(self, x: Any) -> Any:
        x = np.asarray(value_of(x))
        if x.ndim not in (1, 2):
            raise ShapeError(
                f"OneHot was given an array of shape {x.shape}. Pass labels, shape (n,), or "
                f"columns of labels, shape (n, c){at(user_line())}."
            )
        return x[:, None] if x.ndim == 1 else x

    def __repr__(self) -> str:
        known = self.categories_
        what = "not fitted" if known is None else f"{[len(k) for k in known]} categories"
        return f"OneHot({what})"
