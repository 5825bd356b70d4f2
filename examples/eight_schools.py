"""Hamiltonian Monte Carlo for the eight schools problem, the whole chain as one native function.

Eight schools coached students for a test; each effect was measured with a known error.  The
effects theta_j are drawn from N(mu, tau^2):

    y_j ~ N(theta_j, sigma_j^2),  theta_j = mu + tau z_j,  z_j ~ N(0, 1)
    mu ~ N(0, 5^2),  tau ~ half-Cauchy(5)

A trajectory is a loop of leapfrog steps, each of which needs the gradient of the log-density; the
chain is a scan over trajectories and their random numbers.  When it is compiled, no Python runs
between the first sample and the last.

The samples are compared with the exact posterior: given tau everything is normal, so means and
standard deviations are integrals over tau, computed by quadrature.

    data        D. B. Rubin, "Estimation in parallel randomized experiments", Journal of Educational
                Statistics 6, 377-401, 1981; the model is that of A. Gelman et al., "Bayesian Data
                Analysis", 3rd ed., section 5.5, with the usual priors of sampler benchmarks
    method      R. M. Neal, "MCMC using Hamiltonian dynamics", 2011

    python examples/eight_schools.py [--draws 20000]
"""

import argparse
import sys
import time

import numpy as np
from scipy.integrate import quad_vec

import wengert as wg

EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERROR = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
LEAPS = 12  # leapfrog steps per trajectory
STEP = 0.28
NAMES = ["mu", "tau", *[f"school {letter}" for letter in "ABCDEFGH"]]


def log_density(q):
    """The log-density of (mu, log tau, z), up to a constant."""
    mu, log_tau, z = q[0], q[1], q[2:]
    tau = np.exp(log_tau)
    residual = (EFFECT - mu - tau * z) / ERROR
    prior = -0.5 * (mu / 5.0) ** 2 - np.log1p((tau / 5.0) ** 2) + log_tau - 0.5 * np.sum(z * z)
    return prior - 0.5 * np.sum(residual * residual)


def trajectory(q, p, step):
    """Position and momentum after `LEAPS` leapfrog steps."""
    force = wg.grad(log_density)

    def leap(_, state):
        q, p = state
        p = p + 0.5 * step * force(q)
        q = q + step * p
        return q, p + 0.5 * step * force(q)

    return wg.fori_loop(0, LEAPS, leap, (q, p))


def chain(start, momenta, uniforms, steps):
    """Positions, and the acceptance rate."""

    def energy(q, p):
        return log_density(q) - 0.5 * np.sum(p * p)

    def draw(q, row):
        p, u, step = row
        new, new_p = trajectory(q, p, step)
        accepted = np.log(u) < energy(new, new_p) - energy(q, p)
        q = np.where(accepted, new, q)
        return q, (q, accepted)

    _, (positions, accepted) = wg.scan(draw, start, (momenta, uniforms, steps))
    return positions, np.mean(accepted)


def quantities(positions):
    """(mu, tau, theta) of each draw."""
    mu, tau = positions[:, :1], np.exp(positions[:, 1:2])
    return np.concatenate([mu, tau, mu + tau * positions[:, 2:]], axis=1)


def exact():
    """Means and standard deviations, by quadrature over tau."""

    def at(angle):
        """The density of tau = 5 tan(angle), with its prior uniform in the angle, and moments."""
        tau = 5.0 * np.tan(angle)
        v = ERROR**2 + tau**2
        precision = 1.0 / 25.0 + np.sum(1.0 / v)
        mean = np.sum(EFFECT / v) / precision
        log = -0.5 * (np.sum(np.log(v) + EFFECT**2 / v) + np.log(precision) - precision * mean**2)
        share = tau**2 / v  # weight of the measured effect
        theta = mean + share * (EFFECT - mean)
        spread = (1.0 - share) ** 2 / precision + share * ERROR**2
        first = [mean, tau, *theta]
        second = [1.0 / precision + mean**2, tau**2, *(spread + theta**2)]
        return np.exp(log + 30.0) * np.array([1.0, *first, *second])

    # tau^2 has no mean under the prior, but the likelihood falls as tau^-8.
    total, _ = quad_vec(at, 0.0, np.pi / 2 - 1e-9, epsrel=1e-10)
    first, second = (total[1:] / total[0]).reshape(2, -1)
    return first, np.sqrt(second - first**2)


def errors_of(samples, batches=40):
    """Standard errors of the means of correlated draws, from means of batches."""
    means = samples[: len(samples) // batches * batches].reshape(batches, -1, samples.shape[1])
    return means.mean(axis=1).std(axis=0, ddof=1) / np.sqrt(batches)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Sample the posterior of eight schools.")
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    n, rng = options.draws, np.random.default_rng(options.seed)
    inputs = (
        np.zeros(10), rng.normal(size=(n, 10)), rng.random(n), STEP * rng.uniform(0.6, 1.2, n),
    )  # fmt: skip

    sampler = wg.jit(chain)
    begin = time.perf_counter()
    sampler(*inputs)
    middle = time.perf_counter()
    positions, accepted = sampler(*inputs)
    seconds = time.perf_counter() - middle

    samples = quantities(positions[n // 20 :])
    means, deviations = exact()
    errors = errors_of(samples)
    spread_errors = errors_of((samples - means) ** 2) / (2.0 * deviations)
    print(f"eight schools, {n} draws of {LEAPS} leapfrog steps, {100 * accepted:.0f} % accepted")
    print(f"  {'':10}{'mean':>8}{'exact':>8}{'error':>8}   {'deviation':>9}{'exact':>8}")
    for k, name in enumerate(NAMES):
        row = samples[:, k].mean(), means[k], errors[k]
        spread = np.sqrt(np.mean((samples[:, k] - means[k]) ** 2)), deviations[k]
        print(
            f"  {name:10}{row[0]:8.2f}{row[1]:8.2f}{row[2]:8.2f}   {spread[0]:9.2f}{spread[1]:8.2f}"
        )
    worst = np.abs((samples.mean(axis=0) - means) / errors).max()
    spreads = np.sqrt(np.mean((samples - means) ** 2, axis=0))
    worst_spread = np.abs((spreads - deviations) / spread_errors).max()
    print(f"largest deviation of a mean {worst:.2f}, of a deviation {worst_spread:.2f} errors")
    print(
        f"compiled in {middle - begin - seconds:.2f} s; {1e6 * seconds / n:.2f} us per trajectory"
    )
    if max(worst, worst_spread) > 4.0 or not 0.6 < accepted < 0.99:
        print("the samples do not agree with the exact posterior", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
