"""Programs with messages in loops, branches, batches, at checkpoints and in compiled code."""

from __future__ import annotations

import contextlib

import numpy as np
from tests.distributed.sampling import sampled, ways

import wengert as wg
from wengert import distributed as d
from wengert.errors import NotDifferentiableError


def _data(comm, shape=(3,)):
    return 1.0 + 0.2 * np.random.default_rng((7, comm.rank)).normal(size=shape)


def _along(f, x, v):
    h = 1e-5
    values = [f(x + s * h * v) for s in (-2, -1, 1, 2)]
    return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h)


def _programs(comm):
    n, r = comm.size, comm.rank

    def averaging(x):
        for _ in range(12):
            x = 0.9 * x + 0.1 * np.sin(d.allreduce(x, "mean"))
        return d.allreduce(np.sum(x**2))

    def nested(x):
        total = 0.0
        for i in range(11):
            for j in range(i):
                total = total + 0.01 * d.allreduce(np.sum(x), "mean") * x[j % 3]
            x = x + 0.1 * d.shift(x)
        return d.allreduce(total)

    def until(x):
        y = np.sum(x)
        while d.allreduce(y) < 100.0:
            y = y * 1.5 + 0.1 * d.allreduce(y, "mean")
        return d.allreduce(y)

    def branch(x):
        y = x**2
        if d.allreduce(np.sum(x)) > 2.0:
            y = y * d.allreduce(np.sum(x**3))
        else:
            y = d.shift(y)
        return d.allreduce(np.sum(y))

    def both_branches(x):
        y = wg.cond(d.allreduce(np.sum(x)) > 0.0, lambda x: d.allreduce(x), lambda x: 2.0 * x, x)
        return d.allreduce(np.sum(y * x))

    def by_scan(x):
        def step(carry, row):
            carry = carry + np.sin(d.allreduce(carry * row, "mean"))
            return carry, d.shift(carry)

        carry, ys = wg.scan(step, 1.0, x)
        return d.allreduce(carry + np.sum(ys))

    def by_fori_loop(x):
        y = wg.fori_loop(0, 5, lambda i, y: 0.5 * y + d.allreduce(y * x, "mean") / (i + 1), x)
        return d.allreduce(np.sum(y))

    def by_while_loop(x):
        y = wg.while_loop(
            lambda y: d.allreduce(np.sum(y)) < 50.0 * n,
            lambda y: y + 0.5 * d.allreduce(y**2, "mean"),
            x,
        )
        return d.allreduce(np.sum(y))

    def buffers(x):
        rows = np.zeros((6, 3))
        rows[0] = x
        for i in range(1, 6):
            rows[i] = 0.5 * rows[i - 1] + d.shift(rows[i - 1]) * rows[0]
        return d.allreduce(np.sum(rows[2:] ** 2))

    def unused(x):  # results that no process, or not every process, uses
        d.allreduce(x)
        y = d.allreduce(x**2)
        z = d.bcast(x, 0)
        return d.allreduce(np.sum(y) if r == 0 else 1.0 * np.sum(z * x))

    def constants(x):  # the root sends what depends on the arguments; others pass constants
        y = d.bcast(x**2 if r == 0 else np.zeros(3), 0)
        return d.allreduce(np.sum(y * (1.0 + r)) + (np.sum(x) if r == n - 1 else 0.0))

    return [
        averaging, nested, until, branch, both_branches, by_scan, by_fori_loop, by_while_loop,
        buffers, unused, constants,
    ]  # fmt: skip


def check_values_and_gradients(comm):
    x, v = _data(comm), np.random.default_rng((8, comm.rank)).normal(size=3)
    for number, f in enumerate(_programs(comm)):
        name, value = f.__name__, f(x)
        for run in ways(number + 1):
            assert abs(run(f)(x) - value) <= 1e-12 * (1 + abs(value)), name
        expected = _along(f, x, v)
        for run in ways(number):
            kind, g = run.__name__, run(wg.grad(f))
            along = sum(comm.mpi.allgather(np.vdot(g(x), v)))
            assert abs(along - expected) <= 1e-6 * (1 + abs(expected)), (name, kind)


def check_forward_mode_and_second_order(comm):
    x, v = _data(comm), np.random.default_rng((8, comm.rank)).normal(size=3)
    for number, f in enumerate(sampled(_programs(comm))):
        expected = _along(f, x, v)
        for run in ways(number):
            dot = run(lambda x, f=f: wg.jvp(f, (x,), (v,))[1])(x)
            assert abs(dot - expected) <= 1e-6 * (1 + abs(expected)), (f.__name__, run.__name__)
        second = _along(wg.grad(f), x, v)
        for run in ways(number + 1):
            product = run(lambda x, f=f: wg.hvp(f, (x,), (v,)))(x)
            np.testing.assert_allclose(product, second, rtol=1e-5, atol=1e-5, err_msg=f.__name__)


