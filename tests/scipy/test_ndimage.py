"""Filters and transformations of images: values as SciPy's, derivatives as differences."""

import itertools

import numpy as np
import pytest
import scipy.ndimage as theirs

import wengert as wg
from wengert.errors import ArgumentError, TraceError
from wengert.scipy import ndimage as ours
from wengert.testing import check_grads

RNG = np.random.default_rng(7)
X1, X2, X3 = RNG.normal(size=9), RNG.normal(size=(7, 6)), RNG.normal(size=(5, 4, 3))
Z2 = X2 + 1j * RNG.normal(size=(7, 6))
FILTER_MODES = ("reflect", "constant", "nearest", "mirror", "wrap", "grid-mirror", "grid-constant")
SPLINE_MODES = (*FILTER_MODES, "grid-wrap")
MODES = pytest.mark.parametrize("mode", (*FILTER_MODES, "grid-wrap"))


def same(name, *args, **kwargs):
    """Eager and compiled values equal SciPy's; returns the function of the first argument."""
    expected = getattr(theirs, name)(*args, **kwargs)
    f = lambda x: getattr(ours, name)(x, *args[1:], **kwargs)  # noqa: E731
    x = args[0]
    scale = max(1.0, float(np.max(np.abs(np.asarray(expected)), initial=0.0)))
    eager = f(wg.tensor(x)).numpy()
    compiled = wg.jit(f)(x)
    for found in (eager, compiled):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13 * scale)
    return f


@MODES
@pytest.mark.sample(1)
def test_one_axis(mode):
    """Correlations and means along one axis, with origins, for windows longer than the array."""
    w = np.array([1.0, -2.0, 0.5, 3.0])
    for axis, origin in itertools.product((0, 1), (-2, 0, 1)):
        same("correlate1d", X2, w, axis=axis, mode=mode, cval=1.5, origin=origin)
        same("convolve1d", X2, w[:3], axis=axis, mode=mode, cval=1.5, origin=min(origin, 0) // 2)
        same("uniform_filter1d", X2, 4, axis, mode=mode, cval=1.5, origin=min(origin, 1))
        same("maximum_filter1d", X2, 4, axis, mode=mode, cval=1.5, origin=min(origin, 1))
        same("minimum_filter1d", X2, 3, axis, mode=mode, cval=1.5, origin=max(origin, -1))
    same("correlate1d", X1[:3], np.arange(11.0), mode=mode)
    same("gaussian_filter1d", X1, 1.3, order=3, mode=mode)
    check_grads(same("convolve1d", X2, w, mode=mode, cval=0.5), (X2,), order=1)


@MODES
@pytest.mark.sample(1)
def test_windows(mode):
    """Filters of several axes."""
    w = RNG.normal(size=(3, 4))
    f = same("correlate", X2, w, mode=mode, cval=1.5, origin=(1, -2))
    check_grads(f, (X2,), order=1)
    same("convolve", X2, w, mode=mode, cval=1.5, origin=(-1, 1))
    same("convolve", X3, RNG.normal(size=(2, 3, 2)), mode=mode)
    same("correlate", X3, w[:, :3], mode=mode, axes=(0, 2))
    same("gaussian_filter", X3, (0.5, 0.0, 1.0), mode=mode, cval=2.0)
    same("gaussian_filter", X2, 0.8, order=(1, 2), mode=mode, radius=2)
    same("uniform_filter", X3, (2, 1, 3), mode=mode, origin=(0, 0, 1))
    same("uniform_filter", X3, 2, mode=mode, axes=(1,))
    same("maximum_filter", X2, (2, 3), mode=mode, cval=0.1, origin=(0, 1))
    same("minimum_filter", X2, footprint=np.array([[1, 0, 1], [0, 1, 0]]), mode=mode, cval=0.1)
    same("median_filter", X2, 3, mode=mode, cval=0.1)
    same("rank_filter", X2, -2, size=(3, 2), mode=mode, cval=0.1)
    same("percentile_filter", X2, -30, size=3, mode=mode, cval=0.1)
    for name in ("sobel", "prewitt"):
        same(name, X2, 0, mode=mode, cval=0.3)
        same(name, X3, mode=mode)
    same("laplace", X2, mode=mode, cval=0.3)
    same("gaussian_laplace", X2, 0.7, mode=mode, cval=0.3)
    same("gaussian_gradient_magnitude", X2, (0.7, 0.9), mode=mode, cval=0.3)


def test_modes_for_each_axis():
    """Sequences of modes."""
    same("gaussian_filter", X2, 1.0, mode=("wrap", "constant"))
    same("sobel", X2, mode=("wrap", "nearest"))
    same("maximum_filter", X2, 3, mode=("wrap", "constant"))
    same("laplace", X3, axes=(0, 2), mode=("wrap", "mirror"))


def test_complex_numbers():
    """Complex arrays and weights."""
    w = np.array([1.0 + 2.0j, -1.0j, 0.5])
    f = same("correlate1d", Z2, w, axis=0, mode="constant", cval=1.0 + 2.0j)
    check_grads(f, (Z2,), order=1)
    same("convolve1d", Z2, w, axis=1)
    same("correlate", X2, np.outer(w, w))
    same("convolve", Z2, np.outer(w, w.real))
    same("uniform_filter", Z2, 3)
    same("spline_filter", Z2, output=np.complex128)
    same("map_coordinates", Z2, np.array([[1.5, 2.2], [0.4, 3.3]]))
    same("shift", Z2, 0.4)


def test_dtypes():
    """The dtype of the input, or `output`; sums are computed in double precision."""
    single = X2.astype(np.float32)
    for name, args in (("gaussian_filter", (1.0,)), ("median_filter", (3,)), ("zoom", (1.5,))):
        expected = getattr(theirs, name)(single, *args)
        found = getattr(ours, name)(wg.tensor(single), *args)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-6)
    whole = RNG.integers(0, 50, size=(6, 5))
    same("uniform_filter", whole, 3)
    same("gaussian_filter", whole, 1.0, output=float)
    same("map_coordinates", whole, np.array([[1.5, 2.2], [0.4, 3.3]]))


