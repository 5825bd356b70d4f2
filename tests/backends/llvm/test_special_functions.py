"""SciPy's special functions in native code: `s.special(name, ...)` in the body of an operation.

Operations are registered here in the native way, and run eagerly, by the interpreter and by LLVM,
which must not call Python for them.  What SciPy computes is the oracle of eager runs; both others
have to agree with them.
"""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.special as sp
from wengert.backends import backend

import wengert as wg
from wengert._engine.backends.llvm.ir.llvm_types import F64
from wengert._engine.backends.llvm.special_functions.scipy_symbols import (
    UnsupportedFunction,
    target_of,
    work_of,
)
from wengert._engine.core.op import lookup
from wengert._engine.kinds.elementwise import elementwise

PI = np.pi


@elementwise
def digamma_s(s, x):
    """The derivative of the logarithm of gamma, DLMF 5.2."""
    return s.special("psi", x)


digamma_s.partials(lambda t, out, x: t * polygamma_s(1.0, x))


@elementwise
def polygamma_s(s, n, x):
    """Its derivatives: for n >= 1 by Hurwitz's zeta function, DLMF 25.11.12."""
    sign = 1.0 - 2.0 * s.fmod(n + 1.0, 2.0)
    size = s.special("gamma", n + 1.0) * s.special("zeta", s.max(n, 1.0) + 1.0, x)
    return s.where(s.less(n, 0.5), s.special("psi", x), sign * size)


polygamma_s.partials(None, lambda t, out, n, x: t * polygamma_s(n + 1.0, x))


@elementwise
def j0_s(s, x):
    """Bessel's function of order 0."""
    return s.special("j0", x)


j0_s.partials(lambda t, out, x: -t * j1_s(x))


@elementwise
def j1_s(s, x):
    """Bessel's function of order 1; DLMF 10.6.3."""
    return s.special("j1", x)


j1_s.partials(lambda t, out, x: t * 0.5 * (j0_s(x) - jv_s(2.0, x)))


@elementwise(complex_ok=True)
def jv_s(s, v, z):
    """Bessel's function of real order; DLMF 10.6.1."""
    return s.special("jv", v, z)


jv_s.partials(None, lambda t, out, v, z: t * (0.5 * (jv_s(v - 1.0, z) - jv_s(v + 1.0, z))))


@elementwise
def i0e_s(s, x):
    """The modified one of order 0, times exp(-|x|)."""
    return s.special("i0e", x)


i0e_s.partials(lambda t, out, x: t * (i1e_s(x) - np.sign(x) * out))


@elementwise
def i1e_s(s, x):
    """The modified one of order 1, times exp(-|x|)."""
    return s.special("i1e", x)


@elementwise
def betainc_s(s, a, b, x):
    """The regularized incomplete beta function; DLMF 8.17."""
    return s.special("betainc", a, b, x)


@elementwise
def power_of_beta(s, a, b, x):
    """Its derivative with respect to x."""
    size = (a - 1.0) * s.log(x) + (b - 1.0) * s.log1p(-x)
    return s.exp(size - s.special("betaln", a, b))


betainc_s.partials(None, None, lambda t, out, a, b, x: t * power_of_beta(a, b, x))


@elementwise
def gammainc_s(s, a, x):
    """The regularized incomplete gamma function; DLMF 8.2."""
    return s.special("gammainc", a, x)


@elementwise
def power_of_gamma(s, a, x):
    """Its derivative with respect to x."""
    return s.exp((a - 1.0) * s.log(x) - x - s.special("gammaln", a))


gammainc_s.partials(None, lambda t, out, a, x: t * power_of_gamma(a, x))


@elementwise
def ndtri_s(s, p):
    """The quantiles of the normal distribution."""
    return s.special("ndtri", p)


ndtri_s.partials(lambda t, out, p: t * (np.sqrt(2.0 * PI) * np.exp(0.5 * out * out)))


@elementwise(complex_ok=True)
def expi_s(s, x):
    """The exponential integral; DLMF 6.2."""
    return s.special("expi", x)


expi_s.partials(lambda t, out, x: t * (np.exp(x) / x))


@elementwise(complex_ok=True)
def lambertw_s(s, z, k):
    """The branch k of the inverse of w exp(w); DLMF 4.13."""
    return s.special("lambertw", z, k)


lambertw_s.partials(lambda t, out, z, k: t * (out / (z * (1.0 + out))), None)


@elementwise(complex_ok=True)
def airy_s(s, z):
    """Airy's function Ai; DLMF 9.2."""
    return s.special("airy", z)[0]


airy_s.partials(lambda t, out, z: t * slope_of_airy(z))


