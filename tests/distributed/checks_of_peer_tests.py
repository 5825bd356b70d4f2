"""The subjects of mpi4jax's tests (mpi4jax 0.9, tests/), for the functions of wengert.distributed.

MPI4JAX names for each of its tests the check here, or another test, or says why there is none.
Results differ where the functions do: processes other than the root get zeros from `reduce`, and no
rows from `gather`; there they get their own operand.  The transpose of `allreduce` is `allreduce`;
where all processes get the same cotangent, which is counted once, that is the identity of mpi4jax.
"""

from __future__ import annotations

import logging
import time

import numpy as np

import wengert as wg
from wengert import distributed as d
from wengert.errors import ArgumentError, NotDifferentiableError, ShapeError

_FAILING = "test_failing_processes"
_NO_STATUS = "the sender and the size of a message are arguments, so there is nothing to report"
_NOT_BUILT = "nothing is compiled against MPI: sizes of handles are read from mpi4py"
_MEMORY = "messages are sent from the memory of the processor only"
_ARGUMENTS = "check_arguments_are_checked"
MPI4JAX = {
    "test_allgather": {
        "test_allgather": "check_allgather",
        "test_allgather_jit": "check_allgather",
        "test_allgather_scalar": "check_allgather",
        "test_allgather_scalar_jit": "check_allgather",
    },
    "test_allreduce": {
        "test_allreduce": "check_allreduce",
        "test_allreduce_jit": "check_allreduce",
        "test_allreduce_scalar": "check_allreduce",
        "test_allreduce_scalar_jit": "check_allreduce",
        "test_allreduce_vmap": "check_allreduce",
        "test_allreduce_vmap_jit": "check_allreduce",
        "test_allreduce_transpose": "check_allreduce_transposed",
        "test_allreduce_transpose_jit": "check_allreduce_transposed",
        "test_allreduce_transpose2": "check_allreduce_transposed",
        "test_allreduce_transpose2_jit": "check_allreduce_transposed",
        "test_allreduce_grad": "check_allreduce_derivatives",
        "test_allreduce_jvp": "check_allreduce_derivatives",
        "test_allreduce_vjp": "check_allreduce_derivatives",
        "test_allreduce_chained": "check_allreduce_chained",
        "test_allreduce_chained_jit": "check_allreduce_chained",
        "test_custom_vjp": "check_rule_of_the_user",
        "test_advanced_jvp": "check_expectation",
    },
    "test_allreduce_matvec": {
        f"test_matvec{test}{suffix}": "check_divided_matrix"
        for test in (
            *("", "T", "_transpose", "T_transpose", "_transpose2", "T_transpose2"),
            *("_transpose3", "T_transpose3", "_jvp", "T_jvp", "_vjp", "T_vjp"),
        )
        for suffix in ("", "_jit")
    },
    "test_alltoall": {
        "test_alltoall": "check_alltoall",
        "test_alltoall_jit": "check_alltoall",
        "test_alltoall_wrong_size": "check_alltoall",
        "test_alltoall_transpose": "check_transposition_of_a_divided_matrix",
    },
    "test_barrier": {"test_barrier": "check_barrier"},
    "test_bcast": {
        "test_bcast": "check_bcast",
        "test_bcast_jit": "check_bcast",
        "test_bcast_scalar": "check_bcast",
        "test_bcast_scalar_jit": "check_bcast",
    },
    "test_common": {
        "test_abort_on_error": f"{_FAILING}: sends to a process that is not there",
        "test_deadlock_on_exit": f"{_FAILING}: ends after a message to itself",
        "test_debug_logging": "check_messages_are_logged",
        "test_set_logging_from_envvar": f"{_FAILING}: ends after a message to itself",
        "test_mpi_abi_info": _NOT_BUILT,
        "test_mpi_abi_compatibility_check": _NOT_BUILT,
        "test_mpi_abi_skip_check": _NOT_BUILT,
    },
    "test_gather": {
        "test_gather": "check_gather",
        "test_gather_jit": "check_gather",
        "test_gather_scalar": "check_gather",
        "test_gather_scalar_jit": "check_gather",
    },
    "test_reduce": {
        "test_reduce": "check_reduce",
        "test_reduce_jit": "check_reduce",
        "test_reduce_scalar": "check_reduce",
        "test_reduce_scalar_jit": "check_reduce",
    },
    "test_scan": {
        "test_scan": "check_scan",
        "test_scan_jit": "check_scan",
        "test_scan_scalar": "check_scan",
        "test_scan_scalar_jit": "check_scan",
    },
    "test_scatter": {
        "test_scatter": "check_scatter",
        "test_scatter_jit": "check_scatter",
        "test_scatter_wrong_size": "check_scatter",
    },
    "test_send_and_recv": {
        "test_send_recv": "check_send_and_recv",
        "test_send_recv_scalar": "check_send_and_recv",
        "test_send_recv_scalar_jit": "check_send_and_recv",
        "test_send_recv_jit": "check_send_and_recv",
        "test_send_recv_deadlock": "check_order_of_send_and_recv",
        "test_send_recv_status": _NO_STATUS,
        "test_send_recv_status_jit": _NO_STATUS,
    },
    "test_sendrecv": {
        "test_sendrecv": "check_sendrecv",
        "test_sendrecv_status": _NO_STATUS,
        "test_sendrecv_status_jit": _NO_STATUS,
        "test_sendrecv_scalar": "check_sendrecv",
        "test_sendrecv_jit": "check_sendrecv",
        "test_sendrecv_scalar_jit": "check_sendrecv",
        "test_sendrecv_vmap": "check_sendrecv",
        "test_sendrecv_grad": "check_sendrecv_derivatives",
        "test_sendrecv_grad_2": "check_sendrecv_derivatives",
        "test_sendrecv_jacfwd": "check_sendrecv_derivatives",
        "test_sendrecv_jacrev": "check_sendrecv_derivatives",
    },
    "test_jax_transforms": {"test_custom_linear_solver": "check_conjugate_gradients"},
    "test_validation": {
        "test_enforce_types": _ARGUMENTS,
        "test_enforce_types_generic": _ARGUMENTS,
        "test_enforce_types_invalid_args": "there is no decorator that checks types",
        "test_enforce_types_tracer": _ARGUMENTS,
    },
    "test_examples": {"test_shallow_water_demo": "check_shallow_water_example"},
    "test_decorators": {
        "test_envvar_parsing": "there are no variables of the environment to parse",
        "test_ensure_cuda_ext": _MEMORY,
        "test_ensure_xpu_ext": _MEMORY,
    },
    "test_has_cuda": {"test_has_cuda_support": _MEMORY},
    "test_has_sycl": {"test_has_sycl_support": _MEMORY},
    "test_jax_compat": {
        "test_versiontuple": "JAX is not used",
        "test_version_warning": "JAX is not used",
    },
}  # fmt: skip


