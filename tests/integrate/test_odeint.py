"""scipy.integrate.odeint: SciPy's values, and derivatives with respect to everything."""

import numpy as np
import pytest
import scipy.integrate
from scipy.integrate import odeint, solve_ivp

import wengert as wg
import wengert.scipy.integrate
from wengert.errors import ArgumentError, ShapeError

RATES, START = np.array([1.5, 1.0, 3.0, 1.0]), np.array([1.0, 0.5])
TIMES = np.linspace(0.0, 2.0, 5)
TIGHT = {"rtol": 1e-12, "atol": 1e-12}


def species(y, t, a, b, c, d):
    u, v = y
    return [a * u - b * u * v, -c * v + d * u * v]


def matrix(y, t, a, b, c, d):
    return [[a - b * y[1], -b * y[0]], [d * y[1], -c + d * y[0]]]


def states(rates, start, times, **options):
    return odeint(species, start, times, tuple(rates), **options)


def test_values_are_those_of_scipy():
    right = scipy.integrate.odeint(species, START, TIMES, tuple(RATES), **TIGHT)
    for times, expected in ((TIMES, right), (TIMES[::-1].copy(), None)):
        found = wg.jit(lambda p, t=times: states(p, START, t, **TIGHT))(RATES)
        if expected is None:
            expected = scipy.integrate.odeint(species, START, times, tuple(RATES), **TIGHT)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    default = wg.jit(lambda p: states(p, START, TIMES))(RATES)
    np.testing.assert_allclose(default, right, rtol=3e-6)


def test_without_tensors_the_function_of_scipy_is_called():
    right, details = scipy.integrate.odeint(species, START, TIMES, tuple(RATES), full_output=True)
    found, counts = wengert.scipy.integrate.odeint(
        species, START, TIMES, tuple(RATES), full_output=True
    )
    assert (found == right).all() and (counts["nst"] == details["nst"]).all()
    captured = wg.grad(lambda a: np.sum(odeint(lambda y, t, k: -a * k * y, 2.0, [0, 1], (3.0,))))
    assert captured(0.5) == pytest.approx(-6.0 * np.exp(-1.5), rel=1e-6)


def test_derivatives_agree_with_differences():
    def f(p, y, t):
        return np.sum(np.sin(states(p, y, t, **TIGHT)))

    wg.check_grads(wg.jit(f), (RATES, START, TIMES), order=1)


@pytest.mark.slow
def test_eager_derivatives_agree_with_compiled_ones():
    def f(p, y, t):
        return np.sum(np.sin(states(p, y, t, **TIGHT)))

    wg.check_grads(f, (RATES, START, TIMES), order=1)
    gradients = wg.grad(f, argnums=(0, 1, 2))
    for a, b in zip(gradients(RATES, START, TIMES), wg.jit(gradients)(RATES, START, TIMES),
                    strict=True):  # fmt: skip
        np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.slow
def test_second_derivatives_agree_with_differences():
    def f(p, y, t):
        return np.sum(np.sin(states(p, y, t, **TIGHT)))

    wg.check_grads(f, (RATES, START, TIMES), order=2)


def test_a_stiff_problem():
    def fast(y, t, k):
        return np.array([-k * (y[0] - np.cos(t)), y[0] - y[1]])

    k, times = 1e6, [0.0, 1.0, 2.0]
    f = wg.jit(wg.value_and_grad(lambda k: odeint(fast, [0.0, 1.0], times, (k,))[-1, 1]))
    value, slope = f(k)
    right = [odeint(fast, [0.0, 1.0], times, (x,), **TIGHT)[-1, 1] for x in (k, 0.9 * k, 1.1 * k)]
    assert value == pytest.approx(right[0], rel=1e-7)
    assert slope == pytest.approx((right[2] - right[1]) / (0.2 * k), rel=0.02)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "options",
    [
        {"Dfun": matrix, "h0": 1e-3, "hmax": 0.1, "mxstep": 5000, "mxordn": 12, "ml": 1},
        {"Dfun": lambda *a: np.array(matrix(*a)).T, "col_deriv": True},
    ],
)
def test_options(options):
    def f(p):
        return states(p, START, TIMES, **options)[-1, 0]

    steps = 1e-5 * np.eye(4)
    ends = [states(RATES + sign * h, START, TIMES, **TIGHT)[-1, 0]
            for h in steps for sign in (1, -1)]  # fmt: skip
    right = (np.array(ends[::2]) - ends[1::2]) / 2e-5
    np.testing.assert_allclose(wg.grad(f)(RATES), right, rtol=1e-5)


