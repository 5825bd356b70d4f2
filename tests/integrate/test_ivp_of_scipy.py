"""What SciPy tests of solve_ivp, for the compiled loop: steps, counts, events, dense output.

Tensors are given, as without them SciPy's own function is called; the result is compared with
SciPy's on the same problem, which is a rational function with a known solution.
"""

import warnings

import numpy as np
import pytest
import scipy.integrate
from scipy.sparse import csc_array

import wengert as wg
from wengert.errors import ArgumentError
from wengert.scipy.integrate import solve_ivp
from wengert.scipy.integrate.ivp.methods import NATIVE

METHODS = [name for name in ("RK23", "RK45", "DOP853", "Radau", "BDF") if name in NATIVE]
IMPLICIT = [name for name in METHODS if NATIVE[name][0].is_implicit]
ALL = ["RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA"]
START = np.array([1 / 3, 2 / 9])
SPANS = [(5.0, 9.0), (5.0, 1.0)]
TOLERANCES = {"rtol": 1e-3, "atol": 1e-6}


def rational(t, y):
    return np.array([y[1] / t, y[1] * (y[0] + 2 * y[1] - 1) / (t * (y[0] - 1))])


def jacobian(t, y):
    slope = -2 * y[1] ** 2 / (t * (y[0] - 1) ** 2)
    return np.array([[0.0 * t, 1 / t], [slope, (y[0] + 4 * y[1] - 1) / (t * (y[0] - 1))]])


def solution(t):
    return np.stack((t / (t + 10), 10 * t / (t + 10) ** 2))


def assert_within(y, right, times=5.0):
    error = (y - right) / (TOLERANCES["atol"] + TOLERANCES["rtol"] * np.abs(right))
    assert np.all(np.linalg.norm(error, axis=0) / np.sqrt(len(right)) < times)


def both(span, start=START, fun=rational, **options):
    """Of wengert, with a tensor, and of SciPy, whose Jacobians are differences if none is given."""
    if options.get("method") in IMPLICIT and fun is rational:
        options = {"jac": jacobian} | options
    ours = solve_ivp(fun, span, wg.tensor(start), **options)
    return ours, scipy.integrate.solve_ivp(fun, span, start, **options)


