"""Some eigenvalues and singular values of sparse matrices and linear operators.

    eigsh   of Hermitian matrices
    eigs    of other matrices
    svds    singular values

For a simple eigenvalue w of A with eigenvector v of length one, left eigenvector u with
``u^H v = 1``, the derivatives are those of

    [A - w I   v] [vdot ]   [-Adot v]
    [v^H       0] [-wdot] = [0      ]

whose matrix is regular although A - w I is singular.  For Hermitian matrices ``wdot = v^H Adot v``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse.linalg

from wengert._engine.core.handle import Handle
from wengert._engine.core.op import lookup
from wengert._engine.implicit.solver_calls import solver_call
from wengert._engine.ops import casts
from wengert.errors import ArgumentError, MatrixError, at, user_line

from ...optimize.solver_operation import SolverOptions
from ..arrays import csr_array
from .eigenvalue_rules import EigenMethod, EigenPairs, HermitianValues, HermitianVectors, Pattern
from .generalized_eigenvalues import eigenpairs
from .iterative_systems import results
from .matrix_functions import CompressedMatrix, matrix_function
from .operands import LinearOperator, aslinearoperator, uses_tensors


def _refuse(what: str, **given: Any) -> None:
    """Refuse options that only SciPy's functions have."""
    named = [name for name, x in given.items() if x is not None]
    if named:
        raise ArgumentError(
            f"{what} of tensors with {', '.join(named)}: it has derivatives without"
            f"{at(user_line())}."
        )


def _is_ours(*matrices: Any) -> bool:
    """Whether a matrix is an operator of this package, or depends on tensors."""
    given = [x for x in matrices if x is not None]
    return any([isinstance(x, LinearOperator) for x in given]) or uses_tensors(*given)


def _check_count(what: str, shape: tuple[int, ...], k: int) -> None:
    """Refuse matrices that are not square, and numbers of eigenvalues that SciPy refuses."""
    if shape[0] != shape[1]:
        raise MatrixError(f"{what}: A has shape {shape}, and must be square{at(user_line())}.")
    n, most = shape[0], shape[0] - (what == "eigs")
    if not 0 < k < most:
        raise ArgumentError(
            f"{what}: k={k} eigenvalues of a matrix with {n} rows: k must be positive and less "
            f"than {most}. Use numpy.linalg for all of them{at(user_line())}."
        )


def _pairs(
    what: str, A: Any, dtype: Any, options: dict[str, Any]
) -> tuple[Any, list[Any], Any, list[Any]]:
    """The matrix, its captured values, its pattern, and eigenvalues and eigenvectors."""
    if isinstance(A, Handle):
        made: Any = csr_array
        A = made(A)
    _check_count(what, A.shape, options["k"])
    matrix, consts = matrix_function(A, dtype, what)
    pattern = None
    if isinstance(matrix, CompressedMatrix):
        pattern = Pattern(np.asarray(consts[1]), np.asarray(consts[2]))
    constants = [lookup("stop_gradient")(x) if isinstance(x, Handle) else x for x in consts]
    found = results(constants, [matrix], EigenMethod(what, options["k"], SolverOptions(options)))
    return matrix, consts, pattern, found


