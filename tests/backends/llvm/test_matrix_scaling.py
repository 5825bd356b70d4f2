"""Linear algebra far from 1: scaling a matrix by a power of two scales the results exactly.

One program has all functions that are made of LAPACK's routines; it is called with the matrix
times powers of two near the ends of the range.  A power of two rounds nothing, so the results are
those at 1 times a power of two, but for sums in another order.
"""

import numpy as np
import pytest

import wengert as wg
import wengert.scipy.linalg as sl

la = np.linalg
ENDS = {"f8": (-996, -498, 498, 996), "c16": (-996, -498, 498, 996)}
ENDS |= {"f4": (-110, -60, 60, 110), "c8": (-110, -60, 60, 110)}


def banded(a):
    zero = np.zeros_like(a[:1, 0])
    rows = [np.concatenate([zero, np.diagonal(a, 1)]), np.diagonal(a) * 4]
    return np.stack([*rows, np.concatenate([np.diagonal(a, -1), zero])])


# name: the function of any matrix a and a definite one p, and how its results grow with them
CASES = {
    "eigvals": (lambda a, p: la.eigvals(a), 1),
    "eig, values": (lambda a, p: la.eig(a)[0], 1),
    "eig, sizes of vectors": (lambda a, p: abs(la.eig(a)[1]), 0),
    "eigh": (lambda a, p: la.eigh(p)[0], 1),
    "eigh, sizes of vectors": (lambda a, p: abs(la.eigh(p)[1]), 0),
    "eigvalsh": (lambda a, p: la.eigvalsh(p), 1),
    "svd": (lambda a, p: la.svd(a)[1], 1),
    "svd, sizes of vectors": (lambda a, p: abs(la.svd(a)[0]), 0),
    "svdvals": (lambda a, p: la.svd(a, compute_uv=False), 1),
    "pinv": (lambda a, p: la.pinv(a), -1),
    "matrix_rank": (lambda a, p: la.matrix_rank(a), 0),
    "lstsq": (lambda a, p: la.lstsq(a[:, :-1], a[:, 0] / abs(a).max())[0], -1),
    "norm 2": (lambda a, p: la.norm(a, 2), 1),
    "norm nuc": (lambda a, p: la.norm(a, "nuc"), 1),
    "cond": (lambda a, p: la.cond(a), 0),
    "cond 1": (lambda a, p: la.cond(a, 1), 0),
    "cholesky": (lambda a, p: la.cholesky(p), 0.5),
    "qr, q": (lambda a, p: la.qr(a)[0], 0),
    "qr, r": (lambda a, p: la.qr(a)[1], 1),
    "qr, complete": (lambda a, p: la.qr(a[:, :-1], mode="complete")[1], 1),
    "solve": (lambda a, p: la.solve(a, np.ones(len(a))), -1),
    "inv": (lambda a, p: la.inv(a), -1),
    "slogdet, sign": (lambda a, p: la.slogdet(a)[0], 0),
    "lu": (lambda a, p: sl.lu(a)[2], 1),
    "lu_solve": (lambda a, p: sl.lu_solve(sl.lu_factor(a), np.ones(len(a))), -1),
    "cho_solve": (lambda a, p: sl.cho_solve(sl.cho_factor(p), np.ones(len(a))), -1),
    "solve_triangular": (lambda a, p: sl.solve_triangular(p, np.ones(len(a)), lower=True), -1),
    "solve_banded": (lambda a, p: sl.solve_banded((1, 1), banded(a), np.ones(len(a))), -1),
    "solveh_banded": (
        lambda a, p: sl.solveh_banded(banded(p)[1:], np.ones(len(a)), lower=True),
        -1,
    ),
    "solve, pos": (lambda a, p: sl.solve(p, np.ones(len(a)), assume_a="pos"), -1),
    "solve_toeplitz": (lambda a, p: sl.solve_toeplitz(p[0], np.ones(len(a))), -1),
    "schur": (lambda a, p: np.sort(abs(np.diagonal(sl.schur(p)[0]))), 1),
    "schur, rebuilt": (lambda a, p: rebuilt(*sl.schur(a, output="complex")), 1),
    "sqrtm": (lambda a, p: sl.sqrtm(p), 0.5),
    "signm": (lambda a, p: sl.signm(a), 0),
    "polar": (lambda a, p: sl.polar(a)[1], 1),
    "hessenberg": (lambda a, p: sl.hessenberg(a), 1),
    "sylvester": (lambda a, p: sl.solve_sylvester(p, p, a / abs(a).max()), -1),
    "lyapunov": (lambda a, p: sl.solve_continuous_lyapunov(p, a / abs(a).max()), -1),
}


def rebuilt(t, z):
    return z @ t @ np.conjugate(z.T)


def unscaled(x, k):
    """`x` times 2**-k, without rounding what is not beyond single precision's range."""
    x = np.asarray(x)
    wide = x.astype("c16" if x.dtype.kind == "c" else "f8")
    if x.dtype.kind == "c":
        return np.ldexp(wide.real, -k) + 1j * np.ldexp(wide.imag, -k)
    return np.ldexp(wide, -k)


def matrices(rng, n, dtype):
    a = rng.normal(size=(n, n))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.normal(size=(n, n))
    p = a @ a.conj().T + n * np.eye(n)
    return (a + 0.5 * np.eye(n)).astype(dtype), p.astype(dtype)


RUNS = [
    pytest.param(n, dtype, marks=[] if (n, dtype) == (3, "f8") else pytest.mark.slow)
    for n in (3, 9)
    for dtype in ENDS
]


@pytest.mark.parametrize(("n", "dtype"), RUNS)
def test_results_of_scaled_matrices_are_scaled(n, dtype):
    a, p = matrices(np.random.default_rng(5), n, dtype)
    program = wg.jit(lambda a, p: {name: f(a, p) for name, (f, _) in CASES.items()})
    want = program(a, p)
    tolerance = 1e-3 if dtype in ("f4", "c8") else 1e-9
    for k in ENDS[dtype]:
        unit = a.real.dtype.type(2.0**k)
        got = program(a * unit, p * unit)
        for name, (_, degree) in CASES.items():
            np.testing.assert_allclose(
                unscaled(got[name], round(k * degree)),
                want[name],
                tolerance,
                tolerance * np.max(abs(want[name])),
                err_msg=f"{name} of {dtype} times 2**{k}",
            )


def test_equations_of_small_matrices_are_solved_eagerly():
    """What LAPACK's trsyl takes for zero is absolute; SciPy's result is wrong here."""
    a, p = matrices(np.random.default_rng(5), 3, "f8")
    tiny = 2.0**-996
    x, y = (sl.solve_sylvester(wg.tensor(m), wg.tensor(m), wg.tensor(a)) for m in (p, p * tiny))
    np.testing.assert_allclose(y.numpy() * tiny, x.numpy(), 1e-12)
    s, t = (sl.signm(wg.tensor(m)) for m in (a, a * tiny))
    np.testing.assert_allclose(t.numpy(), s.numpy(), 1e-12)


@pytest.mark.parametrize("power", [-1074, -1000, 1023])
def test_eigenvalues_at_the_ends_of_the_range(power):
    found = wg.jit(la.eigvals)(np.diag([1.0, 0.0]) * np.ldexp(1.0, power))
    np.testing.assert_array_equal(found, np.array([1.0, 0.0]) * np.ldexp(1.0, power))