def assert_same(ours, theirs, rtol=1e-9):
    """Steps, states, counts and events."""
    np.testing.assert_allclose(ours.t, theirs.t, rtol=rtol)
    np.testing.assert_allclose(ours.y, theirs.y, rtol=rtol, atol=1e-13)
    assert (ours.nfev, ours.njev, ours.nlu) == (theirs.nfev, theirs.njev, theirs.nlu)
    assert (ours.status, ours.success) == (theirs.status, theirs.success)
    assert (ours.t_events is None) == (theirs.t_events is None)
    for a, b in zip(ours.t_events or (), theirs.t_events or (), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    for a, b in zip(ours.y_events or (), theirs.y_events or (), strict=True):
        np.testing.assert_allclose(np.reshape(a, b.shape), b, rtol=1e-7, atol=1e-12)


@pytest.mark.sample(2)
@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("method", METHODS)
def test_steps_and_counts_are_those_of_scipy(method, span):
    ours, theirs = both(span, method=method, dense_output=True, **TOLERANCES)
    assert_same(ours, theirs)
    assert_within(ours.y, solution(ours.t))
    times = np.linspace(*span)
    np.testing.assert_allclose(ours.sol(times), theirs.sol(times), rtol=1e-9)
    middle = (span[0] + span[1]) / 2
    np.testing.assert_allclose(ours.sol(middle), theirs.sol(middle), rtol=1e-9)
    assert_within(ours.sol(times), solution(times))
    np.testing.assert_allclose(ours.sol(ours.t), ours.y, rtol=1e-14, atol=1e-14)
    assert ours.sol.n_segments == theirs.sol.ts.size - 1
    assert (ours.sol.t_min, ours.sol.t_max) == (theirs.sol.t_min, theirs.sol.t_max)


@pytest.mark.sample(3)
@pytest.mark.parametrize("method", IMPLICIT)
@pytest.mark.parametrize("kind", ["function", "array", "sparse array", "none"])
def test_jacobians(method, kind):
    """Of a linear problem; there rounding decides about some of SciPy's steps."""
    matrix = np.array([[-1.0, -5.0], [1.0, 1.0]])
    sparse = csc_array(matrix)
    jac = {"function": lambda t, y: matrix, "array": matrix, "sparse array": sparse, "none": None}
    span, start = (0.0, 2.0), np.array([0.0, 2.0])
    ours = solve_ivp(lambda t, y: matrix @ y, span, wg.tensor(start), method, jac=jac[kind])
    assert ours.nfev < 100
    assert 0 < ours.nlu < 15
    exact = np.stack((-5 * np.sin(2 * ours.t), 2 * np.cos(2 * ours.t) + np.sin(2 * ours.t)))
    assert_within(ours.y, exact, 10.0)


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", METHODS)
def test_complex_states(method):
    if method == "Radau":
        pytest.skip("SciPy's Radau is for real states")
    start = np.array([0.5 + 1j])
    ours, theirs = both((0.0, 1.0), start, lambda t, y: -y, method=method, **TOLERANCES)
    assert_same(ours, theirs)
    np.testing.assert_allclose(ours.y[0], (0.5 + 1j) * np.exp(-ours.t), rtol=5e-3)


def event_1(t, y):
    return y[0] - y[1] ** 0.7


def event_2(t, y):
    return y[1] ** 0.6 - y[0]


def event_3(t, y):
    return t - 7.4


def events(direction=0.0):
    """New functions, as attributes are set on them."""
    first, second, third = (
        lambda t, y: event_1(t, y),
        lambda t, y: event_2(t, y),
        lambda t, y: event_3(t, y),
    )
    first.direction = second.direction = direction
    third.terminal = True
    return first, second, third


@pytest.mark.sample(1)
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("direction", [0, 1, -1])
@pytest.mark.parametrize("method", METHODS)
def test_events_and_their_directions(method, direction, backward):
    span, start = ((8.0, 5.0), np.array([4 / 9, 20 / 81])) if backward else ((5.0, 8.0), START)
    ours, theirs = both(span, start, method=method, events=events(direction)[:2])
    assert_same(ours, theirs)
    sizes = [t.size for t in ours.t_events]
    rising = [0, 1] if backward else [1, 0]
    assert sizes == {0: [1, 1], 1: rising, -1: rising[::-1]}[direction]


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", METHODS)
def test_a_terminal_event_ends_the_dense_output(method):
    ours, theirs = both((5.0, 8.0), method=method, events=events(), dense_output=True)
    assert_same(ours, theirs)
    assert ours.status == 1
    assert 7.3 < ours.t_events[2][0] < 7.5
    times = np.linspace(ours.t[0], ours.t[-1])
    assert_within(ours.sol(times), solution(times))


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [3, 4])
def test_an_event_that_ends_at_its_nth_occurrence(number):
    def crossing(t, y):
        return y[0]

    crossing.terminal = number
    ours, theirs = both((0, 100), np.array([1.0, 0.0]), lambda t, y: [y[1], -y[0]], events=crossing)
    assert_same(ours, theirs)
    assert len(ours.t_events[0]) == number
    np.testing.assert_allclose(ours.y_events[0][:, 0], 0.0, atol=1e-14)


@pytest.mark.parametrize("terminal", [-1, 3.5])
def test_a_number_of_occurrences_is_a_positive_integer(terminal):
    def crossing(t, y):
        return y[0]

    crossing.terminal = terminal
    with pytest.raises(ArgumentError, match="The `terminal` attribute"):
        solve_ivp(rational, (5, 8), wg.tensor(START), events=crossing)