def _runs(*functions):
    """Functions as they are, and all of them in one compiled function."""
    yield lambda x: [f(x) for f in functions]
    yield wg.jit(lambda x: [f(x) for f in functions])


def _equal(x, y, message=""):
    np.testing.assert_array_equal(x, y, err_msg=message)


def _numbers_and_arrays(comm):
    """An array and numbers of this process, whose values are its rank."""
    return np.full((3, 2), float(comm.rank)), comm.rank, np.float32(comm.rank)


# ---- collective operations ---------------------------------------------------------------------


def check_allgather(comm):
    for x in _numbers_and_arrays(comm):
        expected = np.stack([np.full(np.shape(x), k) for k in range(comm.size)])
        for run in _runs(d.allgather):
            _equal(run(x)[0], expected)


def check_allreduce(comm):
    from mpi4py import MPI

    for x in _numbers_and_arrays(comm):
        before = np.copy(x)
        expected = np.sum([np.full(np.shape(x), k) for k in range(comm.size)], axis=0)
        for run in _runs(d.allreduce, lambda x: d.allreduce(x, op=MPI.SUM)):
            for result in run(x):
                _equal(result, expected)
        _equal(x, before)
    x = _numbers_and_arrays(comm)[0]
    for run in _runs(wg.vmap(d.allreduce), wg.vmap(d.allreduce, in_axes=1, out_axes=1)):
        for result in run(x):
            _equal(result, np.full((3, 2), sum(range(comm.size))))


