"""scipy.signal: values against SciPy's, derivatives against finite differences.

`assert_same` calls SciPy's function and ours with the same arguments and compares values, shapes
and dtypes, or that both raise.  All combinations of options are compared by value; gradients are
checked for one case of each branch of the code, with respect to every operand.
"""

import warnings
from itertools import product

import numpy as np
import pytest
import scipy.signal

import wengert as wg
from wengert.errors import ArgumentError, DtypeError, ShapeError, TraceError
from wengert.testing import check_grads

ours, theirs = wg.scipy.signal, scipy.signal


def leaves(x):
    return x if isinstance(x, tuple) else (x,)


def result_or_error(f, *args, **options):
    try:
        return f(*args, **options)
    except (ValueError, TypeError) as error:
        return error


def assert_same(name, *args, **options):
    with warnings.catch_warnings(action="ignore"):
        want = result_or_error(getattr(theirs, name), *args, **options)
    tensors = [wg.tensor(a) if isinstance(a, np.ndarray) else a for a in args]
    got = result_or_error(getattr(ours, name), *tensors, **options)
    if isinstance(want, Exception) or isinstance(got, Exception):
        assert isinstance(want, Exception) and isinstance(got, Exception), (options, want, got)
        return
    for g, w in zip(leaves(got), map(np.asarray, leaves(want)), strict=True):
        assert isinstance(g, wg.Tensor)
        assert g.shape == w.shape and g.dtype == w.dtype, (options, g.dtype, w.dtype)
        rtol = 1e-4 if w.dtype in (np.float32, np.complex64) else 1e-9
        scale = np.max(np.abs(w), initial=0.0)
        np.testing.assert_allclose(g.numpy(), w, rtol=rtol, atol=rtol * scale, err_msg=str(options))
    with warnings.catch_warnings(action="ignore"):
        plain = getattr(ours, name)(*args, **options)
    assert not any(isinstance(y, wg.Tensor) for y in leaves(plain))


def draw(rng, shape, kind):
    x = rng.normal(size=shape)
    if kind == "complex":
        return x + 1j * rng.normal(size=shape)
    return x.astype(np.float32) if kind == "single" else x


KINDS = ["real", "complex", "single"]
SHAPES = [((5,), (3,)), ((3,), (6,)), ((1,), (4,)), ((4, 3), (2, 2)), ((2, 3), (4, 5)),
          ((4, 3), (2, 5)), ((3, 2, 4), (2, 2, 1)), ((30, 20), (10, 15))]  # fmt: skip


# ---- convolution -------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", KINDS)
def test_convolutions(kind, rng):
    for (n, m), mode in product(SHAPES, ("full", "same", "valid")):
        x, v = draw(rng, n, kind), draw(rng, m, kind)
        for name, method in product(("convolve", "correlate"), ("auto", "direct", "fft")):
            assert_same(name, x, v, mode, method=method)
        for name in ("fftconvolve", "oaconvolve"):
            assert_same(name, x, v, mode)
        if len(n) == 2:
            for name in ("convolve2d", "correlate2d"):
                assert_same(name, x, v, mode)
                for boundary in ("wrap", "symm"):
                    assert_same(name, x, v, mode, boundary=boundary)
                assert_same(name, x, v, mode, fillvalue=1.5)
    x, v = draw(rng, (4, 1, 5), kind), draw(rng, (4, 3, 2), kind)
    for axes in (2, (1, 2), (-1,), (0, 2)):
        assert_same("fftconvolve", x, v, axes=axes)
    assert_same("convolve", np.asarray(2.0), np.asarray(3.0))
    assert_same("convolve", np.arange(4), np.arange(3))


