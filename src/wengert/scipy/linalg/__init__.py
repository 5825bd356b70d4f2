"""scipy.linalg, for arrays and tensors alike: every function here differentiates.

    entries      how a function of SciPy's becomes an operation
    equations    Sylvester and Lyapunov equations          riccati      Riccati equations
    functions    of matrices: expm, logm, sqrtm, cosm ...
    lu           lu, cho_factor, what is solved with them  ldl          for indefinite matrices
    solving      solve and its structures, lstsq, pinv     banded       equations with bands
    structured   toeplitz, circulant, block_diag ...       factors      qr, svd, polar, orth ...
    eigen        eig, eigh, generalised and banded         schur        schur, hessenberg
    rotations    how the unitary factor of Schur's form turns
    general      funm, expm_cond, matrix_balance, angles    orthogonal   rq, qr_multiply
    complexes    real and complex forms of eigenvalues      lines        fiedler, leslie ...
    others       numpy's: norm, kron, and what looks at plain arrays only

SciPy's functions do not ask tensors what to do, so they are called by these names.  Plain arrays go
to SciPy's function, and give exactly its values.  Matrices of a tensor stand in its last two axes,
and all functions take batches unless they say otherwise.  The arguments overwrite_a, check_finite
and the like are taken and have no meaning.
"""

from importlib import import_module
from typing import Any

from wengert._engine.core.lazy_import import public_dir

MODULES = (
    "equations",
    "riccati",
    "functions",
    "lu",
    "ldl",
    "solving",
    "banded",
    "structured",
    "factors",
    "eigen",
    "schur",
    "general",
    "orthogonal",
    "complexes",
    "lines",
    "others",
)

_NAMES: dict[str, Any] = {}
for _module in [import_module(f"{__name__}.{name}") for name in MODULES]:
    _NAMES |= {name: vars(_module)[name] for name in _module.__all__}
globals().update(_NAMES)  # behind the imports, as a module may have the name of a function

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = public_dir(__name__)
