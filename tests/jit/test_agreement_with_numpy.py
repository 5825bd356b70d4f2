"""Values and dtypes of compiled programs are NumPy's: ufuncs, reductions, linear algebra.

Over pairs of dtypes, Python numbers beside arrays (also those that a dtype does not hold, which
NumPy refuses), small integers and booleans.  Everything with one pair of operands is one
program, so that compiling takes no time; the pairs that are not looked at here are run under
``slow``.
"""

import warnings

import numpy as np
import pytest

import wengert as wg
from wengert.errors import IntegerRangeError

la = np.linalg
DTYPES = "?bBhqQefdFD"
WHOLE, COUNTS, REAL, COMPLEX = [-3, 2, 0], [3, 2, 0], [0.5, -2, 0], [0.5 + 1j, -2, 0]
VALUES = {"?": [True, False, True], "b": WHOLE, "h": WHOLE, "q": WHOLE, "B": COUNTS, "Q": COUNTS}
VALUES |= {"e": REAL, "f": REAL, "d": REAL, "F": COMPLEX, "D": COMPLEX}
NUMBERS = [True, 2, -1, 127, 200, 300, 70000, 2**40, 2**63, 0.5, 1j]
TOLERANCES = {"e": 2e-3, "f": 1e-6, "F": 1e-6}
UFUNCS = {
    u.__name__: u
    for u in (getattr(np, n) for n in sorted(dir(np)))
    if isinstance(u, np.ufunc) and u.signature is None
}
UNARY = {n: u for n, u in UFUNCS.items() if u.nin == 1}
BINARY = {n: u for n, u in UFUNCS.items() if u.nin == 2}
QUICK_PAIRS = ["?b", "bQ", "Be", "qf", "hh", "Fd"]


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def attempt(f, *args):
    try:
        return f(*args)
    except Exception as error:
        return error


def compare(functions, *args):
    """Functions of the same operands, in NumPy and in one program; list where they differ."""
    wanted = {name: attempt(f, *args) for name, f in functions.items()}
    sound = {n: f for n, f in functions.items() if not isinstance(wanted[n], Exception)}
    found = wg.jit(lambda *xs: {n: f(*xs) for n, f in sound.items()})(*args)
    differing = [n for n in sound if not agree(found[n], wanted[n])]
    for name, f in functions.items():
        if name not in sound and not isinstance(attempt(wg.jit(f), *args), Exception):
            differing.append(f"{name}, where NumPy raises {wanted[name]!r}")
    return differing


def agree(found, wanted):
    if isinstance(wanted, tuple | list):
        return len(found) == len(wanted) and all(map(agree, found, wanted))
    x, y = np.asarray(found), np.asarray(wanted)
    if (x.dtype, x.shape) != (y.dtype, y.shape):
        return False
    if y.dtype.kind not in "fc":
        return np.array_equal(x, y)
    tolerance = TOLERANCES.get(y.dtype.char, 1e-14)
    least = 1e-7 if y.dtype.char == "e" else 0.0
    return np.allclose(x, y, rtol=tolerance, atol=least, equal_nan=True)


def operand(dtype):
    return np.array(VALUES[dtype], dtype)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "dtype", [pytest.param(d, marks=[] if d in "?bD" else pytest.mark.slow) for d in DTYPES]
)
def test_functions_of_one_operand(dtype):
    assert compare(UNARY, operand(dtype)) == []


PAIRS = [a + b for a in DTYPES for b in DTYPES]


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "pair", [pytest.param(p, marks=[] if p in QUICK_PAIRS else pytest.mark.slow) for p in PAIRS]
)
def test_functions_of_two_operands(pair):
    assert compare(BINARY, operand(pair[0]), operand(pair[1])[::-1].copy()) == []


@pytest.mark.parametrize(
    "dtype", [pytest.param(d, marks=[] if d == "b" else pytest.mark.slow) for d in DTYPES]
)
def test_python_numbers_beside_arrays(dtype):
    functions = {}
    for name, u in BINARY.items():
        for k in NUMBERS if dtype != "b" else NUMBERS[1:7]:
            if name.endswith("power") and dtype in "FD" and isinstance(k, int) and k > 100:
                continue  # the logarithm's rounding times the exponent, in NumPy too
            functions[f"{name}(x, {k})"] = lambda x, u=u, k=k: u(x, k)
            functions[f"{name}({k}, x)"] = lambda x, u=u, k=k: u(k, x)
    assert compare(functions, operand(dtype)) == []


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", ["b", "B", "h", "Q"])
def test_python_integers_that_are_arguments(dtype):
    """The program is one for all integers: it looks at them when it runs."""
    x = np.array([1, 2, 3], dtype)
    functions = {n: wg.jit(BINARY[n]) for n in ("multiply", "add", "less", "power", "maximum")}
    for k in (1, 2, -1, 100, 200, 300, 70000):
        for name, f in functions.items():
            wanted = attempt(BINARY[name], x, k)
            found = attempt(f, x, k)
            if isinstance(wanted, Exception):
                assert isinstance(found, (OverflowError, ValueError)), (name, k)
            else:
                assert agree(found, wanted), (name, k)