def check_bcast(comm):
    for x in _numbers_and_arrays(comm):
        before = np.copy(x)
        for run in _runs(d.bcast, lambda x: d.bcast(x, root=comm.size - 1)):
            first, last = run(x)
            _equal(first, np.zeros(np.shape(x)))
            _equal(last, np.full(np.shape(x), comm.size - 1))
        _equal(x, before)


def check_gather(comm):
    for x in _numbers_and_arrays(comm):
        rows = [np.full(np.shape(x), k) for k in range(comm.size)]
        for run in _runs(lambda x: d.gather(x, root=0)):
            (result,) = run(x)
            _equal(result, np.stack(rows) if comm.rank == 0 else np.empty((0, *np.shape(x))))


def check_reduce(comm):
    total = sum(range(comm.size)) if comm.rank == 0 else 0
    for x in _numbers_and_arrays(comm):
        for run in _runs(lambda x: d.reduce(x, root=0)):
            _equal(run(x)[0], np.full(np.shape(x), total))


def check_scan(comm):
    for x in _numbers_and_arrays(comm):
        for run in _runs(d.scan):
            _equal(run(x)[0], np.full(np.shape(x), sum(range(comm.rank + 1))))


def check_scatter(comm):
    rows = np.stack([np.full((3, 2), float(k)) for k in range(comm.size)])
    for run in _runs(lambda x: d.scatter(x, root=0)):
        _equal(run(rows if comm.rank == 0 else rows[0])[0], rows[comm.rank])
    if comm.rank == 0:  # the others would wait
        _refused(ShapeError, lambda: d.scatter(np.ones(comm.size + 1)))


def check_alltoall(comm):
    x = np.full((comm.size, 3, 2), float(comm.rank))
    for run in _runs(d.alltoall):
        _equal(run(x)[0], [np.full((3, 2), float(k)) for k in range(comm.size)])
    _refused(ShapeError, lambda: d.alltoall(np.ones(comm.size + 1)))


def check_transposition_of_a_divided_matrix(comm):
    """The operand is not contiguous when it is sent."""
    n, rows = comm.size, 4
    whole = np.random.default_rng(0).normal(size=(n * rows, n * 3))
    own = whole[comm.rank * rows : (comm.rank + 1) * rows]

    def transposed(x):
        blocks = d.alltoall(np.transpose(np.reshape(x, (rows, n, 3)), (1, 0, 2)))
        return np.transpose(np.reshape(blocks, (n * rows, 3)))

    for run in _runs(transposed):
        _equal(run(own)[0], whole.T[comm.rank * 3 : (comm.rank + 1) * 3])


def check_barrier(comm):
    """No process goes on before the last one has come."""
    for run in _runs(lambda x: d.barrier() or x):
        comm.mpi.Barrier()
        begin = time.monotonic()
        if comm.rank == comm.size - 1:
            time.sleep(0.1)
        run(1.0)
        assert time.monotonic() - begin >= 0.09


# ---- derivatives of allreduce ------------------------------------------------------------------


def check_allreduce_transposed(comm):
    x = np.random.default_rng(0).normal(size=(3, 2))  # the same in all processes

    def once(t):  # of one cotangent, which all processes have; the part of this process
        return d.varying(wg.vjp(d.allreduce, x)[1](d.replicated(t))[0])

    def twice(t):
        return wg.vjp(once, x)[1](t)[0]

    for run in _runs(once, twice):
        first, second = run(x)
        np.testing.assert_allclose(first, x, rtol=1e-15)
        np.testing.assert_allclose(second, comm.size * x, rtol=1e-15)


