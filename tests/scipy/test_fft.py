"""scipy.fft: Fourier, cosine and sine transforms of all types, norms and end conventions.

Values are compared with SciPy's.  As transforms are linear, derivatives are correct if the two
modes are transposes of each other; a few are compared with differences as well.
"""

from itertools import product

import numpy as np
import pytest
import scipy.fft

import wengert as wg
from wengert.errors import ArgumentError, ShapeError
from wengert.scipy.fft.dct_dst import cosines, sines
from wengert.testing import check_grads

ours, theirs = wg.scipy.fft, scipy.fft
NORMS = (None, "ortho", "forward")


def assert_same(got, want):
    assert isinstance(got, wg.Tensor)
    assert got.shape == want.shape and got.dtype == want.dtype
    rtol = 1e-5 if want.dtype in (np.float32, np.complex64) else 1e-13
    np.testing.assert_allclose(got.numpy(), want, rtol=rtol, atol=rtol * np.max(np.abs(want)))


def assert_modes_are_transposes(f, x, rng):
    """Check <t, f(v)> = <pullback of t, v>."""
    y, pull = wg.vjp(f, x)
    t = rng.normal(size=y.shape) + (1j * rng.normal(size=y.shape) if y.dtype.kind == "c" else 0)
    (bar,), v = pull(t.astype(y.dtype)), rng.normal(size=x.shape)
    moved = wg.jvp(f, (x,), (v.astype(x.dtype),))[1]
    np.testing.assert_allclose(moved, f(v.astype(x.dtype)), rtol=1e-12, atol=1e-12)
    left, right = np.sum(np.conj(t) * moved).real, np.sum(np.conj(bar) * v).real
    np.testing.assert_allclose(left, right, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_fourier_transforms(name, rng):
    function, scipy_function = getattr(ours, name), getattr(theirs, name)
    kind = complex if name in ("fft", "ifft", "irfft", "hfft") else float
    x = rng.normal(size=(4, 3)).astype(kind)
    x = x + 1j * rng.normal(size=(4, 3)) if kind is complex else x
    for n, axis, norm in product((None, 3, 6), (0, -1), NORMS):
        assert_same(function(wg.tensor(x), n, axis, norm), scipy_function(x, n, axis, norm))
    assert_modes_are_transposes(function, x, rng)
    for many in (f"{name}2", f"{name}n"):
        function, scipy_function = getattr(ours, many), getattr(theirs, many)
        for s, norm in product((None, (3, 5)), NORMS):
            assert_same(function(wg.tensor(x), s, norm=norm), scipy_function(x, s, norm=norm))
            assert_same(function(wg.tensor(x), s, (1, 0), norm), scipy_function(x, s, (1, 0), norm))
        assert np.array_equal(function(x), scipy_function(x))
        assert_modes_are_transposes(function, x, rng)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
def test_cosine_and_sine_transforms(name, rng):
    function, scipy_function = getattr(ours, name), getattr(theirs, name)
    x = rng.normal(size=(5, 4))
    for type, n, norm, ends in product((1, 2, 3, 4), (None, 3, 7), NORMS, (None, True, False)):
        f = lambda x, t=type, n=n, norm=norm, e=ends: function(x, t, n, 0, norm, orthogonalize=e)  # noqa: E731
        assert_same(f(wg.tensor(x)), scipy_function(x, type, n, 0, norm, orthogonalize=ends))
        assert_modes_are_transposes(f, x, rng)
    for y in (x.astype(np.float32), x + 1j * x[::-1], np.arange(4)):
        assert_same(function(wg.tensor(y)), scipy_function(y))
    many, theirs_many = getattr(ours, f"{name}n"), getattr(theirs, f"{name}n")
    for options in ({}, {"axes": 1}, {"s": (3, 6)}, {"s": 3, "norm": "ortho"}, {"type": 4}):
        assert_same(many(wg.tensor(x), **options), theirs_many(x, **options))
    assert np.array_equal(many(x), theirs_many(x))


@pytest.mark.parametrize("op", [cosines, sines])
def test_operations_agree_with_their_matrices(op, rng):
    x = rng.normal(size=(2, 4))
    for type, n, keep, norm in product((1, 2, 3, 4), (2, 4, 5), (2, 6), ("ortho", "backward")):
        for ends, transposed in product((True, False), (True, False)):
            options = {"type": type, "n": n, "axis": 1, "norm": norm, "keep": keep}
            options |= {"orthogonalize": ends, "transposed": transposed}
            np.testing.assert_allclose(op(x, **options), op.oracle(x, **options), atol=1e-13)


def test_derivatives_batching_and_compiled(rng):
    x = rng.normal(size=(3, 4))

    def smooth(x):
        return np.sum(ours.idct(ours.dct(x) / (1.0 + np.arange(4.0))) ** 3)

    check_grads(smooth, (x[0],), order=2, entries=False)
    slope = wg.grad(smooth)
    np.testing.assert_allclose(wg.vmap(slope)(x), [slope(row) for row in x], rtol=1e-12)
    np.testing.assert_allclose(wg.jit(slope)(x[0]), slope(x[0]), rtol=1e-12)
    graph = wg.trace(wg.grad(lambda x: np.sum(ours.dst(x, 3) ** 2)))(wg.spec(("n",)))
    want = wg.grad(lambda x: np.sum(ours.dst(x, 3) ** 2))(x[0])
    np.testing.assert_allclose(graph(x[0]), want, rtol=1e-12)


def test_names_and_errors():
    assert set(theirs.__all__) - set(ours.__all__) == {
        "register_backend", "set_backend", "set_global_backend", "skip_backend",
    }  # fmt: skip
    t = wg.tensor(np.ones(4))
    cases = [
        (lambda: ours.dct(t, 5), ArgumentError, "type 5"),
        (lambda: ours.dct(t, norm="other"), ArgumentError, "norm='other'"),
        (lambda: ours.dct(t, 1, 1), ShapeError, "length 1"),
        (lambda: ours.dst(t[:0]), ShapeError, "length 0"),
        (lambda: ours.dctn(t, s=(2, 2), axes=(0,)), ShapeError, "2 lengths"),
        (lambda: ours.hfftn(t, norm="other"), ArgumentError, "norm='other'"),
        (lambda: ours.fft(t, 0), ShapeError, "0 numbers"),
    ]
    for f, error, message in cases:
        with pytest.raises(error, match=message) as caught:
            f()
        assert "test_fft.py" in str(caught.value)
    with pytest.raises(np.exceptions.AxisError):
        ours.dct(t, axis=1)