@pytest.mark.sample(2)
@pytest.mark.parametrize("order", range(6))
def test_splines(order):
    """Coefficients, also of short axes."""
    for mode in ("mirror", "reflect", "grid-wrap", "nearest", "constant"):
        same("spline_filter1d", X2, order, 0, mode=mode)
        same("spline_filter1d", X1[:1], order, mode=mode)
        same("spline_filter1d", X1[:2], order, mode=mode)
    if order > 1:
        check_grads(same("spline_filter", X2, order), (X2,), order=1)


@pytest.mark.sample(2)
@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_splines_along_long_axes(order):
    """The recursive filter, whose sums beyond the borders are those of few elements."""
    for mode, shape, axis in (
        ("mirror", (33, 3), 0), ("reflect", (2, 34), 1), ("grid-wrap", (120,), 0),
        ("constant", (2, 33, 2), 1), ("nearest", (300,), 0),
    ):  # fmt: skip
        x, dot = RNG.normal(size=shape), RNG.normal(size=shape)
        f = same("spline_filter1d", x, order, axis, mode=mode)
        slope = wg.grad(lambda x, f=f: np.sum(np.sin(f(x))))(x)
        change = np.sum(np.cos(f(x)) * f(dot))
        np.testing.assert_allclose(np.sum(slope * dot), change, rtol=1e-11)


