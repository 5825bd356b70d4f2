"""GARCH(1,1) of stock returns by maximum likelihood, with robust standard errors.

GARCH(1,1) is a recurrence for the variance h of a day's return y = mu + e,

    h' = omega + alpha e^2 + beta h

so the likelihood is a loop over days.  It is maximized with wengert's gradient and Hessian through
that loop, in parameters that keep h positive and alpha + beta below one.  At the maximum the
Hessian gives the usual standard errors; with the derivatives of each day's term (one Jacobian with
a thousand rows) it gives robust ones, which do not assume normal returns (T. Bollerslev and
J. M. Wooldridge, Econometric Reviews 11, 143-172, 1992).

    data          daily closing prices of Google, 19 August 2004 to 14 October 2008, 1047 days,
                  shipped with matplotlib (`goog.npz`, from Yahoo Finance)
    check         the likelihood is computed again by a plain loop, and its gradient by finite
                  differences; the derivative-free method of Nelder and Mead finds the same
                  maximum

    python examples/volatility.py
"""

import sys

import numpy as np
from matplotlib import cbook
from scipy.optimize import minimize

import wengert as wg


def returns():
    """Daily returns in percent, and the days."""
    with np.load(cbook.get_sample_data("goog.npz", asfileobj=False)) as file:
        prices = file["price_data"]
    return 100.0 * np.diff(np.log(prices["adj_close"])), prices["date"][1:]


def constrained(free):
    """(mu, omega, alpha, beta) from four unconstrained numbers."""
    weights = np.exp(free[2:4])
    share = weights / (1.0 + np.sum(weights))
    return free[0], np.exp(free[1]), share[0], share[1]


def variances(theta, y):
    """The conditional variance of each day, and the squared errors."""
    mu, omega, alpha, beta = theta
    squares = (y - mu) ** 2
    first = np.mean(squares)

    def day(h, e2):
        return omega + alpha * e2 + beta * h, h

    return wg.scan(day, first, squares)[1], squares


def terms(theta, y):
    """The log-likelihood of each day."""
    h, squares = variances(theta, y)
    return -0.5 * (np.log(2.0 * np.pi) + np.log(h) + squares / h)


def minus_log_likelihood(free, y):
    return -np.sum(terms(constrained(free), y))


def by_a_plain_loop(free, y):
    """The negative log-likelihood in plain Python."""
    mu, omega, alpha, beta = (float(x) for x in constrained(free))
    h, total = float(np.mean((y - mu) ** 2)), 0.0
    for e in y - mu:
        total += 0.5 * (np.log(2.0 * np.pi) + np.log(h) + e * e / h)
        h = omega + alpha * e * e + beta * h
    return total


def fit(y):
    """SciPy's result of maximizing the likelihood over the free parameters."""
    start = np.array([0.1, np.log(0.2), np.log(1.0), np.log(15.0)])
    value_and_grad = wg.jit(wg.value_and_grad(minus_log_likelihood))
    hessian = wg.jit(wg.hessian(minus_log_likelihood))
    return minimize(
        value_and_grad, start, (y,), "trust-exact", jac=True, hess=hessian, options={"gtol": 1e-8}
    )


def standard_errors(theta, y):
    """Usual standard errors, and robust ones, which do not assume normal returns."""
    total = wg.jit(wg.hessian(lambda theta: -np.sum(terms(theta, y))))
    scores = wg.jit(wg.jacobian(lambda theta: terms(theta, y)))(theta)
    bread = np.linalg.inv(total(theta))
    return np.sqrt(np.diag(bread)), np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread))


def main():
    y, days = returns()
    result = fit(y)
    theta = np.array(constrained(result.x))
    usual, robust = standard_errors(theta, y)
    print(f"GARCH(1,1) of {len(y)} daily returns of Google, {days[0]} to {days[-1]}")
    print(f"  {'':8}{'estimate':>10}{'std. error':>12}{'robust':>10}")
    for name, *row in zip("mu omega alpha beta".split(), theta, usual, robust, strict=True):
        print(f"  {name:8}{row[0]:10.4f}{row[1]:12.4f}{row[2]:10.4f}")
    print(f"  log-likelihood {-result.fun:.4f}, {result.nit} iterations with exact Hessians")

    steps = 1e-6 * np.eye(4)
    plain = [[by_a_plain_loop(result.x + sign * s, y) for s in steps] for sign in (1, -1)]
    slope = np.abs(np.subtract(*plain) / 2e-6).max()
    again = minimize(by_a_plain_loop, result.x + 0.1, (y,), "Nelder-Mead", options={"fatol": 1e-7})
    value = abs(by_a_plain_loop(result.x, y) - result.fun)
    moved = np.abs(np.array(constrained(again.x)) - theta).max()
    print(f"  a plain loop differs by {value:.1e}, its slope there is at most {slope:.1e}")
    print(f"  without derivatives: {again.nfev} calls, parameters differ by {moved:.1e}")

    h, _ = variances(theta, y)
    calm, wild = int(np.argmin(h)), int(np.argmax(h))
    for word, day in (("lowest", calm), ("highest", wild)):
        print(f"  {word} volatility on {days[day]}: {np.sqrt(252 * h[day]):.0f} % per year")
    if value > 1e-9 or slope > 1e-3 or moved > 1e-2 or again.fun < result.fun - 1e-9:
        print("the maximum was not found", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
