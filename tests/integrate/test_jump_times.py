"""Times at which the right-hand side is discontinuous: `jump_ts` of wengert.integrate.solve.

The problem is y' = -y + c(t) with c constant between jumps, whose solution is known; it and its
derivatives are compared, by methods of each family.
"""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ArgumentError, DtypeError, ShapeError
from wengert.integrate import Event, solve

LEVELS = np.array([1.7, -2.0, 0.5])
METHODS = ["tsit5", "DOP853", "rodas5p", "kvaerno4", "Radau", "BDF"]


def exact(levels, jumps, t0, t1, y):
    """The solution at t1, for one jump or two in the interval."""
    edges = [jumps[0], jumps[1]] if t1 > t0 else [jumps[1], jumps[0]]
    order = levels if t1 > t0 else levels[::-1]
    last = t0
    for edge, level in zip([*edges, t1], order, strict=True):
        y = level + (y - level) * np.exp(last - edge)
        last = edge
    return y


def rhs(t, y, levels, jumps):
    return -y + np.where(t < jumps[0], levels[0], np.where(t < jumps[1], levels[1], levels[2]))


def last(levels, jumps, t0, t1, y, method="tsit5", **options):
    options = {"rtol": 1e-9, "atol": 1e-9, "jump_ts": jumps} | options
    return solve(rhs, (t0, t1), np.stack([y]), (levels, jumps), method=method, **options)


@pytest.mark.sample(len(METHODS))
@pytest.mark.parametrize("t1", [3.0, -1.0])
@pytest.mark.parametrize("method", METHODS)
def test_values_and_derivatives(method, t1):
    jumps, t0 = np.array([0.7, 1.9]) if t1 > 0 else np.array([-0.7, -0.2]), 0.1
    arguments = (LEVELS, jumps, t0, t1, 2.0)
    numbers = (0, 1, 2, 3, 4)
    of_exact = wg.value_and_grad(exact, numbers)(*arguments)
    found = wg.value_and_grad(lambda *xs: last(*xs, method=method).y[0], numbers)(*arguments)
    bound = 1e-6 if method == "BDF" else 1e-7
    np.testing.assert_allclose(found[0], of_exact[0], atol=bound)
    for ours, theirs in zip(found[1], of_exact[1], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=30 * bound)


def test_no_step_is_rejected_for_a_jump():
    with_jumps = last(LEVELS, np.array([0.7, 1.9]), 0.0, 3.0, 2.0)
    without = last(LEVELS, np.array([0.7, 1.9]), 0.0, 3.0, 2.0, jump_ts=None)
    assert with_jumps.n_rejected == 0 < without.n_rejected
    assert with_jumps.n_steps < without.n_steps


def test_compiled_batches_and_second_order():
    def value(jumps, y):
        return last(LEVELS, jumps, 0.0, 3.0, y).y[0]

    def solution(jumps, y):
        return exact(LEVELS, jumps, 0.0, 3.0, y)

    many = np.array([[0.7, 1.9], [0.5, 2.5], [1.0, 1.1]])
    ys = np.array([2.0, -1.0, 0.3])
    np.testing.assert_allclose(
        wg.jit(wg.vmap(wg.grad(value)))(many, ys), wg.vmap(wg.grad(solution))(many, ys), atol=1e-6
    )
    np.testing.assert_allclose(
        wg.hessian(value)(many[0], 2.0), wg.hessian(solution)(many[0], 2.0), atol=1e-5
    )
    np.testing.assert_allclose(
        wg.jacfwd(value)(many[0], 2.0), wg.grad(value)(many[0], 2.0), rtol=1e-10
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "jumps", [[0.5, 2.0], [0.0, 1.0], [1.0, 0.4], [0.5, 9.0], [-1.0, 7.0], [1.0, 1.0]]
)
def test_jumps_at_the_ends_in_any_order_and_outside(jumps):
    def level(t):
        return (t >= jumps[0]) + 2.0 * (t >= jumps[1])

    def f(t, y):
        return -y + level(t)

    found = solve(f, (0.0, 2.0), np.array([1.0]), jump_ts=jumps, rtol=1e-9, atol=1e-9)
    y, start = 1.0, 0.0
    for end in [*sorted(min(max(t, 0.0), 2.0) for t in jumps), 2.0]:
        c = level((start + end) / 2)
        y, start = c + (y - c) * np.exp(start - end), end
    np.testing.assert_allclose(found.y, [y], atol=1e-8)
    assert found.t == 2.0 and found.success and found.n_rejected == 0


def test_times_dense_output_and_events():
    jumps = np.array([0.7, 1.9])
    times = np.array([0.0, 0.3, 0.7, 1.2, 1.9, 3.0])
    at_times = last(LEVELS, jumps, 0.0, 3.0, 2.0, saveat=times)
    dense = last(LEVELS, jumps, 0.0, 3.0, 2.0, dense=True)
    for t, y in zip(times, at_times.y[:, 0], strict=True):
        np.testing.assert_allclose(dense.sol(t), [y], atol=1e-9)
        y_end = last(LEVELS, jumps, 0.0, t, 2.0).y[0] if t else 2.0
        np.testing.assert_allclose(y, y_end, atol=1e-7)
    zero = Event(lambda t, y, levels, jumps: y[0], count=1)
    stopped = last(LEVELS, jumps, 0.0, 3.0, 2.0, events=zero)
    high = 1.7 + 0.3 * np.exp(-0.7)
    np.testing.assert_allclose(stopped.t, 0.7 + np.log(1 + high / 2), atol=1e-8)


@pytest.mark.sample(2)
@pytest.mark.parametrize("ends", [(-0.9, 1.1), (1.1, -0.9)])
@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
def test_a_jump_at_zero(method, ends):
    def last(jump, y):
        def f(t, y):
            return -y + np.where(t < jump, 2.0, -1.0)

        options = {"method": method, "rtol": 1e-9, "atol": 1e-9, "jump_ts": np.stack([jump])}
        return solve(f, ends, np.stack([y]), **options)

    start, end = ends
    first, second = (2.0, -1.0) if start < end else (-1.0, 2.0)
    middle = first + (1.5 - first) * np.exp(start)
    found = last(0.0, 1.5)
    np.testing.assert_allclose(found.y, [second + (middle - second) * np.exp(-end)], atol=1e-7)
    assert found.n_rejected == 0
    slope = wg.grad(lambda jump: last(jump, 1.5).y[0])(0.0)
    np.testing.assert_allclose(slope, (first - second) * np.exp(-end), atol=1e-6)


@pytest.mark.parametrize(
    ("jumps", "error"),
    [([[1.0]], ShapeError), (["a"], DtypeError), ([np.nan], ArgumentError), ([1j], DtypeError)],
)
def test_times_that_cannot_be(jumps, error):
    with pytest.raises(error, match="jump_ts"):
        solve(lambda t, y: -y, (0.0, 1.0), np.array([1.0]), jump_ts=jumps)


def test_a_continuous_adjoint_has_no_jumps():
    with pytest.raises(ArgumentError, match="jump_ts"):
        solve(lambda t, y: -y, (0.0, 1.0), np.array([1.0]), jump_ts=[0.5], adjoint="continuous")