@pytest.mark.parametrize("mode", SPLINE_MODES)
@pytest.mark.parametrize("order", range(6))
@pytest.mark.sample(3)
def test_coordinates(order, mode):
    """Values at coordinates inside, at and beyond the borders."""
    points = np.stack([RNG.uniform(-9, 15, 40), RNG.uniform(-9, 15, 40)])
    points[:, :4] = [[0.0, 6.0, 0.0, 3.0], [0.0, 5.0, 5.0, 2.0]]
    f = same("map_coordinates", X2, points, order=order, mode=mode, cval=1.5)
    same("map_coordinates", X1, points[:1], order=order, mode=mode, cval=1.5)
    same("map_coordinates", X1, points[:1], order=order, mode=mode, prefilter=False)
    if order in (1, 3):
        check_grads(f, (X2,), order=1)
        inside = np.array([[1.3, 2.6, 4.2, -2.3], [0.3, 3.3, 2.2, 7.7]])
        g = lambda p: ours.map_coordinates(X2, p, order=order, mode=mode, cval=1.5)  # noqa: E731
        check_grads(g, (inside,), order=1 if order == 1 else 2)


@pytest.mark.parametrize("mode", SPLINE_MODES)
@pytest.mark.parametrize("order", [0, 1, 3, 4])
@pytest.mark.sample(4)  # each order
def test_transformations(order, mode):
    """Affine transformations, shifts, zooms and rotations."""
    options = {"order": order, "mode": mode, "cval": 0.7}
    same("shift", X2, (0.4, -1.3), **options)
    same("shift", X3, 0.6, **options)
    same("zoom", X2, (1.7, 0.6), **options)
    if mode not in ("constant", "wrap"):
        same("zoom", X2, 1.6, grid_mode=True, **options)
    matrix = np.array([[0.9, 0.2], [-0.3, 1.1]])
    same("affine_transform", X2, matrix, (0.5, -0.4), output_shape=(4, 9), **options)
    same("affine_transform", X2, np.array([0.9, 1.2]), 0.3, **options)
    same("affine_transform", X2, np.array([[0.9, 0.2, 0.5], [-0.3, 1.1, 0.2]]), **options)
    same("rotate", X2, 23.0, **options)
    same("rotate", X3, 90.0, axes=(0, 2), **options)
    same("rotate", X3, -30.0, axes=(2, 1), reshape=False, **options)


