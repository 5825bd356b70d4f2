"""Complex arithmetic in NumPy's steps, functions against mpmath, branch cuts as NumPy's."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import wengert as wg

from .scalar_body_driver import run_body, same, ufunc_body

MP = mpmath.mp.clone()
MP.dps = 120
PARTS = {np.complex128: np.float64, np.complex64: np.float32}
BOTH = pytest.mark.parametrize("dtype", list(PARTS))
QUIET = pytest.mark.filterwarnings("ignore::RuntimeWarning")
FUNCTIONS = """exp exp2 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh
    arcsin arccos arctan arcsinh arccosh arctanh""".split()


def grid(dtype, numbers):
    """All complex numbers with both parts among these."""
    x, y = np.meshgrid(numbers, numbers)
    out = np.empty(x.size, dtype)
    out.real, out.imag = x.ravel(), y.ravel()
    return out


def points(dtype, count=2000, seed=0):
    random = np.random.default_rng(seed)
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 3.0, 800.0, -800.0]
    size = 10.0 ** random.integers(-3, 3, (2, count))
    x, y = random.normal(size=(2, count)) * size
    return np.concatenate([grid(dtype, special), (x + 1j * y).astype(dtype)])


def pairs(dtype, count=20000):
    random = np.random.default_rng(1)
    z = points(dtype)
    special = z[:121]
    one, two = (v.ravel() for v in np.meshgrid(special, special))
    return np.concatenate([one, random.choice(z, count)]), np.concatenate(
        [two, random.choice(z, count)]
    )


def differences(found, right, *operands):
    wrong = np.flatnonzero(~same(found, right))
    return [(*[x[i] for x in operands], found[i], right[i]) for i in wrong[:4]]


@pytest.mark.sample(12)
@QUIET
@BOTH
@pytest.mark.parametrize(
    "name",
    """add subtract divide equal not_equal less less_equal greater greater_equal maximum minimum
    logical_and logical_or logical_xor""".split(),
)
def test_of_pairs_as_numpy(name, dtype):
    x, y = pairs(dtype)
    right = getattr(np, name)(x, y)
    assert not differences(run_body(ufunc_body(name), right.dtype, x, y), right, x, y)


@pytest.mark.sample(15)
@QUIET
@BOTH
@pytest.mark.parametrize(
    "name", "negative positive conjugate reciprocal rint isnan isinf isfinite logical_not".split()
)
@pytest.mark.parametrize("width", [1, 4])
def test_of_one_as_numpy(name, dtype, width):
    z = points(dtype)
    right = getattr(np, name)(z)
    assert not differences(run_body(ufunc_body(name), right.dtype, z, width=width), right, z)


@QUIET
@BOTH
def test_products_are_not_fused(dtype):
    """NumPy fuses on some processors; then z * conj(z) need not be real."""
    x, y = pairs(dtype)
    right = np.empty_like(x)
    right.real = x.real * y.real - x.imag * y.imag
    right.imag = x.real * y.imag + x.imag * y.real
    assert not differences(run_body(ufunc_body("multiply"), dtype, x, y), right, x, y)
    finite = x[np.isfinite(x)]
    squares = run_body(lambda s, z: z * s.conj(z), dtype, finite)
    assert np.all(squares.imag[np.isfinite(squares.imag)] == 0)


@QUIET
@BOTH
def test_size_and_sign(dtype):
    z = points(dtype)
    eps = np.finfo(dtype).eps
    found, right = run_body(ufunc_body("absolute"), PARTS[dtype], z), np.absolute(z)
    assert np.all(same(found, right) | (np.abs(found - right) <= 2.01 * eps * right))
    found, right = run_body(ufunc_body("sign"), dtype, z), np.sign(z)
    assert np.all(same(found, right) | (np.abs(found - right) <= 2 * eps))


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.5, -2.5]


def close(found, right, tolerance):
    """Equal, or finite and near, part by part; the signs always agree."""
    flags = []
    for a, b in ((found.real, right.real), (found.imag, right.imag)):
        near = (np.abs(a - b) <= tolerance * np.abs(b)) & (np.signbit(a) == np.signbit(b))
        flags.append(same(a, b) | near)
    return flags[0] & flags[1]


@pytest.mark.sample(16)
@QUIET
@BOTH
@pytest.mark.parametrize("name", FUNCTIONS)
def test_cuts_zeros_and_infinities_as_numpy(name, dtype):
    z = grid(dtype, SPECIAL)
    found, right = run_body(ufunc_body(name), dtype, z), getattr(np, name)(z)
    wrong = np.flatnonzero(~close(found, right, 50 * np.finfo(dtype).eps))
    assert not len(wrong), [(z[i], found[i], right[i]) for i in wrong[:5]]


@QUIET
def test_expm1_at_infinities():
    """On the real axis that of real numbers; NumPy's formula gives NaN there."""
    z = np.array([complex(np.inf, 0), complex(-np.inf, 0), complex(np.nan, 0), -0.0, 2.5])
    found = run_body(ufunc_body("expm1"), complex, z)
    with np.errstate(all="ignore"):
        right = np.expm1(z.real)
    assert np.all(same(found.real, right) | (np.abs(found.real - right) < 1e-15 * right))
    assert np.all(found.imag == 0)


