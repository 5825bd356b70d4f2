"""Functions of orders and parameters against mpmath: all real arguments, to second order.

CASES has for a name of wengert.scipy.special the same function of mpmath numbers, and ordinary
points, the first of which is always tested.  HARD adds difficult points: small and large operands,
near integers, both sides of a change of method, far tails.
"""

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import wengert as wg
import wengert.scipy.special as special


def betainc(a, b, x):
    return mp.betainc(a, b, 0, x, regularized=True)


def gammainc(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def student(df, t):
    return (1 + mp.sign(t) * betainc(mp.mpf(1) / 2, df / 2, t * t / (df + t * t))) / 2


def kolmogorov(y):
    return 2 * mp.nsum(lambda k: (-1) ** (int(k) - 1) * mp.exp(-2 * k * k * y * y), [1, mp.inf])


def owen(h, a):
    return mp.quad(lambda x: mp.exp(-h * h * (1 + x * x) / 2) / (1 + x * x), [0, a]) / (2 * mp.pi)


def chebyshev_u(n, x):
    return mp.sin((n + 1) * mp.acos(x)) / mp.sin(mp.acos(x))


CASES = {
    "jv": (mp.besselj, [(1.3, 2.1), (0.0, 0.7), (-1.4, 3.0), (2.0, 40.0)]),
    "yv": (mp.bessely, [(1.3, 2.1), (0.0, 0.7), (-1.4, 3.0), (2.0, 40.0)]),
    "jve": (mp.besselj, [(1.3, 2.1)]),
    "yve": (mp.bessely, [(0.4, 2.1)]),
    "iv": (mp.besseli, [(1.3, 2.1), (0.0, 0.7), (-1.4, 3.0), (2.0, 40.0)]),
    "kv": (mp.besselk, [(1.3, 2.1), (0.0, 0.7), (-1.4, 3.0), (2.0, 40.0)]),
    "ive": (lambda v, x: mp.exp(-x) * mp.besseli(v, x), [(1.3, 2.1), (3.0, 20.0)]),
    "kve": (lambda v, x: mp.exp(x) * mp.besselk(v, x), [(1.3, 2.1), (3.0, 20.0)]),
    "j0": (lambda x: mp.besselj(0, x), [(1.3,), (0.0,), (-20.0,)]),
    "j1": (lambda x: mp.besselj(1, x), [(1.3,), (0.0,), (-20.0,)]),
    "y0": (lambda x: mp.bessely(0, x), [(1.3,), (30.0,)]),
    "y1": (lambda x: mp.bessely(1, x), [(1.3,), (30.0,)]),
    "i0": (lambda x: mp.besseli(0, x), [(1.3,), (-4.0,), (0.0,)]),
    "i1": (lambda x: mp.besseli(1, x), [(1.3,), (-4.0,), (0.0,)]),
    "i0e": (lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), [(1.3,), (-4.0,)]),
    "i1e": (lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), [(1.3,), (-4.0,)]),
    "k0": (lambda x: mp.besselk(0, x), [(1.3,), (30.0,)]),
    "k1": (lambda x: mp.besselk(1, x), [(1.3,), (30.0,)]),
    "k0e": (lambda x: mp.exp(x) * mp.besselk(0, x), [(1.3,), (30.0,)]),
    "k1e": (lambda x: mp.exp(x) * mp.besselk(1, x), [(1.3,), (30.0,)]),
    "struve": (mp.struveh, [(0.7, 1.4), (-0.3, 6.0), (2.0, 0.2)]),
    "modstruve": (mp.struvel, [(0.7, 1.4), (-0.3, 6.0), (2.0, 0.2)]),
    "gammainc": (gammainc, [(1.7, 0.9), (0.3, 4.0), (20.0, 15.0)]),
    "gammaincc": (lambda a, x: mp.gammainc(a, x, regularized=True), [(1.7, 3.1), (20.0, 25.0)]),
    "betainc": (betainc, [(1.7, 0.9, 0.4), (0.3, 4.0, 0.7), (20.0, 15.0, 0.5)]),
    "betaincc": (lambda a, b, x: betainc(b, a, 1 - x), [(1.7, 0.9, 0.8), (0.3, 4.0, 0.7)]),
    "hyp0f1": (mp.hyp0f1, [(1.3, 0.8), (2.5, -30.0), (-0.4, 2.0)]),
    "hyp1f1": (mp.hyp1f1, [(1.3, 0.7, 0.8), (-2.0, 1.5, 3.0), (0.4, 2.2, -12.0)]),
    "hyp2f1": (mp.hyp2f1, [(1.3, 0.7, 2.1, 0.4), (0.5, 1.5, 1.2, -3.0), (1.0, -2.0, 0.6, 0.9)]),
    "hyperu": (mp.hyperu, [(1.3, 0.7, 0.8), (2.0, 1.0, 4.0), (-0.6, 0.4, 2.0)]),
    "zeta": (mp.zeta, [(2.3,), (1.1,), (0.4,), (-3.5,), (-2.0,)]),
    "zetac": (lambda x: mp.zeta(x) - 1, [(2.3,), (20.0,)]),
    "eval_legendre": (mp.legendre, [(1.3, 0.4), (3.0, -0.7), (2.0, 1.5)]),
    "eval_chebyt": (mp.chebyt, [(1.3, 0.4), (3.0, -0.7)]),
    "eval_chebyu": (chebyshev_u, [(1.3, 0.4), (3.0, -0.7)]),
    "eval_gegenbauer": (mp.gegenbauer, [(1.3, 0.6, 0.4), (3.0, 1.5, -0.7)]),
    "eval_jacobi": (mp.jacobi, [(1.3, 0.6, 0.2, 0.4), (3.0, 1.5, 0.5, -0.7)]),
    "eval_laguerre": (lambda n, x: mp.laguerre(n, 0, x), [(1.3, 0.4), (3.0, 2.5)]),
    "eval_genlaguerre": (mp.laguerre, [(1.3, 0.6, 0.4), (3.0, 1.5, 2.5)]),
    "chdtr": (lambda v, x: gammainc(v / 2, x / 2), [(3.1, 2.0)]),
    "chdtrc": (lambda v, x: 1 - gammainc(v / 2, x / 2), [(3.1, 2.0)]),
    "gdtr": (lambda a, b, x: gammainc(b, a * x), [(1.4, 2.3, 0.8)]),
    "gdtrc": (lambda a, b, x: 1 - gammainc(b, a * x), [(1.4, 2.3, 0.8)]),
    "fdtr": (
        lambda a, b, x: betainc(a / 2, b / 2, a * x / (a * x + b)),
        [(3.0, 4.5, 0.8), (2.0, 3.0, 9.0)],
    ),
    "fdtrc": (
        lambda a, b, x: betainc(b / 2, a / 2, b / (a * x + b)),
        [(3.0, 4.5, 0.8), (2.0, 3.0, 9.0)],
    ),
    "stdtr": (student, [(3.2, 0.8), (1.0, -2.5), (30.0, 0.1)]),
    "owens_t": (owen, [(0.7, 1.3), (-1.0, 0.5)]),
    "kolmogorov": (kolmogorov, [(0.7,), (1.4,)]),
}

