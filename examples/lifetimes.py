"""Survival analysis by maximum likelihood, with standard errors from the exact Hessian.

Two classical data sets are fitted with the Weibull distribution by scipy.optimize, with exact
gradients and Hessians; the inverse of the Hessian at the maximum is the covariance of the
estimates.  The results are compared with published ones.

    bearings    millions of revolutions until 23 deep-groove ball bearings failed.  J. Lieblein and
                M. Zelen, J. Res. Natl. Bur. Stand. 57(5), 273-316, 1956.  The estimates of mu and
                sigma are in J. F. Lawless, "Statistical Models and Methods for Lifetime Data".
                (Some reprints have 48.40 for 48.48; the digits compared here are the same with
                both.)
    remission   weeks until relapse of leukemia, of 21 children given 6-mercaptopurine and 21 given
                a placebo; some were censored.  E. J. Freireich et al., Blood 21, 699-716, 1963.
                The accelerated-failure-time estimates and standard errors are in D. G. Kleinbaum
                and M. Klein, "Survival Analysis", ch. 7.

The model: log T = mu + sigma W, where W has the density exp(w - e**w) of the smallest extreme
value; T is Weibull with shape 1 / sigma and scale e**mu.  An observed lifetime adds its
log-density, a censored one the log of its survival probability, -e**w.

    python examples/lifetimes.py
"""

import sys

import numpy as np
from scipy.optimize import minimize

import wengert as wg

BEARINGS = np.array(
    """17.88 28.92 33.00 41.52 42.12 45.60 48.48 51.84 51.96 54.12 55.56 67.80 68.64 68.64 68.88
    84.12 93.12 98.64 105.12 105.84 127.92 128.04 173.40""".split(),
    dtype=float,
)

PLACEBO = "1 1 2 2 3 4 4 5 5 8 8 8 8 11 11 12 12 15 17 22 23"
TREATED = "6 6 6 6+ 7 9+ 10 10+ 11+ 13 16 17+ 19+ 20+ 22 23 25+ 32+ 32+ 34+ 35+"  # + is censored


def remission():
    """Weeks, whether the relapse was observed, and whether 6-mercaptopurine was given."""
    words = PLACEBO.split() + TREATED.split()
    weeks = np.array([float(w.rstrip("+")) for w in words])
    observed = np.array([not w.endswith("+") for w in words])
    treated = np.repeat([0.0, 1.0], [len(PLACEBO.split()), len(TREATED.split())])
    return weeks, observed, treated


def minus_log_likelihood(theta, times, observed, design):
    """The negative log-likelihood; `theta` is (coefficients of mu ..., log sigma)."""
    mu, log_sigma = design @ theta[:-1], theta[-1]
    w = (np.log(times) - mu) * np.exp(-log_sigma)
    log_density = w - np.exp(w) - log_sigma - np.log(times)
    return -np.sum(np.where(observed, log_density, -np.exp(w)))


def fit(times, observed, design):
    """Maximum-likelihood estimates, their covariance, the maximum, and SciPy's report."""
    times = np.asarray(times, dtype=float)
    data = (times, observed, design)
    start = np.zeros(design.shape[1] + 1)
    start[0] = np.log(times.mean())
    result = minimize(
        minus_log_likelihood,
        start,
        args=data,
        method="trust-exact",
        jac=wg.grad(minus_log_likelihood),
        hess=wg.hessian(minus_log_likelihood),
        options={"gtol": 1e-10},
    )
    covariance = np.linalg.inv(wg.hessian(minus_log_likelihood)(result.x, *data))
    return result.x, covariance, -result.fun, result


def by_delta_method(quantity, theta, covariance):
    """A function of the estimates and its standard error, sqrt(g' C g), with the exact gradient."""
    value, g = wg.value_and_grad(quantity)(theta)
    return float(value), float(np.sqrt(g @ covariance @ g))


def show(name, rows):
    """Print estimates and published values; return the largest deviation in the last digit.

    A row is (name, (estimate, standard error), (published value, published standard error)); the
    published ones are strings, which show the number of digits.
    """
    print(f"{name}\n  {'':22}{'estimate':>10}{'std. error':>12}   {'published':>10}{'':>10}")
    worst = 0.0
    for label, found, printed in rows:
        for x, text in zip(found, printed, strict=True):
            if text:
                digit = 10.0 ** -len(text.partition(".")[2])
                worst = max(worst, abs(x - float(text)) / digit)
        shown = " ".join(f"{text:>10}" for text in printed)
        print(f"  {label:22}{found[0]:10.4f}{found[1]:12.4f}   {shown}")
    return worst


def bearings():
    """Fit the lifetimes of bearings: shape, scale, and the life that nine of ten survive."""
    design = np.ones((len(BEARINGS), 1))
    theta, covariance, maximum, result = fit(BEARINGS, np.full(len(BEARINGS), True), design)
    quantities = [
        ("mu", lambda t: t[0], "4.405"),
        ("sigma", lambda t: np.exp(t[1]), "0.476"),
        ("shape", lambda t: np.exp(-t[1]), "2.10"),
        ("scale, 10^6 turns", lambda t: np.exp(t[0]), "81.9"),
        ("nine of ten survive", lambda t: np.exp(t[0] + np.exp(t[1]) * np.log(-np.log(0.9))), ""),
    ]
    rows = [
        (label, by_delta_method(quantity, theta, covariance), (printed, ""))
        for label, quantity, printed in quantities
    ]
    worst = show("ball bearings, Lieblein and Zelen 1956", rows)
    print(f"  log-likelihood {maximum:.4f}, {result.nit} iterations with exact Hessians\n")
    return worst


def leukaemia():
    """Fit the factor by which 6-mercaptopurine lengthens remissions."""
    weeks, observed, treated = remission()
    design = np.stack([np.ones_like(treated), treated], axis=1)
    theta, covariance, maximum, result = fit(weeks, observed, design)
    errors = np.sqrt(np.diag(covariance))
    rows = [
        ("treatment", (theta[1], errors[1]), ("1.267", "0.311")),
        ("constant", (theta[0], errors[0]), ("2.248", "0.166")),
        ("log of the shape", (-theta[2], errors[2]), ("0.312", "0.147")),
        ("shape", by_delta_method(lambda t: np.exp(-t[2]), theta, covariance), ("1.366", "0.201")),
    ]
    worst = show("remission of leukaemia, Freireich et al. 1963", rows)
    low, high = np.exp(theta[1] + 1.959964 * errors[1] * np.array([-1.0, 1.0]))
    print(f"  log-likelihood {maximum:.4f}, {result.nit} iterations with exact Hessians")
    print(
        f"  6-mercaptopurine lengthens remissions {np.exp(theta[1]):.2f}-fold "
        f"(95 % interval {low:.2f} to {high:.2f})\n"
    )
    return worst


def main():
    worst = max(bearings(), leukaemia())
    print(f"largest deviation from published values: {worst:.2f} of the last digit")
    if worst > 0.51:
        print("the deviation is larger than rounding", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