@elementwise(complex_ok=True)
def slope_of_airy(s, z):
    """The derivative of Ai."""
    return s.special("airy", z)[1]


slope_of_airy.partials(lambda t, out, z: t * (z * airy_s(z)))


@elementwise
def expn_s(s, n, x):
    """The exponential integral of whole order."""
    return s.special("expn", n, x)


REAL, BELOW_ONE = np.linspace(0.05, 12.0, 401), np.linspace(0.001, 0.999, 401)
WIDE = np.concatenate([np.linspace(-30.0, 30.0, 402), [1e-300, 1e-8, 200.0, 1e6]])
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -1.5])
CUT = np.concatenate([REAL, SPECIAL])
COMPLEX = np.linspace(-4, 4, 203) + 1j * np.linspace(3, -2.9, 203)
# The operation, SciPy's function, its operands, and by which of them there is a derivative.
CASES = {
    "digamma": (digamma_s, sp.psi, (CUT,), 0),
    "polygamma": (polygamma_s, sp.polygamma, (np.arange(401.0) % 5, REAL), 1),
    "j0": (j0_s, sp.j0, (WIDE,), 0),
    "j1": (j1_s, sp.j1, (WIDE,), 0),
    "jv": (jv_s, sp.jv, (2.5, REAL), 1),
    "jv of complex": (jv_s, sp.jv, (0.5, COMPLEX), 1),
    "i0e": (i0e_s, sp.i0e, (WIDE,), 0),
    "betainc": (betainc_s, sp.betainc, (2.5, 0.75, BELOW_ONE), 2),
    "gammainc": (gammainc_s, sp.gammainc, (REAL[::-1], REAL), 1),
    "ndtri": (ndtri_s, sp.ndtri, (BELOW_ONE,), 0),
    "expi": (expi_s, sp.expi, (WIDE[np.abs(WIDE) < 100],), 0),
    "expi of complex": (expi_s, sp.expi, (COMPLEX,), 0),
    "lambertw": (lambertw_s, sp.lambertw, (COMPLEX, 0), 0),
    "lambertw, branch": (lambertw_s, sp.lambertw, (COMPLEX, -1), 0),
    "airy": (airy_s, lambda x: sp.airy(x)[0], (WIDE[np.abs(WIDE) < 100],), 0),
    "airy of complex": (airy_s, lambda x: sp.airy(x)[0], (COMPLEX,), 0),
}


def ways(fun, *args):
    """What it gives eagerly, by the interpreter, and natively, all without Python between."""
    with np.errstate(all="ignore"):
        eager = fun(*args)
        slow = wg.jit(fun, backend="interpret")(*args)
    fast = wg.jit(fun, host_callbacks="forbid")(*args)
    return eager, slow, fast


def narrow(x):
    """In single precision."""
    if not isinstance(x, np.ndarray):
        return x
    return x.astype("c8" if x.dtype.kind == "c" else "f4")


@pytest.mark.sample(7)
@pytest.mark.parametrize("name", CASES)
def test_values(name):
    op, oracle, operands, _ = CASES[name]
    with np.errstate(all="ignore"):
        want = oracle(*operands)
    for got in ways(op, *operands):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=2e-13)


@pytest.mark.sample(7)
@pytest.mark.parametrize("name", CASES)
def test_single_precision(name):
    op, oracle, operands, _ = CASES[name]
    operands = tuple(map(narrow, operands))
    with np.errstate(all="ignore"):
        want = op(*operands)
        np.testing.assert_allclose(want, oracle(*operands), rtol=1e-5, atol=1e-30)
    for got in ways(op, *operands):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=4e-6, atol=1e-30)


@pytest.mark.sample(7)
@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    op, _, operands, k = CASES[name]
    x = operands[k]
    x = x[np.isfinite(x) & (np.abs(x) < 100)]
    if name == "digamma":
        x = x[x > 0]

    def total(x):
        given = [x if j == k else a for j, a in enumerate(operands)]
        return np.sum(op(*given).real)

    slow, _, fast = ways(wg.grad(total), x)
    np.testing.assert_allclose(fast, slow, rtol=1e-12)
    h = 1e-6
    others = [a for j, a in enumerate(operands) if j != k]
    given = lambda x: [*others[:k], x, *others[k:]]  # noqa: E731
    with np.errstate(all="ignore"):
        slope = (op(*given(x + h)) - op(*given(x - h))) / (2 * h)
    sound = np.abs(x) > 1e-3
    want = np.conj(slope)[sound]  # the direction of steepest ascent
    if x.dtype.kind != "c":
        want = want.real
    np.testing.assert_allclose(fast[sound], want, rtol=1e-5, atol=1e-6)


