"""Matrices with infinity or NaN: iterative algorithms raise, eager and compiled.

LAPACK's iterations may never end with infinity, return numbers, or write to the terminal
("On entry to DLASCL ..."); so nothing is asked of it.
"""

import numpy as np
import pytest

import wengert as wg
import wengert.scipy.linalg as sl
from wengert.errors import MatrixError

la = np.linalg
FUNCTIONS = {
    "svd": lambda a: la.svd(a)[1],
    "svd of values": lambda a: la.svd(a, compute_uv=False),
    "svdvals": la.svdvals,
    "eig": lambda a: la.eig(a)[0],
    "eigvals": la.eigvals,
    "eigh": lambda a: la.eigh(a)[0],
    "eigvalsh": la.eigvalsh,
    "pinv": la.pinv,
    "pinv, hermitian": lambda a: la.pinv(a, hermitian=True),
    "lstsq": lambda a: la.lstsq(a, np.ones(len(a)))[0],
    "matrix_rank": la.matrix_rank,
    "matrix_rank, hermitian": lambda a: la.matrix_rank(a, hermitian=True),
    "cond": la.cond,
    "cond -2": lambda a: la.cond(a, -2),
    "norm 2": lambda a: la.norm(a, 2),
    "norm -2": lambda a: la.norm(a, -2),
    "norm nuc": lambda a: la.norm(a, "nuc"),
    "roots": lambda a: np.roots(a[0]),
    "polar": lambda a: sl.polar(a)[0],
    "orth": sl.orth,
    "null_space": sl.null_space,
    "expm": sl.expm,
    "logm": sl.logm,
    "sqrtm": sl.sqrtm,
    "signm": sl.signm,
    "schur": lambda a: sl.schur(a)[0],
    "svdvals of scipy": sl.svdvals,
    "eigvals of scipy": sl.eigvals,
    "eigvalsh of scipy": sl.eigvalsh,
    "subspace_angles": lambda a: sl.subspace_angles(a, a),
    "solve_sylvester": lambda a: sl.solve_sylvester(a, a, np.ones(a.shape)),
    "lstsq of scipy": lambda a: sl.lstsq(a, np.ones(len(a)))[0],
    "pinvh": sl.pinvh,
}
NUMBERS = {"expm"}  # which are NaN
VALUED = {"orth", "null_space", "subspace_angles"}  # not in a graph


def spoiled(n, value):
    a = np.arange(1.0, n * n + 1).reshape(n, n) + n * n * np.eye(n)
    a[0, 1] = a[1, 0] = value
    return a


@pytest.mark.parametrize("name", FUNCTIONS)
def test_eager_runs_raise(name):
    for n in (3, 12):
        for value in (np.inf, -np.inf, np.nan):
            refuses(FUNCTIONS[name], wg.tensor(spoiled(n, value)), name)


@pytest.mark.sample(12)
@pytest.mark.parametrize("n", [3, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [f for f in FUNCTIONS if f not in VALUED])
def test_compiled_programs_raise(name, n):
    f = wg.jit(FUNCTIONS[name])
    for value in (np.inf, np.nan):
        refuses(f, spoiled(n, value), name)


def refuses(f, a, name):
    if name in NUMBERS:
        assert np.isnan(np.asarray(wg.stop_gradient(f(a)))).any()
    else:
        with pytest.raises(MatrixError, match="infs or NaNs"):
            f(a)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("f", [la.det, lambda a: la.slogdet(a)[1]])
def test_derivatives_of_determinants_are_nan(f):
    assert np.isnan(wg.grad(f)(spoiled(3, np.nan))).any()


@pytest.mark.parametrize("compiled", [False, True])
def test_eigh_reads_one_triangle(compiled):
    a = np.array([[2.0, np.nan, np.inf], [1.0, 3.0, np.nan], [0.5, 0.25, 4.0]])
    f = wg.jit(la.eigvalsh) if compiled else la.eigvalsh
    found = np.asarray(wg.stop_gradient(f(a if compiled else wg.tensor(a))))
    np.testing.assert_allclose(found, la.eigvalsh(a), rtol=1e-14)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_cofactors_of_infinite_matrices_are_no_numbers():
    found = wg.grad(la.det)(np.array([[1.0, np.inf], [np.inf, 2.0]]))
    assert not np.isfinite(found).all()