def check_allreduce_derivatives(comm):
    x = np.ones((3, 2))

    def total(x):
        return np.sum(d.allreduce(x))

    def unused(x):
        y = d.allreduce(x)
        x + 2 * y
        return np.sum(d.allreduce(x))

    def pulled(x):
        y, pull = wg.vjp(d.allreduce, x)
        return y, pull(x)[0]

    pairs = (
        wg.value_and_grad(total),
        wg.value_and_grad(unused),
        lambda x: wg.jvp(d.allreduce, (x,), (x,)),
        pulled,
    )
    for run in _runs(*pairs):
        (first, gradient), (second, same), (y, dot), (z, bar) = run(x)
        assert first == second == 6.0 * comm.size
        for result in (gradient, same, bar):
            _equal(result, x)
        for result in (y, dot, z):
            _equal(result, comm.size * x)


def check_allreduce_chained(comm):
    for run in _runs(wg.grad(lambda x: d.allreduce(x) + d.allreduce(x))):
        assert run(0.0) == [2.0]


def check_rule_of_the_user(comm):
    """A rule that sends messages, in a function of two arguments that sends one."""

    @wg.custom_vjp
    def f(x, y):
        return d.allreduce(np.sum(np.sin(x) * y))

    def backward(residuals, t):
        cosine, sine, y = residuals
        t = d.allreduce(t)
        return cosine * t * y, sine * t

    f.defvjp(lambda x, y: (f(x, y), (np.cos(x), np.sin(x), y)), backward)
    x = np.ones(3)
    for run in _runs(lambda x: f(x, 2.0 * x), wg.grad(lambda x: f(x, 2.0 * x))):
        value, gradient = run(x)
        np.testing.assert_allclose(value, comm.size * 6.0 * np.sin(1.0))
        np.testing.assert_allclose(gradient, 2.0 * (np.sin(x) + np.cos(x)))


def check_expectation(comm):
    """A rule that differentiates a function with messages: the gradient of an expectation.

    The estimator by the logarithmic derivative of the density, of samples in all processes.
    """
    rng = np.random.default_rng((1, comm.rank))
    x, w = rng.normal(size=(16, 4)), np.random.default_rng(0).normal(size=4)

    def density(w, x):
        return -0.5 * np.sum((x - w) ** 2, axis=-1)

    def local(w, x):
        return np.exp(0.1 * x @ w) - 2.0

    @wg.custom_vjp
    def mean(w, x):
        return d.allreduce(np.mean(local(w, x)), "mean")

    def forward(w, x):
        values = local(w, x)
        average = d.allreduce(np.mean(values), "mean")
        return average, (w, x, values - average)

    def backward(residuals, t):
        w, x, difference = residuals

        def surrogate(w):
            w = d.replicated(w)
            terms = difference * density(w, x) + local(w, x)
            return d.allreduce(np.mean(terms), "mean")

        return wg.vjp(surrogate, w)[1](d.allreduce(t))[0], np.zeros_like(x)

    mean.defvjp(forward, backward)
    every = np.concatenate(comm.mpi.allgather(x))
    values = local(w, every)
    terms = (values - values.mean())[:, None] * (every - w) + 0.1 * every * (values + 2.0)[:, None]
    for run in _runs(lambda w: mean(w, x), wg.grad(lambda w: mean(w, x))):
        value, gradient = run(w)
        np.testing.assert_allclose(value, values.mean(), rtol=1e-13)
        np.testing.assert_allclose(gradient, terms.mean(axis=0), rtol=1e-11)


