"""Parameter estimation of the Lotka-Volterra equations from the Hudson's Bay fur trade.

The Hudson's Bay Company recorded the pelts that it bought, of hares and lynxes.  The equations

    du/dt = (alpha - beta v) u        hares u
    dv/dt = (delta u - gamma) v       lynxes v

are integrated by the classical Runge-Kutta method (a scan over years, a loop over the steps in a
year).  Parameters, the state in 1900 and the size of the errors maximize the posterior density, by
SciPy with wengert's gradient and Hessian, both compiled with their loops; the inverse of the
Hessian gives standard errors.

    data             thousands of pelts, 1900 to 1920; C. G. Hewitt, "The Conservation of the Wild
                     Life of Canada", 1921, and as tabulated by P. Howard, "Modeling Basics", 2009
    model            B. Carpenter, "Predator-Prey Population Dynamics: the Lotka-Volterra model in
                     Stan", 2018, whose priors are used, and whose posterior means of the rates are
                     printed for comparison.  (The mean is not the mode: they agree within a
                     fraction of a standard error, not exactly.)

    python examples/lynx_hare.py
"""

import sys

import numpy as np
from scipy.optimize import minimize

import wengert as wg

HARES = np.array(
    """30.0 47.2 70.2 77.4 36.3 20.6 18.1 21.4 22.0 25.4 27.1 40.3 57.0 76.6 52.3 19.5 11.2 7.6
    14.6 16.2 24.7""".split(),
    dtype=float,
)
LYNXES = np.array(
    """4.0 6.1 9.8 35.2 59.4 41.7 19.0 13.0 8.3 9.1 7.4 8.0 12.3 19.5 45.7 51.1 29.7 15.8 9.7 10.1
    8.6""".split(),
    dtype=float,
)
YEARS = len(HARES)
STEPS = 20  # per year
NAMES = "alpha beta gamma delta hares_1900 lynxes_1900 sigma_hares sigma_lynxes".split()
PRINTED = [0.55, 0.028, 0.80, 0.024]  # posterior means of the rates


def step(rates, state, h):
    """One step of the classical Runge-Kutta method."""
    alpha, beta, gamma, delta = rates

    def slope(u, v):
        return (alpha - beta * v) * u, (delta * u - gamma) * v

    u, v = state
    a, b = slope(u, v)
    c, d = slope(u + 0.5 * h * a, v + 0.5 * h * b)
    e, f = slope(u + 0.5 * h * c, v + 0.5 * h * d)
    i, j = slope(u + h * e, v + h * f)
    return u + h / 6 * (a + 2 * c + 2 * e + i), v + h / 6 * (b + 2 * d + 2 * f + j)


def populations(rates, first):
    """Numbers of hares and lynxes in each year."""

    def year(state, _):
        later = wg.fori_loop(0, STEPS, lambda _, s: step(rates, s, 1.0 / STEPS), state)
        return later, state

    _, (hares, lynxes) = wg.scan(year, first, None, length=YEARS)
    return hares, lynxes


def minus_log_posterior(logs):
    """The negative log-posterior density of the parameters, as a function of their logarithms."""
    alpha, beta, gamma, delta, u, v = [np.exp(x) for x in logs[:6]]
    hares, lynxes = populations((alpha, beta, gamma, delta), (u, v))
    value = 0.0
    for x, mean in ((alpha, 1.0), (gamma, 1.0), (beta, 0.05), (delta, 0.05)):  # normal
        value = value + 0.5 * ((x - mean) / min(mean, 0.5)) ** 2
    for log, mean in zip(logs[4:], np.log([10.0, 10.0, np.exp(-1), np.exp(-1)]), strict=True):
        value = value + 0.5 * (log - mean) ** 2 + log  # lognormal
    for counts, expected, log_sigma in ((HARES, hares, logs[6]), (LYNXES, lynxes, logs[7])):
        z = (np.log(counts) - np.log(expected)) * np.exp(-log_sigma)
        value = value + 0.5 * np.sum(z * z) + YEARS * log_sigma
    return value


def fit():
    """Parameters, their standard errors, and SciPy's report."""
    result = minimize(
        wg.jit(wg.value_and_grad(minus_log_posterior)),
        np.log([0.5, 0.03, 0.8, 0.03, 30.0, 5.0, 0.3, 0.3]),
        jac=True,
        hess=wg.jit(wg.hessian(minus_log_posterior)),
        method="trust-exact",
        options={"gtol": 1e-8},
    )
    estimates = np.exp(result.x)
    covariance = np.linalg.inv(wg.jit(wg.hessian(minus_log_posterior))(result.x))
    return estimates, estimates * np.sqrt(np.diag(covariance)), result


def main():
    estimates, errors, result = fit()
    print(f"Lotka-Volterra, Hudson's Bay Company, 1900-1920: {result.nit} iterations")
    print(f"  {'':14}{'estimate':>10}{'std. error':>12}{'published':>12}")
    worst = 0.0
    printed = [*PRINTED, *[None] * (len(NAMES) - len(PRINTED))]
    for name, estimate, error, mean in zip(NAMES, estimates, errors, printed, strict=True):
        shown = "" if mean is None else f"{mean:12g}"
        worst = max(worst, 0.0 if mean is None else abs(estimate - mean) / error)
        print(f"  {name:14}{estimate:10.4f}{error:12.4f}{shown}")
    print(f"largest gradient {np.abs(result.jac).max():.1e}")
    print(f"largest deviation from published values: {worst:.2f} of a standard error")
    if worst > 0.5 or np.abs(result.jac).max() > 1e-6:
        print("the result differs from the published one", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
