"""Refusals name what to call instead, in the words of the library that was called."""

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.special
import scipy.stats
from scipy.spatial import distance

import wengert as wg
from wengert.errors import (
    ArgumentError,
    ConversionError,
    DtypeError,
    NotDifferentiableError,
    NotScalarError,
    StructureError,
    TracedBranchError,
    TraceError,
)

# What is refused in functions that are not converted.
pytestmark = pytest.mark.usefixtures("unconverted")

X = np.array([2.0, 1.0, 3.0])
A = np.array([[2.0, 0.5], [0.5, 3.0]])
THEIRS = {
    "linalg.cholesky": (scipy.linalg.cholesky, A),
    "linalg.expm": (scipy.linalg.expm, A),
    "linalg.solve": (lambda t: scipy.linalg.solve(t, np.ones(2)), A),
    "special.logsumexp": (scipy.special.logsumexp, X),
    "special.softmax": (scipy.special.softmax, X),
    "signal.fftconvolve": (lambda t: scipy.signal.fftconvolve(t, t), X),
    "signal.lfilter": (lambda t: scipy.signal.lfilter([1.0], [1.0, 0.5], t), X),
    "integrate.trapezoid": (scipy.integrate.trapezoid, X),
    "integrate.quad": (lambda t: scipy.integrate.quad(lambda s: s * t[0], 0, 1)[0], X),
    "interpolate.CubicSpline": (lambda t: scipy.interpolate.CubicSpline([0, 1, 2], t)(0.5), X),
    "fft.fft": (scipy.fft.fft, X),
    "ndimage.gaussian_filter": (lambda t: scipy.ndimage.gaussian_filter(t, 1.0), X),
    "stats": (scipy.stats.norm.logpdf, X),
    "optimize.minimize": (
        lambda t: scipy.optimize.minimize(lambda y: np.sum((y - t) ** 2), X).x,
        X,
    ),
}


@pytest.mark.parametrize("name", THEIRS)
def test_a_function_of_scipy_names_ours(name):
    f, x = THEIRS[name]
    ours = f"scipy.{name}".replace(".", r"\.")
    for error, call in ((ConversionError, wg.grad), (TraceError, wg.jit)):
        with pytest.raises(error, match=rf"wengert\.{ours}\b.*test_remedies\.py"):
            call(lambda t: np.sum(f(t)))(x)


@pytest.mark.parametrize(
    ("f", "remedy"),
    [
        (scipy.ndimage.binary_erosion, r"binary_erosion of scipy\.ndimage"),
        (
            lambda t: distance.directed_hausdorff(np.outer(t, t), np.outer(X, X)),
            r"directed_hausdorff",
        ),
    ],
)
def test_what_has_no_counterpart_says_so(f, remedy):
    with pytest.raises(ConversionError, match=remedy):
        wg.grad(lambda t: np.sum(f(t)))(X)