def test_messages_name_the_number_and_the_remedy():
    with pytest.raises(IntegerRangeError, match=r"int8\[3\], 200.*astype.*test_agreement"):
        wg.jit(lambda x: x * 200)(np.ones(3, np.int8))
    with pytest.raises(OverflowError):
        wg.jit(lambda x: x - 300)(np.ones(3, np.uint8))
    with pytest.raises(ValueError, match=r"negative integer powers.*astype\(float\)"):
        wg.jit(lambda x: x**-1)(np.array([2, 3]))
    with pytest.raises(OverflowError, match="does not fit the dtypes"):
        wg.jit(lambda x: x < 2**64)(np.array([2, 3]))


def test_negative_exponents_in_arrays_and_loops():
    n = np.array([-1, 2])
    f = wg.jit(np.power)
    np.testing.assert_array_equal(f(np.array([2, 3]), np.array([0, 2])), [1, 9])
    for g in (f, wg.jit(lambda x, n: wg.fori_loop(0, 2, lambda i, c: c**n, x))):
        with pytest.raises(ValueError, match="negative integer powers"):
            g(np.array([2, 3]), n)


# ---- reductions, linear algebra and the rest ---------------------------------------------------

NAMES = """sum prod mean std var min max ptp median argmax argmin any all cumsum cumprod nansum
nanprod nanmean nanstd nanvar nanmin nanmax nanmedian count_nonzero diff ediff1d trapezoid sort
argsort average nancumsum nancumprod cov corrcoef trace diagonal real imag conj angle nan_to_num
sinc i0 unwrap fix triu tril flip round fabs trunc modf frexp""".split()
ORDERS = (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
EXACT = {
    **{name: getattr(np, name) for name in NAMES},
    "dot": lambda a: np.dot(a, a),
    "matmul": lambda a: a @ a,
    "vdot": lambda a: np.vdot(a, a),
    "inner": lambda a: np.inner(a, a),
    "outer": lambda a: np.outer(a, a),
    "kron": lambda a: np.kron(a, a),
    "einsum": lambda a: np.einsum("ij,jk->ik", a, a),
    "convolve": lambda a: np.convolve(a[0], a[1]),
    **{
        f"correlate, {m}": lambda a, m=m: np.correlate(a[0], a[1], m)
        for m in ("valid", "same", "full")
    },
    "average, weights": lambda a: np.average(a, weights=a),
    "mean, where": lambda a: np.mean(a, where=a > 0),
    "sum, where": lambda a: np.sum(a, where=a > 0),
    "sum, dtype": lambda a: np.sum(a, dtype="i1"),
    "mean, dtype": lambda a: np.mean(a, dtype="f4"),
    "var, ddof": lambda a: np.var(a, ddof=1),
    "clip, float32": lambda a: np.clip(a, 0, np.float32(1)),
    "clip, 1": lambda a: np.clip(a, 0, 1),
    "clip, half": lambda a: np.clip(a, 0.5, 1),
    "clip, 300": lambda a: np.clip(a, 0, 300),
    "clip, -300": lambda a: np.clip(a, -300, 2),
    "clip, None": lambda a: np.clip(a, None, 1),
    "clip, 200": lambda a: np.clip(a, 200, 300),
    "x**2": lambda a: a**2,
    "x**3": lambda a: a**3,
    "x**0": lambda a: a**0,
    "where": lambda a: np.where(a > 0, a, 3),
    "divmod": lambda a: np.divmod(a, 2),
    "stack": lambda a: np.stack([a, a * 2.5]),
    "concatenate": lambda a: np.concatenate([a, a.astype("f4")]),
    "searchsorted": lambda a: np.searchsorted(np.sort(a[0]), a[1]),
    "interp": lambda a: np.interp(a[0], [0, 1, 2], [1, 2, 3]),
    "polyval": lambda a: np.polyval(a[0], a[1]),
    "vector_norm": la.vector_norm,
    "matrix_norm": la.matrix_norm,
    **{f"norm, {o}": lambda a, o=o: la.norm(a, o) for o in ORDERS},
    **{f"norm of a vector, {o}": lambda a, o=o: la.norm(a[0], o) for o in (0, 1, 2, 3, -1, np.inf)},
    "matrix_power": lambda a: la.matrix_power(a, 2),
    "multi_dot": lambda a: la.multi_dot([a, a, a]),
    "matrix_rank": la.matrix_rank,
}
SOLVED = {  # where LAPACK is asked in another order, digits may differ
    "det": la.det,
    "inv": la.inv,
    "slogdet": lambda a: tuple(la.slogdet(a)),
    "eigvalsh": lambda a: la.eigvalsh(a + a.T),
    "svdvals": la.svdvals,
    "pinv": la.pinv,
    "cond": la.cond,
    "cond, 1": lambda a: la.cond(a, 1),
    "solve": lambda a: la.solve(a, a[0]),
    "qr": lambda a: la.qr(a)[1],
}
MATRIX = np.array([[1, 2, 0], [3, 1, 2], [0, 1, 1]])


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "dtype", [pytest.param(d, marks=[] if d in "?b" else pytest.mark.slow) for d in DTYPES]
)
def test_reductions_and_products(dtype):
    assert compare(EXACT, MATRIX.astype(dtype)) == []