def eigsh(
    A: Any,
    k: int = 6,
    M: Any = None,
    sigma: Any = None,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,
    OPinv: Any = None,
    mode: str = "normal",
    **options: Any,
) -> Any:
    """Some eigenvalues and eigenvectors of a Hermitian matrix, as ``scipy.sparse.linalg.eigsh``.

    Parameters
    ----------
    A : array, sparse array or LinearOperator
        Hermitian, which is not checked; its elements may be tensors.
    k : int
        The number of eigenvalues.
    sigma, which, v0, ncv, maxiter, tol
        As in SciPy; `sigma` and `v0` are constants.
    return_eigenvectors : bool, default True
    M : array, sparse array or LinearOperator, optional
        Hermitian and positive definite, for ``A v = w M v``; its elements may be tensors.
    Minv, OPinv, mode, rng
        Only without tensors.

    Returns
    -------
    w : array
        The eigenvalues, in ascending order.
    v : array
        The eigenvectors, in columns, if `return_eigenvectors`.

    Raises
    ------
    MatrixError
        A derivative is taken, and eigenvalues are equal.
    ArgumentError
        An option is only for plain arguments.

    Notes
    -----
    The derivative of an eigenvalue costs one product, that of an eigenvector a linear system with a
    bordered matrix (by `minres` for operators). Eigenvectors have the sign with which their product
    with the start vector is positive.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.sparse.linalg import eigsh
    >>> chain = lambda k: np.diag(k[:-1] + k[1:]) - np.diag(k[1:-1], 1) - np.diag(k[1:-1], -1)
    >>> lowest = lambda k: eigsh(chain(k), k=1, which="SA", return_eigenvectors=False)[0]
    >>> wg.grad(lowest)(np.ones(4)).round(6)
    array([0.25    , 0.042893, 0.042893, 0.25    ])
    """
    if not _is_ours(A, M):
        w, v = scipy.sparse.linalg.eigsh(
            A, k, M, sigma, which, v0, ncv, maxiter, tol, True, Minv, OPinv, mode, **options
        )
        order = np.argsort(w)  # without eigenvectors ARPACK returns another order
        return (w[order], v[:, order]) if return_eigenvectors else w[order]
    other = None if mode == "normal" else mode
    _refuse("eigsh", Minv=Minv, OPinv=OPinv, mode=other)
    given = {"k": k, "sigma": sigma, "which": which, "v0": v0, "ncv": ncv}
    given |= {"maxiter": maxiter, "tol": tol}
    if M is not None:
        _check_count("eigsh", A.shape, k)
        pairs = eigenpairs("eigsh", A, M, given)
        return pairs if return_eigenvectors else pairs[0]
    dtype = np.result_type(A.dtype, np.float32)
    matrix, consts, pattern, found = _pairs("eigsh", A, dtype, given)
    vectors = HermitianVectors(matrix, pattern)
    (w,) = solver_call(HermitianValues(vectors), [*consts, *found])
    if not return_eigenvectors:
        return w
    (v,) = solver_call(vectors, [*consts, *found])
    return w, v


def eigs(
    A: Any,
    k: int = 6,
    M: Any = None,
    sigma: Any = None,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,
    OPinv: Any = None,
    OPpart: Any = None,
    **options: Any,
) -> Any:
    """Some eigenvalues and eigenvectors of a square matrix, as ``scipy.sparse.linalg.eigs``.

    Parameters
    ----------
    A : array, sparse array or LinearOperator
        Its elements may be tensors.
    k : int
        The number of eigenvalues.
    M : array, sparse array or LinearOperator, optional
        Hermitian and positive definite, for ``A v = w M v``; its elements may be tensors.
    sigma, which, v0, ncv, maxiter, tol
        As in SciPy; `sigma` and `v0` are constants.
    return_eigenvectors : bool, default True
    Minv, OPinv, OPpart, rng
        Only without tensors.

    Returns
    -------
    w : array of complex
        The eigenvalues.
    v : array of complex
        The eigenvectors, in columns, if `return_eigenvectors`; of length one (with M: v^H M v is
        one), with the phase with which the product with the start vector is positive, which is
        constant for derivatives.

    Raises
    ------
    MatrixError
        A derivative is taken, and an eigenvalue is not simple.
    ConvergenceError
        A derivative is taken, `A` or `M` is a linear operator, and GMRES does not converge; an
        eigenvalue may not be simple.
    ArgumentError
        An option is only for plain arguments.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.sparse.linalg import eigs
    >>> largest = lambda a: eigs(a, k=1, return_eigenvectors=False)[0].real
    >>> wg.grad(largest)(np.array([[3.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 2.0]])).round(6)
    array([[1. , 0. , 0. ],
           [0.5, 0. , 0. ],
           [0. , 0. , 0. ]])
    """
    if not _is_ours(A, M):
        w, v = scipy.sparse.linalg.eigs(
            A, k, M, sigma, which, v0, ncv, maxiter, tol, True, Minv, OPinv, OPpart, **options
        )  # without eigenvectors ARPACK returns another order
        return (w, v) if return_eigenvectors else w
    _refuse("eigs", Minv=Minv, OPinv=OPinv, OPpart=OPpart)
    given = {"k": k, "sigma": sigma, "which": which, "v0": v0, "ncv": ncv}
    given |= {"maxiter": maxiter, "tol": tol}
    if M is not None or isinstance(A, LinearOperator):
        _check_count("eigs", A.shape, k)
        pairs = eigenpairs("eigs", A, M, given)
        return pairs if return_eigenvectors else pairs[0]
    dtype = np.result_type(A.dtype, np.float32)
    matrix, consts, pattern, found = _pairs("eigs", A, dtype, given)
    complex_data = casts.astype(consts[0], found[0].dtype)
    w, v = solver_call(EigenPairs(matrix, pattern), [complex_data, *consts[1:], *found])
    return (w, v) if return_eigenvectors else w