@pytest.mark.sample(1)
@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("method", METHODS)
def test_the_largest_and_the_first_step(method, span):
    for options in ({"max_step": 0.5}, {"max_step": 0.5, "first_step": 0.1}):
        ours, theirs = both(span, method=method, **TOLERANCES, **options)
        assert_same(ours, theirs)
        assert np.all(np.abs(np.diff(ours.t)) <= 0.5 + 1e-15)
    np.testing.assert_allclose(np.abs(ours.t[1] - 5), 0.1)
    for wrong in ({"max_step": -1}, {"first_step": -1}, {"first_step": 5}):
        with pytest.raises(ValueError, match="_step"):
            solve_ivp(rational, span, wg.tensor(START), method=method, **wrong)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("span", "times"),
    [
        ((5, 9), np.linspace(5, 9, 10)),
        ((5, 1), np.linspace(5, 1, 10)),
        ((5, 9), [5, 5.01, 7, 8, 8.01, 9]),
        ((5, 1), [4.99, 3, 1.5, 1.1, 1.01]),
        ((5, 9), [5.01, 7, 8, 8.01]),
    ],
)
def test_times_of_the_result(method, span, times):
    ours, theirs = both(span, method=method, t_eval=times, **TOLERANCES)
    assert_same(ours, theirs)
    assert np.asarray(ours.t).tolist() == np.asarray(times, float).tolist()
    compiled = wg.jit(
        lambda y: solve_ivp(rational, span, y, method=method, t_eval=times, **TOLERANCES).y
    )
    np.testing.assert_allclose(compiled(START), theirs.y, rtol=1e-9)


def test_times_outside_and_unsorted_are_refused():
    for times in ([4, 6], [6, 5.5], [6, 6]):
        with pytest.raises(ValueError, match="t_eval"):
            solve_ivp(rational, (5, 9), wg.tensor(START), t_eval=times)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", METHODS)
def test_no_times_before_an_event(method):
    def early(t, y):
        return t - 7

    early.terminal = True
    times = np.linspace(7.5, 9, 16)
    ours = solve_ivp(rational, (5, 9), wg.tensor(START), method, times, events=early, **TOLERANCES)
    assert ours.success
    assert ours.status == 1
    assert ours.message == "A termination event occurred."
    assert np.size(ours.t) == np.size(ours.y) == 0
    assert ours.t_events[0].tolist() == [7.0]


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", METHODS)
def test_an_interval_without_length(method):
    start = wg.tensor(np.array([2.0, 3.0]))
    found = solve_ivp(lambda t, y: -y, (4.0, 4.0), start, method, dense_output=True)
    assert found.success
    np.testing.assert_array_equal(found.y[:, -1], [2.0, 3.0])
    np.testing.assert_array_equal(found.sol(4.0), [2.0, 3.0])
    np.testing.assert_array_equal(found.sol(np.array([4.0, 5.0])), [[2, 2], [3, 3]])


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", METHODS)
def test_a_right_hand_side_of_zeros(method):
    ours, theirs = both((0, 10), np.ones(3), lambda t, y: 0.0 * y, method=method)
    assert_same(ours, theirs)
    np.testing.assert_allclose(ours.y, 1.0, rtol=1e-15)


def test_tolerances_of_components():
    options = {"rtol": [1e-1, 1e-1]}
    assert_same(*both((0, 1), np.ones(2), lambda t, y: y, **options))
    with pytest.warns(UserWarning, match="rtol"):
        tight = solve_ivp(lambda t, y: y, (0, 1), wg.tensor(np.ones(2)), rtol=[1e-1, 1e-16])
    np.testing.assert_allclose(tight.y[1, -1], np.e, rtol=1e-6)


def oscillator(t, w, omega, k, last):
    x, y, z = w[0], w[1], w[2]
    return np.stack((-omega * y, omega * x, k * z * (1 - z)))


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", [*METHODS[2:], *METHODS[:2]])  # the first needs few steps
def test_arguments_of_functions_and_events(method):
    falling = lambda t, w, *args: w[0]  # noqa: E731
    rising = lambda t, w, *args: w[1]  # noqa: E731
    ending = lambda t, w, omega, k, last: w[2] - last  # noqa: E731
    falling.direction, rising.direction, ending.terminal = -1, 1, True
    k, end, last = 4.0, 5.0, 0.99
    first = np.exp(-k * end) / ((1 - last) / last + np.exp(-k * end))
    found = solve_ivp(
        oscillator, (0, 2 * end), wg.tensor(np.array([0, -1, first])), method=method,
        events=[falling, rising, ending], args=(2, k, last), dense_output=True,
        rtol=1e-8, atol=1e-11,
    )  # fmt: skip
    np.testing.assert_allclose(found.t_events[0], np.pi * np.array([0.5, 1.5]), rtol=1e-6)
    np.testing.assert_allclose(found.t_events[1], np.pi * np.array([0.25, 1.25]), rtol=1e-6)
    np.testing.assert_allclose(found.t_events[2], [end], rtol=1e-6)
    times = np.linspace(0, end, 50)
    states = found.sol(times)
    np.testing.assert_allclose(states[0], np.sin(2 * times), atol=1e-6)
    np.testing.assert_allclose(states[1], -np.cos(2 * times), atol=1e-6)


