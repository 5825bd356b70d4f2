"""The first temperatures of a rod from its last ones: an inverse problem of the heat equation.

50 implicit steps in time, 200 points, one factorization: all steps and all adjoint steps solve with
the same matrix, whose factors are kept.  Measurements have noise, and the problem is ill-posed, so
the curvature of the solution is penalized.  The misfit is minimized by L-BFGS with the exact
gradient, compiled.

    compared with  the solution of the normal equations, with the dense matrix of all steps

    python examples/inverse_heat.py --out out

Writes inverse_heat.png to the folder `out`.  Fails unless both solutions agree.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from matplotlib.figure import Figure
from scipy import optimize

import wengert as wg
from wengert.scipy.sparse import linalg

POINTS, STEPS = 200, 50
INTERVAL, DIFFUSIVITY = 2e-4, 0.1
NOISE, PENALTY = 0.01, 1e-3


def laplacian():
    """Second differences; the ends of the rod are kept at zero."""
    line = np.ones(POINTS - 1)
    matrix = sp.diags_array([line, -2.0 * np.ones(POINTS), line], offsets=[-1, 0, 1])
    return (POINTS + 1) ** 2 * matrix


def last(first):
    """Temperatures after all steps."""
    step = linalg.splu((sp.eye_array(POINTS) - INTERVAL * DIFFUSIVITY * laplacian()).tocsc())
    for _ in range(STEPS):
        first = step.solve(first)
    return first


def picture(path, x, true, measured, found):
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(x, true, color="C7", linewidth=4, alpha=0.4, label="first, true")
    axes.plot(x, found, label="first, found")
    axes.plot(x, measured, "k.", markersize=2, label="last, measured")
    axes.set(xlabel="position", ylabel="temperature")
    axes.legend()
    figure.savefig(path, dpi=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    x = np.arange(1, POINTS + 1) / (POINTS + 1)
    true = np.exp(-((x - 0.3) ** 2) / 0.004) + 0.6 * np.exp(-((x - 0.7) ** 2) / 0.008)
    measured = last(true) + NOISE * rng.normal(size=POINTS)

    def loss(first):
        curvature = np.diff(first, 2, prepend=0.0, append=0.0)
        return np.sum((last(first) - measured) ** 2) + 1e4 * PENALTY * np.sum(curvature**2)

    found = optimize.minimize(
        wg.jit(wg.value_and_grad(loss)), np.zeros(POINTS), jac=True, method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 10_000, "ftol": 0.0, "gtol": 1e-9},
    )  # fmt: skip
    steps = wg.jit(wg.jacobian(last))(np.zeros(POINTS))
    second = np.diff(np.eye(POINTS), 2, axis=0, prepend=0.0, append=0.0)
    normal = steps.T @ steps + 1e4 * PENALTY * second.T @ second
    off = np.max(np.abs(found.x - np.linalg.solve(normal, steps.T @ measured)))
    error = np.sqrt(np.mean((found.x - true) ** 2) / np.mean(true**2))
    unknown = np.sqrt(np.mean((measured - true) ** 2) / np.mean(true**2))
    print(f"{STEPS} implicit steps, {POINTS} points: {found.nfev} values and gradients")
    print(f"  deviation from the normal equations {off:.1e}")
    print(f"relative error of the first temperatures {100 * error:.1f} %")
    print(f"  of the last ones, if taken for the first {100 * unknown:.1f} %")
    picture(options.out / "inverse_heat.png", x, true, measured, found.x)
    print(f"wrote {options.out / 'inverse_heat.png'}")
    if off > 1e-4 or error > 0.5 * unknown:
        sys.exit("the solutions differ")


if __name__ == "__main__":
    main()