HARD = {
    "jv": [
        (0.0, 1e-8), (1e-9, 1.0), (50.0, 50.0), (50.0, 49.0), (50.0, 51.0), (100.0, 20.0),
        (3.0, 1e3), (31.7, 1e3), (-3.0, 2.0), (-2.999999999, 2.0), (0.5, 1e4), (5.5, 29.9),
        (5.5, 46.0), (300.0, 299.0), (1.0, 1e-5),
    ],
    "iv": [
        (0.0, 1e-8), (1e-9, 1.0), (50.0, 50.0), (100.0, 20.0), (3.0, 300.0), (-3.0, 2.0),
        (-2.999999999, 2.0), (0.5, 1e-6), (-0.5, 400.0), (12.0, 0.01),
    ],
    "kv": [
        (0.0, 1e-8), (1e-9, 1.0), (50.0, 50.0), (100.0, 20.0), (3.0, 300.0), (-3.0, 2.0),
        (0.5, 1e-6), (7.0, 0.1), (0.0, 600.0),
    ],
    "gammainc": [
        (1e-3, 1e-3), (1e-3, 5.0), (0.5, 1e-12), (30.0, 3.0), (30.0, 200.0), (1.0, 0.56),
        (1e3, 1e3), (1e4, 1.01e4), (2.0, 1e-9), (0.999999, 0.5), (1.000001, 0.5), (5.0, 60.0),
    ],
    "betainc": [
        (1e-2, 1e-2, 0.5), (0.5, 0.5, 1e-9), (30.0, 2.0, 0.1), (2.0, 30.0, 0.9),
        (300.0, 200.0, 0.6), (300.0, 200.0, 0.61), (1.0, 1.0, 0.3), (0.1, 200.0, 0.3),
        (5.0, 1e-2, 0.999),
    ],
    "hyp1f1": [
        (0.5, 1.5, -200.0), (0.5, 1.5, 200.0), (-7.0, 2.0, 5.0), (-7.5, 0.3, 40.0),
        (20.0, -3.5, 2.0), (1e-8, 1.0, 3.0), (3.0, 3.0, -50.0), (2.0, 1e-3, 1.0),
    ],
    "hyp2f1": [
        (0.5, 1.5, 2.0, 0.999999), (0.5, 1.5, 2.0, -1e5), (5.0, -4.0, 1.0, 0.95),
        (5.0, -4.5, 1.0, 0.95), (1.0, 1.0, 2.0, -1.0), (0.2, 0.3, -1.5, 0.5),
        (10.0, 10.0, 3.0, -0.59), (10.0, 10.0, 3.0, 0.61), (1.0, 2.0, 3.0, 1e-12),
    ],
    "hyperu": [
        (1e-3, 1.0, 1.0), (0.5, 1.0, 1e-3), (12.0, 2.0, 10.0), (3.0, 20.0, 5.0), (-4.5, 1.5, 3.0),
        (-3.0, 0.5, 2.0), (1.0, 2.0, 200.0),
    ],
    "zeta": [(1.000001,), (0.999,), (50.0,), (0.0,), (1e-9,), (-1.0,), (-7.99,), (-20.5,), (-0.5,)],
    "stdtr": [
        (1e-2, 1.0), (0.5, 1e4), (5.0, -40.0), (1e3, 2.0), (1e5, -3.0), (2.0, 1e-9), (2.0, 1.0),
        (3.0, 0.999),
    ],
    "struve": [(0.3, 60.0), (12.0, 3.0), (-1.3, 2.0), (5.0, 1e-3)],
    "eval_jacobi": [(12.0, 0.5, 1.5, -0.9), (7.5, 0.1, 0.2, 0.99), (0.0, 1.0, 1.0, 0.5)],
    "eval_legendre": [(25.0, 0.3), (4.5, -0.95), (0.0, 0.2), (10.3, 3.0)],
    "eval_genlaguerre": [(10.0, 0.5, 20.0), (2.5, -0.4, 0.01)],
    "fdtr": [(100.0, 3.0, 50.0), (1.0, 1.0, 1e-6), (5.0, 200.0, 3.0)],
    "kolmogorov": [(0.3,), (0.89,), (0.91,), (4.0,)],
}  # fmt: skip
HARD["yv"] = [p for p in HARD["jv"] if p != (300.0, 299.0)]

