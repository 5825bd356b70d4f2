"""Bad input: what cannot be sent, processes that do not agree, lost communicators."""

from __future__ import annotations

import threading

import numpy as np

import wengert as wg
from wengert import distributed as d
from wengert.errors import (
    ArgumentError,
    CommunicationError,
    DtypeError,
    NotDifferentiableError,
    ShapeError,
    TraceError,
)


def _refused(kind, words, function, *args):
    try:
        function(*args)
    except kind as error:
        assert words in str(error), str(error)
    else:
        raise AssertionError(f"{kind.__name__} with {words!r} was not raised")


def check_what_cannot_be_sent(comm):
    for bad in ("text", None, object(), np.array([None]), np.array(["2020"], "M8[D]"), b"bytes"):
        for function in (d.allreduce, d.allgather, d.bcast, lambda x: d.sendrecv(x, None, None)):
            _refused(DtypeError, "MPI sends booleans and numbers", function, bad)
    _refused(DtypeError, "a dict", lambda: d.sendrecv({"a": 1.0}, None, None))
    for dtype in ("f2", np.longdouble, np.clongdouble):
        _refused(DtypeError, "astype(np.float64)", d.allreduce, np.ones(2, dtype))
    _refused(ValueError, "inhomogeneous", lambda: d.allgather([[1.0], [1.0, 2.0]]))
    for dtype in (">f8", ">i4", ">c16"):  # of a file of another machine
        got = d.allreduce(np.arange(3).astype(dtype))
        assert got.dtype.isnative
        np.testing.assert_array_equal(got, comm.size * np.arange(3))


def check_series_of_functions_with_messages(comm):
    x = np.ones(2)
    f = lambda x: np.sum(d.allreduce(x**2))  # noqa: E731
    for jet in (wg.jet, wg.jit(lambda f, p, s: wg.jet(f, p, s), static_argnums=0)):
        _refused(NotDifferentiableError, "exchanges messages", jet, f, (x,), ([x, x],))


def check_operations_of_mpi4py(comm):
    from mpi4py import MPI

    x = np.array([1.0, 2.0]) + comm.rank
    every = np.stack([np.array([1.0, 2.0]) + k for k in range(comm.size)])
    for op, name, expected in (
        (MPI.SUM, "sum", every.sum(0)),
        (MPI.PROD, "prod", every.prod(0)),
        (MPI.MAX, "max", every.max(0)),
        (MPI.MIN, "min", every.min(0)),
    ):
        np.testing.assert_array_equal(d.allreduce(x, op), expected)
        np.testing.assert_array_equal(d.allreduce(x, name), expected)
    assert d.allreduce(comm.rank == 0, MPI.LOR)
    assert d.allreduce(comm.rank == 0, MPI.LAND) == (comm.size == 1)
    own = MPI.Op.Create(lambda a, b, dtype: None)
    for bad in (MPI.LXOR, MPI.MAXLOC, MPI.BAND, own, np.add, "SUM", None, sum):
        _refused(ArgumentError, "is not one of 'sum'", d.allreduce, x, bad)
    own.Free()
    none = MPI.PROC_NULL
    np.testing.assert_array_equal(d.sendrecv(x, none, none), np.zeros(2))
    np.testing.assert_array_equal(d.recv(x, none), np.zeros(2))
    d.send(x, none)
    _refused(ArgumentError, "instead of MPI.ANY_SOURCE", lambda: d.recv(x, MPI.ANY_SOURCE))
    _refused(ArgumentError, "is not an integer from 0", lambda: d.recv(x, 0, MPI.ANY_TAG))


def check_containers_that_differ(comm):
    """They are compared before the first of their arrays is sent."""
    if comm.size == 1:
        return
    first = comm.rank == 0
    for function, x, y in (
        (d.allreduce, {"a": 1.0}, [1.0, 2.0]),
        (d.bcast, [1.0], [1.0, 2.0]),
        (d.allreduce, (1.0, np.ones(2)), (1.0, np.ones(3))),
        (d.allreduce, {"a": 1.0}, {"b": 1.0}),
        (d.allreduce, {"a": 1.0}, 1.0),
    ):
        _refused(CommunicationError, "do not", function, x if first else y)
    assert d.allreduce([1.0, 2.0]) == [comm.size, 2.0 * comm.size]


