"""Waveforms, median and Wiener filters, IIR design, frequency responses, against SciPy's."""

import numpy as np
import pytest
from scipy import signal as theirs

import wengert as wg
from wengert.scipy import signal as ours

RNG = np.random.default_rng(4)
T = np.array([0.11, 0.37, 0.62, 0.93])
X = RNG.uniform(size=9)
M = RNG.uniform(size=(5, 4))


def assert_agrees(f, g, *args, order=1):
    got, want = wg.vjp(f, *args)[0], g(*args)
    for a, b in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    wg.check_grads(f, args, order=order, entries=False)


@pytest.mark.parametrize("method", ["linear", "quadratic", "logarithmic", "hyperbolic"])
def test_chirps(method):
    args = (T, np.float64(0.7), np.float64(1.3), np.float64(1.9), np.float64(20.0))
    for vertex in (True, False) if method == "quadratic" else (True,):
        assert_agrees(
            lambda t, a, b, c, d, v=vertex: ours.chirp(t, a, b, c, method, d, v),
            lambda t, a, b, c, d, v=vertex: theirs.chirp(t, a, b, c, method, d, v),
            *args,
        )


@pytest.mark.parametrize("method", ["logarithmic", "hyperbolic"])
def test_chirps_of_constant_frequency(method):
    """Where f0 == f1, SciPy's formula is 0 / 0; its limit is a cosine."""
    f0, t1 = np.float64(1.2), np.float64(1.3)
    assert_agrees(
        lambda t: ours.chirp(t, f0, t1, f0, method), lambda t: np.cos(2 * np.pi * f0 * t), T
    )

    def of_end(f1):
        return ours.chirp(T, f0, t1, f1, method)

    assert np.all(np.isfinite(wg.jvp(of_end, (f0,), (1.0,))[1]))
    wg.check_grads(of_end, (f0,), order=2, entries=False)


def test_a_hyperbolic_chirp_beyond_its_pole():
    args = (np.array([0.4, 2.9, 3.7]), np.float64(0.7), np.float64(1.3), np.float64(1.9))
    assert_agrees(
        lambda *a: ours.chirp(*a, "hyperbolic"), lambda *a: theirs.chirp(*a, "hyperbolic"), *args
    )


def test_transformed_zeros_are_in_the_order_of_scipy():
    """The dtype of the poles decides the sign of zero, which decides the branch of the sqrt."""
    z, p = np.array([-0.31, -0.72]), np.array([-0.64 - 0.64j, -0.27 - 0.27j, -0.83 - 0.83j])
    rest = (-0.72, -0.27, -0.55)
    for our, other in ((ours.lp2bp_zpk, theirs.lp2bp_zpk), (ours.lp2bs_zpk, theirs.lp2bs_zpk)):
        got = wg.vjp(lambda z, p, f=our: f(z, p, *rest), z, p)[0]
        for a, b in zip(got, other(z, p, *rest), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_waves():
    assert_agrees(lambda t: ours.sawtooth(9 * t, 0.6), lambda t: theirs.sawtooth(9 * t, 0.6), T)
    assert_agrees(ours.sawtooth, theirs.sawtooth, -7.0 * T, np.float64(0.35))
    for width in (0.0, 1.0):
        slope = wg.vjp(lambda t, w=width: ours.sawtooth(t, w), 5 * T)[0]
        np.testing.assert_allclose(slope, theirs.sawtooth(5 * T, width), rtol=1e-12)
    got = wg.vjp(lambda t: ours.square(t, 0.3), 9 * T)[0]
    np.testing.assert_array_equal(got, theirs.square(9 * T, 0.3))
    assert_agrees(
        lambda t, f, w: ours.gausspulse(t, f, w, retquad=True, retenv=True),
        lambda t, f, w: theirs.gausspulse(t, f, w, retquad=True, retenv=True),
        T,
        np.float64(1.7),
        np.float64(0.6),
    )
    assert_agrees(ours.vectorstrength, theirs.vectorstrength, X, np.float64(0.3))
    assert_agrees(ours.vectorstrength, theirs.vectorstrength, X, np.array([0.3, 0.45]))


def test_median_and_wiener_filters():
    assert_agrees(lambda x: ours.medfilt(x, 5), lambda x: theirs.medfilt(x, 5), X)
    assert_agrees(lambda x: ours.medfilt2d(x, (3, 1)), lambda x: theirs.medfilt2d(x, (3, 1)), M)
    assert_agrees(lambda x: ours.wiener(x, 3), lambda x: theirs.wiener(x, 3), X)
    assert_agrees(
        lambda x, n: ours.wiener(x, (3, 3), n),
        lambda x, n: theirs.wiener(x, (3, 3), n),
        M,
        np.float64(0.05),
    )
    with pytest.raises(wg.errors.ArgumentError, match="odd"):
        ours.medfilt(wg.tensor(X), 4)


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["lowpass", "highpass", "bandpass", "bandstop"])
def test_designs(kind):
    """With respect to cutoff and sampling frequency, digital and analog, and through lfilter."""
    Wn = np.array([0.2, 0.45]) if kind.startswith("band") else np.float64(0.3)
    for name, given in (("butter", (3,)), ("cheby1", (2, 0.7)), ("cheby2", (3, 25.0))):
        our, their = getattr(ours, name), getattr(theirs, name)
        for analog in (False, True):
            assert_agrees(
                lambda w, m=our, a=analog, g=given: m(*g, w, kind, a),
                lambda w, m=their, a=analog, g=given: m(*g, w, kind, a),
                Wn,
            )
    assert_agrees(
        lambda w, fs: ours.butter(2, w, kind, fs=fs if fs.ndim else fs[()]),
        lambda w, fs: theirs.butter(2, w, kind, fs=float(fs)),
        Wn * 10.0,
        np.float64(27.0),
    )
    signal = RNG.normal(size=40)

    def energy(w):
        return np.sum(ours.lfilter(*ours.butter(2, w, kind), signal) ** 2)

    wg.check_grads(energy, (Wn,), order=1, entries=False)
    np.testing.assert_allclose(wg.jit(wg.grad(energy))(Wn), wg.grad(energy)(Wn), rtol=1e-10)


