"""wengert.integrate.solve: values, derivatives, containers, events and errors.

Derivatives are compared with differences of solutions to tight tolerances; those of the steps taken
are exact, and differ from those by the error of the solution only.
"""

import itertools
import pickle

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import wengert as wg
from wengert.errors import ArgumentError, ConvergenceError, DtypeError, ShapeError, TraceError
from wengert.integrate import Event, solve

EXPLICIT = ["RK23", "RK45", "tsit5", "DOP853", "vern7"]
TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def oscillator(t, y, p):
    return np.array([y[1] * np.cos(t * p[0]), -p[1] * y[0] - 0.1 * y[1]])


def gravity(t, y):
    return [y[1], -9.81]


P, Y0 = np.array([1.3, 2.1]), np.array([1.0, 0.3])


def differences(f, x, step=1e-6):
    steps = step * np.eye(len(x))
    return np.array([(f(x + d) - f(x - d)) / (2 * step) for d in steps])


@pytest.mark.parametrize("method", EXPLICIT)
@pytest.mark.parametrize("span", [(0.5, 3.0), (3.0, 0.5)])
@pytest.mark.sample(5)  # each method
def test_values_are_those_of_scipy(method, span):
    times = np.linspace(*span, 6)
    found = solve(oscillator, times, Y0, (P,), method=method, **TIGHT)
    expected = solve_ivp(oscillator, span, Y0, "DOP853", times, args=(P,), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found.y, expected.y.T, rtol=1e-7, atol=1e-8)
    assert found.success
    assert found.t.tolist() == times.tolist()


def whole(q, span=None, method="tsit5", times=None):
    """A number that depends on parameters, the initial state, and the ends of the interval."""
    ends = (q[4], q[5]) if span is None else span
    found = solve(oscillator, ends, q[2:4], (q[:2],), method=method, saveat=times, **TIGHT)
    return np.sum(found.y**2) + found.y.reshape(-1)[-1]


