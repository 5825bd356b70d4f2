"""Faults of Jacobians of complex and of integers."""

import numpy as np
import pytest

import wengert as wg

X = np.array([0.1, 0.2])
Z = np.array([1.0 + 1.0j, 2.0j])
MODES = ["auto", "fwd", "rev"]


@pytest.mark.parametrize("mode", MODES)
def test_complex_outputs_of_real_inputs_were_zero_in_reverse_mode(mode):
    def f(x):
        return np.exp(1j * x) * x[0]

    h = 1e-6
    numeric = np.stack([(f(X + h * e) - f(X - h * e)) / (2 * h) for e in np.eye(2)], axis=-1)
    assert np.allclose(wg.jacobian(f, mode=mode)(X), numeric)
    assert np.allclose(wg.jacobian(lambda x: np.sum(f(x)), mode=mode)(X), numeric.sum(0))


@pytest.mark.parametrize("mode", MODES)
def test_real_outputs_of_complex_inputs_lost_their_imaginary_part_in_forward_mode(mode):
    square = wg.jacobian(lambda z: np.abs(z) ** 2, mode=mode)(Z)
    assert np.allclose(square, np.diag(2 * Z))
    rows = wg.jacobian(lambda z: {"r": z.real * z[0].imag, "one": np.ones(1)}, mode=mode)(Z)
    by_hand = [wg.grad(lambda z, k=k: z.real[k] * z[0].imag)(Z) for k in range(2)]
    assert np.allclose(rows["r"], by_hand)
    assert not rows["one"].any()


def test_complex_outputs_of_complex_inputs_depended_on_the_mode():
    f = lambda z: np.sum(z**2) * np.ones(1)  # noqa: E731
    assert np.allclose(wg.jacobian(f)(Z), [2 * Z])  # more inputs than outputs: was reverse
    with pytest.raises(wg.errors.NotDifferentiableError, match=r'mode="fwd".*test_jacobians'):
        wg.jacrev(f)(Z)


@pytest.mark.parametrize("mode", MODES)
def test_outputs_that_are_integers_have_a_derivative_of_float_zeros(mode):
    rows = wg.jacobian(lambda x: {"n": np.argmax(x), "b": x > 0, "y": x}, mode=mode)(X)
    assert {k: (v.dtype.kind, v.shape) for k, v in rows.items()} == {
        "n": ("f", (2,)),
        "b": ("f", (2, 2)),
        "y": ("f", (2, 2)),
    }
    assert not rows["n"].any() and not rows["b"].any()


def test_second_derivatives_through_a_complex_jacobian():
    def f(x):
        return np.sum(np.abs(wg.jacobian(lambda x: np.exp(1j * x**2))(x)) ** 2)

    assert np.allclose(wg.grad(f)(X), 8 * X)  # |2ix exp(ix^2)|^2 = 4x^2