RTOL = 2e-11  # relative to the largest of value, first and second derivative
VALUE = 1e-12  # the accuracy of SciPy's functions


def exact_derivatives(f, point):
    """Value, gradient and Hessian, by differences with 80 digits."""
    with mp.workdps(80):
        x = [mp.mpf(v) for v in point]
        step = [mp.mpf(10) ** -20 * max(abs(v), 1) for v in x]
        n = len(x)

        def at(moves):
            return mp.re(f(*[x[i] + moves.get(i, 0) * step[i] for i in range(n)]))

        middle = at({})
        up, down = [at({i: 1}) for i in range(n)], [at({i: -1}) for i in range(n)]
        gradient = [(up[i] - down[i]) / (2 * step[i]) for i in range(n)]
        hessian = [[None] * n for _ in range(n)]
        for i in range(n):
            hessian[i][i] = (up[i] - 2 * middle + down[i]) / step[i] ** 2
            for j in range(i):
                mixed = (
                    at({i: 1, j: 1}) - at({i: 1, j: -1}) - at({i: -1, j: 1}) + at({i: -1, j: -1})
                )
                hessian[i][j] = hessian[j][i] = mixed / (4 * step[i] * step[j])
        return float(middle), np.array(gradient, float), np.array(hessian, float)


def compare(name, point):
    """The largest error of value, gradient and Hessian, in each mode."""
    oracle, _ = CASES[name]
    value, gradient, hessian = exact_derivatives(oracle, point)
    function = getattr(special, name)
    x = np.array(point)

    def f(p):
        return function(*p)

    assert f(x) == pytest.approx(value, rel=VALUE, abs=1e-300) or name in ("hyperu",)
    scale = np.maximum(np.maximum(np.abs(gradient), abs(value) * 1e-3), 1e-300)
    reverse = wg.grad(f)(x)
    forward = np.array([wg.jvp(f, (x,), (e,))[1] for e in np.eye(len(x))])
    first = max(np.max(np.abs(g - gradient) / scale) for g in (reverse, forward))
    mixed = np.sqrt(scale)[:, None] * np.sqrt(scale)
    size = np.maximum(np.abs(hessian), 1e-3 * mixed)
    seconds = [wg.jacobian(wg.grad(f), mode=mode)(x) for mode in ("fwd", "rev")]
    return first, max(np.max(np.abs(h - hessian) / size) for h in seconds)


