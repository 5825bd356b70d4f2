"""Functions whose nodes are placed on processes: values and derivatives equal the serial ones."""

from __future__ import annotations

import numpy as np
from tests.distributed.placed_programs import arguments_of, random_program
from tests.distributed.sampling import sampled

import wengert as wg
from wengert import distributed as d
from wengert.errors import ArgumentError, CommunicationError, TraceError


def _raises(kind, words, call):
    try:
        call()
    except kind as error:
        assert words in str(error), str(error)
    else:
        raise AssertionError(f"{kind.__name__} was not raised")


def _plain(x):
    return x.detach().numpy() if isinstance(x, wg.Tensor) else x


def _model(size):
    def model(v, w, x, c):
        with wg.scope("body", device=0):
            h = np.tanh(x @ v)
        with wg.scope("middle", device=size // 2):
            h = np.sin(h) * c + h
        with wg.scope("head", device=size - 1):
            return np.sum(np.sin(h @ w)) + 0.1 * np.sum(v**2)

    return model


def _arguments():
    rng = np.random.default_rng(5)
    return rng.normal(size=(2, 3)), rng.normal(size=3), rng.normal(size=(4, 2)), 0.7


def check_values_and_gradients_equal_the_serial_ones(comm):
    model, args = _model(comm.size), _arguments()
    value, expected = wg.value_and_grad(model, argnums=(0, 1, 3))(*args)
    for options in (
        {}, {"compile": False}, {"outputs": 0}, {"outputs": comm.size - 1, "compile": False},
    ):  # fmt: skip
        together = d.placed(model, comm, **options)
        found = together(*args)
        root = options.get("outputs", comm.rank)
        np.testing.assert_allclose(found, value if root == comm.rank else 0.0, rtol=1e-14)
        for gradient in (
            wg.grad(together, argnums=(0, 1, 3)),
            wg.jit(wg.grad(together, argnums=(0, 1, 3))),
        ):
            for a, b in zip(gradient(*args), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-13, err_msg=str(options))


def check_gradients_of_one_process_stay_there(comm):
    model, args = _model(comm.size), _arguments()
    _, dw, dc = wg.grad(model, argnums=(0, 1, 3))(*args)
    for compiled in (True, False):
        together = d.placed(model, comm, gradients="owner", compile=compiled)
        _, own_w, own_c = wg.grad(together, argnums=(0, 1, 3))(*args)
        np.testing.assert_allclose(own_w, dw if comm.rank == comm.size - 1 else 0 * dw, rtol=1e-13)
        np.testing.assert_allclose(own_c, dc if comm.rank == comm.size // 2 else 0.0, rtol=1e-13)


def check_second_derivatives(comm):
    model, args = _model(comm.size), _arguments()
    together = d.placed(model, comm)
    np.testing.assert_allclose(
        wg.jit(wg.hessian(together))(*args), wg.hessian(model)(*args), rtol=1e-11, atol=1e-13
    )
    for run in (lambda f: f, wg.jit):
        product = run(lambda v, f=together: wg.hvp(f, args, (v, 0 * args[1], 0 * args[2], 0.0)))
        expected = wg.hvp(model, args, (args[0], 0 * args[1], 0 * args[2], 0.0))
        for a, b in zip(product(args[0]), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def check_captured_variables_and_containers(comm):
    w = wg.tensor(np.arange(3.0), requires_grad=True)
    data = np.linspace(0.0, 1.0, 300).reshape(100, 3)

    def f(params):
        with wg.scope(device=comm.size - 1):
            z = data @ (params["a"] * w)
        return {"z": z[:2], "sum": np.sum(z), "count": np.sum(z > 0.5), "same": params["a"]}

    a = np.array([1.0, -2.0, 0.5])
    expected, found = f({"a": a}), d.placed(f, comm)({"a": a})
    assert list(expected) == list(found)
    for key, x in expected.items():
        np.testing.assert_allclose(_plain(found[key]), _plain(x), rtol=1e-13)
    for compiled in (False, True):
        w.grad = None
        d.placed(f, comm, compile=compiled)({"a": a})["sum"].backward()
        np.testing.assert_allclose(w.grad, a * np.sum(data, axis=0), rtol=1e-12)


def check_dtypes_stay(comm):
    def f(x, c):
        with wg.scope(device=0):
            y = x * 2
            c = c * 2
        with wg.scope(device=comm.size - 1):
            return np.sum(y * c * float(np.sum(x)))

    x = np.ones(3, np.float32)
    assert f(x, 2.0).dtype == np.float32
    for compiled in (False, True):
        together = d.placed(f, comm, compile=compiled)
        assert together(x, 2.0).dtype == np.float32
        dx, dc = wg.grad(together, argnums=(0, 1))(x, 2.0)
        np.testing.assert_allclose(dx, [48.0] * 3)
        np.testing.assert_allclose(dc, 36.0)


def check_random_programs(comm):
    for seed in sampled(range(5)):
        program, args = random_program((comm.size, seed), comm.size), arguments_of(seed)

        def loss(*xs, program=program):
            return sum(np.sum(y) for y in program(*xs))

        together = d.placed(program, comm, compile=bool(seed % 2))

        def loss_together(*xs, together=together):
            return sum(np.sum(y) for y in together(*xs))

        value, expected = wg.value_and_grad(loss, argnums=(0, 1, 2))(*args)
        for run in (lambda f: f, wg.jit):
            found, gradients = run(wg.value_and_grad(loss_together, argnums=(0, 1, 2)))(*args)
            np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-12)
            for a, b in zip(gradients, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10, err_msg=f"seed {seed}")


def check_messages_that_wait_for_their_receivers(comm):
    """MPI sends arrays of this size only when the receiver is ready."""

    def f(x):
        values = [x, np.cos(x)]
        for k in wg.unroll(range(9)):
            with wg.scope(device=k % comm.size):
                values.append(np.sin(values[-1]) + values[k // 2] * values[-2])
        return np.sum(values[-1] * values[5])

    x = np.linspace(0.0, 1.0, 100_000)
    value, expected = wg.value_and_grad(f)(x)
    for run in (lambda f: f, wg.jit):
        found, gradient = run(wg.value_and_grad(d.placed(f, comm)))(x)
        np.testing.assert_allclose(found, value, rtol=1e-12)
        np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-12)


def check_batches(comm):
    model, (v, w, x, c) = _model(comm.size), _arguments()
    vs = np.stack([v, 2 * v, -v])
    expected = wg.vmap(lambda v: model(v, w, x, c))(vs)
    for run in (lambda f: f, wg.jit):
        found = run(wg.vmap(lambda v: d.placed(model, comm)(v, w, x, c)))(vs)
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def check_programs_of_any_size(comm):
    def f(x):
        with wg.scope(device=0):
            y = np.cumsum(x) ** 2
        with wg.scope(device=comm.size - 1):
            return np.sum(np.sin(y))

    gradient = wg.jit(wg.grad(d.placed(f, comm)))
    for n in (3, 5, 7, 4, 9):
        x = np.linspace(0.1, 1.0, n)
        np.testing.assert_allclose(gradient(x), wg.grad(f)(x), rtol=1e-12)


def check_scopes_of_unknown_processes_are_refused(comm):
    def f(x):
        with wg.scope("far", device=comm.size):
            return np.sin(x)

    _raises(ArgumentError, "scope 'far' is not a process", lambda: d.placed(f, comm)(1.0))
    _raises(ArgumentError, "outputs=9 is not a process", lambda: d.placed(f, comm, outputs=9)(1.0))


def check_different_graphs_are_refused(comm):
    if comm.size == 1:
        return

    def f(x):
        with wg.scope(device=0):
            return np.sin(x) if comm.rank else np.cos(x)

    def g(x):
        with wg.scope(device=1 if comm.rank else 0):
            return np.sin(x)

    for function in (f, g):
        for compiled in (True, False):
            together = d.placed(function, comm, compile=compiled)
            _raises(CommunicationError, "placed function", lambda f=together: f(np.ones(3)))
    together = d.placed(lambda x: np.sum(x), comm)
    _raises(CommunicationError, "placed function", lambda: together(np.ones(3 + comm.rank)))


def check_functions_with_messages_are_refused(comm):
    for compiled in (True, False):
        together = d.placed(lambda x: d.allreduce(x, comm=comm), comm, compile=compiled)
        _raises(TraceError, "exchanges messages itself", lambda f=together: f(np.ones(3)))


def check_it_can_be_part_of_a_function_with_messages(comm):
    model, (v, w, x, c) = _model(comm.size), _arguments()

    together = d.placed(model, comm)

    def whole(v):
        v = d.replicated(v, comm)
        return together(np.sin(v), w, x, c) + d.allreduce(np.sum(v**2), "mean", comm)

    def serial(v):
        return model(np.sin(v), w, x, c) + np.sum(v**2)

    for run in (lambda f: f, wg.jit):
        np.testing.assert_allclose(run(wg.grad(whole))(v), wg.grad(serial)(v), rtol=1e-12)