def svds(
    A: Any,
    k: int = 6,
    ncv: int | None = None,
    tol: float = 0,
    which: str = "LM",
    v0: Any = None,
    maxiter: int | None = None,
    return_singular_vectors: Any = True,
    solver: str = "arpack",
    **options: Any,
) -> Any:
    """Some singular values and vectors, as ``scipy.sparse.linalg.svds``.

    Parameters
    ----------
    A : array, sparse array or LinearOperator
        Its elements may be tensors.
    k : int
        The number of singular values.
    ncv, tol, which, v0, maxiter
        As in SciPy.
    return_singular_vectors : bool, default True
    solver
        'arpack' for tensors.
    **options
        Only without tensors.

    Returns
    -------
    u, s, vh : arrays
        In ascending order of singular values; only `s` without singular vectors.

    Raises
    ------
    MatrixError
        A derivative is taken, and singular values are equal.
    ArgumentError
        An option is only for plain arguments.

    Notes
    -----
    They are computed by `eigsh` from the smaller one of ``A^H A`` and ``A A^H``, so singular values
    that are small relative to the largest have half of the digits.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.sparse.linalg import svds
    >>> largest = lambda d: svds(np.diag(d), k=1, return_singular_vectors=False)[0]
    >>> np.abs(wg.grad(largest)(np.array([3.0, 1.0, 2.0])).round(6))
    array([1., 0., 0.])
    """
    if not (isinstance(A, LinearOperator) or uses_tensors(A)):
        return scipy.sparse.linalg.svds(
            A, k, ncv, tol, which, v0, maxiter, return_singular_vectors, solver, **options
        )
    if solver != "arpack" or which not in ("LM", "SM") or return_singular_vectors not in (0, 1):
        raise ArgumentError(
            f"svds of tensors with solver={solver!r}, which={which!r} and return_singular_vectors="
            f"{return_singular_vectors!r}: use 'arpack', 'LM' or 'SM', True or False"
            f"{at(user_line())}."
        )
    a = aslinearoperator(A)
    is_wide = a.shape[0] < a.shape[1]
    gram = a @ a.H if is_wide else a.H @ a
    kind = "LA" if which == "LM" else "SA"
    found = eigsh(gram, k, None, None, kind, v0, ncv, maxiter, tol, bool(return_singular_vectors))
    if not return_singular_vectors:
        return np.sqrt(found)
    s, v = np.sqrt(found[0]), found[1]
    other = (a.rmatmat(v) if is_wide else a.matmat(v)) / s
    u, v = (v, other) if is_wide else (other, v)
    return u, s, np.conjugate(v.T) if v.dtype.kind == "c" else v.T