def test_errors_of_designs():
    w = wg.tensor(0.3)
    for call in (
        lambda: ours.butter(2, w, output="sos"),
        lambda: ours.butter(2, w, "bandpass"),
        lambda: ours.lp2lp_zpk(wg.tensor(X), T, 1.0),
    ):
        with pytest.raises(wg.errors.ArgumentError):
            call()


def test_transformations_of_poles_and_zeros():
    z, p = np.array([-0.3 + 0.1j, -0.3 - 0.1j]), np.array([-0.5, -0.4 + 1j, -0.4 - 1j])
    for name, given in (
        ("lp2lp_zpk", (0.7,)),
        ("lp2hp_zpk", (0.7,)),
        ("lp2bp_zpk", (0.7, 0.3)),
        ("lp2bs_zpk", (0.7, 0.3)),
        ("bilinear_zpk", (2.5,)),
    ):
        our, their = getattr(ours, name), getattr(theirs, name)
        args = (z, p, np.float64(1.3), *map(np.float64, given))
        got, want = wg.vjp(our, *args)[0], their(*args)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
        free = args[2:] if name != "bilinear_zpk" else args[2:3]  # SciPy requires a float fs
        wg.check_grads(
            lambda *a, m=our, g=args: m(z, p, *a, *g[2 + len(a) :]), free, order=1, entries=False
        )


def test_responses():
    b, a, w = np.array([0.4, 0.3]), np.array([1.0, -0.5, 0.2]), np.linspace(0.1, 3.0, 5)
    assert_agrees(ours.freqs, theirs.freqs, b, a, w)
    assert_agrees(
        lambda b, a, w: ours.group_delay((b, a), w)[1],
        lambda b, a, w: theirs.group_delay((b, a), w)[1],
        b,
        a,
        w,
    )
    z, p = np.array([0.3 + 0.1j]), np.array([0.2 - 0.4j, 0.5 + 0j])
    assert_agrees(ours.freqz_zpk, theirs.freqz_zpk, z, p, np.float64(0.7), w)
    sos = np.array([[0.4, 0.3, 0.1, 1.0, -0.5, 0.2]])
    assert_agrees(
        lambda b, a, w: ours.freqz_sos(np.concatenate([b, np.ones((1, 1)), a], axis=1), w),
        lambda b, a, w: theirs.freqz_sos(np.concatenate([b, np.ones((1, 1)), a], axis=1), w),
        sos[:, :3],
        sos[:, 4:],
        w,
    )
    with pytest.raises(wg.errors.ArgumentError, match="array"):
        ours.freqs(wg.tensor(b), a)
