"""Derivatives of stages of large sparse systems: one factorization for the stages of a step."""

import numpy as np
import pytest

import wengert as wg
from wengert.integrate import solve
from wengert.scipy.sparse.linalg.factors import counts

SIDE = 16
Y0 = np.sin(np.arange(SIDE**2.0))
P = np.array([0.3, 0.8])
OPTIONS = {"method": "kvaerno3", "rtol": 1e-4, "atol": 1e-6}


def reaction(t, y, p):
    """A reaction on a periodic grid, with diffusion."""
    u = y.reshape(SIDE, SIDE)
    near = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
    return (p[0] * 30.0 * (near - 4.0 * u) + p[1] * u - u**3).reshape(-1)


def last(p):
    return solve(reaction, (0.0, 0.2), Y0, (p,), **OPTIONS)


def total(p):
    return np.sum(last(p).y ** 2)


gradient = wg.jit(wg.grad(total))  # compiled once for all tests


def of_bdf(p):
    found = solve(reaction, (0.0, 0.2), Y0, (p,), method="BDF", rtol=1e-4, atol=1e-6)
    return np.sum(found.y**2), (found.nlu, found.n_steps)


def test_gradients_with_kept_factors():
    before = counts.factorized
    slope, (factorizations, steps) = wg.jit(wg.grad(of_bdf, has_aux=True))(P)
    # Those of the solution; the backward pass finds them.
    assert counts.factorized - before <= factorizations + 2 < steps
    np.testing.assert_allclose(slope, gradient(P), rtol=0.05)


@pytest.mark.slow
def test_gradients_with_kept_factors_in_both_modes():
    direction = np.array([1.0, -0.5])
    slope, _ = wg.grad(of_bdf, has_aux=True)(P)
    _, dot = wg.jvp(lambda p: of_bdf(p)[0], (P,), (direction,))
    np.testing.assert_allclose(slope @ direction, dot, rtol=1e-10)


@pytest.mark.slow
def test_eager_gradients():
    np.testing.assert_allclose(wg.grad(total)(P), gradient(P), rtol=1e-10)


def test_gradients_in_both_modes_and_their_factorizations():
    slope = gradient(P)
    np.testing.assert_allclose(slope, wg.jit(wg.jacfwd(total))(P), rtol=1e-10)
    tight = {"method": "vern7", "rtol": 1e-10, "atol": 1e-12}
    exact = wg.grad(lambda p: np.sum(solve(reaction, (0.0, 0.2), Y0, (p,), **tight).y ** 2))(P)
    np.testing.assert_allclose(slope, exact, rtol=1e-3)
    found, before = last(P * 1.01), counts.factorized
    gradient(P * 1.01)
    # About one in the solution, and one in the backward pass, of each step of three stages.
    assert counts.factorized - before < 2.5 * found.n_steps


def test_second_derivatives():
    direction = np.array([1.0, -0.5])
    found, h = wg.jit(lambda p: wg.hvp(total, (p,), (direction,)))(P), 1e-5
    expected = (gradient(P + h * direction) - gradient(P - h * direction)) / (2 * h)
    # Differences contain the changes of the step sizes.
    np.testing.assert_allclose(found, expected, rtol=2e-2)


def test_batches_are_rows():
    rows = P * np.array([1.0, 1.1])[:, None]
    found = wg.jit(wg.vmap(wg.grad(total)))(rows)
    np.testing.assert_allclose(found, [gradient(p) for p in rows], rtol=1e-8)