@pytest.mark.parametrize("kind", KINDS[:2])
def test_gradients_of_convolutions(kind, rng):
    x, v = draw(rng, (3, 2), kind), draw(rng, (2, 2), kind)
    for name in ("convolve", "correlate", "fftconvolve", "convolve2d", "correlate2d"):
        check_grads(getattr(ours, name), (x, v), order=1, entries=False)
    for name in ("convolve", "fftconvolve"):
        f = getattr(ours, name)
        check_grads(lambda x, v, f=f: f(x, v, "valid"), (x[:, 0], v[:, 0]), order=2, entries=False)
    for boundary in ("wrap", "symm"):
        check_grads(
            lambda x, v, b=boundary: ours.convolve2d(x, v, boundary=b),
            (x, v),
            order=1,
            entries=False,
        )
    value = np.float64(0.5)
    check_grads(
        lambda x, v, c: ours.correlate2d(x, v, "same", fillvalue=c),
        (x.real, v.real, value),
        entries=False,
    )


# ---- recursive filters -------------------------------------------------------------------------

LENGTHS = [(1, 1), (3, 1), (1, 3), (3, 3), (2, 4), (5, 2)]


def coefficients(rng, nb, na, kind="real"):
    b = draw(rng, nb, kind)
    a = np.concatenate([[2.0], 0.3 * rng.normal(size=na - 1)]).astype(b.real.dtype)
    return b, a


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", KINDS)
def test_recursive_filters(kind, rng):
    for nb, na in LENGTHS:
        b, a = coefficients(rng, nb, na, kind)
        order = max(nb, na) - 1
        for n in (1, 2, 3, 9):
            x = draw(rng, (2, n, 3), kind)
            assert_same("lfilter", b, a, x, axis=1)
            for shape in ((2, order, 3), (1, order, 1)):
                assert_same("lfilter", b, a, x, 1, draw(rng, shape, kind))
        assert_same("lfiltic", b, a, draw(rng, 2, kind))
        assert_same("lfiltic", b, a, draw(rng, 2, kind), draw(rng, 3, kind))
        if order == 0:
            continue
        assert_same("lfilter_zi", b, a)
        x = draw(rng, (30, 2), kind)
        for padtype, padlen in product(("odd", "even", "constant", None), (None, 4)):
            assert_same("filtfilt", b, a, x, 0, padtype, padlen)
    assert_same("deconvolve", draw(rng, 6, "real"), np.array([1.5, 0.3, 0.2]))
    assert_same("deconvolve", np.ones(2), np.ones(3))


@pytest.mark.parametrize("kind", ["real", "single"])
def test_sections(kind, rng):
    sos = theirs.butter(5, 0.3, output="sos").astype(draw(rng, 1, kind).dtype)
    x = draw(rng, (2, 60), kind)
    assert_same("sosfilt", sos, x)
    assert_same("sosfilt", sos, x, -1, draw(rng, (3, 2, 2), kind))
    assert_same("sosfilt_zi", sos)
    assert_same("sosfiltfilt", sos, x)
    assert_same("sosfiltfilt", sos, np.ascontiguousarray(x.T), 0, "even", 7)


@pytest.mark.parametrize("kind", KINDS[:2])
def test_gradients_of_filters(kind, rng):
    x = draw(rng, (3, 2), kind)
    for nb, na in LENGTHS[1:]:
        b, a = coefficients(rng, nb, na, kind)
        check_grads(
            lambda b, a, x: ours.lfilter(b, a, x, axis=0), (b, a, x), order=1, entries=False
        )
    zi = draw(rng, (4, 2), kind)
    check_grads(
        lambda b, a, x, z: ours.lfilter(b, a, x, 0, z), (b, a, x, zi), order=1, entries=False
    )
    b, a = coefficients(rng, 2, 2, kind)
    check_grads(lambda b, a, x: ours.lfilter(b, a, x), (b, a, x[:, 0]), order=2, entries=False)
    check_grads(
        lambda b, a, x: ours.filtfilt(b, a, x, 0, "odd", 2), (b, a, x), order=1, entries=False
    )


def test_gradients_of_sections(rng):
    sos = theirs.butter(3, 0.3, output="sos")
    x = rng.normal(size=5)
    free = np.delete(sos, 3, axis=1)  # the leading coefficient is one

    def whole(free):
        return np.concatenate([free[:, :3], np.ones((2, 1)), free[:, 3:]], axis=1)

    check_grads(lambda s, x: ours.sosfilt(whole(s), x), (free, x), order=1, entries=False)
    check_grads(
        lambda s, x: ours.sosfiltfilt(whole(s), x, padlen=2), (free, x), order=1, entries=False
    )
    check_grads(ours.deconvolve, (x, np.array([1.5, 0.2])), order=1, entries=False)


