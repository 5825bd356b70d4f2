"""The continuous adjoint beside the discrete one, at tight tolerances."""

import functools

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ArgumentError
from wengert.integrate import Event, solve

Q = np.array([1.3, 2.1, 1.0, 0.3, 0.5, 3.0])  # parameters, the initial state, the interval
TIMES = np.array([0.7, 1.5, 2.0])


def oscillator(t, y, p):
    return np.array([y[1] * np.cos(t * p[0]), -p[1] * y[0] - 0.1 * y[1]])


def whole(q, adjoint, method="tsit5", times=None, tol=1e-10):
    found = solve(
        oscillator,
        (q[4], q[5]),
        q[2:4],
        (q[:2],),
        saveat=times,
        rtol=tol,
        atol=tol,
        adjoint=adjoint,
        method=method,
    )
    return np.sum(found.y**2) + found.y.reshape(-1)[-1]


@functools.cache
def discrete(method, at_the_end):
    times = None if at_the_end else TIMES
    return wg.jit(wg.grad(lambda q: whole(q, "discrete", method, times)))(Q)


@pytest.mark.sample(2)  # each method, and both adjoints
@pytest.mark.parametrize("adjoint", ["continuous", "quadrature"])
@pytest.mark.parametrize(
    ("method", "times"),
    [
        ("tsit5", None),
        pytest.param("DOP853", TIMES, marks=pytest.mark.slow),
        ("rodas5p", TIMES),
    ],
)
def test_gradients_are_those_of_the_discrete_adjoint(adjoint, method, times):
    expected = discrete(method, times is None)
    f = wg.grad(lambda q: whole(q, adjoint, method, times))
    np.testing.assert_allclose(wg.jit(f)(Q), expected, rtol=3e-6, atol=3e-7)
    if times is None:
        np.testing.assert_allclose(f(Q), expected, rtol=3e-6, atol=3e-7)


def test_times_and_backward_time():
    def states(q, adjoint):
        found = solve(
            oscillator, (3.0, 0.5), Q[2:4], (Q[:2],), saveat=q, rtol=1e-9, atol=1e-9,
            adjoint=adjoint,
        )  # fmt: skip
        return np.sum(np.sin(found.y))

    times = np.array([2.5, 1.0, 0.5])
    found, expected = [
        wg.jit(wg.grad(lambda q, a=a: states(q, a)))(times) for a in ("continuous", "discrete")
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_batches_and_captured_values():
    p = Q[:2].copy()

    def loss(y0):
        f = lambda t, y: oscillator(t, y, p)  # noqa: E731
        return np.sum(solve(f, (0.0, 1.0), y0, adjoint="continuous").y ** 2)

    rows = Q[2:4] * np.array([1.0, 2.0])[:, None]
    gradient = wg.jit(wg.grad(loss))
    expected = [gradient(row) for row in rows]
    np.testing.assert_allclose(wg.jit(wg.vmap(wg.grad(loss)))(rows), expected, rtol=1e-9)
    before = wg.grad(loss)(rows[0])
    p[1] = 0.1
    assert abs(wg.grad(loss)(rows[0]) - before).max() > 1e-2


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize(
    "derivative", [wg.jacfwd, lambda f: wg.jacrev(wg.grad(f)), wg.hessian],
    ids=["jacfwd", "jacrev of grad", "hessian"],
)  # fmt: skip
@pytest.mark.sample(3)  # each derivative, eager or compiled
def test_other_derivatives_are_refused(derivative, compiled):
    of_solution = derivative(lambda q: whole(q, "continuous", tol=1e-4))
    with pytest.raises(ArgumentError, match="reverse mode only"):
        (wg.jit(of_solution) if compiled else of_solution)(Q)


def test_a_solution_with_too_many_steps():
    def last(y0):
        return solve(
            lambda t, y: np.cos(50.0 * t) * y, (0.0, 10.0), y0, max_step=1e-3, adjoint="continuous"
        ).y[0]

    assert np.isfinite(last(np.array([1.0])))
    assert np.isnan(wg.grad(last)(np.array([1.0])))
    assert np.isnan(wg.jit(wg.grad(last))(np.array([1.0])))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"adjoint": "interpolated"}, "discrete, continuous, quadrature"),
        ({"adjoint": "continuous", "events": Event(lambda t, y, p: y[0])}, "events"),
        ({"adjoint": "continuous", "saveat": "steps"}, "saveat"),
        ({"adjoint": "continuous", "y0": Q[2:4] + 0j}, "real"),
        ({"adjoint": "quadrature", "mass": np.eye(2), "method": "rodas4"}, "mass"),
    ],
)
def test_what_is_not_possible(options, match):
    options = {"y0": Q[2:4], **options}
    with pytest.raises(ArgumentError, match=match):
        solve(oscillator, (0.0, 1.0), args=(Q[:2],), **options)


def test_complex_parameters_are_refused():
    def last(c, adjoint):
        f = lambda t, y: -(np.abs(c * t + 1j) ** 2) * y  # noqa: E731
        return solve(f, (0.0, 1.0), np.array([1.0]), adjoint=adjoint).y[0]

    assert np.isfinite(wg.grad(last)(0.5 + 0.3j, "discrete"))
    for adjoint in ("continuous", "quadrature"):
        with pytest.raises(ArgumentError, match="real parameters"):
            wg.grad(last)(0.5 + 0.3j, adjoint)
