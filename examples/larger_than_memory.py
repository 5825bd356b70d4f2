"""Logistic regression on data that do not fit in memory, with Dask.

The data are made on demand, partition by partition, by a seeded function, as a program would read
the files of a data set.  Two worker processes with a memory limit add the log-likelihood, its
gradient and its Hessian over the partitions; L-BFGS of SciPy needs nothing but these sums.  The
inverse of the Hessian is the covariance of the estimates, which are compared with the coefficients
that the data were made with.

    python examples/larger_than_memory.py
    python examples/larger_than_memory.py --partitions 8 --rows 2000    # small
"""

import argparse
import resource
import sys
import time

import numpy as np
from scipy.optimize import minimize

import wengert as wg
from wengert.distributed import sum_over

FEATURES = 20
COEFFICIENTS = np.linspace(-1.0, 1.0, FEATURES)
MIB = 2**20


def partition(index, rows):
    """The function that makes a partition, in the worker: features, and outcomes 0 or 1."""

    def make():
        rng = np.random.default_rng((2026, index))
        x = rng.random((rows, FEATURES))
        x -= 0.5
        probability = 1.0 / (1.0 + np.exp(-(x @ COEFFICIENTS)))
        return x, (rng.random(rows) < probability).astype(np.float64)

    return make


def minus_log_likelihood(w, x, y):
    """The negative log-likelihood of a partition."""
    z = x @ w
    return np.sum(np.logaddexp(0.0, z) - y * z)


def peak_memory():
    """The largest amount of memory that this process has used, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fit(client, partitions, rows):
    """Maximum-likelihood estimates, their standard errors, and SciPy's report."""
    data = [partition(index, rows) for index in range(partitions)]
    total = sum_over(minus_log_likelihood, data, executor=client)
    count = partitions * rows

    def objective(w):  # per observation, so that L-BFGS can begin with steps of length one
        value, gradient = total.value_and_grad(w)
        return value / count, gradient / count

    result = minimize(
        objective, np.zeros(FEATURES), jac=True, method="L-BFGS-B", options={"gtol": 1e-7}
    )
    covariance = np.linalg.inv(wg.hessian(total)(result.x))  # one pass over the data
    return result.x, np.sqrt(np.diag(covariance)), result


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--partitions", type=int, default=64)
    parser.add_argument("--rows", type=int, default=100_000, help="of each partition")
    parser.add_argument("--limit", type=int, default=400, help="memory of a worker in MiB")
    options = parser.parse_args()

    from distributed import Client, LocalCluster

    size = options.partitions * options.rows * (FEATURES + 1) * 8 / MIB
    print(f"data                {size:.0f} MiB in {options.partitions} partitions")
    print(f"memory of workers   2 x {options.limit} MiB")
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=options.limit * MIB,
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        start = time.perf_counter()
        estimates, errors, result = fit(client, options.partitions, options.rows)
        seconds = time.perf_counter() - start
        peak = max(client.run(peak_memory).values())
    deviation = np.max(np.abs(estimates - COEFFICIENTS) / errors)
    print(f"passes over data    {result.nfev + 1}")
    print(f"seconds             {seconds:.1f}")
    print(f"peak memory         {peak:.0f} MiB of a worker")
    print(f"log-likelihood      {-result.fun:.6f} per observation")
    print(f"largest deviation   {deviation:.2f} standard errors")
    if not result.success or deviation > 4.5 or peak > options.limit:
        print("the fit has failed", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