def check_gradients_equal_the_serial_ones(comm):
    """A regression over data of all processes, with parameters that are replicated."""
    rng = np.random.default_rng(3)
    data, target = rng.normal(size=(8 * comm.size, 3)), rng.normal(size=8 * comm.size)
    w = rng.normal(size=3)
    own = slice(8 * comm.rank, 8 * comm.rank + 8)

    def loss(w):
        w = d.replicated(w)
        parts = np.sum((np.tanh(data[own] @ w) - target[own]) ** 2)
        return d.allreduce(parts) + 0.5 * np.sum(w**2)

    def serial(w):
        return np.sum((np.tanh(data @ w) - target) ** 2) + 0.5 * np.sum(w**2)

    for run in (lambda f: f, wg.jit):
        np.testing.assert_allclose(run(loss)(w), serial(w), rtol=1e-13)
        np.testing.assert_allclose(run(wg.grad(loss))(w), wg.grad(serial)(w), rtol=1e-12)
        np.testing.assert_allclose(run(wg.hessian(loss))(w), wg.hessian(serial)(w), rtol=1e-11)
        np.testing.assert_allclose(
            run(wg.jacrev(wg.grad(loss)))(w), wg.hessian(serial)(w), rtol=1e-11
        )
    bits = comm.mpi.allgather(wg.grad(loss)(w).tobytes())
    assert len(set(bits)) == 1


def check_values_that_are_replicated_twice(comm):
    """The cotangents of all processes are added once."""
    w, x = np.array([1.0, 2.0]), np.arange(6.0)
    total = comm.size * (comm.size + 1) / 2

    def twice(w):
        w = d.replicated(np.sin(d.replicated(w)))
        return d.allreduce(np.sum(w) * (comm.rank + 1))

    def parallel(w):
        return d.data_parallel(_quadratic)(np.sin(d.replicated(w)), x)

    expected = wg.grad(lambda w: _quadratic(np.sin(w), x))(w)
    for run in (lambda f: f, wg.jit):
        np.testing.assert_allclose(run(wg.grad(twice))(w), total * np.cos(w), rtol=1e-13)
        np.testing.assert_allclose(run(wg.grad(parallel))(w), expected, rtol=1e-13)
    inner = wg.jit(d.data_parallel(_quadratic))
    for run in (lambda f: f, wg.jit):
        gradient = run(wg.grad(lambda w: inner(np.sin(d.replicated(w)), x)))
        np.testing.assert_allclose(gradient(w), expected, rtol=1e-13)
    t = wg.tensor(w, requires_grad=True)
    inner(np.sin(d.replicated(t)), x).backward()
    np.testing.assert_allclose(t.grad, expected, rtol=1e-13)
    with raises("from variables of this process"):
        wg.grad(lambda w: d.allreduce(np.sum(d.replicated(w * d.replicated(w)))))(w)


def check_backward_counts_an_output_once(comm):
    x = np.array([0.5, 2.0])
    t = wg.tensor(x, requires_grad=True)
    d.allreduce(np.sum(t**2)).backward()
    np.testing.assert_allclose(t.grad, 2 * x)

    def compiled(t):
        y = d.allreduce(np.sum(t**2))
        return y, wg.gradients(y, t)

    np.testing.assert_allclose(wg.trace(compiled)(x)(x)[1], 2 * x)
    t.grad = None
    wg.jit(lambda: d.allreduce(np.sum(t**2)))().backward()
    np.testing.assert_allclose(t.grad, 2 * x)
    t.grad = None  # messages that the derivative of one process does not need
    wg.jit(lambda t: d.allreduce(np.sum(d.shift(np.sin(t)) * (t if comm.rank else 1.0))))(
        t
    ).backward()
    cosine = np.cos(x) * (x if comm.rank + 1 < comm.size else 1.0)
    np.testing.assert_allclose(t.grad, cosine + (np.sin(x) if comm.rank else 0.0))
    with raises("the derivative is that of one output"):
        (d.allreduce(np.sum(t**2)) + np.sum(t)).backward()


def _quadratic(w, x):
    return np.mean(w[0] * x + w[1] * x**2)


@contextlib.contextmanager
def raises(words):
    try:
        yield
    except NotDifferentiableError as error:
        assert words in str(error), error
    else:
        raise AssertionError("nothing was raised")


def check_repeated_calls_and_pullbacks(comm):
    x = _data(comm)
    _y, pull = wg.vjp(lambda x: d.allreduce(x**2), x)
    for scale in (1.0, 2.0):
        np.testing.assert_allclose(pull(scale * np.ones(3))[0], 2 * scale * x)
    _z, push = wg.linearize(lambda x: d.allreduce(x**2), x)
    np.testing.assert_allclose(push(np.ones(3)), d.allreduce(2 * x))
    f = wg.jit(wg.value_and_grad(lambda x: d.allreduce(np.sum(x**2))))
    for k in range(50):
        _value, g = f(x + k)
        np.testing.assert_allclose(g, 2 * (x + k))


