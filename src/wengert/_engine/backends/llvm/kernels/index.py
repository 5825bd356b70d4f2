"""The module of this folder that has the kernel of an operation.

    KERNEL_MODULES    the module, by the name of the operation
    Kernel            what is registered of a kernel

Kernels are imported lazily: a program needs few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


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
        "check": "accepted refuse_residual bracketed",
        "linalg.definite_factors": "definite_packed reciprocal_condition refuse_singular",
        "conv.conv1d_full": "slide convolve",
        "conv.conv_im2col": "convolution convolution_input convolution_weight",
        "linalg.cholesky_vjp": "cholesky_cotangent",
        "random.distributions": "random_uniform random_normal random_integers random_bits "
        "random_tail",
        "linalg.expm": "expm",
        "linalg.cholesky_qr": "cholesky qr completing_columns linalg.lu_factors",
        "linalg.packed_factors": "lu_packed solve_packed linalg.order_of rows_exchanged "
        "linalg.exchanges",
        "conv.recursive_filter": "signal.lfilter",
        "fft": "fft rfft irfft",
        "scatter": "scatter scatter_add setitem getitem scatter_along",
        "concatenate": "stack concatenate roll",
        "random.philox": "random_split random_fold",
        "conv.pooling": "sum_pool sum_pool_adjoint max_pool max_pool_tangent max_pool_adjoint",
        "linalg.toeplitz_solve": "linalg.toeplitz_solve",
        "gemm.matmul": "matmul dot einsum strong_einsum masked_einsum",
        "linalg.matrix_functions": "linalg.square_root linalg.logarithm linalg.matrix_sign",
        "linalg.schur": "linalg.schur_form linalg.schur_rotation linalg.sylvester",
        "sort.histograms": "histogram_counts histogram_sums searchsorted digitize",
        "sparse_products": "csr_matmul csr_transposed_matmul csr_sampled_matmul csr_cotangents",
        "messages": "first_token tied joined mpi.allreduce mpi.allreduce_max mpi.allreduce_min "
        "mpi.allreduce_prod mpi.allreduce_any mpi.allreduce_all mpi.reduce mpi.bcast "
        "mpi.replicated mpi.barrier mpi.reduce_scatter mpi.allgather mpi.alltoall mpi.gather "
        "mpi.scatter mpi.start mpi.wait mpi.progress mpi.complete mpi.same mpi.varying",
        "cumulative": "cumsum cumprod running recurrence ndimage.decaying_sum",
        "linalg.lu_solve": "solve inv det slogdet det_derivative inverse_slogdet cofactors_det",
        "linalg.solve_or_nan": "solve_or_nan lu_or_nan",
        "sort.argsort": "argsort lexsort",
        "linalg.eigen_svd": "eigh eig svd pinv matrix_rank",
        "linalg.structured_solve": "linalg.banded_solve linalg.structured_solve "
        "linalg.definite_banded_solve interpolate.banded solve_triangular",
        "conv.conv_nd": "signal.convolve signal.slide",
        "store_chain": "writes",
    }.items()
    for name in names.split()
}