def test_arguments_are_a_tuple():
    with pytest.raises(ArgumentError, match="args=\\(x,\\)"):
        wg.grad(lambda k: odeint(lambda y, t, k: -k * y, 2.0, [0.0, 1.0], k)[1, 0])(0.5)


def test_one_number_as_the_state_and_the_order_of_arguments():
    def value(k):
        return odeint(lambda t, y, k: -k * y, 2.0, [0.0, 1.0], (k,), tfirst=True)[1, 0]

    assert wg.grad(value)(0.5) == pytest.approx(-2 * np.exp(-0.5), rel=1e-7)

    def value(k):
        return odeint(lambda y, t: -k * y, [k, 1.0], [0.0, 1.0])[1, 0]

    assert wg.grad(value)(0.5) == pytest.approx(0.5 * np.exp(-0.5), rel=1e-7)
    batch = wg.vmap(wg.grad(value))(np.array([0.5, 1.0]))
    np.testing.assert_allclose(batch, [0.5 * np.exp(-0.5), 0.0], rtol=1e-7, atol=1e-7)


def test_intervals_of_length_zero_and_repeated_times():
    one = wg.grad(lambda y: np.sum(states(RATES, y, [1.0])))
    assert one(START).tolist() == [1.0, 1.0]
    moving = wg.jacobian(lambda t: states(RATES, START, t)[:, 0])
    assert moving(np.array([1.0, 1.0])).tolist() == [[0.0, 0.0], [-1.0, 1.0]]
    twice = wg.jit(lambda y: states(RATES, y, np.array([1.0, 1.0, 2.0, 2.0])))(START)
    assert (twice[0] == twice[1]).all() and (twice[2] == twice[3]).all()
    assert twice[0].tolist() == START.tolist()


def test_a_solution_that_becomes_infinite():
    def f(k):
        return odeint(lambda y, t: k * y**2, 2.0, [0.0, 0.1, 1.0])[:, 0]

    with pytest.warns(scipy.integrate.ODEintWarning, match="smaller|less than spacing"):
        jac = wg.jacobian(f)(1.0)
    assert jac[1] == pytest.approx(0.625)
    compiled = wg.jit(f)(1.0)
    assert np.isfinite(compiled).tolist() == [True, True, False]


@pytest.mark.parametrize("wrap", [lambda f: f, wg.jit], ids=["eager", "compiled"])
@pytest.mark.filterwarnings("ignore::scipy.integrate.ODEintWarning")
def test_a_solution_that_fails_in_the_first_step(wrap):
    """The states are NaN, and so is their derivative with respect to anything."""

    def f(p, y0):
        return odeint(lambda y, t: p[0] * y * np.nan + p[1], y0, [0.0, 0.5, 1.0])[:, 0]

    p, y0 = np.array([0.5, 1.0]), np.array([1.0, 2.0])
    assert np.isnan(wrap(f)(p, y0)).tolist() == [False, True, True]
    for derivative in (wg.jacfwd, wg.jacrev):
        for argnum in (0, 1):
            jac = wrap(derivative(f, argnum))(p, y0)
            assert jac[0].tolist() == [float(argnum), 0.0]
            assert np.isnan(jac[1:]).all()


def test_times_out_of_order():
    with pytest.raises(ArgumentError, match="must be increasing or decreasing"):
        wg.grad(lambda y: np.sum(states(RATES, y, [0.0, 1.0, 0.5])))(START)
    found = wg.jit(lambda t: states(RATES, START, t))(np.array([0.0, 1.0, 0.5]))
    assert np.isnan(found).all()
    with pytest.raises(ShapeError, match="at least one time"):
        wg.grad(lambda y: np.sum(states(RATES, y, np.zeros((0,)))))(START)


