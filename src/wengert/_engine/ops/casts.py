"""Casts; broadcasting and its adjoint.

cast          to a floating or complex dtype; the cotangent is cast back
discretise    to integers or booleans: the derivative is zero
astype        whichever of the two applies to a dtype
broadcast_to  repeat elements without copying
sum_to        the transpose of broadcast_to
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.dispatch import Operation, apply
from wengert._engine.core.handle import Handle, dtype_of, shape_of
from wengert._engine.core.op import lookup, register
from wengert._engine.core.op_facts import ARITHMETIC, STEPS
from wengert._engine.core.symbolic.constraints import repeated_axes
from wengert._engine.kinds.batching import deepened, elementwise_batching, ndim_of
from wengert._engine.kinds.linear_map import linear
from wengert.errors import DtypeError, at, user_line

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Size


@linear(oracle=lambda x, *, dtype: np.array(x, dtype=dtype))
def cast(x: Any, *, dtype: Any) -> Any:
    """x in another floating or complex dtype; the cotangent is cast back."""
    return _converted(x, dtype)


cast.casts = True


def _converted(x: Operand, dtype: np.dtype[Any]) -> Any:
    # A 0-d array remains an array, as in NumPy: scalars are immutable.
    return x.astype(dtype) if isinstance(x, np.ndarray) else np.asarray(x).astype(dtype)[()]


@cast.transpose
def _cast_back(t: Array, x: Array, *, dtype: np.dtype[Any]) -> Any:
    dtype = dtype_of(x)
    if t.dtype.kind == "c" and dtype.kind != "c":
        t = t.real
    return astype(t, dtype)


elementwise_batching(cast)


@cast.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3)),), {"dtype": np.dtype(np.float64)}
    yield (rng.normal(size=()),), {"dtype": np.dtype(np.complex128)}
    yield (rng.normal(size=0),), {"dtype": np.dtype(np.float64)}


class _Discretise(Operation):
    """A cast to integers or booleans: the derivative is zero."""

    kind = "elementwise"
    discrete = True
    cost = ARITHMETIC
    jump = STEPS

    def run(self, x: Operand, *, dtype: np.dtype[Any]) -> Any:
        """x converted to `dtype`."""
        return _converted(x, dtype)

    @staticmethod
    def oracle(x: Array, *, dtype: Any) -> Any:
        """Elements converted one by one."""
        return np.array([dtype.type(v) for v in np.ravel(x)], dtype).reshape(np.shape(x))


discretise = register(_Discretise("discretise", "A cast to an integer or boolean dtype."))


elementwise_batching(discretise)


@discretise.examples
def _(rng: np.random.Generator) -> Any:
    yield (3.0 * rng.normal(size=(2, 3)),), {"dtype": np.dtype(np.int64)}
    yield (rng.normal(size=()),), {"dtype": np.dtype(np.bool_)}


def astype(x: Any, dtype: Any) -> Any:
    """`x` in another dtype, like NumPy's method; no derivative for integers and booleans."""
    dtype = np.dtype(dtype)
    if not isinstance(x, Handle):
        return _converted(x, dtype)
    if dtype.kind in "fc":
        if x.dtype.kind == "c" and dtype.kind == "f":  # type: ignore[attr-defined]
            warnings.warn(
                "Casting complex values to real discards the imaginary part",
                np.exceptions.ComplexWarning,
                stacklevel=2,
            )
            x = x.real  # type: ignore[attr-defined]
        return apply(cast, (x,), {"dtype": dtype})
    if dtype.kind == "O":
        raise DtypeError(
            "conversion of a tensor to an array of objects: its elements would have no derivative. "
            "Use a list, or an array without dtype=object; np.empty(n, dtype=object), elements of "
            f"which are assigned, holds tensors{at(user_line())}."
        )
    return apply(discretise, (x,), {"dtype": dtype})


@linear(view=True, oracle="numpy")
def broadcast_to(x: Any, *, shape: Any) -> Any:
    """x repeated along new axes and axes of length one, without copying."""
    return np.broadcast_to(x, shape)


@broadcast_to.transpose
def _broadcast_back(t: Array, x: Array, *, shape: tuple[Size, ...]) -> Any:
    return sum_to(t, shape=shape_of(x))


@broadcast_to.batch
def _broadcast_batch(
    args: list[Array], batched: list[bool], size: Size, *, shape: tuple[Size, ...]
) -> Any:
    return broadcast_to(deepened(args[0], len(shape)), shape=(size, *shape))


@broadcast_to.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 1)),), {"shape": (2, 3, 4)}
    yield (rng.normal(size=()),), {"shape": (2,)}
    yield (rng.normal(size=(1, 3)),), {"shape": (0, 3)}


def _sum_to_oracle(x: Array, *, shape: Any) -> Any:
    out = np.zeros(shape)
    target = np.broadcast_to(np.arange(out.size).reshape(shape), x.shape)
    for i in np.ndindex(*x.shape):
        out.flat[target[i]] += x[i]
    return out


@linear(oracle=_sum_to_oracle)
def sum_to(x: Array, *, shape: tuple[int, ...]) -> Any:
    """The transpose of `broadcast_to`: the sum over repeated axes."""
    x = np.asarray(x)
    axes = repeated_axes(x.shape, shape)
    if not axes:
        return x
    dtype = x.dtype if x.dtype.isnative else x.dtype.newbyteorder("=")  # required by NumPy
    return np.add.reduce(x, axis=axes, dtype=dtype, keepdims=True).reshape(shape)[()]


@sum_to.transpose
def _sum_back(t: Array, x: Array, *, shape: tuple[int, ...]) -> Any:
    return broadcast_to(t, shape=shape_of(x))


@sum_to.batch
def _sum_batch(
    args: list[Array], batched: list[bool], size: Size, *, shape: tuple[int, ...]
) -> Any:
    (x,) = args
    extra = ndim_of(x) - 1 - len(shape)
    out = sum_to(x, shape=(size, *((1,) * extra), *shape))
    return lookup("reshape")(out, shape=(size, *shape)) if extra else out


@sum_to.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3, 4)),), {"shape": (3, 1)}
    yield (rng.normal(size=(2, 3)),), {"shape": (2, 3)}
    yield (rng.normal(size=(2, 3)),), {"shape": ()}