def check_singular_branches(comm):
    """A process whose branch that is not taken is singular does not repeat messages."""
    x = np.array([0.0, 4.0, 1.0]) if comm.rank == 0 else np.array([1.0, 4.0, 9.0])

    def f(x):
        return d.allreduce(np.sum(np.where(x > 0.0, np.sqrt(x), 0.0) + d.shift(x)))

    for g in (wg.grad(f), wg.jit(wg.grad(f))):
        expected = np.array([np.inf if False else 0.0, 0.25, 0.5]) + 1.0
        if comm.rank:
            expected = 0.5 / np.sqrt(x) + 1.0
        np.testing.assert_allclose(g(x), expected)


def check_compiled_functions_in_derivatives(comm):
    x = _data(comm)
    inner = wg.jit(lambda x: d.allreduce(x**2) * x)

    def f(x):
        return d.allreduce(np.sum(inner(x)) + (np.sum(inner(2.0 * x)) if True else 0.0))

    def plain(x):
        return d.allreduce(
            np.sum(d.allreduce(x**2) * x) + np.sum(d.allreduce(4.0 * x**2) * 2.0 * x)
        )

    np.testing.assert_allclose(wg.grad(f)(x), wg.grad(plain)(x), rtol=1e-13)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(x), wg.grad(plain)(x), rtol=1e-13)


def check_checkpoints(comm):
    x = _data(comm)

    def steps(x, memory=None):
        def step(carry, _):
            return carry * 0.9 + 0.1 * np.sin(d.allreduce(carry, "mean")), None

        return d.allreduce(np.sum(wg.scan(step, x, None, 40, memory=memory)[0] ** 2))

    expected = wg.jit(wg.grad(steps))(x)
    got = wg.jit(wg.grad(lambda x: steps(x, memory=5)))(x)
    np.testing.assert_allclose(got, expected, rtol=1e-13)


def check_rules_of_the_user(comm):
    """A function with a rule of its own; in some processes its argument is a constant."""

    @wg.custom_vjp
    def f(x):
        return d.allreduce(x) ** 2

    f.defvjp(lambda x: (f(x), d.allreduce(x)), lambda s, t: (d.allreduce(2.0 * s * t),))
    x = _data(comm)
    total = sum(comm.mpi.allgather(x))

    def loss(x):
        return d.allreduce(np.sum(f(x)))

    for g in (wg.grad(loss), wg.jit(wg.grad(loss))):
        np.testing.assert_allclose(g(x), 2.0 * total * comm.size, rtol=1e-13)

    def some(x):
        return d.allreduce(np.sum(f(x if comm.rank == 0 else np.ones(3))))

    total = sum(comm.mpi.allgather(x if comm.rank == 0 else np.ones(3)))
    for g in (wg.grad(some), wg.jit(wg.grad(some))):
        expected = 2.0 * total * comm.size if comm.rank == 0 else np.zeros(3)
        np.testing.assert_allclose(g(x), expected, rtol=1e-13)


def check_data_parallel(comm):
    """Equal to the serial loss: uneven parts, fewer examples than processes, containers, modes."""
    rng = np.random.default_rng(2)
    params = {"w": rng.normal(size=(3, 2)), "b": [rng.normal(size=2), np.float32(0.5)]}

    def loss(p, x, y):
        return np.mean((np.tanh(x @ p["w"] + p["b"][0]) * p["b"][1] - y) ** 2)

    parallel = d.data_parallel(loss)
    for count in (1, 3, 8, 13):
        x, y = rng.normal(size=(count, 3)), rng.normal(size=(count, 2))
        value, expected = wg.value_and_grad(loss)(params, x, y)
        for g in (wg.value_and_grad(parallel), wg.jit(wg.value_and_grad(parallel))):
            got, gradient = g(params, x, y)
            np.testing.assert_allclose(got, value, rtol=1e-13)
            np.testing.assert_allclose(gradient["w"], expected["w"], rtol=1e-12)
            np.testing.assert_allclose(gradient["b"][0], expected["b"][0], rtol=1e-12)
            np.testing.assert_allclose(gradient["b"][1], expected["b"][1], rtol=1e-5)
            assert gradient["b"][1].dtype == np.float32
            bits = comm.mpi.allgather(gradient["w"].tobytes())
            assert len(set(bits)) == 1

    def of_vector(w, x):
        return np.sum(np.sin(x.T @ w))

    w, x = rng.normal(size=3), rng.normal(size=(3, 5))
    total = d.data_parallel(of_vector, axis=1, reduction="sum")
    for run in (lambda f: f, wg.jit):
        np.testing.assert_allclose(
            run(wg.hessian(total))(w, x), wg.hessian(of_vector)(w, x), rtol=1e-11
        )


