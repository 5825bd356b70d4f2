"""What a user's function raises inside of a solver comes out of it, Ctrl-C as well."""

import numpy as np
import pytest

import wengert as wg
from wengert.scipy import integrate, optimize

X = np.array([-1.2, 1.0, 0.7])


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


SOLVES = {
    "minimize BFGS": lambda f: optimize.minimize(f, X),
    "minimize Nelder-Mead": lambda f: optimize.minimize(f, X, method="Nelder-Mead"),
    "minimize L-BFGS-B": lambda f: optimize.minimize(f, X, bounds=[(-2, 2)] * 3),
    "minimize trust-constr": lambda f: optimize.minimize(f, X, method="trust-constr"),
    "minimize, a constraint": lambda f: optimize.minimize(
        rosenbrock, X, method="SLSQP", constraints={"type": "eq", "fun": f}
    ),
    "minimize_scalar": lambda f: optimize.minimize_scalar(f),
    "root": lambda f: optimize.root(f, X),
    "root lm": lambda f: optimize.root(f, X, method="lm"),
    "fsolve": lambda f: optimize.fsolve(f, X),
    "fixed_point": lambda f: optimize.fixed_point(f, X),
    "brentq": lambda f: optimize.brentq(f, 0.0, 1.0),
    "newton": lambda f: optimize.newton(f, 1.0),
    "least_squares": lambda f: optimize.least_squares(f, X),
    "curve_fit": lambda f: optimize.curve_fit(lambda x, a: f(x), X, X),
    "quad": lambda f: integrate.quad(f, 0.0, 1.0),
    "solve_ivp": lambda f: integrate.solve_ivp(lambda t, y: f(y), (0.0, 1.0), [1.0]),
    "solve": lambda f: wg.integrate.solve(lambda t, y: f(y), (0.0, 1.0), X),
    "nlp": lambda f: wg.optim.nlp(f, X, method="trust-constr"),
    "minimize of optim": lambda f: wg.optim.minimize(f, X),
}


class Mine(Exception):
    """An exception of the user's."""


@pytest.mark.parametrize("kind", [Mine, ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("name", SOLVES)
def test_it_comes_out(name, kind):
    def f(x):
        raise kind("mine")

    before = np.geterr()
    with pytest.raises(kind, match="mine"):
        SOLVES[name](f)
    assert np.geterr() == before
    assert optimize.brentq(lambda x: x * x - 2.0, 0.0, 2.0) == pytest.approx(2.0**0.5)
