"""SUNDIALS as the oracle of systems with algebraic equations, through CasADi where it is installed.

Robertson's problem with the sum of the concentrations as an equation: the last state and its
derivatives with respect to the rates, by IDAS and its forward sensitivities.
"""

import numpy as np
import pytest

import wengert as wg
from wengert.integrate import solve

casadi = pytest.importorskip("casadi", reason="casadi is not installed")
RATES, END = np.array([0.04, 3e7, 1e4]), 10.0


def of_sundials():
    y, z, p = casadi.SX.sym("y", 2), casadi.SX.sym("z"), casadi.SX.sym("p", 3)
    made = p[0] * y[0] - p[2] * y[1] * z
    problem = {
        "x": y,
        "z": z,
        "p": p,
        "ode": casadi.vertcat(-made, made - p[1] * y[1] ** 2),
        "alg": y[0] + y[1] + z - 1,
    }
    options = {"abstol": 1e-11, "reltol": 1e-9, "max_num_steps": 1_000_000}
    solver = casadi.integrator("solver", "idas", problem, 0.0, END, options)
    rates = casadi.MX.sym("rates", 3)
    found = solver(x0=casadi.DM([1, 0]), z0=casadi.DM(0), p=rates)
    end = casadi.vertcat(found["xf"], found["zf"])
    both = casadi.Function("both", [rates], [end, casadi.jacobian(end, rates)])(RATES)
    return both[0].full().ravel(), both[1].full()


@pytest.mark.parametrize("method", ["rodas5p", "Radau", "kvaerno5", "BDF"])
def test_robertson_with_an_equation(method):
    def rhs(t, y, p):
        made = p[0] * y[0] - p[2] * y[1] * y[2]
        return np.stack((-made, made - p[1] * y[1] ** 2, y[0] + y[1] + y[2] - 1))

    def last(p):
        options = {"method": method, "rtol": 1e-9, "atol": 1e-12, "mass": np.diag([1.0, 1.0, 0.0])}
        return solve(rhs, (0.0, END), np.array([1.0, 0.0, 0.0]), (p,), **options).y

    values, slopes = of_sundials()
    np.testing.assert_allclose(last(RATES), values, rtol=1e-6, atol=1e-10)
    for jacobian in (wg.jacfwd(last)(RATES), wg.jacrev(last)(RATES)):
        np.testing.assert_allclose(jacobian * RATES, slopes * RATES, rtol=1e-4, atol=1e-8)