def hard_complex(name, dtype, count=240):
    """Near 0, 1, -1, i, -i, near the unit circle, and of all sizes that a function takes."""
    random = np.random.default_rng(2)

    def part():
        return (
            random.choice([-1, 1], count)
            * random.random(count)
            * 2.0 ** random.integers(-30, 9, count)
        )

    z = part() + 1j * part()
    near = count // 6
    away = 1 + 2.0 ** -random.integers(1, 52, near) * random.choice([-1, 1], near)
    z[:near] = np.exp(2j * np.pi * random.random(near)) * away
    around = z[near : 2 * near] * 2.0 ** -random.integers(0, 52, near)
    z[near : 2 * near] = random.choice([1, -1, 1j, -1j], near) + around
    if name.startswith(("log", "arc", "sqrt")):
        spread = 60 if dtype == np.complex64 else 300
        z[2 * near : 3 * near] *= 2.0 ** random.integers(-spread, spread, near)
    z = z.astype(dtype)
    return z[(z.real != 0) & (z.imag != 0)]


ORACLES = {
    "exp2": lambda w: MP.power(2, w),
    "expm1": MP.expm1,
    "log2": lambda w: MP.log(w) / MP.log(2),
    "log10": lambda w: MP.log(w) / MP.log(10),
    "log1p": lambda w: MP.log(1 + w),
}


def units(got, exact):
    """The error in units of the last place of the exact value."""
    kind = np.asarray(got).dtype.type
    with np.errstate(over="ignore"):
        nearest = kind(float(exact))
    if np.isinf(nearest):
        return 0.0 if got == nearest else np.inf
    return float(abs(MP.mpf(float(got)) - exact) / MP.mpf(float(np.spacing(np.abs(nearest)))))


@pytest.mark.sample(8)
@QUIET
@BOTH
@pytest.mark.parametrize("name", [*FUNCTIONS, "expm1"])
def test_functions_against_mpmath(name, dtype):
    z = hard_complex(name, dtype)
    found = run_body(ufunc_body(name), dtype, z)
    short = name.replace("arc", "a") if name.startswith("arc") else name
    oracle = ORACLES.get(name) or getattr(MP, short)
    worst = 0.0
    for x, got in zip(z, found, strict=True):
        exact = oracle(MP.mpc(float(x.real), float(x.imag)))
        worst = max(worst, units(got.real, exact.real), units(got.imag, exact.imag))
    # expm1's real part is a difference, as NumPy's: near its curve of zeros it is not relative.
    assert worst < (0.501 if dtype == np.complex64 else 1e9 if name == "expm1" else 5.0)


@QUIET
def test_overflow_is_not_early():
    """Where exp(x) overflows and cos y is small the parts may still be finite."""
    z = np.array([710.5 + 1.5707j, 710.5 + 3.1415j, -710.5 + 1e-5j])
    for name in ("exp", "sinh", "cosh"):
        found = run_body(ufunc_body(name), complex, z)
        for x, got in zip(z, found, strict=True):
            exact = getattr(MP, name)(MP.mpc(x.real, x.imag))
            assert units(got.real, exact.real) < 5 and units(got.imag, exact.imag) < 5


# ---- powers ------------------------------------------------------------------------------------