def test_a_gradient_of_a_long_signal_agrees_with_the_loop(rng):
    x, (b, a) = rng.normal(size=50), theirs.butter(3, 0.4)

    def by_loop(b, a):
        y = []
        for n in range(len(x)):
            total = sum(b[k] * x[n - k] for k in range(4) if n >= k)
            total = total - sum(a[k] * y[n - k] for k in range(1, 4) if n >= k)
            y.append(total / a[0])
        return sum(v * v for v in y)

    got = wg.grad(lambda b, a: np.sum(ours.lfilter(b, a, x) ** 2), (0, 1))(b, a)
    for g, w in zip(got, wg.grad(by_loop, (0, 1))(b, a), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-10)


def by_complex_step(f, x, h=1e-30):
    """The gradient of an analytic function by the complex-step method, exact to rounding.

    Not for FFTs, where rounding errors of the real part reach the imaginary part.
    """
    steps = x + 1j * h * np.eye(x.size).reshape(-1, *x.shape)
    return np.array([f(moved).imag / h for moved in steps]).reshape(x.shape)


def test_gradients_agree_with_complex_steps(rng):
    x, v, zi = rng.normal(size=30), rng.normal(size=5), rng.normal(size=3)
    b, a = theirs.butter(3, 0.3)
    weights = rng.normal(size=34)

    def weighted_sum(y):
        return np.sum(weights[: len(y)] * y**3)

    cases = [
        (lambda m, x: weighted_sum(m.convolve(x, v)), x),
        (lambda m, v: weighted_sum(m.correlate(v, x[:4], "same", "direct")), v),
        (lambda m, b: weighted_sum(m.lfilter(b, a, x)), b),
        (lambda m, a: weighted_sum(m.lfilter(b, a, x)), a),
        (lambda m, x: weighted_sum(m.lfilter(b, a, x)), x),
        (
            lambda m, z: (
                weighted_sum(m.lfilter(b, a, x, zi=z)[0]) + np.sum(m.lfilter(b, a, x, zi=z)[1])
            ),
            zi,
        ),
        (lambda m, a: weighted_sum(m.filtfilt(b, a, x, padlen=5)), a),
        (lambda m, x: weighted_sum(m.filtfilt(b, a, x)), x),
        (lambda m, x: weighted_sum(m.sosfiltfilt(theirs.zpk2sos([0.2], [0.5], 2.0), x)), x),
        (lambda m, x: weighted_sum(m.detrend(x, bp=[11])), x),
        (lambda m, h: weighted_sum(m.upfirdn(h, x, 3, 4)), v),
    ]
    for k, (f, at) in enumerate(cases):
        want = by_complex_step(lambda x, f=f: f(theirs, x), at)
        got = wg.grad(lambda x, f=f: f(ours, x))(at)
        scale = np.max(np.abs(want))
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11 * scale, err_msg=str(k))


# ---- smoothing, resampling, spectra, windows ---------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_smoothing(kind, rng):
    x = draw(rng, (20, 3), kind)
    for axis in (0, 1):
        assert_same("detrend", x, axis=axis)
        assert_same("detrend", x, axis=axis, type="constant")
    for breaks in (7, [5, 6, 12], 25):
        assert_same("detrend", x, axis=0, bp=breaks)
    for n in (None, 15, 24):
        assert_same("hilbert", x, n, axis=0)
        assert_same("hilbert2", x, n)
    if kind == "complex":
        return
    modes = ("interp", "mirror", "nearest", "wrap", "constant")
    for width, deriv, mode in product((5, 6), (0, 1), modes):
        assert_same("savgol_filter", x, width, 3, deriv, 0.5, axis=0, mode=mode, cval=1.5)


