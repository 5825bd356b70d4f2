"""solve_ivp with LSODA: SciPy's values, in all kinds of calls, and no derivative."""

import numpy as np
import pytest
import scipy.integrate

import wengert as wg
from wengert.errors import (
    ArgumentError,
    DtypeError,
    NotDifferentiableError,
    ShapeError,
    TraceError,
)
from wengert.integrate import solve
from wengert.scipy.integrate import solve_ivp

from .stiff_problems import RATES, robertson

START, SPAN = np.array([1.0, 0.0, 0.0]), (0.0, 1e3)
TIMES = np.array([0.4, 40.0, 1e3])
OPTIONS = {"method": "LSODA", "rtol": 1e-6, "atol": 1e-10}


def of_scipy(rates=RATES, **options):
    return scipy.integrate.solve_ivp(robertson, SPAN, START, args=(rates,), **OPTIONS, **options)


def ours(rates, start=START, **options):
    return solve_ivp(robertson, SPAN, start, args=(rates,), **OPTIONS, **options)


@pytest.mark.parametrize("times", [None, TIMES])
def test_tensors_have_the_result_of_scipy(times):
    found, theirs = ours(wg.tensor(RATES), t_eval=times), of_scipy(t_eval=times)
    np.testing.assert_allclose(found.t, theirs.t, rtol=1e-9)
    np.testing.assert_allclose(found.y, theirs.y, rtol=1e-9)
    assert (found.nfev, found.njev, found.nlu) == (theirs.nfev, theirs.njev, theirs.nlu)
    assert (found.status, found.success, found.message) == (0, True, theirs.message)


def test_compiled_functions_and_batches():
    def states(rates):
        return ours(rates, t_eval=TIMES).y

    np.testing.assert_allclose(wg.jit(states)(RATES), of_scipy(t_eval=TIMES).y, rtol=1e-9)
    scales = np.array([0.5, 1.0, 2.0])
    batch = wg.jit(wg.vmap(lambda s: states(RATES * s)))(scales)
    for scale, found in zip(scales, batch, strict=True):
        np.testing.assert_allclose(found, of_scipy(RATES * scale, t_eval=TIMES).y, rtol=1e-9)


def test_a_jacobian_and_the_options_of_lsoda():
    jac = wg.jit(wg.jacobian(robertson, argnums=1))
    options = {"max_step": 20.0, "first_step": 1e-5, "min_step": 1e-9}
    found = ours(wg.tensor(RATES), jac=wg.jacobian(robertson, argnums=1), t_eval=TIMES, **options)
    theirs = of_scipy(jac=jac, t_eval=TIMES, **options)
    np.testing.assert_allclose(found.y, theirs.y, rtol=1e-9)
    assert (found.nfev, found.njev) == (theirs.nfev, theirs.njev)
    found, theirs = ours(wg.tensor(RATES), lband=2, uband=2), of_scipy(lband=2, uband=2)
    np.testing.assert_allclose(found.y[:, -1], theirs.y[:, -1], rtol=1e-9)


def test_the_derivative_is_refused_with_advice():
    last = lambda rates: ours(rates, t_eval=TIMES).y[0, -1]  # noqa: E731
    for transform in (wg.grad, wg.jacfwd, lambda f: wg.jit(wg.grad(f))):
        with pytest.raises(NotDifferentiableError, match=r"LSODA.*'BDF' or 'Radau'"):
            transform(last)(RATES)
    rates = wg.tensor(RATES, requires_grad=True)
    with pytest.raises(NotDifferentiableError, match="LSODA"):
        ours(rates).y[0, -1].backward()
    # As a constant it may be used in a function that is differentiated.
    slope = wg.grad(lambda rates: rates[0] * wg.stop_gradient(last(rates)))(RATES)
    np.testing.assert_allclose(slope, [of_scipy().y[0, -1], 0.0, 0.0], rtol=1e-6)


def test_a_solution_that_fails():
    """There is no tolerance for a component that is zero."""
    options = {"method": "LSODA", "t_eval": np.array([0.5, 2.0]), "atol": 0.0}
    start = np.array([0.0, 1.0])

    def solved(start):
        return solve_ivp(lambda t, y: y, (0.0, 2.0), start, **options)

    with pytest.warns(UserWarning, match="lsoda"):
        found = solved(wg.tensor(start))
    assert (found.status, found.success, found.y.shape) == (-1, False, (2, 0))
    assert found.message == "Unexpected istate in LSODA."
    with pytest.warns(UserWarning, match="lsoda"):
        y, success = wg.jit(lambda start: (solved(start).y, solved(start).success))(start)
    assert np.all(np.isnan(y))
    assert y.shape == (2, 2)
    assert not success


def test_what_is_refused():
    rates = wg.tensor(RATES)
    with pytest.raises(ArgumentError, match="no dense_output, events or progress"):
        ours(rates, dense_output=True)
    with pytest.raises(ArgumentError, match="no dense_output, events or progress"):
        ours(rates, events=lambda t, y, rates: y[0])
    with pytest.raises(TraceError, match="t_eval"):
        wg.jit(lambda rates: ours(rates).y)(RATES)
    with pytest.raises(DtypeError, match="real states"):
        ours(rates, start=START + 0j)
    with pytest.raises(ShapeError, match="the function returns shape"):
        solve_ivp(lambda t, y: y[:2], SPAN, wg.tensor(START), method="LSODA")
    with pytest.raises(ArgumentError, match="'LSODA' is SciPy's"):
        solve(robertson, SPAN, START, method="LSODA")