def check_training_stays_equal(comm):
    """A hundred steps of gradient descent: parameters have the same bits in all processes."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(50, 3))
    y = np.sin(x @ np.array([1.0, -1.0, 0.5]))

    def loss(w, x, y):
        return np.mean((np.tanh(x @ w) - y) ** 2)

    parallel = d.data_parallel(loss)
    step = wg.jit(lambda w, x, y: w - 0.3 * wg.grad(parallel)(w, x, y))
    alone = wg.jit(lambda w, x, y: w - 0.3 * wg.grad(loss)(w, x, y))
    w = serial = np.zeros(3)
    for k in range(100):
        rows = slice(7 * k % 43, 7 * k % 43 + 7)
        w, serial = step(w, x[rows], y[rows]), alone(serial, x[rows], y[rows])
    assert len(set(comm.mpi.allgather(w.tobytes()))) == 1
    np.testing.assert_allclose(w, serial, rtol=1e-12)


def check_results_that_no_message_is_needed_for(comm):
    """Integers, constants, nothing: the messages are exchanged whenever the function runs."""
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size

    def sends(x):
        if comm.size > 1:
            d.send(x, after, tag=4)

    def numbered(x, n):
        sends(x)
        return n

    def constant(x):
        sends(x)
        return 3

    def loop(x):
        for _ in range(20):
            d.allreduce(x)
        return 3

    n = np.int64(5)
    for function, args, expected in (
        (sends, (), None), (numbered, (n,), n), (numbered, (5,), 5), (constant, (), 3)
    ):  # fmt: skip
        compiled = wg.jit(function)
        for k in range(3):
            assert compiled(np.full(2, k + comm.rank * 1.0), *args) == expected
        for k in range(3 if comm.size > 1 else 0):
            got = d.recv(np.zeros(2), before, tag=4)
            np.testing.assert_array_equal(got, np.full(2, k + before))
    assert wg.jit(loop)(np.ones(2)) == 3
    assert wg.jit(lambda n: d.bcast(n))(n) == n


def check_rules_of_the_user_for_outputs_of_all_processes(comm):
    """An output that is the same in all processes is counted once, eager and compiled."""

    @wg.custom_vjp
    def mean(w, x):
        return d.allreduce(np.mean(x @ w), "mean")

    mean.defvjp(
        lambda w, x: (mean(w, x), x),
        lambda x, t: (d.allreduce(t) * np.mean(x, axis=0), np.zeros_like(x)),
    )

    @wg.custom_vjp
    def local(w):
        return np.sum(w)

    local.defvjp(lambda w: (local(w), None), lambda _, t: (t * np.ones(3),))
    w, x = np.ones(3), _data(comm, (2, 3))
    for run in (lambda f: f, wg.jit):
        g = run(wg.grad(lambda w: mean(w, x)))
        np.testing.assert_allclose(g(w), x.mean(axis=0), rtol=1e-13)
        np.testing.assert_array_equal(run(wg.grad(local))(w), np.ones(3))
        g = run(wg.grad(lambda w: local(d.allreduce(w))))
        np.testing.assert_allclose(g(w), np.ones(3), rtol=1e-13)


def check_sums_do_not_wait_for_messages(comm):
    """The cotangent of a sum over processes multiplies the sums of the backward pass."""
    rng = np.random.default_rng(comm.rank)
    x, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    w = np.array([0.3, -0.2, 0.5])

    def loss(w, x, y):
        residual = np.tanh(x @ d.replicated(w)) - y
        return d.allreduce(np.sum(residual**2) + np.sum(y * residual))

    both = wg.value_and_grad(loss)
    graph = wg.rewrite.simplify(wg.trace(both)(w, x, y))
    messages = {n for n in graph.nodes if n.op.name == "mpi.allreduce"}
    after = set(messages)
    for n in graph.nodes:
        if not after.isdisjoint(n.inputs):
            after.add(n)
    sums = [n for n in graph.nodes if n.op.name in ("einsum", "matmul", "sum", "sum_to")]
    assert len(sums) >= 2
    assert after.isdisjoint(sums)
    value, gradient = both(w, x, y)
    for run in (wg.jit(both), graph):
        value_2, gradient_2 = run(w, x, y)
        np.testing.assert_allclose(value_2, value, rtol=1e-13)
        np.testing.assert_allclose(gradient_2, gradient, rtol=1e-12)
    np.testing.assert_allclose(
        wg.jit(wg.hessian(loss))(w, x, y), wg.hessian(loss)(w, x, y), rtol=1e-11, atol=1e-12
    )
