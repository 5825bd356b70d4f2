"""Stochastic equations: strong orders against exact paths, derivatives of paths, errors."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ArgumentError, ShapeError
from wengert.integrate import solve_sde
from wengert.random import fold_in, normal

KEY = wg.random.key(3)
ORDERS = {"euler_maruyama": 0.5, "milstein": 1.0, "srk": 1.5}


def brownian(key, steps):
    """The Brownian motion at time 1 of the path of a key."""
    return sum(normal(fold_in(key, i), (2, 1))[0, 0] for i in range(steps)) / np.sqrt(steps)


def geometric(key, steps, method):
    found = solve_sde(
        lambda t, y: 0.8 * y,
        lambda t, y: 0.6 * y,
        (0.0, 1.0),
        np.array([1.0]),
        key=key,
        steps=steps,
        method=method,
    )
    return found.y[0], np.exp(0.8 - 0.18 + 0.6 * brownian(key, steps))


def bounded(key, steps, method):
    """Kloeden and Platen, 4.4.46: the solution is tanh(b W + artanh y0)."""
    found = solve_sde(
        lambda t, y: -0.64 * y * (1 - y * y),
        lambda t, y: 0.8 * (1 - y * y),
        (0.0, 1.0),
        np.array([0.2]),
        key=key,
        steps=steps,
        method=method,
    )
    return found.y[0], np.tanh(0.8 * brownian(key, steps) + np.arctanh(0.2))


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", ORDERS)
@pytest.mark.parametrize("problem", [geometric, bounded])
def test_the_strong_order_is_that_of_the_method(method, problem):
    keys = wg.random.split(KEY, 1000)
    errors = []
    for steps in (16, 64):
        found, exact = wg.jit(wg.vmap(lambda k, n=steps: problem(k, n, method)))(keys)
        errors.append(np.sqrt(np.mean((found - exact) ** 2)))
    assert np.log2(errors[0] / errors[1]) / 2 == pytest.approx(ORDERS[method], abs=0.2)


def test_heun_solves_the_equation_of_stratonovich():
    keys = wg.random.split(KEY, 500)

    def error(steps):
        def both(key):
            found = solve_sde(
                lambda t, y: 0.3 * y,
                lambda t, y: 0.6 * y,
                (0.0, 1.0),
                np.array([1.0]),
                key=key,
                steps=steps,
                method="heun",
            )
            return found.y[0], np.exp(0.3 + 0.6 * brownian(key, steps))

        found, exact = wg.jit(wg.vmap(both))(keys)
        return np.sqrt(np.mean((found - exact) ** 2))

    assert np.log2(error(8) / error(32)) / 2 == pytest.approx(1.0, abs=0.2)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("method", "noise"),
    [
        ("euler_maruyama", "general"),
        ("milstein", "scalar"),
        ("srk", "diagonal"),
        ("heun", "general"),
    ],
)
def test_derivatives_of_a_path(method, noise):
    def diffusion(t, y, p):
        if noise == "general":
            return p[1] * np.stack([y, np.sin(y), np.ones(2)], axis=1)
        return p[1] * np.sin(y) * (1 + t)

    def value(p):
        found = solve_sde(
            lambda t, y, p: p[0] * np.cos(y) - y[::-1],
            diffusion,
            [0.0, 0.5, 2.0],
            np.array([1.0, -0.4]),
            (p,),
            key=KEY,
            steps=7,
            method=method,
            noise=noise,
        )
        return np.sum(found.y**2)

    p, h = np.array([0.7, 0.3]), 1e-6
    expected = [(value(p + d) - value(p - d)) / (2 * h) for d in h * np.eye(2)]
    np.testing.assert_allclose(wg.grad(value)(p), expected, rtol=1e-7)
    gradient = wg.jit(wg.grad(value))
    np.testing.assert_allclose(gradient(p), expected, rtol=1e-7)
    np.testing.assert_allclose(wg.jit(wg.jacfwd(value))(p), expected, rtol=1e-7)
    second = [(gradient(p + d) - gradient(p - d)) / (2 * h) for d in h * np.eye(2)]
    np.testing.assert_allclose(wg.jit(wg.hessian(value))(p), second, rtol=1e-6, atol=1e-6)


def test_states_are_containers_and_paths_depend_on_the_key_only():
    def path(key):
        return solve_sde(
            lambda t, y: {"a": -y["a"]},
            lambda t, y: {"a": 0 * y["a"] + 1},
            [0.0, 1.0, 2.0],
            {"a": np.zeros((2, 2))},
            key=key,
            steps=5,
        )

    assert path(KEY).y["a"].shape == (3, 2, 2)
    np.testing.assert_array_equal(path(KEY).y["a"], wg.jit(path)(KEY).y["a"])
    assert np.all(path(wg.random.key(4)).y["a"][1:] != path(KEY).y["a"][1:])


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"method": "taylor"}, ArgumentError, "euler_maruyama"),
        ({"noise": "pink"}, ArgumentError, "diagonal"),
        ({"steps": 0}, ArgumentError, "positive"),
        ({"method": "srk", "noise": "general"}, ArgumentError, "general noise"),
        ({"noise": "general"}, ShapeError, r"\(2, m\)"),
        ({"method": "milstein"}, ArgumentError, "component 0 depends on component 1"),
    ],
)
def test_bad_arguments(options, error, match):
    given = {"key": KEY, "steps": 3} | options
    with pytest.raises(error, match=match):
        solve_sde(lambda t, y: y, lambda t, y: y[::-1], (0.0, 1.0), np.ones(2), **given)
