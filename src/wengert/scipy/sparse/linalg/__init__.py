"""The functions of scipy.sparse.linalg, for sparse arrays whose elements are tensors.

operands                  arguments: sparse arrays of SciPy and of wengert; arrays of the CSR
                          format, checked; LinearOperator, aslinearoperator
matrix_patterns           repeated entries, symmetry and bandwidth of a pattern, found once;
                          patterns of factors, as native code
matrix_factors            what the factors of all libraries have in common; LU factors by SuperLU
factors                   Cholesky factors by LAPACK and CHOLMOD; the factors of a matrix, kept for
                          the derivatives
cholmod                   CHOLMOD, through cvxopt; the only module that imports it
solve_operation           linear systems as operations on the arrays of the CSR format
near_solve_operation      the same by the factors of another matrix; GMRES with these factors as the
                          preconditioner
direct                    spsolve, splu, factorized, spsolve_triangular, inv
determinants              logdet, slogdet; determinants as operations; elements of the inverse on
                          the pattern of the matrix
takahashi_recurrence      the same from triangular factors; the same in a band
selected_inverse_kernel   the same as native code
matrix_functions          matrices by their products, for iterative methods
iterative_systems         cg, minres, gmres, bicgstab ...; an iterative method of SciPy as one
                          operation
least_squares             lsqr, lsmr
eigenvalues               eigsh, eigs, svds
generalized_eigenvalues   eigsh and eigs of A v = w M v, eigs of operators
eigenvalue_rules          their derivatives
exponentials_norms        expm_multiply, expm; norm, onenormest

Without tensors, SciPy's functions are called, and names that are not here are SciPy's.
"""

from typing import Any

import scipy.sparse.linalg

from wengert._engine.core.lazy_import import public_dir

from . import near_solve_operation as _near_solve_operation  # noqa: F401  registers it
from .determinants import logdet, slogdet
from .direct import SparseLU, factorized, inv, splu, spsolve, spsolve_triangular
from .eigenvalues import eigs, eigsh, svds
from .exponentials_norms import expm, expm_multiply, norm, onenormest
from .iterative_systems import (
    bicg,
    bicgstab,
    cg,
    cgs,
    gcrotmk,
    gmres,
    lgmres,
    minres,
    tfqmr,
)
from .least_squares import lsmr, lsqr
from .operands import LinearOperator, aslinearoperator

__all__ = [
    "LinearOperator",
    "SparseLU",
    "aslinearoperator",
    "bicg",
    "bicgstab",
    "cg",
    "cgs",
    "eigs",
    "eigsh",
    "expm",
    "expm_multiply",
    "factorized",
    "gcrotmk",
    "gmres",
    "inv",
    "lgmres",
    "logdet",
    "lsmr",
    "lsqr",
    "minres",
    "norm",
    "onenormest",
    "slogdet",
    "splu",
    "spsolve",
    "spsolve_triangular",
    "svds",
    "tfqmr",
]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(scipy.sparse.linalg, name)


__dir__ = public_dir(__name__)
