"""Interpolation: values against SciPy, derivatives against differences.

CURVES are functions of places, values and points, for every class and end condition; each is
compared with SciPy also at places, beyond the ends, and in its derivatives and integrals.
"""

import numpy as np
import pytest
import scipy.interpolate

import wengert as wg
from wengert.errors import ArgumentError, ShapeError, TraceError
from wengert.scipy.interpolate.ppoly import banded
from wengert.testing import check_grads

ours, theirs = wg.scipy.interpolate, scipy.interpolate
SLOPE, CURVE = [(1, np.array([0.5, -1.0]))], [(2, np.array([1.0, 0.25]))]


def spline(k, **options):
    return lambda m, x, y: m.make_interp_spline(x, y, k, **options)


def cubic(bc_type, **options):
    return lambda m, x, y: m.CubicSpline(x, y, bc_type=bc_type, **options)


CURVES = {
    "not-a-knot": cubic("not-a-knot"),
    "natural": cubic("natural"),
    "clamped": cubic("clamped"),
    "periodic": cubic("periodic"),
    "natural, not-a-knot": cubic(("natural", "not-a-knot"), extrapolate=False),
    "slope, curvature": cubic((SLOPE[0], CURVE[0])),
    "curvature, slope": cubic((CURVE[0], SLOPE[0]), extrapolate="periodic"),
    "pchip": lambda m, x, y: m.PchipInterpolator(x, y),
    "akima": lambda m, x, y: m.Akima1DInterpolator(x, y),
    "makima": lambda m, x, y: m.Akima1DInterpolator(x, y, method="makima", extrapolate=True),
    "hermite": lambda m, x, y: m.CubicHermiteSpline(x, y, y[::-1]),
    **{f"degree {k}": spline(k) for k in range(6)},
    "periodic, degree 3": spline(3, bc_type="periodic"),
    "periodic, degree 4": spline(4, bc_type="periodic"),
    "natural, degree 3": spline(3, bc_type="natural"),
    "given, degree 4": spline(4, bc_type=([*SLOPE, *CURVE], SLOPE)),
    "clamped and free, degree 4": spline(4, bc_type=([*SLOPE, *CURVE, (3, np.zeros(2))], None)),
}
FEWEST = {"degree 4": 5, "degree 5": 6, "degree 3": 4, "degree 2": 3}


COMPILED = ("natural", "periodic", "akima", "degree 3")


def data(rng, n, name):
    x = np.cumsum(rng.uniform(0.5, 1.5, size=n))
    y = rng.normal(size=(n, 2))
    if "periodic" in name:
        y[-1] = y[0]
    return x, y


