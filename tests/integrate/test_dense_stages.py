"""Derivatives of stages of dense systems: one factorization for the stages of a step."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.implicit.linear_methods import MatrixStructure
from wengert.integrate import solve
from wengert.scipy.integrate.ivp.stage_equations import NearMatrix, stage_root
from wengert.scipy.integrate.ivp.stage_systems import near_factors

N = 40
RNG = np.random.default_rng(0)
WEIGHTS = RNG.normal(size=(N, N)) / np.sqrt(N)
DECAY = np.logspace(0.0, 3.0, N)
Y0 = RNG.normal(size=N)
P = np.array([0.9, 1.1])


def network(t, y, p):
    return p[0] * np.tanh(WEIGHTS @ y) - DECAY * (y - p[1] * np.cos(t))


def total(p, method="kvaerno3", tol=1e-4):
    found = solve(network, (0.0, 0.5), Y0, (p,), method=method, rtol=tol, atol=tol)
    return np.sum(found.y**2)


# ---- one system --------------------------------------------------------------------------------


def root_of(a, near):
    """The root of ``a x = sin(b)`` as a function of b, with the factors of another matrix."""

    def solution(b):
        # not differentiated
        x = wg.stop_gradient(np.linalg.solve(a, np.sin(b)))
        factors = NearMatrix(MatrixStructure("dense", len(a)), near_factors(near))
        return stage_root(lambda x: a @ x - np.sin(b), x, factors)

    return solution


@pytest.mark.parametrize("change", [0.0, 1e-3, 0.05, 3.0])
@pytest.mark.parametrize("unit", [1.0, 1.0 + 0.5j])
def test_a_system_has_the_accuracy_of_a_factorization(change, unit):
    rng = np.random.default_rng(1)
    a = (np.eye(N) + 0.3 * rng.normal(size=(N, N)) / np.sqrt(N)) * unit
    near = a + change * rng.normal(size=(N, N)) / np.sqrt(N)
    b, cotangent = rng.normal(size=N) * unit, rng.normal(size=N) * unit
    _, pull = wg.vjp(root_of(a, near), b)
    lam = np.linalg.solve(a.conj().T, cotangent)
    np.testing.assert_allclose(pull(cotangent)[0], np.conj(np.cos(b)) * lam, rtol=1e-11, atol=1e-12)
    _, dot = wg.jvp(root_of(a, near), (b,), (cotangent,))
    np.testing.assert_allclose(
        dot, np.linalg.solve(a, np.cos(b) * cotangent), rtol=1e-11, atol=1e-12
    )


@pytest.mark.parametrize("which", ["near", "own", "both"])
def test_nearly_singular_matrices(which):
    rng = np.random.default_rng(2)
    q, _ = np.linalg.qr(rng.normal(size=(N, N)))
    sizes = np.linspace(1.0, 2.0, N)
    sizes[0] = 1e-13
    singular, regular = (q * sizes) @ q.T, (q * np.linspace(1.0, 2.0, N)) @ q.T
    a, near = {
        "near": (regular, singular), "own": (singular, regular), "both": (singular, singular),
    }[which]  # fmt: skip
    cotangent, b = rng.normal(size=N), rng.normal(size=N)
    _, pull = wg.vjp(root_of(a, near), b)
    bar = pull(cotangent)[0] / np.cos(b)
    # The residual is small, whatever the size of the solution.
    bound = 1e-13 * (np.linalg.norm(a) * np.linalg.norm(bar) + np.linalg.norm(cotangent))
    assert np.linalg.norm(a.T @ bar - cotangent) < bound
    assert not np.any(pull(np.zeros(N))[0])


def test_exactly_singular_matrices():
    a = np.diag(np.arange(float(N)))
    _, pull = wg.vjp(lambda b: root_of(np.eye(N), a)(b), np.ones(N))
    np.testing.assert_allclose(pull(np.ones(N))[0], np.cos(np.ones(N)))
    factors = near_factors(a)
    assert np.isnan(factors[0][0, 0]) and np.all(np.diag(factors[0])[1:] > 0)


# ---- solutions ---------------------------------------------------------------------------------


def test_gradients():
    direction = np.array([1.0, -0.5])
    slope = wg.jit(wg.grad(total))(P)
    _, dot = wg.jit(lambda p: wg.jvp(total, (p,), (direction,)))(P)
    np.testing.assert_allclose(slope @ direction, dot, rtol=1e-11)


@pytest.mark.slow
def test_gradients_of_exact_solutions_and_batches():
    gradient = wg.jit(wg.grad(total))
    slope = gradient(P)
    np.testing.assert_allclose(slope, wg.jit(wg.jacfwd(total))(P), rtol=1e-11)
    exact = wg.jit(wg.grad(lambda p: total(p, "vern7", 1e-9)))(P)
    np.testing.assert_allclose(slope, exact, rtol=1e-3)
    rows = P * np.array([1.0, 1.1])[:, None]
    found = wg.jit(wg.vmap(wg.grad(total)))(rows)
    np.testing.assert_allclose(found, [gradient(p) for p in rows], rtol=1e-8)


@pytest.mark.slow
def test_second_derivatives():
    gradient, direction, h = wg.jit(wg.grad(total)), np.array([1.0, -0.5]), 1e-5
    found = wg.jit(lambda p: wg.hvp(total, (p,), (direction,)))(P)
    expected = (gradient(P + h * direction) - gradient(P - h * direction)) / (2 * h)
    # Differences contain the changes of the step sizes.
    np.testing.assert_allclose(found, expected, rtol=2e-2)


# The first step has a matrix I - h gamma J that is singular to rounding, and is rejected.
FIRST = {"kvaerno3": 0.435866521508459, "kvaerno5": 0.26, "BDF": 1 / 1.185, "Radau": 1 / 3.6378}


@pytest.mark.parametrize(
    "method", ["BDF", *[pytest.param(m, marks=pytest.mark.slow) for m in FIRST if m != "BDF"]]
)
def test_a_rejected_step_with_a_nearly_singular_matrix(method):
    n, h = 70, 0.5
    q, _ = np.linalg.qr(np.random.default_rng(3).normal(size=(n, n)))
    rates = -np.linspace(0.1, 3.0, n)
    rates[0] = 1.0 / (h * FIRST[method])
    a = (q * rates) @ q.T
    start = q[:, 0] * 0.1 + q[:, 1]

    def total(p, method=method, tol=1e-7, first_step=h):
        options = {"rtol": tol, "atol": tol, "first_step": first_step}
        end = solve(
            lambda t, y, p: p[0] * (a @ y), (0.0, 0.6), start, (p,), method=method, **options
        )
        return np.sum(end.y**2)

    p = np.array([1.0])
    slope = wg.jit(wg.grad(total))(p)
    np.testing.assert_allclose(slope, wg.jit(wg.jacfwd(total))(p), rtol=1e-11)
    exact = wg.jit(wg.grad(lambda p: total(p, "DOP853", 1e-10, 1e-3)))(p)
    np.testing.assert_allclose(slope, exact, rtol=1e-2)
