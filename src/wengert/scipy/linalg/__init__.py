"""The functions of scipy.linalg, for arrays and tensors.

linear_solve        solve for general and structured matrices, lstsq, pinv
lu_ldl_cho_solve    lu, lu_factor, lu_solve, ldl, cho_factor, cho_solve
banded              solve_banded, solveh_banded and other banded systems
toeplitz_circulant  toeplitz, circulant, hankel, block_diag ..., solve_toeplitz; fiedler, companion,
                    leslie
decompositions      cholesky, qr, svd, polar, orth, null_space; rq, qr_multiply
eigenvalues         eig, eigh, generalized, banded and tridiagonal problems
schur               schur, hessenberg; derivative of the unitary factor of a Schur decomposition
funm_norm_balance   funm, expm_cond, matrix_balance, subspace_angles; norm, diagsvd, bandwidth ...;
                    conversion between real and complex forms of eigenvalues
matrix_functions    expm, logm, sqrtm, cosm ...
matrix_equations    Sylvester and Lyapunov equations; continuous and discrete algebraic Riccati
                    equations
register            registration of functions of scipy.linalg as operations

SciPy's functions do not dispatch on tensors, so they are called by these names.  Plain arrays are
passed to SciPy's functions.  The matrices of a tensor are in its last two axes, and all functions
accept batches unless their docstring says otherwise.  Arguments such as overwrite_a and
check_finite are accepted and ignored.
"""

from importlib import import_module
from typing import Any

from wengert._engine.core.lazy_import import public_dir

MODULES = (
    "matrix_equations",
    "matrix_functions",
    "lu_ldl_cho_solve",
    "linear_solve",
    "banded",
    "toeplitz_circulant",
    "decompositions",
    "eigenvalues",
    "schur",
    "funm_norm_balance",
)

_NAMES: dict[str, Any] = {}
for _module in [import_module(f"{__name__}.{name}") for name in MODULES]:
    _NAMES |= {name: vars(_module)[name] for name in _module.__all__}
globals().update(_NAMES)  # after the imports, as a module may have the name of a function

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = public_dir(__name__)
