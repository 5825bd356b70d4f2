"""The conductivity of a plate from its temperatures, by finite elements with 100,489 unknowns.

A plate is heated and kept at zero at its boundary; its conductivity is constant in each of 36
squares, and temperatures are measured with noise at all nodes.  The 36 conductivities are fitted by
least squares: the stiffness matrix is assembled in the program (200,000 triangles), one sparse
factorization gives the temperatures and, by the adjoint equation, the gradient.

    compared with  the conductivities with which the data were made; finite differences

    python examples/conductivity.py --side 317 --out out

Writes conductivity.png to the folder `out`.  Fails if a conductivity is wrong by more than 5 %.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy import optimize

import wengert as wg
from wengert.scipy.sparse import coo_array
from wengert.scipy.sparse.linalg import spsolve

SQUARES = 6  # in each direction
LOCAL = 0.5 * np.array([[2.0, -1.0, -1.0], [-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
NOISE = 0.01  # of the greatest temperature


class Plate:
    """A grid of so many inner nodes in each direction; each of its cells is two triangles."""

    def __init__(self, side):
        self.side = side
        inner = np.full((side + 2, side + 2), -1)
        inner[1:-1, 1:-1] = np.arange(side**2).reshape(side, side)
        a, b, c, d = (
            part.ravel()
            for part in (inner[:-1, :-1], inner[1:, :-1], inner[:-1, 1:], inner[1:, 1:])
        )
        nodes = np.concatenate([np.stack([a, b, c], 1), np.stack([d, c, b], 1)])
        rows, columns = np.repeat(nodes, 3, axis=1).ravel(), np.tile(nodes, (1, 3)).ravel()
        inside = (rows >= 0) & (columns >= 0)
        self.rows, self.columns = rows[inside], columns[inside]
        self.entries = np.tile(LOCAL.ravel(), len(nodes))[inside]
        cell = np.arange(side + 1) * SQUARES // (side + 1)
        square = (cell[:, None] * SQUARES + cell).ravel()
        self.square = np.repeat(np.tile(square, 2), 9)[inside]

    def temperatures(self, logs):
        """At all nodes, for the logarithms of the conductivities."""
        n = self.side**2
        values = np.exp(logs)[self.square] * self.entries
        stiffness = coo_array((values, (self.rows, self.columns)), shape=(n, n)).tocsr()
        return spsolve(stiffness, np.full(n, 1.0 / (self.side + 1) ** 2))


def picture(path, true, found, measured):
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    titles = ("measured temperatures", "true conductivities", "conductivities found")
    for axes, title, values in zip(
        figure.subplots(1, 3), titles, (measured, true, found), strict=True
    ):
        image = axes.imshow(values, origin="lower", extent=(0, 1, 0, 1))
        axes.set(title=title, xticks=(), yticks=())
        figure.colorbar(image, ax=axes, shrink=0.8)
    figure.savefig(path, dpi=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=317, help="inner nodes in each direction")
    parser.add_argument("--at-most", type=float, default=0.05, help="relative error allowed")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    plate = Plate(options.side)
    true = np.log(rng.uniform(0.5, 2.0, SQUARES**2))
    exact = plate.temperatures(true)
    measured = exact + NOISE * exact.max() * rng.normal(size=exact.size)

    def misfit(logs):
        return np.mean(((plate.temperatures(logs) - measured) / exact.max()) ** 2)

    gradient, start = wg.jit(wg.value_and_grad(misfit)), np.zeros(SQUARES**2)
    _, slope = gradient(start)
    direction, step = rng.normal(size=start.size), 1e-4
    ends = [misfit(start + h * direction) for h in (step, -step)]
    off = abs((ends[0] - ends[1]) / (2 * step) / (slope @ direction) - 1.0)
    begin = time.perf_counter()
    found = optimize.minimize(
        gradient, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-10, "gtol": 1e-7}
    )
    seconds = time.perf_counter() - begin
    error = np.max(np.abs(np.exp(found.x - true) - 1.0))
    print(f"{exact.size} unknowns, {2 * (options.side + 1) ** 2} triangles")
    print(f"  {found.nfev} values and gradients in {seconds:.1f} s")
    print(f"  finite differences deviate by {off:.1e}")
    print(f"largest relative error of a conductivity {100 * error:.2f} %")
    squares = [np.exp(logs).reshape(SQUARES, SQUARES) for logs in (true, found.x)]
    shape = options.side, options.side
    picture(options.out / "conductivity.png", *squares, measured.reshape(shape))
    print(f"wrote {options.out / 'conductivity.png'}")
    if error > options.at_most or off > 1e-5:
        sys.exit("a conductivity or the gradient is wrong")


if __name__ == "__main__":
    main()