@pytest.mark.sample(7)
@pytest.mark.parametrize("name", CASES)
def test_both_modes_to_second_order(name):
    first, second = compare(name, CASES[name][1][0])
    assert first < RTOL and second < RTOL


OTHERS = [(name, p) for name, (_, points) in CASES.items() for p in points[1:]]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "point"), OTHERS)
def test_at_other_points(name, point):
    first, second = compare(name, point)
    assert first < RTOL and second < RTOL


@pytest.mark.slow
@pytest.mark.parametrize(("name", "point"), [(name, p) for name, ps in HARD.items() for p in ps])
def test_at_hard_points(name, point):
    first, second = compare(name, point)
    assert first < 1e-9 and second < 1e-8


# ---- inverses ------------------------------------------------------------------------------------

INVERSES = {  # inverse, function, index of the probability, and a point
    "gammaincinv": ("gammainc", 1, (2.3, 0.4)),
    "gammainccinv": ("gammaincc", 1, (2.3, 0.4)),
    "betaincinv": ("betainc", 2, (2.3, 0.7, 0.4)),
    "betainccinv": ("betaincc", 2, (2.3, 0.7, 0.4)),
    "chdtri": ("chdtrc", 1, (2.3, 0.4)),
    "gdtrix": ("gdtr", 2, (1.4, 2.3, 0.4)),
    "gdtria": ("gdtr", 0, (0.4, 2.3, 1.7)),
    "gdtrib": ("gdtr", 1, (1.4, 0.4, 1.7)),
    "fdtri": ("fdtr", 2, (2.3, 4.7, 0.4)),
    "stdtrit": ("stdtr", 1, (2.3, 0.8)),
    "stdtridf": ("stdtr", 0, (0.81, 1.2)),
    "btdtria": ("betainc", 0, (0.4, 1.7, 0.6)),
    "btdtrib": ("betainc", 1, (1.7, 0.4, 0.6)),
    "kolmogi": ("kolmogorov", 0, (0.4,)),
    "pdtri": ("pdtr", 1, (3, 0.4)),
    "bdtri": ("bdtr", 2, (3, 7, 0.4)),
    "nbdtri": ("nbdtr", 2, (3, 4, 0.4)),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", INVERSES)
def test_compositions_with_the_inverse_are_the_identity_to_second_order(name):
    forward, place, point = INVERSES[name]
    inverse, function = getattr(special, name), getattr(special, forward)
    whole = [i for i, v in enumerate(point) if isinstance(v, int)]
    free = [i for i in range(len(point)) if i not in whole]

    def around(p):
        operands = list(point)
        for i, k in enumerate(free):
            operands[k] = p[i]
        found = inverse(*operands)
        operands[place] = found
        return function(*operands)

    x = np.array([float(point[k]) for k in free])
    unit = np.array([float(k == place) for k in free])
    np.testing.assert_allclose(wg.grad(around)(x), unit, atol=1e-9)
    np.testing.assert_allclose(wg.jvp(around, (x,), (x,))[1], point[place], rtol=1e-9)
    np.testing.assert_allclose(wg.hessian(around)(x), 0.0, atol=1e-7)


# ---- graphs, batches, dtypes ---------------------------------------------------------------------


def slow(name):
    return pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "name", ["jv", slow("gammainc"), "betainc", slow("hyp1f1"), "stdtr", slow("fdtr")]
)
def test_compiled_and_batched(name):
    point = np.array(CASES[name][1][0])
    rows = point * np.array([[1.0], [1.1], [0.9]])
    function = getattr(special, name)
    slopes = wg.grad(lambda p: function(*p))
    want = np.stack([slopes(r) for r in rows])
    np.testing.assert_allclose(wg.vmap(slopes)(rows), want, rtol=1e-12)
    np.testing.assert_allclose(wg.jit(slopes)(point), want[0], rtol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.vmap(slopes))(rows), want, rtol=1e-12)