def check_compiled_programs_that_differ(comm):
    """Also if a program serves all sizes, and in the number of steps of a loop."""
    if comm.size == 1:
        return
    first, root = comm.rank == 0, int(comm.rank == 0)
    other = 2 + first
    differing = (
        (d.allgather, np.ones(other)),
        (d.gather, np.ones(other)),
        (d.scatter, np.ones((comm.size, 3) if first else 2)),
        (d.alltoall, np.ones((comm.size, other))),
        (d.reduce_scatter, np.ones((comm.size, other))),
        (d.allreduce, np.ones(2, "f4" if first else "f8")),
        (lambda x: d.bcast(x, root), np.ones(2)),
        (lambda x: d.gather(x, root), np.ones(2)),
        (lambda x: d.reduce(x, root=root), np.ones(2)),
    )
    for function, x in differing:
        _refused(CommunicationError, "the same program", wg.jit(function), x)

    def summed(x, y):
        def step(carry, row):
            return carry + np.sum(d.allreduce(row * carry)), None

        return wg.scan(step, 1.0, x)[0] * np.sum(y)

    compiled = wg.jit(summed)
    for k in range(2, 5):  # one program for all sizes
        compiled(np.ones((k, k)), np.ones(k))
    expected = summed(np.ones((6, 7)), np.ones(5 + comm.rank))
    np.testing.assert_allclose(compiled(np.ones((6, 7)), np.ones(5 + comm.rank)), expected)
    for shape in ((6 + first, 7), (6, 7 + first)):
        wrong = np.ones(shape)
        _refused(CommunicationError, "the same program", compiled, wrong, np.ones(5))
    # One process has a program for the sizes, the others have one for all sizes.
    again = wg.jit(summed)
    if first:
        for k in range(2, 5):
            again.lower(np.ones((k, k)), np.ones(k))
    for k in range(2, 5):
        own = np.ones(3 if first else k)
        expected = summed(np.ones((2, 3)), own)
        np.testing.assert_allclose(again(np.ones((2, 3)), own), expected)


def check_messages_of_another_size(comm):
    """Both are refused, and the next message is received as usual."""
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size

    def exchanged(x):
        return d.sendrecv(x, after, before, like=np.zeros(3))

    for count in (2, 4):
        x = np.ones(count)
        for run in (lambda f: f, wg.jit):
            _refused((CommunicationError, ShapeError), "", run(exchanged), x)
        np.testing.assert_array_equal(exchanged(np.full(3, float(comm.rank))), np.full(3, before))


def check_derivatives_of_integers(comm):
    x = np.arange(3.0)
    for run in (lambda f: f, wg.jit):
        for g in (wg.grad, wg.jacrev, wg.jacfwd):
            for bad in (np.int64(2), np.arange(3), np.array([True])):
                _refused(NotDifferentiableError, "", run(g(d.allreduce)), bad)
        for discrete in (
            lambda x: np.sum(d.allreduce(x.astype(int)) * 1.0),
            lambda x: np.sum(d.bcast(np.floor(x).astype(int)) * 1.0),
            lambda x: np.sum(d.allreduce(d.allreduce(x > 1.0, "any") * 1.0)),
        ):
            np.testing.assert_array_equal(run(wg.grad(discrete))(x), np.zeros(3))
        g = run(wg.grad(lambda x: d.allreduce(np.sum(x[d.bcast(np.array([2, 0]))] ** 2))))
        np.testing.assert_array_equal(g(x), [0.0, 0.0, 4.0])


def check_messages_in_one_branch(comm):
    """Refused when the function is traced, before any message is sent."""
    x = np.arange(3.0) + comm.rank

    def branch(x):
        return wg.cond(x[0] > 0.0, lambda x: d.allreduce(x), lambda x: x, x)

    def switch(x):
        return wg.switch(x[0].astype(int), [lambda x: d.allreduce(x), lambda x: x], x)

    def until(x):
        return wg.while_loop(lambda y: y.sum() < 9.0, lambda y: y + d.allreduce(y), x)

    def counted(x):
        return wg.fori_loop(0, x[0].astype(int), lambda i, y: y + d.allreduce(y), x)

    def written(x):
        if np.sum(x) > 3.0:
            x = d.shift(x)
        return x

    for f in (branch, switch, until, counted, written):
        _refused(TraceError, "may differ between processes", wg.jit(f), x)
        total = wg.grad(lambda x, f=f: d.allreduce(f(x).sum()))
        _refused(TraceError, "may differ", wg.jit(total), x)
    same = wg.jit(
        lambda x: wg.cond(d.allreduce(x[0]) >= 0.0, lambda x: d.allreduce(x), lambda x: x, x)
    )
    np.testing.assert_array_equal(same(x), d.allreduce(x))