PARAMETERS = {  # function, arguments, order of the derivatives
    "matrix": (
        lambda x, m, o: ours.affine_transform(x, m, o, mode="reflect"),
        (X2, np.array([[0.9, 0.2], [-0.3, 1.1]]), np.array([0.53, 0.41])),
        1,
    ),
    "angle": (lambda x, a: ours.rotate(x, a, reshape=False, mode="nearest"), (X2, 21.0), 1),
    "distance": (lambda d: ours.shift(X2, d, mode="mirror"), (np.array([0.3, 1.2]),), 2),
    "weights": (lambda x, w: ours.convolve(x, w), (X2, RNG.normal(size=(2, 3))), 2),
    "deviation": (lambda x, s: ours.gaussian_filter(x, s, radius=3, order=1), (X2, 0.9), 2),
    "magnitude": (lambda x: ours.gaussian_gradient_magnitude(x, 1.0), (X2,), 2),
    "border": (
        lambda c: ours.correlate(X2, np.ones((3, 3)), cval=c, mode="constant"),
        (0.4,),
        2,
    ),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.sample(7)  # each function
def test_derivatives_of_parameters(name, compiled):
    """Matrices, offsets, angles, distances, weights, standard deviations, values of borders."""
    f, args, order = PARAMETERS[name]
    check_grads(wg.jit(f) if compiled else f, args, order=order)


@pytest.mark.sample(1)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_derivatives_of_a_mapping(compiled):
    """Coordinates that a function returns."""
    mode = wg.jit if compiled else lambda f: f

    def mapping(p, scale):
        return p[0] * scale + 0.31, p[1] + 0.1 * p[0] * scale

    def transformed(x, scale):
        return ours.geometric_transform(x, mapping, extra_arguments=(scale,), mode="reflect")

    plain = theirs.geometric_transform(X2, mapping, extra_arguments=(0.83,), mode="reflect")
    np.testing.assert_allclose(mode(transformed)(X2, 0.83), plain, atol=1e-12)
    check_grads(mode(transformed), (X2, 0.83), order=1)


def test_selections():
    """The derivative of an extreme or a rank is that of the selected element."""
    for name, args in (
        ("maximum_filter", (3,)),
        ("minimum_filter", ((2, 3),)),
        ("median_filter", (3,)),
        ("rank_filter", (2, (3, 2))),
        ("percentile_filter", (60, 3)),
    ):
        f = lambda x, name=name, args=args: getattr(ours, name)(x, *args)  # noqa: E731
        check_grads(f, (X2,), order=1)
        check_grads(wg.jit(f), (X2,), order=1)


def test_batches():
    """`vmap` of filters, and of transformations with respect to parameters."""
    batch = RNG.normal(size=(3, 7, 6))
    for f in (
        lambda x: ours.gaussian_filter(x, 1.0),
        lambda x: ours.median_filter(x, 3),
        lambda x: ours.zoom(x, 1.5),
        lambda x: ours.sum_labels(x, np.arange(42).reshape(7, 6) % 3, [0, 1, 2]),
    ):
        found = wg.vmap(f)(batch)
        np.testing.assert_allclose(found, [f(x) for x in batch], atol=1e-13)
    angles = np.array([5.0, 30.0])
    f = lambda a: np.sum(ours.rotate(X2, a, reshape=False) ** 2)  # noqa: E731
    np.testing.assert_allclose(
        wg.vmap(wg.grad(f))(angles), [wg.grad(f)(a) for a in angles], rtol=1e-9
    )


LABELS = np.array([[0, 1, 1, 2, 5, 5], [1, 1, 0, 2, 2, 5], [7, 7, 0, 0, 5, 5], [1, 2, 5, 7, 0, 1]])
X4 = RNG.normal(size=(4, 6))


@pytest.mark.parametrize(
    "name",
    ["sum", "sum_labels", "mean", "variance", "standard_deviation", "maximum", "minimum", "median"],
)
@pytest.mark.parametrize(
    "index", [None, 2, [1, 5, 2], np.array([[2, 1], [5, 5]])], ids=["all", "one", "some", "matrix"]
)
@pytest.mark.sample(8)  # each function
def test_measurements(name, index):
    """Statistics for labels."""
    for factor, labels in ((1, LABELS), (1000, LABELS * 1000), (1, LABELS[0])):
        chosen = None if index is None else np.multiply(index, factor)[()]
        with np.errstate(all="ignore"):
            expected = getattr(theirs, name)(X4, labels, chosen)

        def f(x, labels=labels, chosen=chosen):
            return getattr(ours, name)(x, labels, chosen)

        with np.errstate(all="ignore"):
            np.testing.assert_allclose(wg.vjp(f, X4)[0], expected, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(wg.jit(f)(X4), expected, rtol=1e-12, atol=1e-14)
    f = lambda x: getattr(ours, name)(x, LABELS, index)  # noqa: E731
    with np.errstate(all="ignore"):  # of SciPy, for labels that are not asked for
        check_grads(f, (X4,), order=1)
    expected = getattr(theirs, name)(X4)
    np.testing.assert_allclose(wg.vjp(getattr(ours, name), X4)[0], expected, rtol=1e-12)


def test_labels_that_do_not_occur():
    """Sums are zero, and means not a number, as in SciPy."""
    f = lambda x: ours.sum_labels(x, LABELS, [1, 3])  # noqa: E731
    np.testing.assert_allclose(wg.vjp(f, X4)[0], theirs.sum_labels(X4, LABELS, [1, 3]))
    f = lambda x: ours.maximum(x, LABELS, [1, 3])  # noqa: E731
    np.testing.assert_allclose(wg.vjp(f, X4)[0], theirs.maximum(X4, LABELS, [1, 3]))


def test_centers_and_positions():
    """Centers of mass, positions and extremes."""
    mass = np.exp(X4)
    for args in ((), (LABELS,), (LABELS, 2), (LABELS, [1, 2, 5])):
        f = lambda x, args=args: np.stack(  # noqa: E731
            [
                wg.numpy.stack(c) if isinstance(c, tuple) else c
                for c in ours.center_of_mass(x, *args)
            ]
        )
        expected = theirs.center_of_mass(mass, *args)
        np.testing.assert_allclose(wg.vjp(f, mass)[0], expected, rtol=1e-12)
        check_grads(f, (mass,), order=1)
    found = ours.extrema(wg.tensor(X4), LABELS, [1, 2])
    expected = theirs.extrema(X4, LABELS, [1, 2])
    np.testing.assert_allclose(found[1].numpy(), expected[1])
    assert found[2:] == expected[2:]


def test_inside_differentiated_functions():
    """Functions that import scipy.ndimage need no change; other functions are SciPy's."""

    def f(x):
        from scipy import ndimage

        labels, count = ndimage.label(np.array([1, 0, 1, 1]))
        return np.sum(ndimage.gaussian_filter(x, 1.0)[:4] * labels) + count

    def g(x):
        return np.sum(theirs.gaussian_filter(x, 1.0)[:4] * np.array([1, 0, 2, 2])) + 2

    np.testing.assert_allclose(wg.grad(f)(X1), wg.grad(g)(X1))
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X1), wg.grad(g)(X1))
    assert ours.label(X1 > 0)[1] == theirs.label(X1 > 0)[1]
    with pytest.raises(ArgumentError, match="plain arrays only"):
        wg.grad(lambda x: np.sum(ours.distance_transform_edt(x)))(X1)
    with pytest.raises(AttributeError, match="no attribute"):
        ours.nothing  # noqa: B018


