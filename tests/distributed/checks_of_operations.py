"""Each operation: its value, its transpose, derivatives, batches, compiled code and refusals."""

from __future__ import annotations

import numpy as np
from tests.distributed.sampling import by_turns, ways

import wengert as wg
from wengert import distributed as d
from wengert._engine.core.message_order import NO_MESSAGES
from wengert._engine.core.spec import spec_of
from wengert.distributed import operations
from wengert.errors import ArgumentError, CommunicationError, DtypeError, ShapeError

DTYPES = ["f8", "f4", "c16", "c8"]


def _array(comm, shape, dtype="f8", seed=0):
    rng = np.random.default_rng((seed, comm.rank))
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype[0] == "c" else x).astype(dtype)


def _every(comm, x):
    """The arrays of all processes, by another way than the library's."""
    return comm.mpi.allgather(x)


def _cases(comm):
    n, root = comm.size, comm.size - 1
    after, before = (comm.rank + 1) % n, (comm.rank - 1) % n
    has_rows = comm.rank == root
    yield operations.allreduce, (2, 3), {}, lambda xs: sum(xs)
    yield operations.reduce, (2, 3), {"root": root}, lambda xs: sum(xs) * has_rows
    yield operations.bcast, (2, 3), {"root": root}, lambda xs: xs[root]
    yield operations.replicated, (2,), {}, lambda xs: xs[comm.rank]
    yield operations.barrier, (2,), {}, lambda xs: xs[comm.rank]
    yield operations.allgather, (2, 3), {}, lambda xs: np.stack(xs)
    yield operations.reduce_scatter, (n, 3), {}, lambda xs: sum(xs)[comm.rank]
    yield (
        operations.gather,
        (3,),
        {"root": root},
        lambda xs: np.stack(xs) if has_rows else np.empty((0, 3), xs[0].dtype),
    )
    yield (
        operations.scatter,
        (n if has_rows else 0, 3),
        {"root": root},
        lambda xs: xs[root][comm.rank],
    )
    yield operations.alltoall, (n, 2), {}, lambda xs: np.stack([x[comm.rank] for x in xs])
    ring = {"dest": after, "source": before, "tag": 3, "shape": (2, 2)}
    yield operations.exchange, (2, 2), ring, lambda xs: xs[before]
    line = {**ring, "dest": after if comm.rank < n - 1 else None}
    line["source"] = before if comm.rank else None
    yield (
        operations.exchange,
        (2, 2),
        line,
        lambda xs: xs[before] if comm.rank else np.zeros_like(xs[0]),
    )


def _params(op, params, dtype, comm):
    more = {"dtype": np.dtype(dtype)} if op is operations.exchange else {}
    return {**params, **more, "comm": comm}


def check_values(comm):
    for dtype in [*DTYPES, "i8", "i4", "u1"]:
        for op, shape, params, expected in _cases(comm):
            x = (_array(comm, shape, dtype if dtype[0] in "fc" else "f8") * 3).astype(dtype)
            y = op(x, NO_MESSAGES, **_params(op, params, dtype, comm))[0]
            want = np.asarray(expected(_every(comm, x)))
            np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5, err_msg=f"{op.name} {dtype}")
            assert np.asarray(y).dtype == want.dtype or dtype == "u1", (op.name, dtype)


def check_specs_of_results(comm):
    for op, shape, params, _ in _cases(comm):
        x = _array(comm, shape)
        params = _params(op, params, "f8", comm)
        y = op(x, NO_MESSAGES, **params)[0]
        inferred = op.infer([spec_of(x), spec_of(NO_MESSAGES)], params)[0]
        assert inferred.shape == np.shape(y), op.name