def test_third_derivative_with_respect_to_the_order():
    third = wg.grad(wg.grad(wg.grad(lambda v: special.kv(v, 2.0))))(1.3)
    with mp.workdps(40):
        assert third == pytest.approx(float(mp.diff(lambda v: mp.besselk(v, 2), 1.3, 3)), rel=1e-11)


def test_functions_of_scipy_accept_tensors():
    slope = wg.grad(lambda a: scipy.special.gammainc(a, 2.0))(1.5)
    assert slope == pytest.approx(wg.grad(lambda a: special.gammainc(a, 2.0))(1.5), rel=0)
    assert special.gammainc(1.5, 2.0) == scipy.special.gammainc(1.5, 2.0)


def test_single_precision_is_kept():
    v, x = np.float32([0.7, 1.2]), np.float32([1.0, 3.0])
    by_v, by_x = wg.grad(lambda v, x: special.kv(v, x).sum(), argnums=(0, 1))(v, x)
    assert by_v.dtype == by_x.dtype == np.float32
    want = wg.grad(lambda v: special.kv(v, x.astype(float)).sum())(v.astype(float))
    np.testing.assert_allclose(by_v, want, rtol=1e-6)


def test_complex_arguments_are_differentiable_but_not_with_respect_to_the_order():
    z = np.array(1.3 + 0.4j)
    slope = wg.jvp(lambda z: special.jv(0.7, z), (z,), (np.array(1.0 + 0j),))[1]
    with mp.workdps(30):
        want = complex(mp.diff(lambda z: mp.besselj(0.7, z), 1.3 + 0.4j))
    assert slope == pytest.approx(want, rel=1e-12)
    with pytest.raises(wg.errors.DtypeError, match="complex operands"):
        wg.jvp(lambda v: special.jv(v, z), (0.7,), (1.0,))


@pytest.mark.parametrize("name", ["jve", "yve", "ive"])
def test_functions_with_scaling_that_is_not_holomorphic_have_no_complex_derivative(name):
    z = np.array(1.3 + 0.4j)
    with pytest.raises(wg.errors.NotDifferentiableError, match="scaling"):
        wg.jvp(lambda z: getattr(special, name)(0.7, z), (z,), (z,))


@pytest.mark.parametrize("name", ["hankel1", "hankel2", "hankel1e", "hankel2e", "kve"])
def test_complex_values_and_arguments(name):
    exact = {
        "hankel1": mp.hankel1,
        "hankel2": mp.hankel2,
        "hankel1e": lambda v, z: mp.exp(-1j * z) * mp.hankel1(v, z),
        "hankel2e": lambda v, z: mp.exp(1j * z) * mp.hankel2(v, z),
        "kve": lambda v, z: mp.exp(z) * mp.besselk(v, z),
    }[name]
    function = getattr(special, name)
    for z in (np.array(1.3 + 0.4j), np.array(2.1 + 0j)):
        slope = wg.jvp(lambda z: function(0.7, z), (z,), (np.array(1.0 + 0j),))[1]
        with mp.workdps(30):
            want = complex(mp.diff(lambda u: exact(mp.mpf(0.7), u), mp.mpc(z.item())))
        assert slope == pytest.approx(want, rel=1e-12)
    by_order = wg.jvp(lambda v: function(v, 2.1), (0.7,), (1.0,))[1]
    with mp.workdps(30):
        want = complex(mp.diff(lambda v: exact(v, mp.mpf(2.1)), mp.mpf(0.7)))
    assert by_order == pytest.approx(want, rel=1e-12)


def test_derivatives_at_the_ends_are_limits():
    with np.errstate(all="ignore"):
        assert wg.grad(lambda a: special.gammainc(a, 0.0))(2.0) == 0.0
        assert wg.grad(lambda x: special.gammainc(1.0, x))(0.0) == 1.0
        assert wg.grad(wg.grad(lambda x: special.gammainc(1.0, x)))(0.0) == -1.0
        assert wg.grad(lambda a: special.gammaincinv(a, 0.0))(2.0) == 0.0
        assert wg.grad(lambda x: special.betainc(1.0, 3.0, x))(0.0) == pytest.approx(3.0)
        assert wg.grad(lambda v: special.jv(v, 0.0))(1.0) == 0.0
        assert wg.grad(lambda x: special.jv(1.0, x))(0.0) == 0.5
        assert wg.grad(lambda df: special.stdtr(df, 0.0))(3.0) == 0.0
        assert np.isinf(wg.grad(special.zeta)(1.0))


