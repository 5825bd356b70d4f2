"""Parameters of distributions: arrays that broadcast to the shape of the result.

parameters      dtype and shape of the result, and validated parameters
parameter       a validated parameter
expect_shape    check that an array broadcasts
filled          broadcast a parameter, for operations that take arrays of one shape
as_floating     float64 or float32
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, shape_of
from wengert._engine.tensor.numpy_dispatch import broadcast_shapes
from wengert.errors import DtypeError, ShapeError, at, user_line

from .keys import as_dtype, as_shape


def as_floating(dtype: Any) -> np.dtype[Any]:
    """float64 or float32."""
    kind = as_dtype(dtype)
    if kind not in (np.float64, np.float32):
        raise DtypeError(f"dtype={dtype!r}: expected float64 or float32{at(user_line())}.")
    return kind


def parameter(x: Any, dtype: np.dtype[Any], shape: tuple[Any, ...]) -> Any:
    """A parameter of a distribution in the dtype of the result.

    Raises
    ------
    DtypeError
        It is not real.
    ShapeError
        It does not broadcast to the shape of the result.
    """
    if not isinstance(x, Handle):
        x = np.asarray(x)
    if dtype_of(x).kind not in "biuf":
        raise DtypeError(
            f"a parameter has dtype {dtype_of(x)}, which is not real{at(user_line())}."
        )
    expect_shape(x, shape, "a parameter")
    return x if dtype_of(x) == dtype else x.astype(dtype)


def expect_shape(x: Any, shape: tuple[Any, ...], what: str) -> None:
    """Raise if an array does not broadcast to the shape of the result."""
    try:
        fits = broadcast_shapes(shape_of(x), shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"{what} of shape {shape_of(x)} does not broadcast to shape={shape}{at(user_line())}."
        )


def parameters(
    shape: Any, dtype: Any, *given: Any
) -> tuple[np.dtype[Any], tuple[Any, ...], list[Any]]:
    """Dtype and shape of the result, by default that of the parameters, and the parameters."""
    kind = as_floating(dtype)
    if shape is None:
        try:
            lengths = broadcast_shapes(*map(shape_of, given))
        except ValueError as error:
            raise ShapeError(f"the parameters: {error}{at(user_line())}.") from error
    else:
        lengths = as_shape(shape)
    return kind, lengths, [parameter(x, kind, lengths) for x in given]


def filled(x: Any, shape: tuple[Any, ...]) -> Any:
    """A parameter broadcast to the shape of the result."""
    return x if shape_of(x) == shape else np.broadcast_to(x, shape)
