"""Borders of arrays divided among processes: values, derivatives, overlap, and failures."""

from __future__ import annotations

import itertools

import numpy as np
from tests.distributed.sampling import sampled, ways

import wengert as wg
from wengert import distributed as d
from wengert import numpy as wnp


def _grids(comm):
    n = comm.size
    lengths = (2, n // 2) if n % 2 == 0 else (n, 1)
    return [
        (comm.cartesian((n,), periodic), periodic, shape)
        for shape, periodic in (((6,), True), ((7, 3), False))
    ] + [
        (comm.cartesian(lengths, periodic), periodic, (6, 8, 2))
        for periodic in ((True, True), (False, False), (True, False))
    ]


def _own(whole, grid, widths):
    """The block of this process of an array with borders around the whole domain."""
    index = []
    for k, w in enumerate(widths):
        inside = (whole.shape[k] - 2 * w) // grid.shape[k]
        start = grid.coordinates[k] * inside
        index.append(slice(start, start + inside + 2 * w))
    return whole[tuple(index)]


def _with_borders(inside, grid, widths):
    """The array with its periodic borders; at ends that are not periodic with other numbers."""
    whole = inside
    for k, w in enumerate(widths):
        pad = [(w, w) if a == k else (0, 0) for a in range(inside.ndim)]
        if grid.periodic[k]:
            whole = np.pad(whole, pad, mode="wrap")
        else:
            whole = np.pad(whole, pad, constant_values=7.0 + k)
    return whole


def _example(grid, shape, w):
    """The block with its right borders, and with unknown borders where there are neighbors."""
    widths = [w] * len(grid.shape)
    inner = [n - 2 * w for n in shape[: len(widths)]]
    lengths = [n * m for n, m in zip(inner, grid.shape, strict=True)] + list(shape[len(widths) :])
    whole = _with_borders(np.random.default_rng(5).normal(size=lengths), grid, widths)
    right = _own(whole, grid, widths)
    given = right.copy()
    for k in range(len(widths)):
        before, after = grid.neighbors(k)
        for neighbor, part in ((before, slice(0, w)), (after, slice(-w, None))):
            if neighbor is not None:
                given[(*[slice(None)] * k, part)] = -1e3
    return given, right


def _finished(x, grid, w=1, **options):
    return d.halo_exchange_finish(d.halo_exchange_start(x, grid, w, **options))


def check_borders_are_those_of_the_neighbors(comm):
    for grid, _, shape in _grids(comm):
        for w in (1, 2):
            x, right = _example(grid, shape, w)
            for number, exchange in enumerate((d.halo_exchange, _finished)):
                for run in ways(number + w):
                    got = run(lambda x, e=exchange, g=grid, w=w: e(x, g, w))(x)
                    np.testing.assert_array_equal(got, right)
            axes = tuple(range(len(grid.shape)))
            moved = wg.jit(
                lambda x, g=grid, w=w, a=axes: _finished(x, g, w, axes=[1 + k for k in a])
            )
            np.testing.assert_array_equal(moved(x[None])[0], right)


def check_borders_without_corners(comm):
    for grid, _, shape in _grids(comm):
        x, right = _example(grid, shape, 1)
        k = len(grid.shape)
        faces = np.ones(right.shape, bool)
        if k == 2:
            for i in (0, -1):
                for j in (0, -1):
                    faces[i, j] = False
        for exchange in (d.halo_exchange, _finished):
            got = exchange(x, grid, corners=False)
            np.testing.assert_array_equal(got[faces], right[faces])
            compiled = wg.jit(lambda x, e=exchange, g=grid: e(x, g, corners=False))(x)
            np.testing.assert_array_equal(compiled, got)


def check_transposes(comm):
    """The dot-product law over all processes, for vjp, jvp and the compiled functions."""
    exchanges = (d.halo_exchange, _finished)
    cases = sampled(list(itertools.product(_grids(comm), (True, False), exchanges)))
    for (grid, _, shape), corners, exchange in cases:
        rng = np.random.default_rng((3, comm.rank))
        x, v, t = rng.normal(size=(3, *shape))

        def f(x, exchange=exchange, grid=grid, corners=corners):
            return exchange(x, grid, corners=corners)

        pushed = wg.jvp(f, (x,), (v,))[1]
        pulled = wg.vjp(f, x)[1](t)[0]
        np.testing.assert_allclose(wg.jit(lambda x, v, f=f: wg.jvp(f, (x,), (v,))[1])(x, v), pushed)
        np.testing.assert_allclose(wg.jit(lambda x, t, f=f: wg.vjp(f, x)[1](t)[0])(x, t), pulled)
        left, right = (
            comm.mpi.allreduce(np.vdot(pushed, t)),
            comm.mpi.allreduce(np.vdot(v, pulled)),
        )
        assert abs(left - right) < 1e-12 * (1 + abs(left))


def check_batches_and_second_order(comm):
    grid = comm.cartesian(periodic=True)
    x = np.random.default_rng(comm.rank).normal(size=(4, 9))

    def f(x):
        return _finished(np.sin(x), grid, 2)[1:-1] ** 2

    rows = np.stack([f(row) for row in x])
    for run in (lambda f: f, wg.jit):
        np.testing.assert_allclose(run(wg.vmap(f))(x), rows)

    def loss(x):
        return d.allreduce(np.sum(f(x)[1:] * f(x)[:-1]))

    v = np.random.default_rng((1, comm.rank)).normal(size=9)
    h = 1e-5
    product = (wg.grad(loss)(x[0] + h * v) - wg.grad(loss)(x[0] - h * v)) / (2 * h)
    for run in (lambda f: f, wg.jit):
        np.testing.assert_allclose(
            run(lambda x, v: wg.hvp(loss, (x,), (v,)))(x[0], v), product, rtol=1e-6, atol=1e-6
        )


def check_map_overlap(comm):
    """Equal to the function after the exchange, with the same gradient."""
    for number, (grid, _, shape) in enumerate(_grids(comm)):
        k = len(grid.shape)
        shape = tuple(n + 2 for n in shape[:k]) + shape[k:]

        def stencil(y, k=k):
            inside = tuple([slice(1, -1)] * k)
            total = wnp.sin(y[inside]) * y[inside]
            for axis in range(k):
                for ends in (slice(2, None), slice(None, -2)):
                    total = total + y[(*inside[:axis], ends, *inside[axis + 1 :])] ** 2
            return total + (y[2:, 2:] if k == 2 else 0.0)

        def apart(x, grid=grid, f=stencil):
            return d.map_overlap(f, x, grid)

        def plain(x, grid=grid, f=stencil):
            return f(d.halo_exchange(x, grid))

        x = np.random.default_rng(comm.rank).normal(size=shape)
        t = np.random.default_rng((2, comm.rank)).normal(size=stencil(x).shape)
        for run in ways(number):
            np.testing.assert_allclose(run(apart)(x), plain(x), rtol=1e-14)
            pulled = [run(lambda x, t, f=f: wg.vjp(f, x)[1](t)[0])(x, t) for f in (apart, plain)]
            np.testing.assert_allclose(*pulled, rtol=1e-12, atol=1e-13)


def check_large_messages_cross(comm):
    """Messages of 8 MB in both directions at once, as the results of other work are computed."""
    n = comm.size
    right, left = (comm.rank + 1) % n, (comm.rank - 1) % n
    x = np.arange(1e6) + comm.rank

    @wg.jit
    def f(x):
        a = d.sendrecv(x, right, left)
        b = d.sendrecv(2.0 * x, left, right, tag=1)
        inside = np.sin(x) ** 2 + np.cos(x) ** 2
        return a + b, inside

    total, ones = f(x)
    expected = np.arange(1e6) + left + 2 * (np.arange(1e6) + right)
    np.testing.assert_array_equal(total, expected)
    np.testing.assert_allclose(ones, 1.0)


def check_failures_between_start_and_wait(comm):
    """The messages of a failed run are complete: the next run gets its own."""
    n = comm.size
    right, left = (comm.rank + 1) % n, (comm.rank - 1) % n

    @wg.jit
    def f(x, k):
        y = d.sendrecv(x, right, left)
        return y + x[k]

    @wg.jit
    def in_loop(x, k):
        return wg.fori_loop(0, 4, lambda i, y: d.sendrecv(y, right, left) + x[k + 0 * i], x)

    for length in (4, 300_000):
        x = np.arange(float(length)) + comm.rank
        sent = np.arange(float(length)) + left
        for repetition in range(3):
            for g in (f, in_loop):
                try:
                    g(x, 10**7)
                except wg.errors.CommunicationError:
                    pass
                else:
                    raise AssertionError("no error")
            np.testing.assert_array_equal(
                f(x + repetition, 1), sent + repetition + x[1] + repetition
            )


def check_unfinished_exchanges(comm):
    grid = comm.cartesian(periodic=True)
    for length in (10, 100_000):
        x = np.arange(float(length)) + 100.0 * comm.rank
        for k in range(3):
            d.halo_exchange_start(x - 1.0, grid, 3)  # is never finished
            started = d.halo_exchange_start(x + k, grid, 3)
            x_later = x + k
            right = d.halo_exchange(x_later, grid, 3)
            np.testing.assert_array_equal(d.halo_exchange_finish(started), right)
    for wrong in (started, right):
        try:
            d.halo_exchange_finish(wrong)
        except wg.errors.ArgumentError:
            pass
        else:
            raise AssertionError("no error")
    outside = d.halo_exchange_start(x, grid)
    try:
        wg.jit(lambda y: y + d.halo_exchange_finish(outside))(x)
    except wg.errors.ArgumentError as error:
        assert "outside" in str(error)
    else:
        raise AssertionError("no error")
    d.halo_exchange_finish(outside)


def check_changes_after_the_start_are_not_sent(comm):
    grid = comm.cartesian(periodic=True)
    x = np.arange(50_000.0) + comm.rank
    right = d.halo_exchange(x, grid, 10_000)
    started = d.halo_exchange_start(x, grid, 10_000)
    x[20_000:30_000] = -1.0
    got = d.halo_exchange_finish(started)
    np.testing.assert_array_equal(got[:10_000], right[:10_000])
    np.testing.assert_array_equal(got[-10_000:], right[-10_000:])