@pytest.mark.parametrize(
    "dtype", [pytest.param(d, marks=[] if d == "B" else pytest.mark.slow) for d in "?bBhqQfdFD"]
)
def test_linear_algebra(dtype):
    a = MATRIX.astype(dtype)
    found = wg.jit(lambda a: {n: f(a) for n, f in SOLVED.items()})(a)
    for name, f in SOLVED.items():
        wanted = f(a)
        for x, y in zip(np.atleast_1d(found[name]), np.atleast_1d(wanted), strict=True):
            assert np.asarray(x).dtype == np.asarray(y).dtype, name
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("value", "dtype"), [(2**62, "q"), (2**63, "Q"), (100, "b"), (250, "B"), (30000, "h")]
)
def test_sums_beyond_the_dtype(value, dtype):
    names = "sum mean nanmean std var nanvar average cumsum nansum median trapezoid dot".split()
    names += ["mean, where", "norm, 1", "norm, inf", "norm, None", "norm of a vector, 1"]
    functions = {n: EXACT[n] for n in names}
    assert compare(functions, np.full((2, 2), value, dtype)) == []


# ---- ends of the range ---------------------------------------------------------------------------


@pytest.mark.sample(4)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, pytest.param(12, marks=pytest.mark.slow)])
def test_determinants_of_denormal_numbers(n):
    a = np.random.default_rng(n).normal(size=(n, n))
    f = wg.jit(lambda a: (la.det(a), la.slogdet(a)[1]))
    for size in (5e-323, 1e-310, 1e-308):
        det, log = f(a * size)
        np.testing.assert_allclose(det, la.det(a * size), rtol=1e-2)
        np.testing.assert_allclose(log, la.slogdet(a * size)[1], rtol=1e-12)
    np.testing.assert_array_equal(f(np.zeros((n, n))), (0.0, -np.inf))


@pytest.mark.sample(6)
@pytest.mark.parametrize("p", [None, 1, -1, 2, -2, "fro", np.inf])
def test_conditions_of_singular_matrices_are_infinite(p):
    f = lambda a: la.cond(a, p)  # noqa: E731
    for a in (np.zeros((2, 2)), np.stack([np.eye(2), np.zeros((2, 2))])):
        wanted = f(a)
        np.testing.assert_array_equal(wg.jit(f)(a), wanted)
        np.testing.assert_array_equal(wg.stop_gradient(f(wg.tensor(a))), wanted)


def test_signs_of_infinite_complex_numbers():
    parts = (0.0, 1.0, -2.0, np.inf, -np.inf, 1.5e308)
    z = np.array([complex(a, b) for a in parts for b in parts])
    wanted = np.sign(z)
    finite = np.isfinite(z)
    wanted[finite] = [0 if w == 0 else (w / 4) / abs(w / 4) for w in z[finite]]  # NumPy: 1j
    np.testing.assert_allclose(wg.jit(np.sign)(z), wanted, rtol=1e-15)
    np.testing.assert_allclose(np.sign(wg.tensor(z)).numpy(), wanted, rtol=1e-15)


def test_second_derivatives_beside_booleans_and_at_infinity():
    b, y = np.array([True, False]), np.array([0.5, 2.0])
    f = lambda y: np.sum(np.arctan2(b, y))  # noqa: E731
    wanted = np.diag(2 * y * b / (b + y**2) ** 2)
    for h in (wg.hessian(f), wg.jit(wg.hessian(f)), wg.trace(wg.hessian(f))(y)):
        np.testing.assert_allclose(h(y), wanted, rtol=1e-14)
    second = wg.grad(wg.grad(np.arctanh))
    for x in (np.inf, -np.inf):
        assert second(x) == wg.jit(second)(x) == 0.0
