"""Faults where caller and tape shared what only one of them should have."""

import numpy as np
import pytest

import wengert as wg

X = np.array([0.1, 0.2, 0.3])
ONES = np.ones(3)


def test_writing_to_the_output_of_vjp_changed_the_pullback():
    y, pull = wg.vjp(np.exp, X)
    y *= 0.0
    assert np.array_equal(pull(ONES)[0], np.exp(X))


def test_writing_to_the_aux_of_vjp_changed_the_pullback():
    def f(x):
        e = np.exp(x)
        return e * e, {"e": e}

    _, pull, aux = wg.vjp(f, X, has_aux=True)
    aux["e"] *= 0.0
    assert np.allclose(pull(ONES)[0], 2 * np.exp(2 * X))


def test_writing_to_the_output_of_linearize_changed_the_derivative():
    y, push = wg.linearize(np.exp, X)
    y *= 0.0
    assert np.array_equal(push(ONES), np.exp(X))


def test_checkpoint_lost_the_gradient_of_a_captured_tensor_written_to_since():
    w = wg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = wg.tensor(X, requires_grad=True)
    y = wg.checkpoint(lambda x: np.sum(w * w * x))(x)
    with wg.no_grad():
        w *= 10.0
    with pytest.raises(wg.errors.MutatedError, match="run again for the derivative"):
        y.backward()


def test_checkpoint_of_a_random_function_gave_the_gradient_of_another_draw():
    rng = np.random.default_rng(0)
    f = wg.checkpoint(lambda x: np.sum(np.where(rng.random(3) < 0.5, x, 0.0)))
    with pytest.raises(wg.errors.MutatedError, match="random"):
        wg.grad(f)(X)


def test_checkpoint_of_something_not_finite_is_not_taken_for_another_run():
    with np.errstate(all="ignore"):
        slope = wg.grad(wg.checkpoint(lambda x: np.sum(np.log(x))))(np.array([0.0, 1.0]))
    assert slope.tolist() == [np.inf, 1.0]


def test_write_through_a_long_chain_of_views_exceeded_the_recursion_limit():
    def f(x):
        base = view = x * 1.0
        for _ in range(3000):
            view = view[:]
        view[0] = 3.0
        return np.sum(base**2)

    assert wg.grad(f)(X).tolist() == [0.0, 0.4, 0.6]


def test_checkpoint_lost_what_the_function_wrote_to_its_argument():
    def zero_first(y):
        y[0] = 0.0
        return np.sum(y * y)

    def f(x):
        z = x * 1.0
        return wg.checkpoint(zero_first)(z) + z[0]

    assert np.isclose(f(X), 0.13)
    with pytest.raises(
        wg.errors.MutatedError, match=r"Copy the argument first .* \(at .*test_tape"
    ):
        wg.grad(f)(X)