def check_divided_matrix(comm):
    """Products with a matrix of which each process has columns; transposed up to three times."""
    rng, columns = np.random.default_rng(123), 3
    a, b = rng.normal(size=(5, columns * comm.size)), rng.normal(size=5)
    x, v = rng.normal(size=(2, columns * comm.size))
    u = rng.normal(size=5)
    own = slice(columns * comm.rank, columns * (comm.rank + 1))

    def product(x):  # of the part of a vector; the same result in all processes
        return d.allreduce(a[:, own] @ x)

    def transposed_product(y):  # of the same vector in all processes; the part of the result
        return d.varying(a[:, own].T @ d.replicated(y))

    def of_product(f):  # transposes of functions like these
        return lambda y: d.varying(wg.vjp(f, x[own])[1](d.replicated(y))[0])

    def of_transposed(f):
        return lambda x: wg.vjp(f, b)[1](x)[0]

    forward, backward = [product], [transposed_product]
    for _ in range(3):
        transposes = of_transposed(backward[-1]), of_product(forward[-1])
        forward.append(transposes[0])
        backward.append(transposes[1])
    pairs = {
        "x": (
            *forward,
            lambda x: wg.jvp(product, (x,), (v[own],)),
            lambda x: wg.vjp(product, x)[1](u)[0],
        ),
        "b": (
            *backward,
            lambda y: wg.jvp(transposed_product, (y,), (u,)),
            lambda y: wg.vjp(transposed_product, y)[1](v[own])[0],
        ),
    }
    for run in _runs(*pairs["x"]):
        *products, (y, dot), bar = run(x[own])
        for result in (*products, y):
            np.testing.assert_allclose(result, a @ x, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(dot, a @ v, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(bar, (a.T @ u)[own], rtol=1e-12, atol=1e-12)
    for run in _runs(*pairs["b"]):
        *products, (y, dot), bar = run(b)
        for result in (*products, y):
            np.testing.assert_allclose(result, (a.T @ b)[own], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(dot, (a.T @ u)[own], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(bar, a @ v, rtol=1e-12, atol=1e-12)


def check_conjugate_gradients(comm):
    """A linear solver whose matrix is applied by messages, and derivatives through it."""
    b = np.random.default_rng(1).normal(size=24)
    scale = comm.size * (comm.size + 1) / 2

    def product(v):
        return d.allreduce(v * (1.0 + comm.rank))

    def solved(b):
        return _conjugate_gradients(product, b)

    def by_rule(b):
        return wg.custom_linear_solve(product, b, _conjugate_gradients, symmetric=True)

    def energy(solve):
        return wg.grad(lambda b: d.allreduce(np.sum(solve(d.replicated(b)) ** 2), "mean"))

    for solve in (solved, by_rule):
        for run in _runs(solve, energy(solve)):
            x, gradient = run(b)
            np.testing.assert_allclose(scale * x, b, rtol=1e-12)
            np.testing.assert_allclose(gradient, 2.0 * b / scale**2, rtol=1e-10)


def _conjugate_gradients(product, b):
    def step(state, _):
        x, r, p, rr = state
        ap = product(p)
        alpha = rr / np.maximum(p @ ap, 1e-300)
        x, r = x + alpha * p, r - alpha * ap
        return (x, r, r + r @ r / np.maximum(rr, 1e-300) * p, r @ r), None

    return wg.scan(step, (np.zeros_like(b), b, b, b @ b), None, 4)[0][0]


# ---- arguments and reports ---------------------------------------------------------------------


def _refused(kind, function, words=""):
    try:
        function()
    except kind as error:
        assert words in str(error), str(error)
    else:
        raise AssertionError(f"{kind.__name__} was not raised")


def check_arguments_are_checked(comm):
    """Their kinds; ranks, tags and roots that are not known when a function is traced."""
    for bad in ("all", 1.5, 3, object()):
        _refused(ArgumentError, lambda bad=bad: d.allreduce(1.0, comm=bad), "comm is a ")
    for bad in (0.0, True, "0", None, [0], comm.size, -1, 1 << 40):
        _refused(ArgumentError, lambda bad=bad: d.bcast(1.0, bad), "root=")
        if bad is not None:
            _refused(ArgumentError, lambda bad=bad: d.sendrecv(1.0, bad, None), "dest=")
            _refused(ArgumentError, lambda bad=bad: d.recv(1.0, bad), "source=")
    for bad in (0.0, True, "0", None, -1, 1 << 40):
        _refused(ArgumentError, lambda bad=bad: d.send(1.0, 0, tag=bad), "tag=")
    traced = wg.jit(lambda x, k: d.bcast(x, k))
    _refused(ArgumentError, lambda: traced(1.0, np.int64(0)), "known when the function is traced")
    static = wg.jit(lambda x, k: d.bcast(x, k), static_argnums=1)
    assert static(1.0, 0) == 1.0


def check_messages_are_logged(comm):
    log, texts = logging.getLogger("wengert.distributed"), []
    handler = logging.Handler()
    handler.emit = lambda record: texts.append(record.getMessage())
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        d.allreduce(np.ones((3, 2)))
        wg.jit(lambda x: d.bcast(x), backend="interpret")(1.0)
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
    d.allreduce(1.0)
    begins = f"process {comm.rank} of {comm.size}: "
    assert texts[0] == begins + "allreduce of float64[3,2] begins"
    assert texts[1].startswith(begins + "allreduce of float64[3,2] has ended, after ")
    assert texts[2] == begins + "bcast of float64[], root=0 begins" and len(texts) == 4


# ---- messages between two processes ------------------------------------------------------------


def check_send_and_recv(comm):
    """The first process receives from all others."""
    for x in _numbers_and_arrays(comm):
        before = np.copy(x)

        def program(x):
            if comm.rank:
                return d.send(x, 0, tag=comm.rank) or [x]
            return [d.recv(x, source=k, tag=k) for k in range(1, comm.size)]

        for run in _runs(program):
            (results,) = run(x)
            if comm.rank == 0:
                for k, result in enumerate(results, 1):
                    _equal(result, np.full(np.shape(x), k))
        _equal(x, before)


def check_order_of_send_and_recv(comm):
    """A process that sends before it receives, and one that receives before it sends."""
    if comm.rank > 1 or comm.size == 1:
        return
    other = 1 - comm.rank

    def program(x):
        if comm.rank == 0:
            d.send(x, other)
            return d.recv(x, other)
        y = d.recv(x, other)
        d.send(x, other)
        return y

    for size in (10, 100_000):  # the second is sent when the receiver asks for it
        for run in _runs(program):
            _equal(run(np.full(size, float(comm.rank)))[0], np.full(size, float(other)))


def check_sendrecv(comm):
    if comm.rank > 1 or comm.size == 1:
        return
    other = 1 - comm.rank
    for x in _numbers_and_arrays(comm):
        before = np.copy(x)
        functions = [lambda x: d.sendrecv(x, source=other, dest=other)]
        if np.ndim(x):
            functions.append(wg.vmap(functions[0]))
        for run in _runs(*functions):
            for result in run(x):
                _equal(result, np.full(np.shape(x), other))
        _equal(x, before)


def check_sendrecv_derivatives(comm):
    pair = comm.split(None if comm.rank > 1 else 0)
    if comm.rank > 1 or comm.size == 1:
        return
    x, r, other = np.full((3, 2), 1.0 + comm.rank), comm.rank, 1 - comm.rank

    def once(x):
        return np.sum(d.sendrecv(x, other, other, comm=pair) * (r + 1))

    def twice(x):
        y = d.sendrecv(x, other, other, comm=pair) * (r + 1) * 5
        return np.sum(d.sendrecv(y, other, other, comm=pair) * (r + 1) ** 2)

    for run in _runs(wg.grad(once), wg.grad(twice), wg.jacrev(once)):
        first, second, jacobian = run(x)
        _equal(first, np.full((3, 2), other + 1.0))
        _equal(second, np.full((3, 2), (r + 1.0) ** 2 * 5 * (other + 1)))
        _equal(jacobian, first)
    _refused(NotDifferentiableError, lambda: wg.jacfwd(once)(x))