def assert_same(got, want, rtol=1e-9):
    assert isinstance(got, wg.Tensor)
    assert got.shape == np.shape(want) and got.dtype == want.dtype
    np.testing.assert_allclose(got.numpy(), want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", CURVES)
def test_values(name, rng):
    make = CURVES[name]
    for n in (2, 3, 4, 7):
        if n < FEWEST.get(name, 4 if "degree" in name else 2):
            continue
        x, y = data(rng, n, name)
        want, got = make(theirs, x, y), make(ours, wg.tensor(x), y)
        points = np.concatenate([x, np.linspace(x[0] - 3, x[-1] + 3, 2 * n - 1), [np.nan]])
        points = points.reshape(3, n)
        for nu in range(3):
            if name != "degree 0" or nu == 0:
                assert_same(got(points, nu), want(points, nu), 1e-8)
        assert np.array_equal(make(ours, x, y)(points), want(points), equal_nan=True)
        assert_same(make(ours, x, y)(wg.tensor(points)), want(points))
        if name == "degree 0":
            continue
        for a, b in ((x[0] + 0.2, x[-1] - 0.1), (x[-1], x[0])):
            assert_same(got.integrate(a, b), np.asarray(want.integrate(a, b)))
        assert_same(got.derivative()(points), want.derivative()(points), 1e-8)
        assert_same(got.antiderivative(2)(points), want.antiderivative(2)(points), 1e-8)


def inside(x):
    return x[[0, 2, 4]] + np.array([0.3, 0.45, 0.2])


@pytest.mark.parametrize("name", CURVES)
def test_derivatives(name, rng):
    make = CURVES[name]
    x, y = data(rng, 6, name)
    y = y if "," in name else y[:, :1]

    def f(x, y, points):
        if "periodic" in name:
            y = np.concatenate([y, y[:1]])
        return make(ours, x, y)(points)

    y = y[:-1] if "periodic" in name else y
    check_grads(f, (x, y, inside(x)), order=1, entries=False)
    if name not in COMPILED:
        return
    slope = wg.grad(lambda *xs: np.sum(np.sin(f(*xs))), argnums=(0, 1, 2))
    for got, want in zip(wg.jit(slope)(x, y, inside(x)), slope(x, y, inside(x)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


TWICE = [
    pytest.param(name, marks=() if name in ("not-a-knot", "pchip") else pytest.mark.slow)
    for name in CURVES
    if FEWEST.get(name, 0) < 5 and "given" not in name and "clamped and" not in name
]


@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives_and_batching(name, rng):
    make = CURVES[name]
    x, y = data(rng, 5 if "degree 4" in name else 4, name)
    y = y if "," in name else y[:, 0]
    points = x[1:2] + 0.3

    def f(x, y, points):
        if "periodic" in name:
            y = np.concatenate([y[:-1], y[:1]])
        return make(ours, x, y)(points)

    check_grads(f, (x, y, points), order=2, entries=False)
    xs, ys = np.stack([x, x + 0.5, 2.0 * x]), np.stack([y, -y, 0.1 * y])
    rows = wg.vmap(f)(xs, ys, xs[:, 1:2] + 0.3)
    for k in range(3):
        np.testing.assert_allclose(rows[k], f(xs[k], ys[k], xs[k, 1:2] + 0.3), rtol=1e-10)


def test_complex_values_and_other_axes(rng):
    x, y = np.arange(5.0), rng.normal(size=(2, 5)) + 1j * rng.normal(size=(2, 5))
    points = np.array([[0.4, 2.2], [3.0, 4.5]])
    for f in (
        lambda m, x, y: m.CubicSpline(x, y, axis=1),
        lambda m, x, y: m.make_interp_spline(x, y, axis=1),
        lambda m, x, y: m.interp1d(x, y, bounds_error=False),
    ):
        assert_same(f(ours, wg.tensor(x), y)(points), f(theirs, x, y)(points))
        check_grads(lambda y, f=f: f(ours, x, y)(points[0]), (y,), order=1, entries=False)
    assert ours.CubicSpline(wg.tensor(x), y.real, axis=1)(1.5).shape == (2,)
    whole = ours.CubicSpline(wg.tensor(x), np.arange(5), axis=0)
    assert_same(whole(1.5), np.asarray(1.5))


def test_values_at_the_ends_may_be_tensors():
    x, y = np.arange(4.0), np.array([0.0, 1.0, 0.0, 2.0])

    def f(a, b):
        return ours.CubicSpline(x, y, bc_type=((1, a), (2, b)))(np.array([0.3, 2.4]))

    check_grads(f, (np.float64(0.3), np.float64(-1.0)), entries=False)


# ---- pieces and B-splines by themselves --------------------------------------------------------


def test_piecewise_polynomials(rng):
    c, x = rng.normal(size=(3, 4, 2)), np.cumsum(rng.uniform(0.5, 1.5, size=5))
    want = theirs.PPoly(c, x)
    got = ours.PPoly(wg.tensor(c), x)
    points = np.concatenate([x, x + 0.2, x - 2.0])
    for nu in range(5):
        assert_same(got(points, nu), want(points, nu))
    for options in ({"extrapolate": False}, {"extrapolate": "periodic"}):
        assert_same(got(points, **options), want(points, **options))
        assert_same(
            got.integrate(x[0] + 0.1, x[-1] - 0.1, **options),
            want.integrate(x[0] + 0.1, x[-1] - 0.1, **options),
        )
    assert_same(
        got.integrate(x[0] - 3, x[-1] + 7, "periodic"),
        want.integrate(x[0] - 3, x[-1] + 7, "periodic"),
    )
    assert_same(got.derivative(3)(points), want.derivative(3)(points))
    check_grads(lambda c, x, t: ours.PPoly(c, x)(t), (c[:, :2], x[:3], x[:2] + 0.3), entries=False)
    check_grads(
        lambda c, a, b: ours.PPoly(c, x).integrate(a, b),
        (c, x[0] + 0.3, x[2] + 0.1),
        order=1,
        entries=False,
    )
    falling, theirs_falling = ours.PPoly(c, x[::-1]), theirs.PPoly(c, x[::-1])
    for extrapolate in (True, False, "periodic"):
        want = theirs_falling(points, 0, extrapolate)
        assert_same(falling(wg.tensor(points), 0, extrapolate), want)
    constant = ours.PPoly(wg.tensor(np.ones((1, 1))), np.array([0.0, 1.0]))
    assert np.isnan(constant(np.nan).numpy()) and constant(7.0) == 1.0


@pytest.mark.parametrize("k", [1, 2, 3])
def test_b_splines_with_respect_to_knots_and_coefficients(k, rng):
    t = np.sort(rng.uniform(size=k + 8))
    t[k + 3] = t[k + 2]  # a knot that is there twice
    c = rng.normal(size=(7, 2))
    want, got = theirs.BSpline(t, c, k), ours.BSpline(wg.tensor(t), c, k)
    points = np.concatenate([t, t[:-1] + 0.4 * np.diff(t), [t[0] - 0.5, t[-1] + 0.5]])
    for nu in range(k + 1):
        for extrapolate in (True, False, "periodic"):
            assert_same(got(points, nu, extrapolate), want(points, nu, extrapolate), 1e-7)
    assert got.tck[2] == k
    c = rng.normal(size=(k + 3, 1))
    apart = np.cumsum(rng.uniform(0.5, 1.0, size=2 * k + 4))
    middle = apart[k : k + 2] + 0.2
    check_grads(
        lambda t, c, x: ours.BSpline(t, c, k)(x),
        (apart, c, middle),
        order=1 + (k == 2),
        entries=False,
    )


@pytest.mark.parametrize(("lower", "upper"), [(0, 0), (1, 1), (2, 1), (0, 3), (3, 2)])
def test_banded_systems(lower, upper, rng):
    ab, b = rng.normal(size=(lower + upper + 1, 5)), rng.normal(size=(5, 2))
    ab[upper] += 6.0
    for transposed in (False, True):
        options = {"lower": lower, "upper": upper, "transposed": transposed}
        np.testing.assert_allclose(
            banded(ab, b, **options), banded.oracle(ab, b, **options), rtol=1e-12
        )
        check_grads(lambda ab, b, o=options: banded(ab, b, **o), (ab, b), order=1, entries=False)


# ---- lines, grids, scattered places ------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    ["linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic", 3],
)
def test_interp1d(kind, rng):
    x, y = rng.permutation(np.cumsum(rng.uniform(0.5, 1.5, size=5))), rng.normal(size=(2, 5))
    ordered = np.sort(x)
    points = np.concatenate(
        [x, (ordered[1:] + ordered[:-1]) / 2, [ordered[0] - 1, ordered[-1] + 1]]
    )
    for fill in ("extrapolate", np.nan, 7.0, (1.0, np.array([2.0, 3.0]))):
        options = {"kind": kind, "fill_value": fill}
        if not isinstance(fill, str):
            options["bounds_error"] = False
        assert_same(
            ours.interp1d(wg.tensor(x), y, **options)(points),
            theirs.interp1d(x, y, **options)(points),
        )
    between = ordered[:3] + [0.1, 0.4, 0.2] * np.diff(ordered)[:3]
    options = {"kind": kind, "fill_value": "extrapolate"}
    check_grads(
        lambda x, y, t: ours.interp1d(x, y, **options)(t),
        (x, y[:1], between),
        order=1,
        entries=False,
    )


GRID = [np.array([0.0, 1.0, 1.5, 3.0, 4.0, 4.5]), np.array([5.0, 4.0, 2.5, 2.0, 1.0, 0.0, -1.0])]


METHODS = ["linear", "nearest", "slinear", "cubic", pytest.param("quintic", marks=pytest.mark.slow)]


@pytest.mark.parametrize("method", METHODS)
def test_grids(method, rng):
    values = rng.normal(size=(6, 7, 2))
    xi = np.array([[[0.3, 3.1], [1.2, 0.4]], [[3.9, 1.2], [2.0, 4.2]]])
    tolerance = 1e-3 if method in ("cubic", "quintic") else 1e-12  # SciPy's are found by iteration
    want = theirs.RegularGridInterpolator(GRID, values, method)
    got = ours.RegularGridInterpolator(GRID, wg.tensor(values), method)
    assert_same(got(xi), want(xi), tolerance)
    assert_same(got((xi[..., 0], xi[..., 1])), want(xi), tolerance)
    assert_same(ours.interpn(GRID, values, wg.tensor(xi[0, 0]), method), want(xi[0, 0]), tolerance)
    xi[0, 0, 0], xi[0, 1, 1] = -9.0, np.nan
    for fill in (np.nan, 3.0, None):
        options = {"bounds_error": False, "fill_value": fill}
        want = theirs.RegularGridInterpolator(GRID, values, method, **options)
        if method not in ("cubic", "quintic") or fill is not None:
            assert_same(
                ours.RegularGridInterpolator(GRID, wg.tensor(values), method, **options)(xi),
                want(xi),
                tolerance,
            )
    one, grid = values[..., 0], wg.tensor(GRID[1])
    inner = np.array([[1.2, 3.1], [3.2, 0.3]])

    def f(p, v, x):
        return ours.interpn([p, grid], v, x, method)

    check_grads(lambda p, x: f(p, one, x), (GRID[0], inner), order=1, entries=False)
    value, pull = wg.vjp(f, GRID[0], one, inner)
    t = rng.normal(size=2)
    np.testing.assert_allclose(np.sum(one * pull(t)[1]), t @ value, rtol=1e-12)  # linear in them


def test_splines_on_a_grid_are_tensor_products(rng):
    rows, columns = rng.normal(size=6), rng.normal(size=7)
    xi = np.array([[0.3, 3.1], [1.2, 0.4]])
    one = theirs.make_interp_spline(GRID[0], rows)
    two = theirs.make_interp_spline(GRID[1][::-1], columns[::-1])
    got = ours.RegularGridInterpolator(GRID, wg.tensor(np.outer(rows, columns)), "cubic")
    assert_same(got(xi), one(xi[:, 0]) * two(xi[:, 1]), 1e-11)
    assert_same(got(xi, nu=(1, 2)), one(xi[:, 0], 1) * two(xi[:, 1], 2), 1e-11)


@pytest.mark.parametrize(
    "kernel",
    [
        "linear",
        "thin_plate_spline",
        "cubic",
        "quintic",
        "multiquadric",
        "inverse_multiquadric",
        "inverse_quadratic",
        "gaussian",
    ],
)
def test_radial_functions(kernel, rng):
    y, d, x = rng.normal(size=(7, 2)), rng.normal(size=7), rng.normal(size=(3, 2))
    options = {"kernel": kernel, "epsilon": 0.7, "smoothing": 0.1}
    want = theirs.RBFInterpolator(y, d, **options)
    assert_same(ours.RBFInterpolator(wg.tensor(y), d, **options)(x), want(x))
    assert_same(ours.RBFInterpolator(wg.tensor(y), d, **options)(y), want(y))
    z = d + 1j * d[::-1]
    assert_same(
        ours.RBFInterpolator(wg.tensor(y), z, **options)(x),
        theirs.RBFInterpolator(y, z, **options)(x),
    )

    def f(y, d, x, epsilon, smoothing):
        return ours.RBFInterpolator(y, d, kernel=kernel, epsilon=epsilon, smoothing=smoothing)(x)

    point = (y, d, x, np.float64(0.7), np.float64(0.1))
    check_grads(f, point, order=1, entries=False)
    bars = wg.grad(lambda *xs: np.sum(f(*xs)), argnums=(0, 2))(y, d, y, 0.7, 0.1)
    assert all(np.all(np.isfinite(bar)) for bar in bars)  # points that are places


# ---- where pieces meet, graphs, refusals -------------------------------------------------------


def test_derivatives_at_data_points_are_those_of_the_right_piece():
    x, y = np.array([0.0, 1.0, 2.0]), np.array([0.0, 3.0, 4.0])
    for f in (
        lambda t: ours.interp1d(x, y)(t),
        lambda t: ours.make_interp_spline(x, y, 1)(t),
        lambda t: ours.interpn((x,), y, np.stack([t]))[0],
    ):
        assert [float(wg.grad(f)(t)) for t in x] == [3.0, 1.0, 1.0]
        assert float(wg.jvp(f, (1.0,), (1.0,))[1]) == 1.0


def test_derivatives_are_finite_for_constant_data_and_extrema():
    x = np.arange(6.0)
    for y in (np.zeros(6), np.array([0.0, 1.0, 1.0, 0.0, 0.0, 2.0]), np.arange(6.0)):
        for make in (ours.PchipInterpolator, ours.Akima1DInterpolator):
            f = lambda x, y, make=make: np.sum(make(x, y)(np.array([0.3, 2.5, 4.9])))  # noqa: E731
            assert all(np.all(np.isfinite(bar)) for bar in wg.grad(f, argnums=(0, 1))(x, y))


def test_graphs_with_symbolic_number_of_points(rng):
    x, y = np.arange(5.0), rng.normal(size=5)
    graph = wg.trace(wg.grad(lambda t: np.sum(ours.CubicSpline(x, y)(t) ** 2)))(wg.spec(("n",)))
    for n in (1, 4):
        t = rng.uniform(0, 4, size=n)
        want = wg.grad(lambda t: np.sum(ours.CubicSpline(x, y)(t) ** 2))(t)
        np.testing.assert_allclose(graph(t), want, rtol=1e-12)
    with pytest.raises(TraceError, match="number"):
        wg.trace(lambda x, y: ours.CubicSpline(x, y)(0.5))(wg.spec(("n",)), wg.spec(("n",)))


def test_errors():
    x, y, t = np.arange(4.0), np.arange(4.0), wg.tensor(np.arange(4.0))
    refused = [
        (lambda: ours.CubicSpline(t, y[:3]), ShapeError, "one element for each value"),
        (lambda: ours.CubicSpline(-t, y), ArgumentError, "increasing"),
        (lambda: ours.CubicSpline(t, y, bc_type="periodic"), ArgumentError, "differ"),
        (lambda: ours.CubicSpline(t, y, bc_type="free"), ArgumentError, "bc_type='free'"),
        (lambda: ours.CubicSpline(t, y, bc_type=((3, 0.0), "natural")), ArgumentError, "order 1"),
        (lambda: ours.CubicSpline(t, y, bc_type=((1, y), "natural")), ShapeError, "at an end"),
        (lambda: ours.CubicSpline(t, [0, 1, np.nan, 2.0]), ArgumentError, "NaN"),
        (lambda: ours.PchipInterpolator(t, y + 1j), ArgumentError, "complex"),
        (lambda: ours.Akima1DInterpolator(t, y, method="other"), ArgumentError, "makima"),
        (lambda: ours.CubicHermiteSpline(t, y, y[:2]), ShapeError, "dydx of shape"),
        (lambda: ours.PPoly(t, x), ShapeError, "breakpoints"),
        (lambda: ours.BSpline(t, y, 3), ShapeError, "knots"),
        (lambda: ours.make_interp_spline(t, y, 5), ShapeError, "knots"),
        (lambda: ours.make_interp_spline(t, y, bc_type="free"), ArgumentError, "'free'"),
        (lambda: ours.interp1d(t, y)(5.0), ArgumentError, "outside of the data range"),
        (lambda: ours.interp1d(t, y, kind="other"), ArgumentError, "kind='other'"),
        (lambda: ours.interpn((t,), y, np.array([5.0])), ArgumentError, "outside"),
        (lambda: ours.interpn((t,), y, np.array([1.0]), "pchip"), ArgumentError, "'pchip'"),
        (lambda: ours.RBFInterpolator(t[:, None], y, kernel="gaussian"), ArgumentError, "epsilon"),
        (lambda: ours.RBFInterpolator(t[:, None], y, neighbors=2), ArgumentError, "neighbors"),
    ]
    for f, error, message in refused:
        with pytest.raises(error, match=message) as caught:
            f()
        assert "test_interpolate.py" in str(caught.value)
