"""Time loops over arrays divided among processes: gradients, with and without `memory`."""

from __future__ import annotations

import importlib.util

import numpy as np
from tests.distributed.launch import ROOT
from tests.distributed.sampling import by_turns, ways

import wengert as wg
from wengert import distributed as d


def _heat(grid, steps, memory, apart):
    """A loss of a time loop on blocks with borders of two elements, and the same serially."""

    def advance(u, k):
        y = u[1:-1, 1:-1]
        flow = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * y
        return y + 0.1 * k * flow + 0.01 * np.sin(y)

    def inner(u, k):
        u = advance(u, k[1:-1, 1:-1])
        return advance(u, k[2:-2, 2:-2])

    def loss(u, k):
        k = d.halo_exchange(np.pad(k, 2), grid, 2)

        def step(_, u):
            if apart:
                new = d.map_overlap(inner, u, grid, 2, others=[k])
            else:
                new = inner(d.halo_exchange(u, grid, 2), k)
            return np.pad(new, 2)

        u = wg.fori_loop(0, steps, step, np.pad(u, 2), memory=memory)
        return d.allreduce(np.sum(u[2:-2, 2:-2] ** 2))

    def serial(u, k):
        k = np.pad(k, 2, mode="wrap")
        for _ in range(steps):
            u = inner(np.pad(u, 2, mode="wrap"), k)
        return np.sum(u**2)

    return loss, serial


def check_time_loops_have_the_serial_gradient(comm):
    """With respect to the first field and to a field of parameters, with and without `memory`."""
    lengths = (2, comm.size // 2) if comm.size % 2 == 0 else (comm.size, 1)
    grid = comm.cartesian(lengths, True)
    n, m = (10 * c for c in grid.shape)
    u, k = np.random.default_rng(4).uniform(0.5, 1.0, size=(2, n, m))
    own = tuple(slice(10 * c, 10 * c + 10) for c in grid.coordinates)
    serial = _heat(grid, 7, None, False)[1]
    value, expected = wg.value_and_grad(serial, argnums=(0, 1))(u, k)
    for number, memory in enumerate((None, 3)):
        for apart in by_turns(number, (False, True)):
            loss, _ = _heat(grid, 7, memory, apart)
            runs = [wg.jit] if memory or apart else [wg.jit, lambda f: f]
            for run in runs:
                got, gradients = run(wg.value_and_grad(loss, argnums=(0, 1)))(u[own], k[own])
                np.testing.assert_allclose(got, value, rtol=1e-13)
                for mine, whole in zip(gradients, expected, strict=True):
                    np.testing.assert_allclose(mine, whole[own], rtol=1e-11, atol=1e-13)


def check_kept_states_are_equal(comm):
    """Loops that keep different numbers of states would repeat different messages."""
    if comm.size == 1:
        return
    grid = comm.cartesian((comm.size, 1), True)
    loss, _ = _heat(grid, 20, 3 + comm.rank, False)
    u = np.ones((10, 10))
    try:
        wg.jit(wg.grad(loss))(u, u)
    except wg.errors.CommunicationError:
        pass
    else:
        raise AssertionError("no error")


def check_shallow_water_example(comm):
    """The example on any number of processes: heights, misfit and gradients of the whole basin."""
    spec = importlib.util.spec_from_file_location(
        "shallow_water", ROOT / "examples" / "shallow_water.py"
    )
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    for cells, steps in by_turns(1, [((24, 36), 25), ((12, 16), 9)]):
        _check_basin(example, cells, steps)


def _check_basin(example, cells, steps):
    depth, sea, height = example.basin(cells)
    heights, misfit = example.whole(cells, steps)
    observed = 0.3 * heights(height, depth) + 0.01 * sea
    blocks = example.Blocks(cells, steps, memory=4)
    own = blocks.own

    value, expected = wg.value_and_grad(misfit, argnums=(0, 1))(height, depth, observed)
    arguments = height[own], depth[own], observed[own]
    for run in ways(0):
        got, gradients = run(wg.value_and_grad(blocks.misfit, argnums=(0, 1, 2)))(*arguments)
        np.testing.assert_allclose(got, value, rtol=1e-12)
        for mine, whole in zip(gradients[:2], expected, strict=True):
            scale = np.max(np.abs(whole))
            np.testing.assert_allclose(mine, whole[own], rtol=1e-11, atol=1e-12 * scale)
        # The misfit with respect to what is observed is the difference of the heights.
        last = arguments[2] - gradients[2]
        np.testing.assert_allclose(last, heights(height, depth)[own], rtol=1e-12, atol=1e-14)