SETTINGS = {
    "range": (lambda n: sum(range(n)), 3),
    "zeros": (lambda n: np.zeros(n), 3),
    "zeros of two": (lambda n: np.ones((n, 2)), 3),
    "arange": (lambda n: np.arange(n), 3),
    "linspace": (lambda n: np.linspace(0, 1, n), 3),
    "reshape": (lambda n: np.ones(6).reshape(n, -1), 3),
    "list": (lambda n: [1, 2, 3, 4][n], 3),
    "slice": (lambda n: np.ones(5)[:n], 3),
    "normal": (lambda n: np.random.RandomState(0).normal(size=n), 3),
    "if": (lambda n: 1.0 if n else 2.0, True),
    "compare": (lambda n: 1.0 if n == 3 else 2.0, 3),
    "and": (lambda n: n > 1 and n < 5, 3),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_traced_setting_names_static_argnames(name):
    f, n = SETTINGS[name]
    for call in (wg.jit(f), wg.trace(f)):
        with pytest.raises(TraceError, match=r"static_argnames='n'.*test_remedies\.py"):
            call(n)
    wg.jit(lambda n: (f(n), 1.0)[1], static_argnames="n")(n)  # and that works


def test_an_array_is_no_setting():
    with pytest.raises(TracedBranchError) as caught:
        wg.jit(lambda x: x if x[0] > 0 else -x)(X)
    assert "static_argnames" not in str(caught.value)


def test_a_length_that_is_not_an_integer():
    with pytest.raises(TypeError) as caught:
        wg.grad(lambda x: np.sum(np.zeros(x[0])))(X)
    assert "static" not in str(caught.value)
    with pytest.raises(DtypeError, match=r"int\(x\)"):
        wg.grad(lambda x: sum(range(x[0])))(X)


def test_pandas_beside_tensors():
    pd = pytest.importorskip("pandas")
    s = pd.Series(X, index=[7, 8, 9])
    df = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "c": [5.0, 6.0]})
    for f, g in (
        (lambda t: np.sum(s * t), lambda t: np.sum(X * t)),
        (lambda t: np.sum(t * s), lambda t: np.sum(X * t)),
        (lambda t: ((s - t * t) ** 2).mean(), lambda t: np.mean((X - t * t) ** 2)),
        (lambda t: np.sum(s**t), lambda t: np.sum(X**t)),
        (lambda t: np.sum(np.exp(s) / t), lambda t: np.sum(np.exp(X) / t)),
        (lambda t: np.sum(df * t), lambda t: np.sum(df.to_numpy() * t)),
        (lambda t: np.sum(t[:2] @ df), lambda t: np.sum(t[:2] @ df.to_numpy())),
        (lambda t: np.sum(df["a"] * t[0]), lambda t: np.sum(df["a"].to_numpy() * t[0])),
    ):
        for mode in (wg.grad, wg.hessian):
            assert np.array_equal(mode(f)(X), mode(g)(X))
    for f in (lambda t: df @ t, lambda t: s.dot(t), lambda t: pd.Series(t)):
        for error, call in ((ConversionError, wg.jacobian), (TraceError, wg.trace)):
            with pytest.raises(error, match=r"table\.to_numpy\(\) @ x"):
                call(f)(X)
    with pytest.raises(DtypeError, match=r"to_numpy\(float\)"):
        wg.grad(lambda t: np.sum(pd.Series(["a", "b", "c"]) * t))(X)


def labelled(package, **attributes):
    """An object like one of a library that need not be installed."""
    found = type("Labelled", (), {"__module__": f"{package}.core", **attributes,
                                  "__array__": lambda self, *a, **k: np.array(X)})  # fmt: skip
    return found()


@pytest.mark.parametrize(
    ("package", "argument", "result"),
    [
        ("pandas", r"pandas\.Series\(result, x\.index\)", r"Return its values, x\.to_numpy\(\)"),
        ("xarray", r"x\.copy\(data=result\)", r"Return its values, x\.data"),
        ("pint", r"units of the result divided by those of x", r"x\.to\(unit\)\.magnitude"),
    ],
)
def test_arrays_with_labels_or_units_as_arguments_and_results(package, argument, result):
    x = labelled(package)
    for transform in (wg.grad, wg.jacobian, wg.hessian):
        with pytest.raises(NotDifferentiableError, match=argument):
            transform(np.sum)(x)
    with pytest.raises(StructureError, match=argument):
        wg.vmap(np.sum)(x)
    with pytest.raises(NotScalarError, match=result):
        wg.grad(lambda t: x)(1.0)
    with pytest.raises(StructureError, match=result):
        wg.jit(lambda t: x)(1.0)


@pytest.mark.parametrize(
    ("package", "values"), [("polars", r"x\.to_numpy\(\)"), ("torch", r"x\.numpy\(\)")]
)
def test_arrays_of_libraries_whose_methods_differ(package, values):
    x = labelled(package)
    with pytest.raises(ArgumentError, match=rf"not those of arrays\. Pass its values, {values}"):
        wg.jit(np.std)(x)
    with pytest.raises(NotDifferentiableError, match=values):
        wg.grad(np.std)(x)


def test_compiled_functions_do_not_lose_units():
    with pytest.raises(ArgumentError, match=r"Labelled in meter\. Pass a number of chosen units"):
        wg.jit(np.sum)(labelled("pint", dimensionless=False, units="meter"))
    assert wg.jit(np.sum)(labelled("pint", dimensionless=True)) == np.sum(X)