@pytest.mark.parametrize("kind", KINDS)
def test_resampling(kind, rng):
    x = draw(rng, (20, 2), kind)
    numbers = (1, 2, 5, 10, 13, 19, 20, 21, 24, 40)
    for n, num, domain in product((20, 19), numbers, ("time", "freq")):
        assert_same("resample", x[:n], num, domain=domain)
        assert_same("resample", x[:n], num, window="hann", domain=domain)
    assert_same("resample", x, 7, np.arange(20.0))
    assert_same("resample", x, 7, window=np.hamming(20))
    h = draw(rng, 5, "real").astype(x.real.dtype)
    paddings = ("constant", "mean", "median", "maximum") if kind != "complex" else ("constant",)
    for up, down in ((1, 1), (3, 1), (1, 2), (3, 2), (4, 10)):
        assert_same("upfirdn", h, x, up, down, axis=0)
        for padtype in paddings:
            assert_same("resample_poly", x, up, down, padtype=padtype)
            assert_same("resample_poly", x, up, down, padtype=padtype, window=h)
    if kind != "complex":
        z = draw(rng, (2, 90), kind)
        for ftype, both in product(("iir", "fir"), (True, False)):
            assert_same("decimate", z, 3, ftype=ftype, zero_phase=both)


OPTIONS = [
    {}, {"nperseg": 8}, {"nperseg": 7, "noverlap": 3}, {"nperseg": 8, "nfft": 11},
    {"nperseg": 8, "scaling": "spectrum", "fs": 3.0}, {"nperseg": 8, "detrend": "linear"},
    {"nperseg": 8, "detrend": False}, {"nperseg": 8, "return_onesided": False},
    {"nperseg": 8, "window": ("kaiser", 4.0)}, {"window": np.hamming(9)},
]  # fmt: skip


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", KINDS)
def test_spectra(kind, rng):
    x, y = draw(rng, (2, 40), kind), draw(rng, (2, 35), kind)
    for options in OPTIONS:
        assert_same("welch", x, **options)
        assert_same("csd", x, y, **options)
        assert_same("csd", x, y, **options, average="median")
        assert_same("spectrogram", np.ascontiguousarray(x.T), **options, axis=0)
    if kind == "real":
        assert_same("coherence", x, y, nperseg=8)
        for mode in ("complex", "magnitude", "angle", "phase"):
            assert_same("spectrogram", x, nperseg=8, mode=mode)
    for options in ({}, {"nfft": 30}, {"nfft": 50}, {"window": "hann", "fs": 4.0}):
        assert_same("periodogram", x, **options)
    assert_same("stft", x, nperseg=7, noverlap=2, boundary=None)
    for boundary in ("zeros", "even", "odd", "constant"):
        assert_same(
            "stft", x, nperseg=8, boundary=boundary, padded=boundary != "odd", scaling="psd"
        )


def test_responses(rng):
    b, a = coefficients(rng, 4, 3)
    where = {"worN": np.linspace(0.1, 3, 4)}
    for options in ({}, where, {"worN": 7, "whole": True}, {"worN": 6, "fs": 10.0}):
        assert_same("freqz", b, a, **options)
        assert_same("freqz", b, **options)
        assert_same("sosfreqz", theirs.butter(4, 0.3, output="sos"), **options)
    assert_same("freqz", b, a, 6, include_nyquist=True)
    check_grads(
        lambda b, a, w: ours.freqz(b, a, w)[1], (b, a, where["worN"][1:3]), order=1, entries=False
    )


WINDOWS = {
    "kaiser": (3.0,), "gaussian": (1.5,), "general_gaussian": (1.3, 2.0), "general_hamming": (0.6,),
    "exponential": (None, 2.0), "general_cosine": (np.array([0.3, 0.4, 0.2]),), "tukey": (0.55,),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_differentiable_in_their_parameters(name):
    our_window, their_window = getattr(ours.windows, name), getattr(theirs.windows, name)
    values = WINDOWS[name]
    tensors = [None if v is None else wg.tensor(np.asarray(v)) for v in values]
    for count, sym in product((0, 1, 2, 9), (True, False)):
        got, want = our_window(count, *tensors, sym=sym), their_window(count, *values, sym=sym)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)
    skip = [None] * values.count(None) if name == "exponential" else []
    moved = tuple(np.asarray(v) for v in values if v is not None)
    check_grads(lambda *p: our_window(8, *skip, *p), moved, entries=False)


