"""Registration of functions of scipy.linalg as operations.

    entry           registers a function that calls SciPy, as "linalg.x"
    as_operand      the spec of a result with the shape and dtype of an operand
    square          checks that an argument is a (batch of a) square matrix
    real_or_complex, of_its_dtype    functions that may be complex for real matrices
    power_into_range                 a scale for which products of elements do not overflow

Most functions of scipy.linalg take one matrix.  The operations take batches: matrices are in the
last two axes, and earlier axes broadcast (`entry` loops over them).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from wengert._engine.core.handle import is_traced
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic import constraints
from wengert._engine.kinds.batching import on_last_axes
from wengert._engine.ops import casts
from wengert._engine.ops.linalg.linear_solve import matrices
from wengert.errors import MatrixError, at, user_line

from ..dispatch import floating

PREFIX = "linalg."


def entry(hint: str, ranks: str, *, like: int | None = None, **options: Any) -> Any:
    """Decorator: register a function of single matrices as an operation.

    Parameters
    ----------
    hint : str
        The advice in the error message if SciPy rejects the matrix.
    ranks : str
        The number of axes that each operand has without a batch: "22" for two matrices.
    like : int, optional
        The index of the operand whose shape and dtype the result has. By default the operation is
        run on an example.
    **options
        Passed to `matrices`.
    """
    numbers = [int(c) for c in ranks]

    def enter(run: Any) -> Any:
        op = matrices(hint, name=PREFIX + run.__name__.strip("_"), **options)(
            map_over_batch(run, numbers, like)
        )
        if like is not None:
            op.spec(as_operand(like, numbers))
        if len(set(numbers)) == 1:
            on_last_axes(op, numbers[0])
        return op

    return enter


def map_over_batch(run: Callable[..., Any], ranks: list[int], like: int | None = None) -> Any:
    """A function of single matrices, mapped over broadcast batch axes."""

    @functools.wraps(run)
    def batched(*args: Any, **params: Any) -> Any:
        arrays = [_aligned_native(np.asarray(a)) for a in args]
        if any(a.ndim < rank for a, rank in zip(arrays, ranks, strict=False)):
            shapes = ", ".join(str(a.shape) for a in arrays)
            raise ValueError(f"operands of shape {shapes}, but {ranks} axes are needed")
        pairs = list(zip(arrays, ranks, strict=False))
        batch = np.broadcast_shapes(*[a.shape[: a.ndim - rank] for a, rank in pairs])
        if not batch:
            return run(*arrays, **params)
        rows = [np.broadcast_to(a, batch + a.shape[a.ndim - rank :]) for a, rank in pairs]
        if 0 in batch and like is not None:
            return np.zeros(rows[like].shape, np.result_type(np.float32, *arrays))
        if 0 in batch:
            results = [run(*[_example(a.shape[len(batch) :], a.dtype) for a in rows], **params)]
        else:
            results = [run(*[a[i] for a in rows], **params) for i in np.ndindex(*batch)]
        if isinstance(results[0], tuple):
            return tuple(_stack(list(parts), batch) for parts in zip(*results, strict=True))
        return _stack(results, batch)

    return batched


def as_operand(k: int, ranks: list[int]) -> Callable[..., Any]:
    """The shape rule of a result like operand `k`, with the batch axes of all operands."""

    def rule(*specs: Any, **params: Any) -> Any:
        batch_ndims = [len(s.shape) - rank for s, rank in zip(specs, ranks, strict=True)]
        batch = constraints.broadcast(
            *[s.shape[:f] for s, f in zip(specs, batch_ndims, strict=True)]
        )
        dtype = np.result_type(np.float32, *[s.dtype for s in specs])
        return Spec((*batch, *specs[k].shape[batch_ndims[k] :]), dtype)

    return rule


def _aligned_native(a: Any) -> Any:
    """`a` aligned and in native byte order: SciPy rejects others, or returns zeros."""
    if a.dtype.isnative and a.flags.aligned:
        return a
    return a.astype(a.dtype.newbyteorder("="))


def _example(shape: Any, dtype: Any) -> Any:
    return np.eye(*shape, dtype=dtype) * 0.5 if len(shape) == 2 else np.ones(shape, dtype)


def _stack(results: list[Any], batch: Any) -> Any:
    first = np.asarray(results[0])
    if 0 in batch:
        return np.empty(batch + first.shape, first.dtype)
    return np.stack(results).reshape(batch + first.shape)


# ---- operands -----------------------------------------------------------------------------


def square(a: Any, name: str) -> Any:
    """`a` as an operand, if its last two axes have the same length.

    Raises
    ------
    MatrixError
        They differ.
    """
    a = floating(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise MatrixError(f"{name} of shape {a.shape}: the matrix must be square{at(user_line())}.")
    return a


class ComplexResult(LinAlgError):
    """A function of a real matrix is complex."""


def real_or_complex(op: Any, a: Any, *others: Any) -> Any:
    """A function of a matrix, with a complex dtype if its value is complex.

    In a graph the dtype cannot depend on values: there the result of a real matrix is real, and an
    error is raised at run time if the value is complex.
    """
    if is_traced(a) or a.dtype.kind == "c":
        return op(a, *others)
    try:
        return op(a, *others)
    except MatrixError as error:
        if not isinstance(error.__context__, ComplexResult):
            raise
    return op(casts.astype(a, np.result_type(a.dtype, np.complex64)), *others)


def of_its_dtype(result: Any, a: Any) -> Any:
    """Cast a result for `a` to the dtype of `a`.

    Raises
    ------
    ComplexResult
        It is complex and `a` is real. (A matrix without negative eigenvalues has a real function,
        which SciPy computes in complex arithmetic.)
    LinAlgError
        It is not finite.
    """
    if not np.all(np.isfinite(result)):
        raise LinAlgError("the result is not finite")
    if result.dtype.kind == "c" and a.dtype.kind != "c":
        w = np.linalg.eigvals(a) if np.any(result.imag) else result.real
        if np.any((w.imag == 0) & (w.real < 0) & np.any(result.imag)):
            raise ComplexResult("the result is complex, but the matrix is real")
        result = result.real
    return result.astype(a.dtype, copy=False)


def power_into_range(*matrices: Any) -> float:
    """The power of two that scales the largest element to about 1; 1 if no scaling is needed.

    For finite matrices of one dtype. Non-finite values are left to the function's own checks.
    """
    largest = max((float(np.max(np.abs(m), initial=0.0)) for m in matrices), default=0.0)
    exponent = int(np.frexp(largest)[1])
    max_exponent = 50 if np.result_type(*matrices).char in "fFe" else 450
    if largest == 0.0 or not np.isfinite(largest) or abs(exponent) <= max_exponent:
        return 1.0
    return float(np.ldexp(1.0, min(-exponent, 1023)))