@pytest.mark.parametrize("method", ["tsit5", "DOP853"])
@pytest.mark.parametrize("times", [None, np.array([0.7, 1.5, 2.0])])
@pytest.mark.sample(2)  # each method, and each choice of times
def test_derivatives_in_both_modes_are_those_of_the_solution(method, times):
    q = np.concatenate([P, Y0, [0.5, 3.0]])
    f = lambda q: whole(q, None, method, times)  # noqa: E731
    both = wg.jit(wg.value_and_grad(f))
    expected = differences(lambda q: both(q)[0], q)
    np.testing.assert_allclose(both(q)[1], expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(wg.jit(wg.jacfwd(f))(q), expected, rtol=1e-6, atol=1e-7)
    if times is None:
        np.testing.assert_allclose(wg.grad(f)(q), expected, rtol=1e-6, atol=1e-7)


def test_the_gradient_is_that_of_the_steps_taken():
    """On the grid of the loose tolerance it is exact, though the solution is not."""

    def loose(p):
        return solve(oscillator, (0.0, 5.0), Y0, (p,), method="RK45", rtol=1e-2, atol=1e-2)

    grid = solve(
        oscillator, (0.0, 5.0), Y0, (P,), method="RK45", rtol=1e-2, atol=1e-2, saveat="steps"
    ).t

    def on_grid(p):
        y = Y0
        for start, end in itertools.pairwise(grid):
            step = solve(
                oscillator,
                (start, end),
                y,
                (p,),
                method="RK45",
                rtol=1e9,
                atol=1e9,
                first_step=end - start,
            )
            assert step.n_steps == 1
            y = step.y
        return y

    np.testing.assert_allclose(on_grid(P), loose(P).y, rtol=1e-12)
    expected = differences(lambda p: on_grid(p)[0], P)
    np.testing.assert_allclose(wg.grad(lambda p: loose(p).y[0])(P), expected, rtol=1e-7)


def test_second_derivatives_and_batches():
    q = np.concatenate([P, Y0, [0.5, 3.0]])
    gradient = wg.jit(wg.grad(whole))
    hessian = wg.jit(wg.hessian(whole))(q)
    expected = differences(gradient, q)
    np.testing.assert_allclose(hessian, expected, rtol=1e-6, atol=1e-6 * abs(hessian).max())
    rows = q * np.linspace(0.9, 1.1, 4)[:, None]
    np.testing.assert_allclose(
        wg.jit(wg.vmap(wg.grad(whole)))(rows), [gradient(row) for row in rows], rtol=1e-9
    )


def test_states_are_containers():
    def rhs(t, s, k):
        return {"a": -k * s["a"], "b": (s["a"].sum(), 0 * s["b"][1])}

    start = {"a": np.ones((2, 2)), "b": (1.0, np.zeros(3))}
    found = solve(rhs, [0.0, 0.5, 1.0], start, (2.0,))
    assert found.y["a"].shape == (3, 2, 2)
    assert found.y["b"][1].shape == (3, 3)
    np.testing.assert_allclose(found.y["b"][0][-1], 1 + 2 * (1 - np.exp(-2.0)), rtol=1e-6)
    last = solve(rhs, (0.0, 1.0), start, (2.0,))
    assert last.y["a"].shape == (2, 2)
    assert wg.grad(lambda k: solve(rhs, (0.0, 1.0), start, (k,)).y["b"][0])(2.0) == pytest.approx(
        (4 * np.exp(-2.0) * 2 - 4 * (1 - np.exp(-2.0))) / 4, rel=1e-5
    )


def test_complex_states():
    def real_part(w):
        found = solve(lambda t, y: 1j * w * y, (0.0, 1.0), np.array([1.0 + 0j]), **TIGHT)
        return found.y[0].real

    value, slope = wg.value_and_grad(real_part)(1.2)
    assert value == pytest.approx(np.cos(1.2), abs=1e-8)
    assert slope == pytest.approx(-np.sin(1.2), abs=1e-8)


def test_dense_output_and_all_steps():
    found = solve(oscillator, (0.0, 3.0), Y0, (P,), saveat="steps", dense=True, **TIGHT)
    assert len(found.t) == found.n_steps + 1 == len(found.y)
    times = np.array([0.0, 0.3, 1.7, 3.0])
    expected = solve(oscillator, (0.0, 3.0), Y0, (P,), saveat=times, **TIGHT)
    np.testing.assert_allclose(found.sol(times), expected.y, rtol=1e-12)
    np.testing.assert_allclose(found.sol(0.3), expected.y[1], rtol=1e-12)
    slope = wg.grad(lambda t: found.sol(t)[0])(1.7)
    assert slope == pytest.approx(oscillator(1.7, expected.y[2], P)[0], rel=1e-5)


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", ["tsit5", "DOP853", "rodas5p", "kvaerno5", "Radau"])
def test_interpolants_evaluate_times_together(method, monkeypatch):
    found = solve(oscillator, (0.0, 3.0), Y0, (P,), method=method, saveat="steps", dense=True)
    times = np.linspace(-0.1, 3.1, 40)
    expected = np.stack([found.sol(t) for t in times])
    inner, calls = found.sol.interpolant.method, []
    interpolate = type(inner).interpolate
    monkeypatch.setattr(
        type(inner), "interpolate", lambda *args: calls.append(1) or interpolate(*args)
    )
    np.testing.assert_array_equal(found.sol(times), expected)
    assert len(calls) == 1
    assert found.sol(times[:0]).shape == (0, len(Y0))


def fall_time(h):
    hit = Event(lambda t, y: y[0], direction=-1, count=1)
    return solve(gravity, (0.0, 100.0), np.stack([h, 0 * h]), events=hit, **TIGHT).t


def test_the_time_of_an_event_is_differentiable():
    value, slope = wg.value_and_grad(fall_time)(10.0)
    assert value == pytest.approx(np.sqrt(20 / 9.81), rel=1e-10)
    assert slope == pytest.approx(np.sqrt(2 / 9.81 / 10) / 2, rel=1e-9)


@pytest.mark.parametrize("compiled", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_time_of_an_event_is_differentiable_to_higher_orders(compiled):
    slopes = wg.value_and_grad(wg.grad(fall_time))
    slope, second = (wg.jit(slopes) if compiled else slopes)(10.0)
    assert slope == pytest.approx(np.sqrt(2 / 9.81 / 10) / 2, rel=1e-9)
    assert second == pytest.approx(-np.sqrt(2 / 9.81) * 10**-1.5 / 4, rel=1e-8)


def bounced(q):
    bounce = Event(lambda t, y: y[0], -1, reset=lambda t, y: [0.0, -q[0] * y[1]])
    return solve(lambda t, y: [y[1], -q[1]], (0.0, 3.0), [1.0, 3.0], events=bounce, **TIGHT)


BALL = np.array([0.8, 9.81])
height_and_slope = wg.jit(wg.value_and_grad(lambda q: bounced(q).y[0]))


def test_a_bouncing_ball():
    found = bounced(BALL)
    assert found.n_events[0] == 4
    np.testing.assert_allclose(found.y_events[0][:, 0], 0.0, atol=1e-9)
    first = (3 + np.sqrt(9 + 2 * 9.81)) / 9.81
    flights = 2 * np.sqrt(9 + 2 * 9.81) / 9.81 * 0.8 ** np.arange(1, 4)
    np.testing.assert_allclose(found.t_events[0], first + np.r_[0, np.cumsum(flights)], rtol=1e-9)
    expected = differences(lambda q: height_and_slope(q)[0], BALL)
    np.testing.assert_allclose(height_and_slope(BALL)[1], expected, rtol=1e-6)


@pytest.mark.slow
def test_second_derivatives_of_a_bouncing_ball():
    hessian = wg.jit(wg.hessian(lambda q: bounced(q).y[0]))(BALL)
    expected = differences(lambda q: height_and_slope(q)[1], BALL)
    np.testing.assert_allclose(hessian, expected, rtol=1e-5)


def test_events_inside_of_compiled_functions_have_a_fixed_length():
    crossing = Event(lambda t, y, p: y[1])
    f = wg.jit(
        lambda y: solve(
            oscillator, (0.0, 20.0), y, (np.array([0.0, 2.0]),), events=crossing, max_events=4
        )
    )
    found = f(Y0)
    assert found.t_events[0].shape == (4,)
    eager = solve(oscillator, (0.0, 20.0), Y0, (np.array([0.0, 2.0]),), events=crossing)
    np.testing.assert_allclose(found.t_events[0], eager.t_events[0][:4])


def test_results_are_containers_that_can_be_saved():
    found = solve(oscillator, (0.0, 1.0), Y0, (P,))
    again = pickle.loads(pickle.dumps(found))
    assert again.y.tolist() == found.y.tolist()
    assert "8 steps" in repr(found) or "steps" in repr(found)
    assert "reached the end" in found.message


def test_captured_values_that_change_are_seen():
    p = P.copy()

    def last():
        return solve(lambda t, y: oscillator(t, y, p), (0.0, 1.0), Y0).y

    before = last()
    p[0] = 0.2
    after = last()
    np.testing.assert_array_equal(after, solve(oscillator, (0.0, 1.0), Y0, (p,)).y)
    assert abs(after - before).max() > 1e-3


def test_failures_say_where_and_what_to_do():
    with pytest.raises(ConvergenceError, match=r"t = 1\.0000.*may become infinite"):
        solve(lambda t, y: y**2, (0.0, 2.0), np.array([1.0]))
    with pytest.raises(ConvergenceError, match="may become infinite"):
        wg.jit(lambda y: solve(lambda t, y: y**2, (0.0, 2.0), y).y)(np.array([1.0]))
    with pytest.raises(ConvergenceError, match="max_steps"):
        solve(oscillator, (0.0, 10.0), Y0, (P,), max_steps=4)
    with pytest.raises(ConvergenceError, match="not finite"):
        solve(lambda t, y: np.where(t > 1.0, np.nan, -1.0) * y, (0.0, 2.0), np.array([1.0]))
    with pytest.raises(ConvergenceError, match="not finite"):
        solve(lambda t, y: y / 0.0, (0.0, 2.0), np.array([0.0]))
    failed = solve(lambda t, y: y**2, (0.0, 2.0), np.array([1.0]), check=False)
    assert not failed.success
    assert failed.t == pytest.approx(1.0, abs=1e-4)


def test_an_empty_interval_returns_the_start():
    found = solve(oscillator, (1.0, 1.0), Y0, (P,))
    assert found.y.tolist() == Y0.tolist()
    assert found.n_steps == 0


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: solve(oscillator, (0.0,), Y0, (P,)), ArgumentError, "two times"),
        (lambda: solve(oscillator, (0, 1), Y0, (P,), method="rk5"), ArgumentError, "tsit5"),
        (lambda: solve(lambda t, y: y[:1], (0, 1), Y0), ShapeError, r"\(1,\)"),
        (lambda: solve(lambda t, y: 1j * y, (0, 1), Y0), DtypeError, "complex"),
        (lambda: solve(oscillator, (0, 1), Y0, (P,), atol=-1.0), ArgumentError, "atol"),
        (lambda: solve(oscillator, (0, 1), Y0, (P,), rtol=np.ones(3)), ShapeError, "rtol"),
        (lambda: solve(oscillator, (0, 1), Y0, (P,), saveat=[0.5, 0.2]), ArgumentError, "order"),
        (lambda: solve(oscillator, (0, 1), Y0, (P,), saveat=[0.5, 2]), ArgumentError, "within"),
        (lambda: solve(oscillator, (0, 1), Y0, (P,), max_step=0.0), ArgumentError, "max_step"),
        (lambda: solve(oscillator, (0, 1), Y0, (P,), first_step=2.0), ArgumentError, "first_step"),
        (
            lambda: solve(oscillator, (0, 1), Y0, (P,), events=lambda t, y, p: y[0] > 1),
            DtypeError,
            "boolean",
        ),
        (
            lambda: wg.jit(lambda y: solve(oscillator, (0, 1), y, (P,), dense=True).y)(Y0),
            TraceError,
            "saveat",
        ),
    ],
)
def test_bad_arguments(call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("compiled", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_time_at_which_a_function_touches_zero_has_no_derivative(compiled):
    def time(p):
        touch = Event(lambda t, y: (y[0] - 1.0) ** 2, count=1)
        return solve(lambda t, y: -p * y, (0.0, 1.0), np.array([1.0]), events=touch).t

    both = wg.value_and_grad(time)
    value, slope = (wg.jit(both) if compiled else both)(2.0)
    assert value == 0.0
    assert np.isnan(slope)


@pytest.mark.sample(1)
@pytest.mark.parametrize("saveat", [None, np.array([0.1, 0.2, 0.5])])
def test_a_failed_solution_in_a_loop_has_no_derivative(saveat):
    def total(p, ys):
        def body(s, y):
            return s + np.sum(solve(lambda t, y: p * y**2, (0, 0.5), y, saveat=saveat).y), None

        return wg.scan(body, 0.0, ys)[0]

    both = wg.jit(wg.value_and_grad(total, (0, 1)))
    value, (dp, dys) = both(1.0, np.array([[1.0], [4.0]]))  # infinite at 0.25
    assert np.isnan(value) and np.isnan(dp)
    assert np.isfinite(dys[0, 0]) and np.isnan(dys[1, 0])
    value, (dp, dys) = both(0.1, np.array([[1.0], [4.0]]))
    assert np.isfinite(value) and np.isfinite(dp) and np.all(np.isfinite(dys))