def check_dot_products(comm):
    """<t, A x> == <A' t, x>, summed over the processes; and A'' is A."""
    for dtype in DTYPES:
        for op, shape, params, _ in _cases(comm):
            if op is operations.replicated:  # its operand is the same in all processes
                continue
            x = _array(comm, shape, dtype)
            params = _params(op, params, dtype, comm)
            y = op(x, NO_MESSAGES, **params)[0]
            t = _array(comm, np.shape(y), dtype, seed=1)
            transposed, others = op._transposed(spec_of(x), **params)
            bar = transposed(t, NO_MESSAGES, **others)[0]
            assert np.shape(bar) == x.shape, op.name
            pairs = _every(comm, (np.vdot(t, y), np.vdot(bar, x)))
            left, right = np.sum(pairs, axis=0)
            tolerance = 1e-5 if dtype in ("f4", "c8") else 1e-12
            assert abs(left - right) <= tolerance * (1 + abs(left)), (op.name, dtype)
            again, same = transposed._transposed(spec_of(t), **others)
            assert again is op, op.name
            np.testing.assert_allclose(again(x, NO_MESSAGES, **same)[0], y, rtol=1e-5)


def _functions(comm):
    """Functions of a vector of the process; their results differ between the processes."""
    n, r = comm.size, comm.rank
    rows = np.arange(1.0, n + 1.0)[:, None]

    def summed(y):
        return d.allreduce(np.sum(np.sin(y) * (1.0 + 0.5 * np.arange(y.size).reshape(y.shape))))

    yield "sum", lambda x: summed(d.allreduce(x**2))
    yield "mean", lambda x: summed(d.allreduce(x**2, "mean"))
    yield "max", lambda x: summed(d.allreduce(x**2, "max"))
    yield "min", lambda x: summed(d.allreduce(x, "min"))
    yield "prod", lambda x: summed(d.allreduce(x, "prod"))
    yield "reduce", lambda x: summed(d.reduce(x**2, root=n - 1))
    yield "reduce max", lambda x: summed(d.reduce(x, "max", root=0))
    yield "scan", lambda x: summed(d.scan(x**2))
    yield "scan prod", lambda x: summed(d.scan(x, "prod"))
    yield "bcast", lambda x: summed(d.bcast(x**2, n - 1) * x)
    yield "gather", lambda x: summed(d.gather(x**2, n - 1))
    yield "scatter", lambda x: summed(d.scatter(rows * x if r == 0 else np.zeros(3), 0) * (1.0 + x))
    yield "allgather", lambda x: summed(d.allgather(x**2) * (1.0 + x))
    yield "alltoall", lambda x: summed(d.alltoall(rows * x**2) * (1.0 + x))
    yield "reduce_scatter", lambda x: summed(d.reduce_scatter(rows * x**2))
    yield "reduce_scatter max", lambda x: summed(d.reduce_scatter(rows * x, "max"))
    yield "sendrecv", lambda x: summed(d.sendrecv(x**2, (r + 1) % n, (r - 1) % n) * x)
    yield "shift", lambda x: summed(d.shift(x**2) * x)
    yield (
        "ends",
        lambda x: summed(d.sendrecv(x**2, r + 1 if r < n - 1 else None, r - 1 if r else None) + x),
    )

    def pairs(x):  # messages from one process to another; not all take part
        if n == 1:
            return summed(x**2)
        if r == 0:
            d.send(x**2, dest=1)
        y = d.recv(x, source=0) * x if r == 1 else x
        return summed(y)

    yield "send and recv", pairs


def _differences(f, x, v, comm):
    """The derivative along a direction, by complex steps or central differences."""
    h = 1e-5
    values = [f(x + s * h * v) for s in (-2, -1, 1, 2)]
    return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h)


def check_gradients(comm):
    """Against differences of all variables of all processes together; eager and compiled."""
    x, v = 1.0 + 0.3 * _array(comm, (3,)), _array(comm, (3,), seed=1)
    for number, (name, f) in enumerate(_functions(comm)):
        expected = _differences(f, x, v, comm)
        for run in ways(number):
            kind, g = run.__name__, run(wg.grad(f))
            along = sum(_every(comm, np.vdot(g(x), v)))
            assert abs(along - expected) < 1e-7 * (1 + abs(expected)), (name, kind, along, expected)
        for run in ways(number + 1):
            value, dot = run(lambda x, v, f=f: wg.jvp(f, (x,), (v,)))(x, v)
            assert abs(dot - expected) < 1e-7 * (1 + abs(expected)), (name, run.__name__, "jvp")
            assert abs(value - f(x)) < 1e-12, name