def test_other_windows_are_those_of_scipy():
    assert ours.windows.hann is theirs.windows.hann
    beta = wg.tensor(np.asarray(3.0))
    want = theirs.get_window(("kaiser", 3.0), 7)
    np.testing.assert_allclose(ours.get_window(("kaiser", beta), 7).numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(ours.get_window(beta, 7).numpy(), want, rtol=1e-12)
    for alpha in (0.0, 1.0, 1.5):
        got = ours.windows.tukey(6, wg.tensor(np.asarray(alpha)))
        np.testing.assert_allclose(got.numpy(), theirs.windows.tukey(6, alpha), rtol=1e-12)
    assert np.all(np.isfinite(wg.jacobian(lambda a: ours.windows.tukey(6, a))(0.0)))


def test_gradients_of_smoothing_resampling_and_spectra(rng):
    x = rng.normal(size=8)
    programs = [
        lambda x: ours.detrend(x, bp=4),
        lambda x: ours.hilbert(x),
        lambda x: ours.hilbert2(x.reshape(2, 4)),
        lambda x: ours.resample(x, 7),
        lambda x: ours.resample(x, 11, window="hann"),
        lambda x: ours.resample_poly(x, 3, 2, window=np.array([1.0, 2.0, 1.0])),
        lambda x: ours.savgol_filter(x, 5, 2, 1),
        lambda x: ours.decimate(x, 2, 3, "fir", zero_phase=False),
        lambda x: ours.periodogram(x, detrend="linear")[1],
        lambda x: ours.spectrogram(x, nperseg=4)[2],
        lambda x: ours.coherence(x, x**2, nperseg=4)[1],
    ]
    for f in programs:
        check_grads(f, (x,), order=1, entries=False)
    check_grads(lambda x: ours.welch(x, nperseg=4)[1], (x[:6],), order=2, entries=False)
    check_grads(lambda h, x: ours.upfirdn(h, x, 3, 2), (x[:3], x[3:7]), order=2, entries=False)
    window = np.hamming(4)
    check_grads(
        lambda x, w: ours.stft(x, window=w, nperseg=4)[2], (x[:6], window), order=1, entries=False
    )


# ---- batching, graphs, errors ------------------------------------------------------------------


def test_batching_and_compiled_gradients(rng):
    b, a = theirs.butter(2, 0.3)
    programs = {
        "lfilter": (lambda x, v: np.sum(ours.lfilter(v, a, x) ** 2), 3),
        "convolve": (lambda x, v: np.sum(ours.convolve(x, v) ** 3), 4),
        "fftconvolve": (lambda x, v: np.sum(ours.fftconvolve(x, v, "same") ** 3), 4),
        "images": (lambda x, v: np.sum(ours.convolve(x.reshape(2, 4), v.reshape(2, 2)) ** 3), 4),
        "welch": (lambda x, v: np.sum(ours.welch(x * v[0], nperseg=4)[1]), 1),
    }
    for name, (f, n) in programs.items():
        xs, v = rng.normal(size=(3, 8)), rng.normal(size=n)
        slope = wg.grad(f, argnums=(0, 1))
        one, many = wg.vmap(slope, in_axes=(0, None))(xs, v), [slope(x, v) for x in xs]
        compiled = wg.jit(slope)(xs[0], v)
        for k in range(2):
            np.testing.assert_allclose(one[k], [m[k] for m in many], rtol=1e-10, err_msg=name)
            np.testing.assert_allclose(compiled[k], many[0][k], rtol=1e-10, err_msg=name)
    rows = wg.vmap(lambda b, x: ours.lfilter(b, a, x))(np.stack([b, 2 * b]), xs[:2])
    np.testing.assert_allclose(rows[1], 2 * theirs.lfilter(b, a, xs[1]), rtol=1e-12)


def test_symbolic_sizes(rng):
    b, a = theirs.butter(2, 0.3)
    v = rng.normal(size=3)
    for f in (
        lambda x: ours.lfilter(b, a, x),
        lambda x: ours.convolve(x, v),
        lambda x: ours.fftconvolve(x, v),
        lambda x: ours.lfilter(b, a, x, zi=np.ones(2))[0],
    ):
        graph = wg.trace(wg.grad(lambda x, f=f: np.sum(f(x) ** 2)))(wg.spec(("n",)))
        for n in (3, 7):
            x = rng.normal(size=n)
            want = wg.grad(lambda x, f=f: np.sum(f(x) ** 2))(x)
            np.testing.assert_allclose(graph(x), want, rtol=1e-9)
    with pytest.raises(TraceError, match="number"):
        wg.trace(ours.detrend)(wg.spec(("n",)))


def test_errors():
    t, plane = wg.tensor(np.ones(6)), wg.tensor(np.ones((2, 3)))
    sos = np.array([[1.0, 0, 0, 2.0, 0, 0]])
    cases = [
        (lambda: ours.convolve(t, np.ones((2, 2))), ShapeError, "same number"),
        (lambda: ours.convolve(t, np.ones(0)), ShapeError, "one element"),
        (lambda: ours.convolve(t, t, "half"), ArgumentError, "mode='half'"),
        (lambda: ours.convolve(t, t, method="slow"), ArgumentError, "method='slow'"),
        (lambda: ours.convolve(plane, np.ones((3, 2)), "valid"), ShapeError, "at least as long"),
        (lambda: ours.fftconvolve(plane, plane, axes=(0, 0)), ArgumentError, "each once"),
        (lambda: ours.convolve2d(plane, plane, boundary="none"), ArgumentError, "boundary"),
        (lambda: ours.lfilter([1.0], [0.0, 1.0], t), ArgumentError, "first coefficient"),
        (lambda: ours.lfilter(plane, [1.0], t), ShapeError, "one-dimensional"),
        (lambda: ours.lfilter([1.0, 2.0], [1.0], t, zi=np.ones(2)), ShapeError, "zi of shape"),
        (lambda: ours.lfilter([1.0], [1.0], t.astype(np.float16)), None, ""),
        (lambda: ours.sosfilt(sos, t), ArgumentError, "sos"),
        (lambda: ours.sosfilt(sos[:, :5], t), ShapeError, r"\(n, 6\)"),
        (lambda: ours.filtfilt([1.0], [1.0, 0.5], t), ShapeError, "smaller padlen"),
        (lambda: ours.filtfilt([1.0], [1.0, 0.5], t, method="gust"), ArgumentError, "gust"),
        (lambda: ours.detrend(t, type="square"), ArgumentError, "type='square'"),
        (lambda: ours.hilbert(t + 1j), ArgumentError, "complex"),
        (lambda: ours.savgol_filter(t, 7, 2), ShapeError, "longer than the signal"),
        (lambda: ours.upfirdn([1.0], t, mode="wrap"), ArgumentError, "mode='wrap'"),
        (lambda: ours.resample(t, 0), ArgumentError, "0 samples"),
        (lambda: ours.decimate(t, 2, ftype="other"), ArgumentError, "ftype"),
        (lambda: ours.welch(t, nperseg=4, noverlap=4), ArgumentError, "noverlap"),
        (lambda: ours.stft(t, nperseg=4, scaling="other"), ArgumentError, "scaling"),
        (lambda: ours.get_window(("hann", t[0]), 4), ArgumentError, "'hann'"),
    ]
    for f, error, message in cases:
        if error is None:
            assert f().dtype == np.float64  # lists of Python floats are float64
            continue
        with pytest.raises(error, match=message) as caught:
            f()
        assert "test_signal.py" in str(caught.value)
    half = wg.tensor(np.ones(4, np.float16))
    with pytest.raises(DtypeError, match="float16"):
        ours.lfilter(half, half, half)
