"""Homes: in which file of this folder the kernel of an operation is.

    HOMES    the file, by the name of the operation

A program needs few of them, so a file is imported when a line is looked at that it may serve; this
table is all that is known of the others.
"""

from __future__ import annotations

HOMES: dict[str, str] = {
    name: home
    for home, names in {
        "accepting": "accepted",
        "banded": "interpolate.banded",
        "convolutions": "slide convolve",
        "convolving": "convolution convolution_input convolution_weight",
        "cotangents": "cholesky_cotangent",
        "draws": "random_uniform random_normal random_integers random_bits random_tail",
        "exponentials": "expm",
        "factoring": "cholesky qr completing_columns linalg.lu_factors",
        "packed": "lu_packed solve_packed linalg.order_of rows_exchanged linalg.exchanges",
        "filters": "signal.lfilter",
        "fourier": "fft rfft irfft",
        "indexing": "scatter setitem getitem scatter_along",
        "joining": "stack concatenate roll",
        "keys": "random_split random_fold",
        "pooling": "sum_pool sum_pool_adjoint max_pool max_pool_tangent max_pool_adjoint",
        "levinson": "linalg.toeplitz_solve linalg.exchanges",
        "products": "matmul dot einsum strong_einsum",
        "roots": "linalg.square_root linalg.logarithm linalg.matrix_sign",
        "schur": "linalg.schur_form linalg.schur_rotation",
        "searching": "searchsorted digitize histogram_counts",
        "sequences": "cumsum cumprod running recurrence",
        "solving": "solve inv det slogdet det_derivative solve_triangular inverse_slogdet "
        "cofactors_det",
        "sorting": "argsort lexsort",
        "spectra": "eigh eig svd pinv matrix_rank",
        "structured": "linalg.banded_solve linalg.structured_solve linalg.definite_banded_solve",
        "sylvester": "linalg.sylvester",
        "stencils": "signal.convolve signal.slide",
        "writes": "writes",
    }.items()
    for name in names.split()
}