def test_without_tensors_scipy_is_called():
    """Plain arguments give SciPy's results, bit by bit."""
    np.testing.assert_array_equal(ours.gaussian_filter(X2, 1.1), theirs.gaussian_filter(X2, 1.1))
    out = np.empty_like(X2)
    ours.sobel(X2, output=out)
    np.testing.assert_array_equal(out, theirs.sobel(X2))


def test_errors():
    """Invalid arguments are SciPy's errors; what is not supported is named."""
    t = wg.tensor(X2)
    with pytest.raises(ValueError, match="Invalid origin"):
        ours.correlate1d(t, [1.0, 2.0, 1.0], origin=2)
    with pytest.raises(RuntimeError, match="boundary mode"):
        ours.correlate1d(t, [1.0], mode="odd")
    with pytest.raises(RuntimeError, match="no filter weights"):
        ours.correlate1d(t, [])
    with pytest.raises(RuntimeError, match="must match"):
        ours.correlate(t, [1.0, 2.0])
    with pytest.raises(ValueError, match="invalid origin"):
        ours.uniform_filter(t, 3, origin=3)
    with pytest.raises(RuntimeError, match="spline order"):
        ours.zoom(t, 2, order=6)
    with pytest.raises(RuntimeError, match="coordinate array"):
        ours.map_coordinates(t, np.ones((3, 2)))
    with pytest.raises(RuntimeError, match="rank not within"):
        ours.rank_filter(t, 9, 3)
    with pytest.raises(TypeError, match="Complex"):
        ours.maximum_filter(wg.tensor(Z2), 3)
    with pytest.raises(ArgumentError, match="array as output"):
        ours.gaussian_filter(t, 1.0, output=np.empty_like(X2))
    with pytest.raises(TraceError, match="Pass radius"):
        wg.jit(wg.grad(lambda s: np.sum(ours.gaussian_filter(X2, s))))(1.0)
    with pytest.raises(TraceError, match="reshape=False"):
        wg.jit(lambda a: ours.rotate(X2, a))(10.0)
    with pytest.raises(TraceError, match="plain"):
        wg.jit(lambda z: ours.zoom(X2, z))(2.0)
    with pytest.raises(TraceError, match="labels is traced"):
        wg.jit(lambda x, k: ours.maximum(x, k, [1, 2]))(X4, LABELS)


def test_traced_labels():
    """Sums take labels that are arguments of a compiled function."""
    f = wg.jit(lambda x, k: ours.mean(x, k, [1, 5, 2]))
    np.testing.assert_allclose(f(X4, LABELS), theirs.mean(X4, LABELS, [1, 5, 2]))
