"""Shallow water on a grid of processes: from later heights back to the first, by the adjoint.

A basin with a rock is divided into blocks, one for each process.  In each time step the
processes exchange the borders of their blocks while they compute the inside.  The time loop is
compiled; its gradient, with respect to the first height of the water and to the depth of the basin,
keeps a few time steps only and computes the others again, messages included.  It is compared with
that of a program for the whole basin and with finite differences; then the first height is
recovered from heights that are observed later.

    python examples/shallow_water.py                          # one process
    mpirun -n 4 python examples/shallow_water.py
    mpirun -n 2 python examples/shallow_water.py --cells 24 32 --steps 30
"""

import argparse
import sys

import numpy as np

import wengert as wg
from wengert import distributed

COURANT = 0.3  # time step times wave speed over the size of a cell, for depth one
FRICTION = 2e-3


def step(state, depth, sea):
    """One time step: height and velocities of the cells inside of the borders.

    The velocities are those at the faces between a cell and the next one; faces between cells that
    are not both sea are closed.
    """
    h, u, v = state
    u = sea[:, :-1] * sea[:, 1:] * ((1 - FRICTION) * u[:, :-1] - COURANT * (h[:, 1:] - h[:, :-1]))
    v = sea[:-1] * sea[1:] * ((1 - FRICTION) * v[:-1] - COURANT * (h[1:] - h[:-1]))
    total = depth + h
    flow_x = 0.5 * u * (total[:, :-1] + total[:, 1:])
    flow_y = 0.5 * v * (total[:-1] + total[1:])
    change = flow_x[1:-1, 1:] - flow_x[1:-1, :-1] + flow_y[1:, 1:-1] - flow_y[:-1, 1:-1]
    return np.stack([h[1:-1, 1:-1] - COURANT * change, u[1:-1, 1:], v[1:, 1:-1]])


def with_borders(x):
    """The array with a border of zeros around its last two axes."""
    return np.pad(x, [(0, 0)] * (np.ndim(x) - 2) + [(1, 1), (1, 1)])


def basin(cells):
    """Depth, sea (1) and land (0), and the first height of the water."""
    y, x = (np.arange(n) / n for n in cells)
    y = y[:, None]
    depth = 1.0 + 0.3 * np.cos(3.0 * x) * np.sin(2.0 * y)
    sea = 1.0 * ((x - 0.6) ** 2 + (y - 0.5) ** 2 > 0.15**2)
    height = 0.1 * sea * np.exp(-((x - 0.3) ** 2 + (y - 0.4) ** 2) / 0.02)
    return depth, sea, height