def check_second_order(comm):
    """Hessian-vector products against differences of gradients; reverse over reverse too."""
    x, v = 1.0 + 0.3 * _array(comm, (3,)), _array(comm, (3,), seed=1)
    for number, (name, f) in enumerate(_functions(comm)):
        g = wg.grad(f)
        expected = _differences(g, x, v, comm)
        for kind, product, runs in (
            ("forward", lambda x, f=f: wg.hvp(f, (x,), (v,)), ways(number)),
            ("reverse", wg.grad(lambda x, g=g: d.allreduce(np.sum(g(x) * v))), [lambda f: f]),
        ):
            for run in runs:
                np.testing.assert_allclose(
                    run(product)(x), expected, rtol=1e-6, atol=1e-6, err_msg=f"{name} {kind}"
                )


def check_batches(comm):
    x = 1.0 + 0.3 * _array(comm, (4, 3))
    for number, (name, f) in enumerate(_functions(comm)):
        cases = [(f, run, 1e-12) for run in ways(number)]
        cases.append((wg.grad(f), lambda f: f, 1e-10))
        for function, run, rtol in by_turns(number // 2, cases):
            expected = np.stack([function(row) for row in x])
            found = run(wg.vmap(function))(x)
            np.testing.assert_allclose(found, expected, rtol=rtol, err_msg=name)


def check_containers_and_numbers(comm):
    out = d.allreduce({"a": 1.0, "b": (np.ones(2), 3)})
    assert out["a"] == comm.size and out["b"][1] == 3 * comm.size
    np.testing.assert_array_equal(out["b"][0], np.full(2, comm.size))
    assert d.allreduce(comm.rank == 0, "any") and (
        d.allreduce(comm.rank == 0, "all") == (comm.size == 1)
    )
    assert d.allreduce(True) == comm.size
    assert d.allreduce(np.array([comm.rank == 0]), "max")[0]
    assert d.allreduce(np.int32(2), "prod") == 2**comm.size
    assert d.allreduce(np.ones(0)).shape == (0,)
    assert d.allgather(np.ones((2, 0))).shape == (comm.size, 2, 0)


def check_ties_share_the_derivative(comm):
    g = wg.grad(lambda x: d.allreduce(x, "max"))(2.0)
    assert abs(g - 1 / comm.size) < 1e-15
    g = wg.grad(lambda x: d.allreduce(x, "prod"))(0.0 if comm.rank == 0 else 3.0)
    expected = 3.0 ** (comm.size - 1) if comm.rank == 0 else 0.0
    assert abs(g - expected) < 1e-12


def check_sub_communicators(comm):
    halves = comm.split(comm.rank % 2)
    members = [k for k in range(comm.size) if k % 2 == comm.rank % 2]
    assert halves.size == len(members) and members[halves.rank] == comm.rank

    def f(x):
        return d.allreduce(d.allreduce(x**2, comm=halves) * x, comm=comm)

    x = 1.0 + comm.rank
    expected = sum(_every(comm, 0.0)) + 2 * x * sum(1.0 + k for k in members)
    expected += sum((1.0 + k) ** 2 for k in members)
    for g in (wg.grad(f), wg.jit(wg.grad(f))):
        assert abs(g(x) - expected) < 1e-12
    none = comm.split(None if comm.rank else 0)
    assert (none is None) == bool(comm.rank)
    ours = wg.grad(lambda x: d.allreduce(x * x, comm=comm.mpi))(3.0)  # of mpi4py
    assert ours == 6.0


def _refuses(kind, words, function):
    try:
        function()
    except kind as error:
        assert words in str(error), str(error)
    else:
        raise AssertionError(f"{kind.__name__} was not raised")


def check_refusals(comm):
    n = comm.size
    _refuses(ArgumentError, "is not a process", lambda: d.bcast(1.0, root=n))
    _refuses(ArgumentError, "op='median'", lambda: d.allreduce(1.0, "median"))
    _refuses(DtypeError, "float16", lambda: d.allreduce(np.ones(2, np.float16)))
    _refuses(DtypeError, "no maximum", lambda: d.allreduce(1j, "max"))
    _refuses(DtypeError, "needs booleans", lambda: d.allreduce(1.0, "any"))
    _refuses(ShapeError, "a row for each", lambda: d.alltoall(np.ones((n + 1, 2))))
    _refuses(ArgumentError, "comm is a str", lambda: d.allreduce(1.0, comm="all"))
    _refuses(ArgumentError, "on a grid", lambda: d.halo_exchange(np.ones(9), comm))
    _refuses(ArgumentError, "does not fit", lambda: comm.cartesian((n + 1,)))
    _refuses(TypeError, "cannot be pickled", lambda: __import__("pickle").dumps(comm))


def check_processes_that_do_not_agree(comm):
    if comm.size == 1:
        return
    different = 2 + (comm.rank == 0)
    first = comm.rank == 0
    for function in (
        lambda: d.allreduce(np.ones(different)),
        lambda: d.allreduce(np.ones(2, "f4" if first else "f8")),
        lambda: d.bcast(1.0, root=int(first)),
        lambda: d.allreduce(1.0) if first else d.allgather(1.0),
        lambda: wg.jit(lambda x: d.allreduce(x))(np.ones(different)),
        lambda: wg.jit(lambda x: d.allreduce(x) if first else d.allreduce(x, "max"))(1.0),
    ):
        _refuses(CommunicationError, "do not", function)


def check_what_is_not_counted_once(comm):
    """A result that mixes values of all processes with those of this one is refused."""
    if comm.size == 1:
        return
    from wengert.errors import NotDifferentiableError, TraceError

    x = np.ones(2) + comm.rank

    def mixed(x):
        return d.allreduce(x @ x) + x.sum()

    _refuses(NotDifferentiableError, "allreduce(output", lambda: wg.grad(mixed)(x))
    _refuses(NotDifferentiableError, "allreduce(output", lambda: wg.jit(wg.grad(mixed))(x))

    # A number that differs between the processes:
    def scaled(x):
        return d.allreduce(x @ x) * (1.0 + comm.rank)

    _refuses(CommunicationError, "the same", lambda: wg.grad(scaled)(x))

    # Each process has its own output: the derivative is that of their sum.
    def local(x):
        return np.sum(d.shift(x) * x)

    pulled = wg.grad(local)(x)
    others = _every(comm, x)
    expected = others[(comm.rank - 1) % comm.size] + others[(comm.rank + 1) % comm.size]
    np.testing.assert_allclose(pulled, expected)
    _refuses(NotDifferentiableError, "replicated", lambda: wg.jacfwd(lambda x: d.allreduce(x))(x))

    def only_some(x):
        if x[0] > 1.5:
            return d.allreduce(x).sum()
        return x.sum()

    _refuses(TraceError, "may differ between", lambda: wg.jit(only_some)(x))


def check_halo_exchange(comm):
    """On a grid: equal to the array of all processes, values and derivatives."""
    grid = comm.cartesian(2, periodic=(True, False))
    rows, columns = grid.shape
    k, m = 3, 4  # elements of a process
    whole = np.random.default_rng(5).normal(size=(rows * k, columns * m))
    r, c = grid.coordinates
    own = whole[r * k : (r + 1) * k, c * m : (c + 1) * m]
    x = np.pad(own, 1)
    padded = np.pad(np.pad(whole, ((1, 1), (0, 0)), "wrap"), ((0, 0), (1, 1)))
    expected = padded[r * k : (r + 1) * k + 2, c * m : (c + 1) * m + 2]
    filled = d.halo_exchange(x, grid)
    np.testing.assert_array_equal(filled, expected)
    np.testing.assert_array_equal(wg.jit(lambda x: d.halo_exchange(x, grid))(x), expected)

    def energy(own):  # of the differences of neighbors, counted by the process of the first
        y = d.halo_exchange(np.pad(own, 1), grid)
        return d.allreduce(np.sum((y[2:, 1:-1] - y[1:-1, 1:-1]) ** 4))

    def serial(whole):
        return np.sum((np.roll(whole, -1, axis=0) - whole) ** 4)

    expected = wg.grad(serial)(whole)[r * k : (r + 1) * k, c * m : (c + 1) * m]
    for g in (wg.grad(energy), wg.jit(wg.grad(energy))):
        np.testing.assert_allclose(g(own), expected, rtol=1e-13)
