"""Fourier transforms: values are bitwise NumPy's, derivatives agree with finite differences.

Every entry of CASES runs on plain arrays and on tensors, through check_grads in both modes to
second order, along rows, in a graph and compiled; named tests say what each line of a half spectrum
receives, what single precision keeps and what is refused.
"""

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert.errors import ArgumentError, DtypeError, ShapeError
from wengert.testing import check_grads

fft = np.fft

REAL = {
    "fft": (fft.fft, (2, 4)),
    "fft odd": (lambda x: fft.fft(x, norm="forward"), (5,)),
    "fft padded": (lambda x: fft.fft(x, 6, axis=0), (4, 2)),
    "fft cropped": (lambda x: fft.fft(x, n=3, norm="ortho"), (5,)),
    "ifft": (lambda x: fft.ifft(x, axis=0), (3, 2)),
    "rfft even": (fft.rfft, (2, 4)),
    "rfft odd": (lambda x: fft.rfft(x, norm="ortho"), (5,)),
    "rfft padded": (lambda x: fft.rfft(x, 7), (4,)),
    "rfft cropped": (lambda x: fft.rfft(x, 4, axis=0, norm="forward"), (6, 2)),
    "irfft": (fft.irfft, (4,)),
    "ihfft": (lambda x: fft.ihfft(x, norm="ortho"), (2, 4)),
    "ihfft odd": (lambda x: fft.ihfft(x, 5, 0), (3, 2)),
    "rfft2": (fft.rfft2, (2, 3, 4)),
    "rfft2 sized": (lambda x: fft.rfft2(x, s=(3, 5), norm="ortho"), (4, 3)),
    "rfftn": (fft.rfftn, (3, 2, 2)),
    "rfftn axes": (lambda x: fft.rfftn(x, axes=(2, 0), norm="forward"), (3, 2, 3)),
    "fftshift": (fft.fftshift, (3, 4)),
    "ifftshift": (lambda x: fft.ifftshift(x, axes=1), (2, 5)),
    "ifftshift all": (lambda x: fft.ifftshift(fft.fftshift(x, axes=[0, 1])), (3, 5)),
}
COMPLEX = {
    "fft": REAL["fft"],
    "ifft padded": (lambda x: fft.ifft(x, 5, norm="ortho"), (3,)),
    "ifft cropped": (lambda x: fft.ifft(x, 2, axis=0, norm="forward"), (3, 2)),
    "irfft even": (fft.irfft, (2, 3)),
    "irfft odd": (lambda x: fft.irfft(x, 5, norm="ortho"), (3,)),
    "irfft padded": (lambda x: fft.irfft(x, 9, axis=0), (3, 2)),
    "irfft cropped": (lambda x: fft.irfft(x, 4, norm="forward"), (5,)),
    "irfft cropped odd": (lambda x: fft.irfft(x, 3), (5,)),
    "irfft one": (lambda x: fft.irfft(x, 1), (3,)),
    "hfft": (fft.hfft, (2, 3)),
    "hfft odd": (lambda x: fft.hfft(x, 5, norm="ortho"), (3,)),
    "fft2": (fft.fft2, (2, 3, 2)),
    "ifft2 sized": (lambda x: fft.ifft2(x, (4, 2)), (3, 3)),
    "fftn": (fft.fftn, (2, 3)),
    "fftn sized": (lambda x: fft.fftn(x, s=(3, -1), axes=(0, 1)), (2, 2)),
    "fftn none": (lambda x: fft.fftn(x, axes=()), (2,)),
    "fftn twice": (lambda x: fft.fftn(x, axes=(0, 0), norm="ortho"), (3,)),
    "ifftn": (lambda x: fft.ifftn(x, axes=(1,), norm="forward"), (2, 3)),
    "irfft2": (fft.irfft2, (3, 3)),
    "irfftn": (lambda x: fft.irfftn(x, s=(2, 5), axes=(1, 0)), (3, 3)),
}
CASES = {
    **{f"{name}, real": (case, float) for name, case in REAL.items()},
    **{f"{name}, complex": (case, complex) for name, case in COMPLEX.items()},
}


