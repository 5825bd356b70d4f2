"""scipy.linalg, for arrays and tensors alike: every function here differentiates.

banded              Equations with banded matrices, at a cost that grows with the band
companion_matrices  Matrices made of one line of numbers or two: Fiedler's, companions, Leslie's
decompositions      Orthogonal factors under SciPy's names: Cholesky, QR, singular values, polar,
                    bases of spaces
eigenvalues         eig, eigh, generalised and banded         schur        schur, hessenberg
funm_expm_frechet   funm, expm_cond, matrix_balance, angles    orthogonal   rq, qr_multiply
ldl                 The factorization L D adjoint(L) of a Hermitian matrix that need not be
                    definite
linear_solve        solve and its structures, lstsq, pinv     banded       equations with bands
lu_cho_solve        lu, cho_factor, what is solved with them  ldl          for indefinite matrices
matrix_equations    Sylvester and Lyapunov equations          riccati      Riccati equations
matrix_functions    of matrices: expm, logm, sqrtm, cosm
numpy_aliases       numpy's: norm, kron, and what looks at plain arrays only
real_schur_blocks   real and complex forms of eigenvalues      lines        fiedler, leslie
register            how a function of SciPy's becomes an operation
riccati             Algebraic Riccati equations, of control in continuous and in discrete time
rq_qr_multiply      More of QR: the triangle first, and products with Q
schur               Triangular and nearly triangular forms: Schur's and Hessenberg's
schur_vjp           how the unitary factor of Schur's form turns
toeplitz_circulant  toeplitz, circulant, block_diag ...       factors      qr, svd, polar, orth

SciPy's functions do not ask tensors what to do, so they are called by these names.  Plain arrays go
to SciPy's function, and give exactly its values.  Matrices of a tensor stand in its last two axes,
and all functions take batches unless they say otherwise.  The arguments overwrite_a, check_finite
and the like are taken and have no meaning.
"""

from importlib import import_module
from typing import Any

from wengert._engine.core.lazy_import import public_dir

MODULES = (
    "matrix_equations",
    "riccati",
    "matrix_functions",
    "lu_cho_solve",
    "ldl",
    "linear_solve",
    "banded",
    "toeplitz_circulant",
    "decompositions",
    "eigenvalues",
    "schur",
    "funm_expm_frechet",
    "rq_qr_multiply",
    "real_schur_blocks",
    "companion_matrices",
    "numpy_aliases",
)

_NAMES: dict[str, Any] = {}
for _module in [import_module(f"{__name__}.{name}") for name in MODULES]:
    _NAMES |= {name: vars(_module)[name] for name in _module.__all__}
globals().update(_NAMES)  # behind the imports, as a module may have the name of a function

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = public_dir(__name__)