def test_counts_of_steps_are_those_of_scipy_by_name():
    _, right = scipy.integrate.odeint(species, START, TIMES, tuple(RATES), full_output=True)
    found = {}

    def f(p, times):
        y, info = states(p, START, times, full_output=True)
        found.update(info)
        return y

    def arrays(p, times):
        f(p, times)
        return {name: x for name, x in found.items() if isinstance(x, np.ndarray | wg.Tensor)}

    assert (wg.jacobian(f)(RATES, TIMES) == wg.jacobian(states)(RATES, START, TIMES)).all()
    assert found["message"] == right["message"]
    eager, compiled = dict(found), wg.jit(arrays)(RATES, TIMES)
    assert list(eager) == list(right)
    for name, expected in right.items():
        assert type(eager[name]) is type(expected)
        if isinstance(expected, np.ndarray):
            assert (compiled[name] == eager[name]).all()
            assert eager[name].dtype == expected.dtype and eager[name].shape == expected.shape
    tcur, hu, nst = [eager[name] for name in ("tcur", "hu", "nst")]
    assert (tcur >= TIMES[1:]).all() and (tcur - hu < TIMES[1:]).all()
    assert (np.diff(nst) > 0).all() and nst[0] > 1 and tcur[-1] == TIMES[-1]
    wg.jacobian(f)(RATES, TIMES[::-1])
    assert (found["hu"] < 0).all() and found["tcur"][-1] == 0.0


def with_counts(**options):
    p, odeint = wg.tensor(RATES), wengert.scipy.integrate.odeint
    return odeint(species, START, TIMES, tuple(p), full_output=True, **options)


def test_counts_are_those_of_solve_ivp():
    _, info = with_counts(rtol=1e-6, atol=1e-6)
    options = {"rtol": 1e-6, "atol": 1e-6, "method": "rodas5p", "t_eval": TIMES}
    other = wengert.scipy.integrate.solve_ivp(
        lambda t, y: species(y, t, *RATES), (0.0, 2.0), wg.tensor(START), **options
    )
    assert (info["nfe"][-1], info["nje"][-1]) == (other.nfev, other.njev)


def test_the_smallest_step():
    """It replaces smaller ones whose errors are tolerated; others are failures."""
    sizes = {"rtol": 1e-5, "atol": 1e-5, "h0": 1e-4}
    _, unlimited = with_counts(**sizes)
    y, info = with_counts(hmin=0.02, **sizes)
    assert info["nst"][-1] < unlimited["nst"][-1]
    right = scipy.integrate.odeint(species, START, TIMES, tuple(RATES), hmin=1e-3, **TIGHT)
    np.testing.assert_allclose(wg.Tensor.numpy(y), right, rtol=1e-4)

    def f(p):
        return states(p, START, TIMES, hmin=0.1, rtol=1e-5, atol=1e-5)

    with pytest.warns(scipy.integrate.ODEintWarning, match="smaller than hmin=0.1"):
        slopes = wg.jacobian(f)(RATES)
    for found in (slopes[:, 0], wg.jit(wg.jacobian(f))(RATES)[:, 0], wg.jit(f)(RATES)):
        assert np.isnan(found).all(axis=1).tolist() == [False, False, False, False, True]


@pytest.mark.parametrize("option", [{"hmin": -1.0}, {"hmin": 0.2, "hmax": 0.1}, {"hmax": np.nan}])
def test_limits_of_steps_that_cannot_be(option):
    with pytest.raises(ArgumentError, match=r"hm(in|ax)"):
        wg.grad(lambda p: np.sum(states(p, START, TIMES, **option)))(RATES)


def test_lists_of_tensors_are_states_and_times():
    def f(a):
        found = solve_ivp(lambda t, y: -y, (0, a), [a, 1.0], t_eval=[0.0, a], rtol=1e-9, atol=1e-9)
        return found.y[0, -1]

    assert wg.grad(f)(2.0) == pytest.approx(-np.exp(-2.0), rel=1e-6)
    assert wg.jit(wg.grad(f))(2.0) == pytest.approx(-np.exp(-2.0), rel=1e-6)


def test_critical_times_are_ends_of_steps():
    """A heating that is switched off; its derivative with respect to that time is exact."""

    def last(off):
        def heated(y, t):
            return np.where(t < off, 2.0, 0.0) - y

        return odeint(heated, [0.0], [0.0, 3.0], tcrit=[off], rtol=1e-9, atol=1e-9)[-1, 0]

    value, slope = wg.value_and_grad(last)(1.0)
    assert value == pytest.approx(2.0 * (np.exp(-2.0) - np.exp(-3.0)), abs=1e-8)
    assert slope == pytest.approx(2.0 * np.exp(-2.0), abs=1e-7)
    constant = wg.grad(lambda k: odeint(lambda y, t: -k * y, [1.0], [0.0, 1.0], tcrit=[0.5])[-1, 0])
    assert constant(1.0) == pytest.approx(-np.exp(-1.0), rel=1e-6)
