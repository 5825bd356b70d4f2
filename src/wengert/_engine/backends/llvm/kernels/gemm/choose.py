"""The choice of the routine for a matrix product: all decisions, with their reasons.

In the order of the decisions for a matmul, dot or einsum of two operands:

is_fused_loop     a small or memory-bound product is a loop, fused with its neighbors
                  (lowering/small_matrices.py)
is_short_sum      on a device, where a thread computes an element: sums of few terms are loops
is_small_batch    a batch of small matrices: one product per SIMD lane (batched_small_gemm)
choose            the routine of one product of two matrices (write_product.py):

    "simd loops"           dtypes unknown to BLAS
    "unrolled gemv"        a small matrix and a vector
    "gemv"                 a matrix and a vector: BLAS
    "streamed"             a few rows and a matrix beyond the caches: loops along its rows
    "microkernel"          a factor fits into a cache: register-blocked loops on one thread
    "threads"              such a product, long enough for the thread pool
    "microkernel or gemm"  such a product, large, or whose size is known only when it runs
    "blocked"              large matrices in double precision: blocks that fit into the caches
    "blocked or gemm"      such matrices, very large, or whose size is known only when it runs
    "gemm"                 other matrices: BLAS

may_be_symmetric  whether factors are compared at run time: a matrix and its transpose
parallel_grain    the number of products of a batch for each thread

The thresholds are those of tuning.py.  The microkernel decides how to block and pack a product
(gemm_microkernel.py), and runtime/library_symbols.py the number of threads of BLAS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Literal, NamedTuple

from wengert._engine.core.symbolic.dim import Length, bounds

from ...ir import execution_engine
from ...ir.execution_engine import is_for_device
from ...ir.llvm_types import F32, F64
from ...tuning import thresholds
from .. import fortran_calls
from .operands import Product, Subscripts, leading
from .vector_code import panel_columns

Routine = Literal[
    "simd loops", "unrolled gemv", "gemv", "streamed", "streamed dots", "uncached",
    "microkernel", "threads", "microkernel or gemm", "blocked", "blocked or gemm", "gemm",
]  # fmt: skip

_LONG_ROW = 1024  # bytes, at least, of rows that are summed along
_MOST_BLOCKS = 32  # of an uncached result, which are divided among threads
_THREAD_TERMS = 8  # of a product that a thread of a device adds
_UNCACHED = 8  # times `streamed_bytes` is larger than a third-level cache


# ---- loops and batches -------------------------------------------------------------------------


def is_fused_loop(lengths: Mapping[str, Length], subscripts: Sequence[str]) -> bool:
    """Whether a contraction is computed by a fused loop: it is small, or limited by memory.

    Parameters
    ----------
    lengths : mapping
        The length of every subscript.
    subscripts : sequence of str
        The subscripts of each operand.
    """
    total: Length = 1
    for n in lengths.values():
        total = total * n
    if type(total) is int and total <= thresholds.inlined_product_multiplications:
        return True
    # Each element of the largest operand is used once: memory bandwidth is the limit.
    return any(set(labels) >= set(lengths) for labels in subscripts)


def is_short_sum(lengths: Mapping[str, Length], summed: Sequence[str]) -> bool:
    """Whether each element of a product is a sum of so few terms that a device's thread adds them.

    Parameters
    ----------
    summed : sequence of str
        The subscripts that are summed over.
    """
    return is_for_device() and 1 <= _known([lengths[c] for c in summed]) <= _THREAD_TERMS


def is_small_batch(
    operands: Sequence[Subscripts], result: Subscripts, accumulates: bool = False
) -> bool:
    """Whether a contraction multiplies many pairs of small matrices, or one matrix by many.

    A batch times one matrix is one product of a long matrix, which is faster.  A result that is
    accumulated must not be written twice, and blocks of a batch overlap (batched_matrices.py).
    """
    if accumulates or len(operands) != 2:
        return False
    if any(w.array.dtype.kind not in "fiu" for w in operands):
        return False
    a, b = operands
    batch = batch_subscripts(operands, result)
    others = dict.fromkeys(c for c in result.labels + a.labels + b.labels if c not in batch)
    if not set(batch) <= set(a.labels) and not set(batch) <= set(b.labels):
        return False  # rows and columns are both long: the matrices are not small
    lengths = [length_of(operands, c) for c in batch]
    return (
        any(c in b.labels for c in batch)
        and result.labels.startswith(batch)
        and 1
        <= _known([length_of(operands, c) for c in others])
        <= thresholds.small_matrix_multiplications
        and (
            prod(bounds(n)[0] or 0 for n in lengths) >= thresholds.small_matrix_batch
            or any(type(n) is not int for n in lengths)
        )
    )


def batch_subscripts(operands: Sequence[Subscripts], result: Subscripts) -> str:
    """The subscripts of the batch: those of the result that both operands have, or long ones."""
    a, b = operands
    return "".join(
        c
        for c in result.labels
        if (c in a.labels and c in b.labels) or not _is_short(length_of(operands, c))
    )


def _is_short(n: Length) -> bool:
    return type(n) is int and n <= thresholds.small_matrix_side


def length_of(operands: Sequence[Subscripts], label: str) -> Length:
    """The length of a subscript that one of the operands has."""
    return next(w.axis(label).length for w in operands if label in w.labels)


def _known(lengths: Sequence[Length]) -> int:
    """The product of lengths if all are static, else 0."""
    static = [n for n in lengths if type(n) is int]
    return prod(static) if len(static) == len(lengths) else 0


def parallel_grain(batch: Sequence[Length], flops_of_product: Length) -> int:
    """The number of products along the first axis of a batch for each thread; 0 for one thread.

    Parameters
    ----------
    flops_of_product : Length
        The floating-point operations of one product.
    """
    if not batch or not all(type(n) is int for n in (*batch, flops_of_product)):
        return 0
    first, *others = [int(n) for n in batch]
    grain = -(-thresholds.parallel_contraction_flops // max(1, prod(others) * flops_of_product))
    return grain if first >= 2 * grain else 0


# ---- one product -------------------------------------------------------------------------------


class ProductChoice(NamedTuple):
    """How a product is computed.

    routine : the routine.
    product : the product as the routine takes it: possibly transposed.
    limit : of "microkernel or gemm" and "blocked or gemm" the operations up to which the first is
        used; of "threads" the rows of a block; of "streamed", "streamed dots" and "blocked" the
        operations of a thread, at least.
    streamed_if : if sizes are known only when it runs, the rows of a, at most, and the bytes of b,
        at least, with which it is streamed instead.
    """

    routine: Routine
    product: Product
    limit: int = 0
    streamed_if: tuple[int, int] | None = None

    @property
    def calls_blas(self) -> bool:
        """Whether the routine may call BLAS."""
        of_blas = self.routine in ("gemv", "gemm", "microkernel or gemm", "blocked or gemm")
        return of_blas or may_be_symmetric(self.product)


def choose(product: Product) -> ProductChoice:
    """The routine that computes a product fastest."""
    choice = _choose(product)
    is_known = all([type(x) is int for x in product.sizes])
    is_vector = choice.routine in ("gemv", "unrolled gemv")
    if is_known or is_vector or not _may_be_streamed(choice.product):
        return choice
    return choice._replace(streamed_if=(thresholds.streamed_rows, thresholds.streamed_bytes))


def _choose(product: Product) -> ProductChoice:
    if not fortran_calls.is_of_blas(product.dtype):
        return ProductChoice("simd loops", product)
    if product.c.columns.length == 1 or product.c.rows.length == 1:
        if product.c.columns.length != 1:
            product = product.transposed
        return ProductChoice("unrolled gemv" if _is_small_gemv(product) else "gemv", product)
    order = leading(product.c)
    assert order is not None
    if order[0] != "N":
        product = product.transposed
    if is_streamed(product):
        return ProductChoice("streamed", product, thresholds.parallel_contraction_flops)
    if is_streamed_transpose(product):
        return ProductChoice("streamed dots", product, thresholds.parallel_contraction_flops)
    if is_uncached(product):
        return ProductChoice("uncached", product, -(-int(product.c.rows.length) // _MOST_BLOCKS))
    work, rows = product.operations, product.c.rows.length
    if not suits_microkernel(product):
        if not is_blocked(product):
            return ProductChoice("gemm", product)
        if isinstance(work, int) and work < thresholds.blas_parallel_flops:
            return ProductChoice("blocked", product, thresholds.parallel_matmul_flops // 2)
        return ProductChoice("blocked or gemm", product, thresholds.blas_parallel_flops)
    if not isinstance(work, int) or work >= thresholds.blas_parallel_flops:
        # BLAS uses several threads for large products.
        return ProductChoice("microkernel or gemm", product, thresholds.blas_parallel_flops)
    if (
        work >= thresholds.parallel_matmul_flops
        and isinstance(rows, int)
        and rows >= 2 * thresholds.matmul_block_rows
    ):
        block = max(thresholds.matmul_block_rows, -(-rows // thresholds.matmul_blocks))
        return ProductChoice("threads", product, block)
    return ProductChoice("microkernel", product)


def _is_small_gemv(product: Product) -> bool:
    """Whether a matrix is real, of static shape, and small.

    The overhead of a BLAS call is about fifty multiplications.
    """
    m, _, k = product.sizes
    return product.dtype.kind == "f" and 0 < _known([m, k]) <= thresholds.unrolled_gemv_elements


def may_be_symmetric(product: Product) -> bool:
    """Whether a product is that of a matrix and its transpose if both are at one address.

    It is symmetric then, and BLAS's syrk needs half of the multiplications.  For small matrices
    gemm is as fast; lengths that are not known are compared too.
    """
    a, b, c = product[:3]
    m, n, k = product.sizes
    return (
        m == n
        and (a.rows.stride, a.columns.stride) == (b.columns.stride, b.rows.stride)
        and product.beta == 0
        and fortran_calls.is_of_blas(product.dtype)
        and all(n >= thresholds.symmetric_product_rows for n in (m, k) if type(n) is int)
        and leading(a) is not None
        and leading(c) is not None
    )


def is_streamed(product: Product) -> bool:
    """Whether a few rows are multiplied by a matrix that no cache keeps; c is row-major.

    Reading it takes longer than multiplying, so it is read along its rows.
    """
    m, n, k = product.sizes
    return (
        _may_be_streamed(product)
        and all([type(x) is int for x in (m, n, k)])
        and m <= thresholds.streamed_rows
        and n * k * product.dtype.itemsize >= thresholds.streamed_bytes
    )


def is_streamed_transpose(product: Product) -> bool:
    """Whether a few rows are multiplied by the transpose of such a matrix, with long rows."""
    a, b, c, dtype = product[:4]
    m, n, k = product.sizes
    strides = (a.rows.stride, b.columns.stride, c.rows.stride, c.columns.stride)
    if not all([type(x) is int for x in (m, n, k, *strides)]) or not _has_vectors(product):
        return False
    return (
        a.columns.stride == b.rows.stride == 1
        and 1 < m <= thresholds.streamed_rows
        and k * dtype.itemsize >= _LONG_ROW
        and n * k * dtype.itemsize >= thresholds.streamed_bytes
    )


def is_uncached(product: Product) -> bool:
    """Whether a sum of few steps has a result that no cache keeps; c is row-major.

    Writing it takes longer than multiplying.  Its rows begin at vectors if the first one does.
    """
    c, dtype = product.c, product.dtype
    m, n, k = product.sizes
    if type(k) is not int or k > thresholds.gemm_constant_stride_steps or product.beta != 0:
        return False
    return (
        suits_microkernel(product)
        and type(m) is int
        and m * int(n) * dtype.itemsize >= _UNCACHED * thresholds.streamed_bytes
        and int(c.rows.stride) * dtype.itemsize % execution_engine.vector_bytes() == 0
    )


def _may_be_streamed(product: Product) -> bool:
    """Whether that may hold for some sizes that are not known."""
    rows = bounds(product.c.rows.length)[0] or 0
    is_low = rows <= thresholds.streamed_rows
    return is_low and product.b.columns.stride == 1 and _has_vectors(product)


def _has_vectors(product: Product) -> bool:
    """Whether rows of the result are vectors of a processor that multiplies and adds at once."""
    return (
        product.dtype in (F32, F64)
        and product.c.columns.stride == 1
        and execution_engine.vector_bytes() >= 32
        and execution_engine.has("fma")
    )


def is_blocked(product: Product) -> bool:
    """Whether blocks (blocked_gemm.py) are faster than BLAS on one thread; c is row-major.

    A length that is not known is assumed to be long enough, which is tested when it runs.
    """
    n = product.c.columns.length
    is_wide = type(n) is not int or n >= panel_columns()
    return product.dtype == F64 and is_wide and _has_vectors(product)


def suits_microkernel(product: Product) -> bool:
    """Whether the microkernel is faster than BLAS on one thread; c is row-major.

    One factor must fit into a cache: OpenBLAS packs both operands first, and computes tiles of a
    fixed size, which pays off for large matrices only.
    """
    a, b, c, dtype = product[:4]
    m, n, k = product.sizes
    strides = (a.rows.stride, a.columns.stride, b.rows.stride, b.columns.stride, c.rows.stride)
    if not _has_vectors(product):
        return False
    if type(n) is not int or not all(type(x) is int for x in strides):
        return False
    size, limit = n * dtype.itemsize, thresholds.gemm_cached_bytes
    if type(k) is int and k * size <= limit:
        # Each panel of b is multiplied by all of a, which then comes from memory each time.
        of_a = m * k * dtype.itemsize if type(m) is int else 0
        is_large = of_a > limit and k * size > limit // 4 and n >= thresholds.gemm_block_rows
        return not (is_large and is_blocked(product))
    return type(m) is int and m * size <= limit // 4 and b.columns.stride == 1