def check_lost_communicators(comm):
    """Freed ones are refused; calls of compiled code too, which would use freed memory."""
    from mpi4py import MPI

    x, world = np.arange(3.0), comm.size
    after, before = (comm.rank + 1) % world, (comm.rank - 1) % world

    def used(part):
        return (
            lambda x: d.allreduce(x, comm=part),
            lambda x: d.sendrecv(x, after, before, comm=part),
            wg.jit(lambda x: d.allreduce(x, comm=part)),
            wg.jit(lambda x: d.sendrecv(x, after, before, comm=part)),
        )

    for frees in (lambda c: c.mpi.Free(), lambda c: c.free()):
        part = comm.split(0)
        functions = used(part)
        results = [f(x) for f in functions]
        np.testing.assert_array_equal(results[0], results[2])
        frees(part)
        for f in functions:
            _refused(CommunicationError, "freed", f, x)
        _refused(CommunicationError, "freed", part.free)
    theirs = comm.mpi.Dup()
    d.allreduce(x, comm=theirs)
    alias = MPI.Comm(theirs)
    theirs.Free()
    _refused((ArgumentError, CommunicationError), "freed", lambda: d.allreduce(x, comm=theirs))
    again = comm.mpi.Split(comm.rank)  # its handle may be that of the one that was freed
    np.testing.assert_array_equal(d.allreduce(x, comm=again), x)
    again.Free()
    del alias
    _refused(ArgumentError, "COMM_NULL", lambda: d.allreduce(x, comm=MPI.COMM_NULL))
    _refused(ArgumentError, "cannot be freed", comm.free)
    np.testing.assert_array_equal(d.allreduce(x, comm=MPI.COMM_SELF), x)


def check_one_process_and_more_processes_than_data(comm):
    """A group of one process, and messages without elements."""
    alone = comm.split(comm.rank)
    x = np.arange(3.0) + comm.rank
    for run in (lambda f: f, wg.jit):
        for f, expected in (
            (lambda x: d.allreduce(x, comm=alone), x),
            (lambda x: d.allgather(x, comm=alone), x[None]),
            (lambda x: d.scan(x, comm=alone), x),
            (lambda x: d.sendrecv(x, 0, 0, comm=alone), x),
            (lambda x: d.shift(x, comm=alone.cartesian()), 0.0 * x),
        ):
            np.testing.assert_array_equal(run(f)(x), expected)
        g = run(wg.grad(lambda x: d.allreduce(x @ x, comm=alone)))
        np.testing.assert_array_equal(g(x), 2.0 * x)
    for shape in ((0,), (0, 3), (2, 0)):
        empty = np.zeros(shape)
        for run in (lambda f: f, wg.jit):
            assert run(d.allreduce)(empty).shape == shape
            assert run(d.allgather)(empty).shape == (comm.size, *shape)
            assert run(d.bcast)(empty).shape == shape
            assert run(wg.grad(lambda x: d.allreduce(np.sum(x**2))))(empty).shape == shape
    rows = np.arange(2.0)  # fewer than processes, if there are more than two
    own = rows[comm.rank : comm.rank + 1]
    g = wg.grad(lambda w: d.allreduce(np.sum(d.replicated(w) * own)))
    assert g(1.0) == (1.0 if comm.size > 1 else 0.0)
    _refused(ShapeError, "a row for each", lambda: d.alltoall(np.zeros((comm.size + 1, 0))))


def check_messages_of_threads(comm):
    """A thread sends messages while the main thread waits for it."""
    results = []

    def run():
        results.append(d.allreduce(2.0))
        results.append(wg.jit(d.allreduce)(2.0))
        results.append(wg.grad(lambda x: d.allreduce(x**2))(2.0))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert results == [2.0 * comm.size, 2.0 * comm.size, 4.0]
