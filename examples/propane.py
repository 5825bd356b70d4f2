"""The chemical equilibrium of propane that burns in air, and how it depends on pressure and air.

Five unknowns, amounts of products, satisfy five polynomial equations, which scipy.optimize.root
solves.  The derivative of the solution with respect to pressure and to the ratio of air to fuel is
that of the equations, by the implicit function theorem.

    equations      K. Meintjes and A. P. Morgan, "Chemical equilibrium systems as numerical test
                   problems", ACM Trans. Math. Softw. 16, 143-151, 1990
    compared with  the root that collections of test problems print; finite differences

    python examples/propane.py --out out

Writes propane.png to the folder `out`.  Fails if the root or a derivative differs.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy import optimize

import wengert as wg

PRINTED = np.array([0.003114102, 34.59792428, 0.065041778, 0.859378063, 0.036951859])
PRESSURE, AIR = 40.0, 10.0
START = np.array([0.005, 20.0, 0.1, 1.0, 0.05])


def residual(x, pressure, air):
    """The equations."""
    root = np.sqrt(pressure)
    r5, r6, r7 = 0.193, 0.002597 / root, 0.003448 / root
    r8, r9, r10 = 0.00001799 / pressure, 0.0002155 / root, 0.00003846 / pressure
    a, b, c, d, e = x
    return np.stack(
        [
            a * b + a - 3.0 * e,
            2.0 * a * b + a + b * c**2 + r8 * b - air * e + 2.0 * r10 * b**2
            + r7 * b * c + r9 * b * d,
            2.0 * b * c**2 + 2.0 * r5 * c**2 - 8.0 * e + r6 * c + r7 * b * c,
            r9 * b * d + 2.0 * d**2 - 4.0 * air * e,
            a * b + a + r10 * b**2 + b * c**2 + r8 * b + r5 * c**2 + d**2 - 1.0
            + r6 * c + r7 * b * c + r9 * b * d,
        ]
    )  # fmt: skip


def equilibrium(pressure, air):
    """The unknowns."""
    return optimize.root(lambda x: residual(x, pressure, air), START, tol=1e-12).x


def elasticities(pressure, air):
    """Relative change of each unknown by relative changes of pressure and of air."""

    def logs(given):
        return np.log(equilibrium(np.exp(given[0]), np.exp(given[1])))

    return wg.jit(wg.jacobian(logs))(np.log(np.array([pressure, air])))


def picture(path, ratios, solutions, slopes):
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for i in range(5):
        left.semilogy(ratios, solutions[:, i], label=f"x{i + 1}")
        right.plot(ratios, slopes[:, i])
    left.set(xlabel="ratio of air to fuel", ylabel="solution")
    right.set(xlabel="ratio of air to fuel", ylabel="d log x / d log ratio")
    left.legend()
    figure.savefig(path, dpi=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    x = equilibrium(PRESSURE, AIR)
    off = np.max(np.abs(x / PRINTED - 1.0))
    exact, step = elasticities(PRESSURE, AIR), 1e-5
    columns = []
    for p, a in ((1.0, 0.0), (0.0, 1.0)):
        ends = [
            np.log(equilibrium(PRESSURE * np.exp(h * p), AIR * np.exp(h * a)))
            for h in (step, -step)
        ]
        columns.append((ends[0] - ends[1]) / (2 * step))
    deviation = np.max(np.abs(exact - np.stack(columns, axis=1))) / np.max(np.abs(exact))
    print(f"propane in air at {PRESSURE:g} atm: largest deviation from the printed root {off:.1e}")
    print("   x        d log x / d log pressure    d log x / d log air")
    for i in range(5):
        print(f"  {x[i]:10.6f} {exact[i, 0]:14.6f} {exact[i, 1]:22.6f}")
    print(f"finite differences of solutions deviate by {deviation:.1e}")
    ratios = np.linspace(8.5, 12.0, 71)
    solve = wg.jit(wg.vmap(lambda r: equilibrium(PRESSURE, r)))
    slope = wg.jit(wg.vmap(lambda r: wg.jvp(lambda q: equilibrium(PRESSURE, q), (r,), (r,))[1]))
    solutions = solve(ratios)
    slopes = slope(ratios) / solutions
    picture(options.out / "propane.png", ratios, solutions, slopes)
    print(f"wrote {options.out / 'propane.png'}")
    if off > 1e-6 or deviation > 1e-6 or not np.all(np.isfinite(slopes)):
        sys.exit("the root or its derivative differs")


if __name__ == "__main__":
    main()