def draw(rng, shape, kind):
    x = rng.normal(size=shape)
    return x + 1j * rng.normal(size=shape) if kind is complex else x


def energy(f):
    """A real function that depends on all parts of the result."""

    def total(x):
        y = f(x)
        weights = np.cos(1.0 + np.arange(y.size)).reshape(y.shape)
        return np.sum(weights * y.real**2) + np.sum(weights * y.imag)

    return total


@pytest.mark.parametrize("name", CASES)
def test_value_and_derivatives(name, rng):
    (f, shape), kind = CASES[name]
    x = draw(rng, shape, kind)
    want, got = f(x), f(wg.tensor(x, requires_grad=True))
    assert isinstance(got, wg.Tensor) and got.dtype == want.dtype
    assert np.array_equal(got.numpy(), want)
    check_grads(f, (x,), order=2)
    slope = wg.grad(energy(f))
    np.testing.assert_allclose(wg.jit(slope)(x), slope(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_rows_and_single_precision(name, rng):
    (f, shape), kind = CASES[name]
    rows = draw(rng, (3, *shape), kind)
    assert np.allclose(wg.vmap(f)(rows), np.stack([f(x) for x in rows]), rtol=1e-13, atol=1e-13)
    single = rows[0].astype(np.complex64 if kind is complex else np.float32)
    want = f(single)
    got = f(wg.tensor(single, requires_grad=True))
    assert got.dtype == want.dtype and np.array_equal(got.numpy(), want)
    slope = wg.grad(energy(f))
    assert slope(single).dtype == single.dtype
    np.testing.assert_allclose(
        slope(single), slope(single.astype(rows.dtype)), rtol=1e-4, atol=1e-4
    )


def test_all_names_are_numpys():
    for name in np.fft.__all__:
        assert callable(getattr(wnp.fft, name))
    x = np.array([1.0, 2.0, 4.0])
    assert np.array_equal(wnp.fft.fft(x), np.fft.fft(x))
    assert type(wnp.fft.rfftn(x)) is np.ndarray


def test_ignored_imaginary_parts_have_zero_gradient(rng):
    y = draw(rng, (4,), complex)
    bar = wg.grad(lambda y: np.sum(np.arange(6.0) * fft.irfft(y)))(y)
    assert bar[0].imag == 0.0 and bar[-1].imag == 0.0
    assert np.all(bar[1:-1].imag != 0.0)
    bar = wg.grad(lambda y: np.sum(np.arange(7.0) * fft.irfft(y, 7)))(y)
    assert bar[0].imag == 0.0 and bar[-1].imag != 0.0  # of an odd length no line is in the middle


def test_parseval(rng):
    x = draw(rng, (3, 7), complex)
    bar = wg.grad(lambda x: np.sum(np.abs(fft.fftn(x)) ** 2))(x)
    np.testing.assert_allclose(bar, 2 * x.size * x, rtol=1e-13)


def test_derivative_of_a_transform_is_the_transform(rng):
    x, v = draw(rng, (2, 5), float)
    assert np.array_equal(wg.jvp(fft.rfft, (x,), (v,))[1], fft.rfft(v))
    t = draw(rng, (3,), complex)
    n = 4  # irfft with the inner lines halved is the transpose of rfft
    pulled = wg.vjp(fft.rfft, x[:n])[1](t)[0]
    np.testing.assert_allclose(pulled, n * fft.irfft(t * [1.0, 0.5, 1.0]), rtol=1e-13, atol=1e-13)


def test_symbolic_sizes(rng):
    programs = {
        "fft": (fft.fft, float),
        "rfft": (fft.rfft, float),
        "irfft": (fft.irfft, complex),
        "hfft": (fft.hfft, complex),
        "shift": (lambda x: fft.fftshift(fft.fft(x)), float),
        "padded": (lambda x: fft.ifft(fft.fft(x, 2 * x.shape[0])), complex),
        "derivative": (lambda x: fft.ifft(wnp.fft.fftfreq(x.shape[0]) * fft.fft(x)), float),
        "half": (lambda x: wnp.fft.rfftfreq(x.shape[0], 2.0) * fft.rfft(x), float),
    }
    for name, (f, kind) in programs.items():
        graph = wg.trace(wg.grad(energy_by_place(f)))(wg.spec(("n",), np.dtype(kind)))
        for n in (3, 4, 9):
            x = draw(rng, (n,), kind)
            want = wg.grad(energy_by_place(f))(x)
            np.testing.assert_allclose(graph(x), want, rtol=1e-12, atol=1e-12, err_msg=name)


def energy_by_place(f):
    def total(x):
        y = f(x)
        weights = np.cos(np.cumsum(0 * y.real + 1))
        return np.sum(weights * y.real**2) + np.sum(weights * y.imag)

    return total


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies_are_numpys_and_vary_with_the_distance(n):
    for ours, numpys in ((wnp.fft.fftfreq, fft.fftfreq), (wnp.fft.rfftfreq, fft.rfftfreq)):
        assert np.array_equal(ours(n, 0.3), numpys(n, 0.3))
        slope = wg.jacobian(lambda d, ours=ours: ours(n, d))(0.3)
        np.testing.assert_allclose(slope, -numpys(n, 0.3) / 0.3, rtol=1e-13)


def test_arrays_without_elements_pass():
    x = np.zeros((0, 3))
    assert fft.fft(wg.tensor(x)).shape == (0, 3)
    assert wg.grad(lambda x: np.sum(fft.rfft(x).real))(x).shape == (0, 3)
    none = np.zeros((2, 0))
    for f in (lambda x: fft.rfft(x, 5), lambda x: fft.irfft(x, 4), lambda x: fft.fft(x, 3)):
        assert not f(wg.tensor(none)).numpy().any() and not wg.jit(f)(none).any()
        assert wg.grad(lambda x, f=f: np.sum(f(x).real))(none).shape == (2, 0)
    with pytest.raises(ShapeError, match="0 numbers"):
        fft.fft(wg.tensor(np.zeros(0)))


def test_integers_and_lists():
    x = wg.tensor(np.arange(4))
    assert np.array_equal(fft.fft(x).numpy(), fft.fft(np.arange(4)))
    assert wnp.fft.fft([1.0, 2.0]).tolist() == [3.0, -1.0]


def test_out():
    x, out = wg.tensor(np.arange(4.0)), wg.tensor(np.zeros(3, complex))
    assert wnp.fft.rfft(x, out=out) is out
    assert np.array_equal(out.numpy(), fft.rfft(np.arange(4.0)))


def test_errors():
    x = wg.tensor(np.ones(4))
    refused = [
        (lambda: fft.fft(x, n=0), ShapeError, "0 numbers"),
        (lambda: fft.irfft(x[:1]), ShapeError, "0 numbers"),
        (lambda: fft.fft(x, norm="none"), ArgumentError, "norm='none'"),
        (lambda: fft.fftn(x, s=(2, 2), axes=(0,)), ShapeError, "2 lengths"),
        (lambda: fft.rfftn(x, axes=()), ShapeError, "no axis"),
        (lambda: fft.rfft(x + 1j), DtypeError, "rfft"),
    ]
    for f, error, words in refused:
        with pytest.raises(error, match=words) as caught:
            f()
        assert "test_fft.py" in str(caught.value)
        assert isinstance(caught.value, ValueError | TypeError)
    with pytest.raises(np.exceptions.AxisError):
        fft.fft(x, axis=1)
    with pytest.raises(TypeError):
        fft.fft(x, n=2.5)