def test_second_derivatives():
    x = np.linspace(0.5, 6.0, 33)
    for op in (digamma_s, j0_s, expi_s, airy_s):
        twice = wg.grad(lambda x, op=op: np.sum(wg.grad(lambda y: np.sum(op(y)))(x)))
        slow, _, fast = ways(twice, x)
        np.testing.assert_allclose(fast, slow, rtol=1e-11)


def several(x):
    """Functions of both kinds, a sum, a backward read."""
    return np.sum(digamma_s(x + 1.0)), jv_s(1.5, x[::-1]), lambertw_s(x, 0), airy_s(x) * 2.0


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_tails(dtype):
    """All lengths to 40 by the code for symbolic lengths, some by code of their own."""
    compiled = wg.jit(several, host_callbacks="forbid")
    for n in range(1, 41):
        x = np.linspace(0.5, 3.0, n, dtype=dtype)
        found = [compiled(x)]
        if n in (1, 2, 3, 5, 8, 9, 31):
            found.append(wg.jit(several, host_callbacks="forbid")(x))
        for got in found:
            for a, b in zip(got, several(x), strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_allclose(a, b, rtol=1e-13 if dtype == "f8" else 4e-6)


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "f2"])
def test_other_dtypes(dtype):
    x = np.arange(1, 20).astype(dtype)
    for op in (digamma_s, j0_s, i0e_s):
        want, _, got = ways(op, x)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-14 if got.dtype == "f8" else 1e-6)


def test_integers_choose_a_loop():
    n, x = np.arange(8), np.linspace(0.5, 4.0, 8)
    want, _, got = ways(expn_s, n, x)
    np.testing.assert_allclose(got, want, rtol=1e-14)
    np.testing.assert_allclose(got, sp.expn(n, x), rtol=1e-14)


def test_python_numbers_are_weak():
    x = np.linspace(0.5, 4.0, 9, dtype="f4")
    for order in (1, 1.5, np.float32(1.5), np.float64(1.5)):
        want, _, got = ways(jv_s, order, x)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_what_is_under_no_mask_is_not_computed():
    """A lane beyond the end holds zeros, of which zeta is singular: SciPy must not see it."""
    compiled = wg.jit(lambda x: polygamma_s(1.0, x), host_callbacks="forbid")
    padded = wg.jit(lambda x: np.pad(polygamma_s(1.0, x[:, None] + x), 1), host_callbacks="forbid")
    with sp.errstate(all="raise"):
        for n in (*range(1, 10), 17):
            x = np.linspace(1.0, 2.0, n)
            np.testing.assert_allclose(compiled(x), sp.polygamma(1, x), rtol=1e-13)
            assert padded(x).shape == (n + 2, n + 2)


@pytest.mark.parametrize("n", [1, 9, 20_000])
def test_what_scipy_raises_when_asked(n):
    """`scipy.special.seterr` holds for the loops of ufuncs, as it does in NumPy."""
    x = np.ones(n)
    zero = np.zeros(n)
    compiled = wg.jit(lambda x: polygamma_s(1.0, x), host_callbacks="forbid")
    graph = wg.trace(lambda x: polygamma_s(1.0, x))(x)
    program = backend("llvm").compile(graph, {})
    for run in (compiled, lambda x: program([x])[0]):
        with sp.errstate(all="raise"):
            run(x)
            with pytest.raises(sp.SpecialFunctionError, match="zeta"):
                run(zero)
            np.testing.assert_allclose(run(x), PI * PI / 6)
        with sp.errstate(all="warn"), warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            assert np.isinf(run(zero)).all()
        assert {w.category for w in seen} == {sp.SpecialFunctionWarning}
    assert np.isinf(compiled(zero)).all()


