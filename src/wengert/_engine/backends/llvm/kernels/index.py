"""The modules of kernels, and of functions that all programs share, by their names.

    KERNEL_MODULES    the module of the kernel of each operation
    Kernel            what is registered of a kernel
    HOMES             the module of each function that all programs share
    address_of        its address, for programs that are read from the disk
    module_of         its module, for code that is exported

Kernels are imported lazily: a program needs few of them.  Functions that do not depend on sizes are
compiled once for a machine: the module named in `HOMES` has ``emit(module, name)``, which adds the
function and those that it calls.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from wengert._engine.core.thread_state import lock

from ..ir import execution_engine
from ..ir.ir_builder import ModuleBuilder
from ..runtime import runtime_library


class Kernel(NamedTuple):
    """A kernel of the registry.

    write : ``write(call)`` emits the kernel.
    strided : whether operands may have any strides; if not, they must be C-contiguous.
    serves : ``serves(node)``: whether the kernel supports this node.
    skips_unused : whether it is passed the option "unused", the results that are not needed.
    updates : ``updates(params)``: whether the result is the first operand with some elements
        replaced, and may share its memory.
    unrolled : whether its code grows with the number of operands, and not with their sizes.
    in_lanes : whether it computes small matrices of a batch apart (batched_matrices.py).
    """

    write: Callable[[Any], None]
    strided: bool
    serves: Callable[[Any], bool]
    skips_unused: bool
    updates: Callable[[Mapping[str, Any]], bool]
    unrolled: bool
    in_lanes: bool


KERNEL_MODULES: dict[str, str] = {
    name: module
    for module, names in {
        "linalg.checked_solve": "definite_packed reciprocal_condition refuse_singular solve_or_nan "
        "lu_or_nan accepted refuse_residual bracketed",
        "conv.direct_convolution": "slide convolve signal.convolve signal.slide",
        "conv.conv_im2col": "convolution convolution_input convolution_weight",
        "distributions": "random_uniform random_normal random_integers random_bits random_tail",
        "linalg.factorizations": "cholesky qr completing_columns linalg.lu_factors "
        "cholesky_cotangent",
        "linalg.packed_factors": "lu_packed solve_packed linalg.order_of rows_exchanged "
        "linalg.exchanges",
        "fft": "fft rfft irfft",
        "scatter": "scatter scatter_add setitem getitem scatter_along",
        "joined_arrays": "stack concatenate roll writes",
        "philox": "random_split random_fold",
        "conv.pooling": "sum_pool sum_pool_adjoint max_pool max_pool_tangent max_pool_adjoint",
        "gemm.matmul": "matmul dot einsum strong_einsum masked_einsum",
        "linalg.matrix_functions": "expm linalg.square_root linalg.logarithm linalg.matrix_sign",
        "linalg.schur": "linalg.schur_form linalg.schur_rotation linalg.sylvester",
        "sorting": "argsort lexsort histogram_counts histogram_sums searchsorted digitize",
        "sparse_products": "csr_matmul csr_transposed_matmul csr_sampled_matmul csr_cotangents",
        "messages": "first_token tied joined mpi.allreduce mpi.allreduce_max mpi.allreduce_min "
        "mpi.allreduce_prod mpi.allreduce_any mpi.allreduce_all mpi.reduce mpi.bcast "
        "mpi.replicated mpi.barrier mpi.reduce_scatter mpi.allgather mpi.alltoall mpi.gather "
        "mpi.scatter mpi.start mpi.wait mpi.progress mpi.complete mpi.same mpi.varying",
        "cumulative": "cumsum cumprod running recurrence ndimage.decaying_sum signal.lfilter",
        "linalg.lu_solve": "solve inv det slogdet det_derivative inverse_slogdet cofactors_det",
        "linalg.eigen_svd": "eigh eig svd pinv matrix_rank",
        "linalg.structured_solve": "linalg.banded_solve linalg.structured_solve "
        "linalg.definite_banded_solve linalg.toeplitz_solve interpolate.banded solve_triangular",
    }.items()
    for name in names.split()
}


# ---- functions that all programs share -----------------------------------------------------------


HOMES = {
    "wengert_gemm": "gemm.blocked_gemm",
    **dict.fromkeys(("wengert_stream_f4", "wengert_stream_f8"), "gemm.streamed_gemm"),
    "wengert_complex_solve": "linalg.complex_solve",
    "wengert_lu": "linalg.lu_in_cache",
    "wengert_lu_columns": "linalg.substitution_in_cache",
    **dict.fromkeys(("wengert_lu_vector", "wengert_lu_vector_t"), "linalg.vector_substitution"),
    "wengert_quadpack": "quadpack.routine",
}
_LOCK = lock()


def address_of(name: str) -> int:
    """The address of a function, which is compiled when it is needed first.

    Examples
    --------
    >>> address_of("wengert_stream_f4") != address_of("wengert_stream_f8")
    True
    """
    if execution_engine.foreign() is not None:
        return 0
    with _LOCK:
        return compiled(name)


@functools.cache
def compiled(name: str) -> int:
    """The address, without the lock."""
    module = module_of(name)
    runtime = runtime_library.symbols() if "wengert_alloc" in module else {}
    needed = {x: runtime[x] for x in ("wengert_alloc", "wengert_free") if runtime}
    text = module.text(execution_engine.heading())
    return runtime_library.loaded(text, needed, [name])[name]


def module_of(name: str) -> ModuleBuilder:
    """The module of a function."""
    module = ModuleBuilder()
    import_module(f".{HOMES[name]}", __package__).emit(module, name)
    return module