def test_hurwitz_zeta_with_respect_to_both_arguments():
    point = np.array([2.3, 0.7])
    hessian = wg.hessian(lambda p: special.zeta(p[0], p[1]))(point)
    _, gradient, want = exact_derivatives(mp.zeta, point)
    np.testing.assert_allclose(hessian, want, rtol=1e-11)
    np.testing.assert_allclose(wg.grad(lambda p: special.zeta(*p))(point), gradient, rtol=1e-11)


SPHERICAL = {
    "spherical_jn": mp.besselj,
    "spherical_yn": mp.bessely,
    "spherical_in": mp.besseli,
    "spherical_kn": mp.besselk,
}


@pytest.mark.parametrize("name", SPHERICAL)
@pytest.mark.parametrize("n", [0, 1, 4])
def test_spherical_bessel_functions(name, n):
    def exact(z):
        return mp.sqrt(mp.pi / (2 * z)) * SPHERICAL[name](n + mp.mpf(1) / 2, z)

    value, gradient, hessian = exact_derivatives(exact, (1.7,))
    function = getattr(special, name)

    def f(z):
        return function(n, z)

    assert f(1.7) == pytest.approx(value, rel=1e-13)
    assert wg.grad(f)(1.7) == pytest.approx(gradient[0], rel=1e-12)
    assert wg.jvp(wg.grad(f), (1.7,), (1.0,))[1] == pytest.approx(hessian[0, 0], rel=1e-11)


def test_spherical_bessel_functions_at_the_origin():
    assert wg.grad(lambda z: special.spherical_jn(1, z))(0.0) == pytest.approx(1 / 3)
    assert wg.grad(lambda z: special.spherical_in(0, z))(0.0) == 0.0


@pytest.mark.skipif(not hasattr(scipy.special, "sph_harm_y"), reason="SciPy before 1.15")
@pytest.mark.parametrize(("n", "m"), [(0, 0), (2, 1), (3, -2), (2, 2)])
def test_spherical_harmonics_with_respect_to_both_angles(n, m):
    angles = np.array([0.7, 1.9])
    for part, of in ((np.real, mp.re), (np.imag, mp.im)):
        value, gradient, hessian = exact_derivatives(
            lambda theta, phi, of=of: of(mp.spherharm(n, m, theta, phi)), angles
        )

        def f(p, part=part):
            return part(special.sph_harm_y(n, m, p[0], p[1]))

        np.testing.assert_allclose(f(angles), value, atol=1e-14)
        np.testing.assert_allclose(wg.grad(f)(angles), gradient, atol=1e-13)
        np.testing.assert_allclose(wg.hessian(f)(angles), hessian, atol=1e-12)


@pytest.mark.skipif(not hasattr(scipy.special, "sph_harm_y"), reason="SciPy before 1.15")
@pytest.mark.parametrize("theta", [-0.7, 4.0, 310.0])
def test_spherical_harmonics_beyond_the_poles(theta):
    # SciPy's values are those of the polar angle in [0, pi], without the rotation of phi by pi.
    inside = np.arccos(np.cos(theta))
    f = lambda t: special.sph_harm_y(3, 2, t, 0.4).real  # noqa: E731
    np.testing.assert_allclose(f(theta), f(inside), rtol=1e-12)
    sign = np.sign(np.sin(theta))
    np.testing.assert_allclose(wg.grad(f)(theta), sign * wg.grad(f)(inside), rtol=1e-11)
    second = wg.grad(wg.grad(f))
    np.testing.assert_allclose(second(theta), second(inside), rtol=1e-11)


def test_ferrers_function_with_respect_to_its_argument_only():
    _, gradient, hessian = exact_derivatives(lambda x: mp.re(mp.legenp(3, 1, x)), (0.4,))
    slope = wg.grad(lambda x: special.lpmv(1, 3, x))
    assert slope(0.4) == pytest.approx(gradient[0], rel=1e-12)
    assert wg.grad(slope)(0.4) == pytest.approx(hessian[0, 0], rel=1e-11)
    with pytest.raises(wg.errors.NotDifferentiableError, match="degree"):
        wg.grad(lambda v: special.lpmv(1.0, v, 0.4))(2.5)