class Blocks:
    """The basin divided among processes."""

    def __init__(self, cells, steps, memory):
        self.grid = distributed.world().cartesian(2)
        self.steps, self.memory, self.cells = steps, memory, cells
        if any(n % m for n, m in zip(cells, self.grid.shape, strict=True)):
            sys.exit(f"{cells} cells cannot be divided among {self.grid.shape} processes")
        inside = [n // m for n, m in zip(cells, self.grid.shape, strict=True)]
        self.own = tuple(
            slice(k * n, (k + 1) * n) for k, n in zip(self.grid.coordinates, inside, strict=True)
        )
        self.sea = distributed.halo_exchange(with_borders(basin(cells)[1][self.own]), self.grid)

    def misfit(self, height, depth, observed):
        """Half the sum of squared differences between heights and observed ones."""
        depth = distributed.halo_exchange(with_borders(depth), self.grid)

        def advance(_, state):
            inside = distributed.map_overlap(
                step, state, self.grid, axes=(1, 2), corners=False, others=(depth, self.sea)
            )
            return with_borders(inside)

        zeros = np.zeros_like(height)
        state = with_borders(np.stack([height, zeros, zeros]))
        state = wg.fori_loop(0, self.steps, advance, state, memory=self.memory)
        difference = state[0, 1:-1, 1:-1] - observed
        return distributed.allreduce(0.5 * np.sum(difference**2))

    def dot(self, a, b):
        """The inner product of two fields of the whole basin."""
        return distributed.allreduce(np.sum(a * b), comm=self.grid)


def whole(cells, steps):
    """The same for the whole basin, without messages."""
    sea = with_borders(basin(cells)[1])

    def heights(height, depth):
        depth = with_borders(depth)
        state = np.stack([height, 0.0 * height, 0.0 * height])

        def advance(_, state):
            return step(with_borders(state), depth, sea)

        return wg.fori_loop(0, steps, advance, state)[0]

    def misfit(height, depth, observed):
        return 0.5 * np.sum((heights(height, depth) - observed) ** 2)

    return heights, misfit


def recovered(blocks, gradient, height, depth, observed, iterations):
    """The first height by gradient descent, with steps of Barzilai and Borwein."""
    rate, before = 0.5, None
    for _ in range(iterations):
        value, slope = gradient(height, depth, observed)
        slope = slope[0]
        if before is not None:
            moved, turned = height - before[0], slope - before[1]
            rate = blocks.dot(moved, moved) / blocks.dot(moved, turned)
        before = height, slope
        height = height - rate * slope
    return height, value


def main(arguments):
    """Compare the gradients, and recover the first height."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cells", type=int, nargs=2, default=[48, 64])
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--memory", type=int, default=12, help="time steps that are kept")
    parser.add_argument("--iterations", type=int, default=60)
    options = parser.parse_args(arguments)
    cells = tuple(options.cells)
    comm = distributed.world()

    def say(*words):
        if comm.rank == 0:
            print(*words, flush=True)

    depth, _, true = basin(cells)
    heights, serial = whole(cells, options.steps)
    observed = wg.jit(heights)(true, depth)
    guess = 0.5 * true + 0.01 * basin(cells)[1]
    expected, (by_height, by_depth) = wg.jit(wg.value_and_grad(serial, argnums=(0, 1)))(
        guess, depth, observed
    )

    blocks = Blocks(cells, options.steps, options.memory)
    own = blocks.own
    gradient = wg.jit(wg.value_and_grad(blocks.misfit, argnums=(0, 1)))
    arguments = guess[own], depth[own], observed[own]
    value, (own_by_height, own_by_depth) = gradient(*arguments)
    say(f"processes {comm.size} as {blocks.grid.shape}, {cells} cells, {options.steps} steps")
    errors = [abs(value - expected) / expected]
    for mine, of_whole in ((own_by_height, by_height), (own_by_depth, by_depth)):
        worst = np.max(np.abs(mine - of_whole[own])) / np.max(np.abs(of_whole))
        errors.append(float(distributed.allreduce(worst, "max")))
    say("relative deviation from the program for the whole basin:")
    for name, error in zip(("misfit", "by height", "by depth"), errors, strict=True):
        say(f"  {name:<10} {error:.1e}")
    assert max(errors) < 1e-11, "the gradients differ from the serial ones"

    direction = np.random.default_rng(1).normal(size=cells)[own]
    along = blocks.dot(own_by_depth, direction)
    values = [
        gradient(guess[own], depth[own] + h * direction, observed[own])[0] for h in (1e-4, -1e-4)
    ]
    error = abs((values[0] - values[1]) / 2e-4 - along) / abs(along)
    say(f"finite difference with respect to the depth: {error:.1e}")
    assert error < 1e-5

    found, value = recovered(blocks, gradient, *arguments, options.iterations)
    left = np.sqrt(blocks.dot(found - true[own], found - true[own]))
    left /= np.sqrt(blocks.dot(guess[own] - true[own], guess[own] - true[own]))
    say(f"misfit {expected:.2e} before, {value:.2e} after {options.iterations} iterations")
    say(f"error of the first height {100 * left:.0f} % of that of the guess")
    assert value < 0.01 * expected, "the first height was not recovered"


if __name__ == "__main__":
    main(sys.argv[1:])
