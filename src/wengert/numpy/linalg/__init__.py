"""NumPy's `linalg`, for arrays and tensors.

decompositions_and_solve  cholesky, qr, eig, eigh, svd, eigvals, svdvals ...; solve, inv, det,
                          slogdet, pinv, lstsq, tensorsolve, tensorinv
norms_and_powers  norm, cond, matrix_rank, trace, diagonal, matrix_power, multi_dot

For plain arrays the results are exactly NumPy's; with a tensor among the arguments the result is a
tensor.  Matrices are in the last two axes.  A singular or invalid matrix raises `MatrixError`,
which is also a `numpy.linalg.LinAlgError`.
"""

from numpy.linalg import LinAlgError

from wengert._engine.core.lazy_import import public_dir
from wengert._engine.ops.linalg.results import (
    EighResult,
    EigResult,
    QRResult,
    SlogdetResult,
    SVDResult,
)

from ..matmul_einsum import linalg_cross as cross
from ..matmul_einsum import matmul, outer, tensordot, vecdot
from ..shape_manipulation import matrix_transpose
from .decompositions_and_solve import (
    cholesky,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    lstsq,
    pinv,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
    tensorinv,
    tensorsolve,
)
from .norms_and_powers import (
    cond,
    diagonal,
    matrix_norm,
    matrix_power,
    matrix_rank,
    multi_dot,
    norm,
    trace,
    vector_norm,
)

__all__ = [
    "LinAlgError",
    "solve",
    "inv",
    "det",
    "slogdet",
    "pinv",
    "lstsq",
    "tensorsolve",
    "tensorinv",
    "cholesky",
    "qr",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "svd",
    "svdvals",
    "norm",
    "vector_norm",
    "matrix_norm",
    "cond",
    "matrix_rank",
    "trace",
    "diagonal",
    "matrix_transpose",
    "matrix_power",
    "multi_dot",
    "matmul",
    "vecdot",
    "tensordot",
    "outer",
    "cross",
    "SlogdetResult",
    "EigResult",
    "EighResult",
    "SVDResult",
    "QRResult",
]

__dir__ = public_dir(__name__)