def test_arguments_are_a_tuple():
    with pytest.raises(TypeError, match="Supplied 'args' cannot be unpacked"):
        solve_ivp(lambda t, y, a: a * y, (0, 0.1), wg.tensor(np.ones(1)), args=-1)
    found = solve_ivp(lambda t, y, a: a * y, (0, 0.1), wg.tensor(np.ones(1)), args=(-1,))
    np.testing.assert_allclose(found.y[0, -1], np.exp(-0.1), rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_the_initial_state_is_finite(bad):
    with pytest.raises(ValueError, match="finite"):
        solve_ivp(rational, (0, 10), wg.tensor(np.full(2, bad)))


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("length", [1e-4, 1e-300])
def test_short_intervals_are_not_left(method, length):
    latest = []

    def watched(t, y):
        latest.append(t)
        return 2 * y

    found = solve_ivp(watched, (0.0, length), wg.tensor(np.ones(1)), method=method)
    assert found.success
    assert found.t[-1] == length


@pytest.mark.sample(3)
@pytest.mark.parametrize("method", ALL)
def test_without_tensors_the_result_is_that_of_scipy(method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = solve_ivp(rational, SPANS[0], START, method=method, events=events()[:2])
        theirs = scipy.integrate.solve_ivp(
            rational, SPANS[0], START, method=method, events=events()[:2]
        )
    np.testing.assert_array_equal(ours.t, theirs.t)
    np.testing.assert_array_equal(ours.y, theirs.y)
    assert ours.nfev == theirs.nfev


@pytest.mark.parametrize("method", ["tsit5", "Rodas5P"])
def test_methods_that_scipy_does_not_have_need_no_tensors(method):
    found = solve_ivp(rational, SPANS[0], START, method=method, rtol=1e-6, atol=1e-9)
    assert type(found.y) is np.ndarray and found.success
    theirs = scipy.integrate.solve_ivp(rational, SPANS[0], START, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.y[:, -1], theirs.y[:, -1], rtol=1e-5)


@pytest.mark.sample(1)
@pytest.mark.parametrize("times", [np.linspace(0, 1, 5), np.zeros(0)])
def test_times_and_dense_output(times):
    def total(a):
        found = solve_ivp(
            lambda t, y: [y[1], -a * y[0]], (0, 1), [1.0, 0], t_eval=times, dense_output=True
        )
        return np.sum(found.y) + found.sol(0.3)[0]

    value, slope = wg.value_and_grad(total)(1.0)
    theirs = scipy.integrate.solve_ivp(
        lambda t, y: [y[1], -y[0]], (0, 1), [1.0, 0], t_eval=times, dense_output=True
    )
    np.testing.assert_allclose(value, np.sum(theirs.y) + theirs.sol(0.3)[0], rtol=1e-13)
    step = 1e-5
    difference = (total(1 + step) - total(1 - step)) / (2 * step)
    np.testing.assert_allclose(slope, difference, rtol=1e-3)  # step sizes depend on a


def test_times_that_a_failed_solution_does_not_reach_have_no_derivative():
    def total(p, count):
        times = np.array([0.1, 0.2, 0.5])
        found = solve_ivp(lambda t, y: p * y**2, (0, 0.5), [1.0, 4.0], t_eval=times)
        return np.sum(found.y[:, :count])

    both = wg.jit(wg.value_and_grad(total), static_argnums=1)
    assert np.all(np.isnan(both(1.0, 3)))
    eager = wg.value_and_grad(lambda p: total(p, 2))(1.0)
    np.testing.assert_allclose(both(1.0, 2), eager, rtol=1e-12)
    assert np.all(np.isfinite(both(0.1, 3)))