@pytest.mark.sample(8)
@QUIET
@BOTH
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, -1, -2, 10, 99, -99])
def test_whole_powers_as_numpy(n, dtype):
    z = points(dtype, 300)
    right = np.power(z, dtype(n))
    tolerance = 60 * np.finfo(dtype).eps * max(abs(n), 1)
    for found in (
        run_body(lambda s, x: s.power(x, n), dtype, z),
        run_body(ufunc_body("power"), dtype, z, np.full_like(z, n)),
    ):
        near = np.abs(found - right) <= tolerance * np.abs(right)
        # Beyond the range NumPy's 1 / inf is NaN; in float64 there may still be a number.
        large = np.isfinite(z) & ~np.isfinite(right)
        wrong = np.flatnonzero(~(same(found, right) | near | large))
        assert not len(wrong), [(z[i], found[i], right[i]) for i in wrong[:5]]


@QUIET
@BOTH
def test_powers(dtype):
    random = np.random.default_rng(5)
    z, w = random.normal(size=(2, 200)) + 1j * random.normal(size=(2, 200))
    z, w = z.astype(dtype), (3 * w).astype(dtype)
    found = run_body(ufunc_body("power"), dtype, z, w)
    for x, y, got in zip(z, w, found, strict=True):
        exact = complex(MP.power(MP.mpc(complex(x)), MP.mpc(complex(y))))
        assert abs(got - exact) <= 30 * np.finfo(dtype).eps * abs(exact)


@QUIET
def test_powers_at_zero_and_infinity():
    z = grid(np.complex128, [0.0, -0.0, 1.0, 2.5, np.inf, -np.inf])
    x, y = (v.ravel() for v in np.meshgrid(z, np.array([0, 1, 2, 2.5, -1, -2.5, 0.5, 300.0]) + 0j))
    found, right = run_body(ufunc_body("power"), complex, x, y), np.power(x, y)
    wrong = np.flatnonzero(~close(found, right, 1e-12))
    assert not len(wrong), [(x[i], y[i], found[i], right[i]) for i in wrong[:5]]


# ---- casts and choices -------------------------------------------------------------------------


@QUIET
def test_casts():
    z = points(np.complex128)
    assert np.all(same(run_body(lambda s, x: x, np.complex64, z), z.astype(np.complex64)))
    assert np.all(run_body(lambda s, x: s.cast(x, bool), bool, z) == z.astype(bool))
    for dtype in ("f8", "f4", "i8", "b1", "u2"):
        x = np.arange(20).astype(dtype)
        assert np.all(run_body(lambda s, x: x, np.complex128, x) == x)


def test_a_choice():
    x, y = pairs(np.complex128, 100)
    found = run_body(lambda s, x, y: s.where(s.isnan(x), y, x + 1.0), complex, x, y)
    assert np.all(same(found, np.where(np.isnan(x), y, x + 1.0)))


def _beside_mpmath(rng, n):
    """Complex numbers of all sizes, near the unit circle, near -1, and where |1 + z| is 1."""
    angle = rng.uniform(0, 6.3, n)
    on_circle = np.exp(1j * angle)
    wide = 10.0 ** rng.uniform(-300, 14, (2, n)) * rng.choice([-1, 1], (2, n))
    near = 10.0 ** rng.uniform(-17, 0, n)
    return np.concatenate(
        [
            wide[0] + 1j * wide[1],
            rng.uniform(-3, 3, n) + 1j * wide[1],
            on_circle * (1 + near),
            on_circle * near - 1,
            on_circle - 1,
        ]
    )


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["exp2", "log1p", "expm1", "log", "sqrt"])
def test_complex_functions_of_all_sizes_against_mpmath(name):
    """Errors in units of the last place of |f(z)|, where NumPy's log1p and exp2 lose all digits."""
    mp = mpmath.mp.clone()
    mp.prec = 2300  # 1 + z has the digits of both
    reference = {
        "exp2": lambda z: mp.power(2, z),
        "log1p": lambda z: mp.log(1 + z),
        "expm1": lambda z: mp.exp(z) - 1,
    }.get(name, getattr(mp, name, None))
    z = _beside_mpmath(np.random.default_rng(7), 20)
    if name.startswith("exp"):
        z = z[abs(z.real) < 700]
    for x, y in zip(z, wg.jit(getattr(np, name))(z), strict=True):
        exact = reference(mp.mpc(x))
        error = abs(mp.mpc(y) - exact)
        assert error <= 4 * mp.mpf(2) ** -53 * max(abs(exact), mp.mpf(2) ** -1022), x