def test_threads():
    x = np.linspace(0.1, 9.0, 30_003)

    def fun(x):
        return digamma_s(x), np.sum(j0_s(x)), airy_s(-x)

    one = wg.jit(fun, threads=1, host_callbacks="forbid")(x)
    two = wg.jit(fun, threads=2, host_callbacks="forbid")
    again = [two(x) for _ in range(3)]
    for a, b, c, d in zip(one, *again, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
        np.testing.assert_array_equal(b, c)
        np.testing.assert_array_equal(b, d)


def test_symbolic_sizes():
    compiled = wg.jit(lambda x: np.sum(digamma_s(x) * j0_s(x)), host_callbacks="forbid")
    for n in (5, 6, 17, 40, 0, 1):
        x = np.linspace(0.5, 3.0, n)
        np.testing.assert_allclose(
            compiled(x), np.sum(sp.psi(x) * sp.j0(x)), rtol=1e-13, atol=1e-15
        )


def test_a_leaf_of_ours_goes_first():
    assert not target_of("gammaln", (F64,)).addresses
    assert target_of("psi", (F64,)).symbol.startswith("special.")
    assert target_of("zeta", (F64, F64)).data
    x = np.linspace(0.1, 30.0, 50)
    want, _, got = ways(lambda x: power_of_gamma(2.5, x), x)
    np.testing.assert_allclose(got, want, rtol=1e-13)


def test_what_has_no_kernel_is_a_host_callback():
    """A longdouble has no lanes; neither has SciPy such a loop of what is no ufunc."""
    with pytest.raises(UnsupportedFunction):
        target_of("multigammaln", (F64, F64))
    with pytest.raises(UnsupportedFunction):
        target_of("jv", (np.dtype("c16"), np.dtype("c16")))
    assert work_of(lambda s, x: s.special("softmax", x), (F64,)) is None
    assert work_of(lambda s, x: x + s.special("psi", x), (F64,)) > 0
    assert work_of(lambda s, x: x + 1.0, (F64,)) == 0
    x = np.linspace(1.0, 2.0, 5)
    np.testing.assert_allclose(wg.jit(spherical_s)(x), sp.spherical_jn(1, x))
    with pytest.raises(wg.errors.WengertError, match="spherical_s"):
        wg.jit(spherical_s, host_callbacks="forbid")(x)


@elementwise
def spherical_s(s, x):
    """What SciPy has in Python only."""
    return s.special("spherical_jn", 1, x)


def test_formula():
    assert digamma_s.formula() == "psi(x)"
    assert jv_s.formula() == "jv(v, z)"
    assert "zeta" in polygamma_s.formula()


PLACES = {
    "joined": lambda x: np.concatenate([digamma_s(x), jv_s(1.5, x[:5]), x]),
    "padded": lambda x: np.pad(digamma_s(x), 3) * 2.0 + 1.0,
    "chosen": lambda x: np.where(x > 2.0, digamma_s(x), x),
    "summed across": lambda x: np.sum(jv_s(np.arange(4.0)[:, None], x), axis=0),
    "summed along": lambda x: np.sum(jv_s(np.arange(4.0)[:, None], x), axis=1),
    "largest": lambda x: np.max(digamma_s(x[:, None] + x), axis=1),
    "one for all": lambda x: digamma_s(x[3]) * x,
    "by positions": lambda x: digamma_s(x[np.array([0, 5, 30, 2])]),
    "backwards": lambda x: x[::-2] * digamma_s(x)[::2],
    "running sums": lambda x: np.cumsum(digamma_s(x)),
    "rows": lambda x: wg.vmap(lambda v: np.sum(digamma_s(v) * polygamma_s(1.0, v)))(x[:, None] * x),
    "again and again": lambda x: digamma_s(digamma_s(digamma_s(x + 2.5) + 2.5) + 2.5),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", PLACES)
def test_places_in_a_program(name):
    want, _, got = ways(PLACES[name], np.linspace(1.0, 3.0, 37))
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_constants_are_folded():
    fun = lambda x: x * lookup("digamma_s")(2.0) + jv_s(0.5, np.full(3, 2.0))  # noqa: E731
    want, _, got = ways(fun, np.arange(3.0))
    np.testing.assert_allclose(got, want, rtol=1e-14)


def test_one_function_for_all_calls():
    graph = wg.trace(lambda x: digamma_s(x) + digamma_s(2.0 * x))(np.ones(64))
    program = backend("llvm").program(graph)
    assert program.text.count("define internal {<8 x double>} @special.") <= 1
    assert [s for s in program.symbols if s.startswith("special.")]
    assert not program.host_callbacks


def test_scipy_is_not_imported_before_it_is_needed(tmp_path):
    """And a second process takes the code from the disk, with SciPy at other addresses."""
    script = """
import sys
import numpy as np
import wengert as wg
from wengert._engine.kinds.elementwise import elementwise

@elementwise
def psi_s(s, x):
    '''psi'''
    return s.special("psi", x) + s.special("zeta", 2.0, x)

assert "scipy.special" not in sys.modules
print(repr(float(wg.jit(psi_s)(np.full(9, 2.5))[8])), wg.cache.info().hits)
"""
    environment = {"WENGERT_CACHE": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    runs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout.split()
        for _ in range(2)
    ]
    want = float(sp.psi(2.5) + sp.zeta(2.0, 2.5))
    assert [float(value) for value, _ in runs] == [pytest.approx(want, rel=1e-14)] * 2
    assert int(runs[1][1]) > int(runs[0][1])
