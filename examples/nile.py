"""The local level model of the Nile's flow by maximum likelihood, with the Kalman filter.

The yearly flow y is a level that performs a random walk, plus noise:

    y_t         = level_t + e_t,   e_t ~ N(0, sigma_e^2)
    level_{t+1} = level_t + n_t,   n_t ~ N(0, sigma_n^2)

The Kalman filter, a scan over the years, gives the likelihood of the two variances.  It is
maximized by Newton's method (SciPy's trust region) with wengert's gradient and Hessian, compiled
with the loop.  Estimates and maximum are compared with published ones.  The smoothed level is a
derivative too: the noise of a year is minus sigma_e^2 times the derivative of the log-likelihood
with respect to that year's flow, so no separate smoother is needed.

    data          10^8 cubic meters at Aswan, 1871-1970; G. W. Cobb, "The problem of the Nile",
                  Biometrika 65, 243-251, 1978
    published     J. Durbin and S. J. Koopman, "Time Series Analysis by State Space Methods", 2001:
                  variances 15099 and 1469.1; D. Beijers, "statespacer", 2023: log-likelihood
                  -633.4646

    python examples/nile.py
"""

import sys

import numpy as np
from scipy.optimize import minimize

import wengert as wg

FLOW = np.array(
    """1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140
    1100 1210 1150 1250 1260 1220 1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969 831
    726 456 824 702 1120 1100 832 764 821 768 845 864 862 698 845 744 796 1040 759 781 865 845 944
    984 897 822 1010 771 676 649 846 812 742 801 1040 860 874 848 890 744 749 838 1050 918 986 797
    923 975 815 1020 906 901 1170 912 746 919 718 714 740""".split(),
    dtype=float,
)


def log_likelihood(logs, flow):
    """The log-likelihood of the logarithms of both variances, with a diffuse initial level."""
    noise, change = np.exp(logs[0]), np.exp(logs[1])

    def year(state, y):
        level, variance = state
        v, f = y - level, variance + noise
        gain = variance / f
        after = level + gain * v, variance * (1.0 - gain) + change
        return after, -0.5 * (np.log(2.0 * np.pi) + np.log(f) + v * v / f)

    start = flow[0], noise + change  # the first flow determines the level only
    _, terms = wg.scan(year, start, flow[1:])
    return -0.5 * np.log(2.0 * np.pi) + np.sum(terms)


def fit():
    """Variances, standard errors of their logarithms, the maximum, and SciPy's report."""

    def minus(logs):
        return -log_likelihood(logs, FLOW)

    hessian = wg.jit(wg.hessian(minus))
    result = minimize(
        wg.jit(wg.value_and_grad(minus)),
        np.log([10_000.0, 1_000.0]),
        jac=True,
        hess=hessian,
        method="trust-exact",
        options={"gtol": 1e-9},
    )
    errors = np.sqrt(np.diag(np.linalg.inv(hessian(result.x))))
    return np.exp(result.x), errors, -result.fun, result


def smoothed(variances):
    """The level of each year, given all flows."""
    by_flow = wg.jit(wg.grad(log_likelihood, 1))(np.log(variances), FLOW)
    return FLOW + variances[0] * by_flow


def smoothed_by_regression(variances):
    """The same by its definition, least squares for all levels."""
    n = len(FLOW)
    steps = np.diff(np.eye(n), axis=0)
    precision = np.eye(n) / variances[0] + steps.T @ steps / variances[1]
    return np.linalg.solve(precision, FLOW / variances[0])


def main():
    variances, errors, maximum, result = fit()
    print(f"the Nile at Aswan, 1871-1970: local level model, {result.nit} iterations")
    rows = [("sigma_e^2", variances[0], 15099.0), ("sigma_n^2", variances[1], 1469.1)]
    rows.append(("log-likelihood", maximum, -633.4646))
    for name, found, printed in rows:
        print(f"  {name:16}{found:14.4f}   published {printed}")
    worst = max(abs(found / printed - 1.0) for _, found, printed in rows)
    print(f"  standard errors of the logarithms {errors[0]:.3f} and {errors[1]:.3f}")
    level = smoothed(variances)
    off = np.abs(level - smoothed_by_regression(variances)).max()
    print(
        f"  level in 1890 {level[19]:.1f}, in 1910 {level[39]:.1f}; regression differs by {off:.1e}"
    )
    print(f"largest relative deviation from published values: {worst:.1e}")
    if worst > 1e-4 or off > 1e-8:
        print("the result differs from the published one", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
