"""Messages in branches, in branches inside branches, and after them, in every mode and order."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from tests.distributed.sampling import by_turns, halved, sampled, ways

import wengert as wg
from wengert import distributed as d
from wengert._engine.kinds.collective import Collective
from wengert.errors import TraceError


def _programs(comm):
    n, r = comm.size, comm.rank
    rows = 1.0 + 0.3 * np.arange(n)[:, None]

    def of_some(x, k):  # an operand that is a constant in other processes
        return d.bcast(x if r == k % n else np.ones(3), k % n)

    def constants_after_loops(x):  # which depend on the loop by its token only
        d.allreduce(x)
        for _ in range(12):
            x = 0.9 * x + 0.1 * d.allreduce(x, "mean")
        y = d.scatter(rows * x if r == 0 else np.zeros(3), 0)
        if d.allreduce(np.sum(x)) > -9.0:
            y = y + d.shift(x)
        return d.allreduce(np.sum((y + of_some(x**2, 0)) ** 2))

    def residuals_of_some(x):  # only process 0 needs values of the loop in a backward pass
        for _ in range(12):
            x = 0.9 * x + 0.1 * d.allreduce(np.sin(x) if r == 0 else 0.5 * x, "mean")
        if d.allreduce(np.sum(x)) > -9.0:
            k = 0
            while k < 3 and d.allreduce(np.sum(x)) < 99.0:
                x, k = 0.9 * x + 0.1 * of_some(x**2, 0), k + 1
        y = wg.while_loop(
            lambda c: (c[0] < 4) & (d.allreduce(np.sum(c[1] ** 2)) < 99.0),
            lambda c: (c[0] + 1, c[1] + d.scatter(rows * np.sin(c[1]) if r == 0 else np.zeros(3))),
            (0, x),
        )[1]
        return d.allreduce(np.sum(x if r else x * x) + np.sum(y))

    def messages_of_conditions(x):  # what comes after the loop depends on it by its token only
        if d.allreduce(np.sum(x)) > -9.0:
            for _ in range(3):
                x = wg.while_loop(lambda c: d.allreduce(np.sum(c)) < 99.0, lambda c: 1.3 * c, x)
                y = d.allreduce(x if r == 0 else np.ones(3), "mean")
        return d.allreduce(np.sum(x * y))

    def unused_in_branch(x):
        y = np.cos(x)
        if d.allreduce(np.sum(x)) > -9.0:
            y = x / (1.0 + y**2)
            of_some(np.cumsum(x), 1)
            x = d.scatter(rows * x if r == 0 else np.zeros(3), 0)
        else:
            y = d.shift(y)
        return d.allreduce(np.sum(x * y))

    def nested_branches(x):
        y = x**2
        if d.allreduce(np.sum(x)) > -9.0:
            y = d.allreduce(y * x, "mean")
            if d.allreduce(np.sum(y)) < 99.0:
                x = x * of_some(np.sin(y), 1)
                if d.allreduce(np.sum(x)) > 999.0:
                    x = d.shift(x)
                y = y * d.shift(x)
            else:
                y = d.shift(y) * x
        return d.allreduce(np.sum(y * x))

    def loops_in_branches(x):
        def more(x):
            for i in range(12):
                x = 0.9 * x + 0.1 * np.sin(d.allreduce(x * (i + r), "mean"))
            k = 0
            while k < 3 and d.allreduce(np.sum(x)) < 99.0:
                x, k = x + 0.1 * of_some(x**2, 0), k + 1
            return x

        y = wg.cond(d.allreduce(np.sum(x)) > -9.0, more, lambda x: x, x)
        return d.allreduce(np.sum(y**2))

    def branches_in_loops(x):
        def step(c, row):
            c = wg.cond(
                d.allreduce(np.sum(c)) > 3.3,
                lambda c: 0.5 * d.shift(c) * row,
                lambda c: c + 0.3 * of_some(c**2, 1) + d.allreduce(row, "mean"),
                c,
            )
            return c, d.allreduce(np.sum(c), "mean")

        c, ys = wg.scan(step, x, np.stack([x, np.cos(x), x**2, x]))
        return d.allreduce(np.sum(c) + np.sum(ys**2))

    def selected(x):
        s = d.allreduce(np.sum(x))
        functions = [lambda x: x, lambda x: d.shift(x**2), lambda x: x * of_some(x, 0)]
        y = wg.switch((s > 0.0) * 1 + (s > 1.0) * 1, functions, x)
        return d.allreduce(np.sum(y * x))

    def batches(x):
        def each(a):
            def inner(a):
                return wg.cond(np.sum(a) > 0.0, lambda a: a * a, lambda a: d.shift(a), a)

            # The selector of the outer branch is the same in all processes, that of the inner one
            # too, because its operand is.
            return wg.cond(d.allreduce(np.sum(a)) > 1.0, lambda a: inner(d.allreduce(a)), np.sin, a)

        return d.allreduce(np.sum(wg.vmap(each)(np.stack([x, -x, x**2]))))

    def checkpoints(x):
        def part(a, k=0):
            a = a * of_some(np.sin(a), 0)
            d.allreduce(a)  # whose result is not used
            return wg.cond(d.allreduce(np.sum(a)) > -9.0, lambda a: d.shift(a) * a, np.cos, a)

        y = wg.checkpoint(part)(x)
        for _ in range(12):
            y = 0.5 * y + wg.checkpoint(part)(y, k=1) * x[0]
        z = wg.checkpoint(lambda a: np.sin(d.allreduce(a)))(y)
        # One process does not use the result.
        return d.allreduce(np.sum(y**2) + (np.sum(z) if r == 0 else 0.0))

    def results_of_some(x):  # one process needs the results of messages in a derivative
        def inner(x):
            y = d.allreduce(np.sin(x) if r == 0 else 0.5 * x, "mean")
            return y * y * of_some(x, 1) if r == 0 else 2.0 * y + of_some(x, 1)

        def steps(x):
            for _ in range(12):
                x = 0.5 * x + 0.1 * d.allreduce(x * x if r == 0 else x, "max")
            return x * d.shift(x) if r == 0 else d.shift(x)

        def outer(x):
            s = d.allreduce(np.sum(x))
            return wg.cond(s > -9.0, inner, lambda x: x, x) + wg.switch(
                (s > -9.0) * 1, [inner, steps], x
            )

        y = wg.cond(d.allreduce(np.sum(x)) > -9.0, outer, lambda x: d.scan(x), x)
        return d.allreduce(np.sum(y if r else y * x))

    return [
        checkpoints, results_of_some, constants_after_loops, residuals_of_some, unused_in_branch,
        nested_branches,
        messages_of_conditions, loops_in_branches, branches_in_loops, selected, batches,
    ]  # fmt: skip


def _data(comm):
    rng = np.random.default_rng((7, comm.rank))
    return 1.0 + 0.2 * rng.normal(size=3), rng.normal(size=3)


def _along(f, x, v):
    h = 1e-4
    values = [np.asarray(f(x + s * h * v)) for s in (-2, -1, 1, 2)]
    return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h)


def check_values_and_both_modes(comm):
    x, v = _data(comm)
    for number, f in enumerate(halved(_programs(comm))):
        name, value = f.__name__, f(x)
        g = wg.grad(f)(x)
        cases = [(f, value, 1e-12, 0.0), (wg.grad(f), g, 1e-11, 1e-12)]
        for function, wanted, rtol, atol in by_turns(number, cases):
            found = wg.jit(function)(x)
            np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, err_msg=name)
        along = sum(comm.mpi.allgather(np.vdot(g, v)))
        np.testing.assert_allclose(along, _along(f, x, v), rtol=1e-7, atol=1e-7, err_msg=name)
        for run in by_turns(number // 2, ways(number)):
            dot = run(lambda x, f=f: wg.jvp(f, (x,), (v,))[1])(x)
            np.testing.assert_allclose(dot, along, rtol=1e-11, err_msg=name)


def check_messages_of_single_steps(comm):
    """A loop of one step has the messages of its value once, also where they have no operands."""
    rows = 1.0 + 0.3 * np.arange(comm.size)[:, None]
    x, v = _data(comm)

    def step(i, a):
        return d.scatter(rows * np.sin(a) if comm.rank == 0 else np.zeros(3), 0)

    def f(x):
        if d.allreduce(np.sum(x)) > -9.0:
            for _ in range(13):
                x = wg.fori_loop(0, 1, step, d.shift(x))
        return d.allreduce(np.sum(x))

    along = sum(comm.mpi.allgather(np.vdot(wg.grad(f)(x), v)))
    for run in (lambda f: f, wg.jit):
        dot = run(lambda x: wg.jvp(f, (x,), (v,))[1])(x)
        np.testing.assert_allclose(dot, along, rtol=1e-11)


def check_branches_of_a_batch_begin_with_the_same_token(comm):
    """Both branches run, and the same operation on the same token is another message in each."""
    x, v = _data(comm)

    def each(a):
        def first(a):
            return d.allreduce(np.tanh(0.7 * a * a), "prod")

        def second(a):
            return np.mean(d.allgather(0.3 * np.cumsum(a)), axis=0) * a

        return wg.cond(d.allreduce(np.sum(a)) > 0.19, first, second, a)

    def f(x):
        return d.allreduce(np.sum(wg.vmap(each)(np.stack([x, np.cos(x), -x]))))

    along = sum(comm.mpi.allgather(np.vdot(wg.grad(f)(x), v)))
    np.testing.assert_allclose(wg.jit(f)(x), f(x), rtol=1e-12)
    for run in (lambda f: f, wg.jit):
        dot = run(lambda x: wg.jvp(f, (x,), (v,))[1])(x)
        np.testing.assert_allclose(dot, along, rtol=1e-11)


def check_messages_of_branches_are_sent_once(comm):
    """Gradients exchange messages of cotangents, and those of the branch once."""
    x, v = _data(comm)

    def message(x):
        return np.sin(d.allreduce(x * x, "mean"))

    def branch(x):
        y = wg.cond(d.allreduce(np.sum(x)) > -9.0, lambda x: message(message(x)), d.shift, x)
        return d.allreduce(np.sum(y * x))

    def in_loop(x):
        def step(i, x):
            return wg.cond(d.allreduce(np.sum(x)) > -9.0, message, lambda x: x, x)

        return d.allreduce(np.sum(wg.fori_loop(0, 4, step, x) * x))

    for f in (branch, in_loop):
        count, name = _messages_of(f, x), f.__name__
        assert _messages_of(wg.grad(f), x) == 2 * count, name
        twice = wg.grad(lambda x, f=f: d.allreduce(np.sum(wg.grad(f)(x) * v)))
        assert _messages_of(twice, x) == 4 * count + 2, name  # two of the sum


def _messages_of(f, x):
    """The number of messages of one run of a compiled function."""
    sent = []

    def run(self, *args, **params):
        sent.append(self.name)
        return original(self, *args, **params)

    original = Collective.run
    with patch.object(Collective, "run", run):
        compiled = wg.jit(f, backend="interpret")
        compiled(x)
        sent.clear()
        compiled(x)
    return sum(name != "mpi.same" for name in sent)


def check_second_order(comm):
    """Forward over reverse, reverse over forward, reverse over reverse, forward over forward."""
    x, v = _data(comm)
    for number, f in enumerate(sampled(_programs(comm))):
        name, expected = f.__name__, _along(wg.grad(f), x, v)
        orders = {
            "forward over reverse": lambda x, f=f: wg.hvp(f, (x,), (v,)),
            "reverse over forward": wg.grad(lambda x, f=f: wg.jvp(f, (x,), (v,))[1]),
            "reverse over reverse": wg.grad(lambda x, f=f: d.allreduce(np.sum(wg.grad(f)(x) * v))),
        }
        for k, (order, second) in by_turns(number, list(enumerate(orders.items()))):
            for run in ways(number // 2 + k // 2):
                np.testing.assert_allclose(
                    run(second)(x), expected, rtol=1e-6, atol=1e-6, err_msg=f"{name}, {order}"
                )

        def curvature(x, f=f):
            return wg.jvp(lambda x: wg.jvp(f, (x,), (v,))[1], (x,), (v,))[1]

        total = sum(comm.mpi.allgather(np.vdot(expected, v)))
        for run in by_turns(number + 1, ways(number // 2)):
            np.testing.assert_allclose(run(curvature)(x), total, rtol=1e-6, err_msg=name)


def check_rules_of_the_user_in_branches(comm):
    """Rules that exchange messages, in loops and branches, and beside other messages."""
    x, v = _data(comm)

    @wg.custom_vjp
    def f(x):
        return np.sin(d.allreduce(x, "mean"))

    def bwd(y, t):
        d.allreduce(y)  # which depends on no cotangent
        return (d.allreduce(np.cos(y) * t, "mean"),)

    f.defvjp(lambda x: (f(x), d.allreduce(x, "mean")), bwd)

    def plain(x):
        return np.sin(d.allreduce(x, "mean"))

    @wg.custom_jvp
    def h(x):
        return plain(x)

    def tangent(primals, tangents):
        y = d.allreduce(primals[0], "mean")
        return np.sin(y), np.cos(y) * d.allreduce(tangents[0], "mean")

    h.defjvp(tangent)

    def program(f):
        def of(x):
            y = f(x) * d.shift(x)
            for _ in range(12):
                y = 0.5 * y + f(y) * d.allreduce(x * y, "mean")
            z = wg.cond(d.allreduce(np.sum(y)) > -9.0, lambda y: f(d.shift(y)) * y, np.cos, y)
            return d.allreduce(np.sum(y * x) + (np.sum(z) if comm.rank == 0 else 0.0))

        return of

    other = program(plain)
    value, expected, second = other(x), wg.grad(other)(x), wg.hvp(other, (x,), (v,))
    along = wg.jvp(other, (x,), (v,))[1]
    for number, rule in enumerate((f, h)):  # the missing mode is the transpose
        one = program(rule)

        def twice(x, one=one):
            return wg.grad(lambda x: d.allreduce(np.sum(wg.grad(one)(x) * v)))(x)

        derivatives = [
            (one, value, 1e-12, 0.0),
            (wg.grad(one), expected, 1e-11, 1e-12),
            (lambda x, one=one: wg.jvp(one, (x,), (v,))[1], along, 1e-11, 0.0),
            (lambda x, one=one: wg.hvp(one, (x,), (v,)), second, 1e-10, 1e-11),
            (twice, second, 1e-10, 1e-11),
        ]
        for k, (derivative, wanted, rtol, atol) in by_turns(number, list(enumerate(derivatives))):
            for run in ways(number + k // 2):
                np.testing.assert_allclose(run(derivative)(x), wanted, rtol=rtol, atol=atol)


def check_rules_may_call_their_function(comm):
    """A rule of forward mode that exchanges messages, and takes the value from the function."""
    x, v = _data(comm)

    @wg.custom_jvp
    def f(x):
        return np.sin(d.allreduce(x, "mean"))

    def tangent(primals, tangents):
        slope = np.cos(d.allreduce(primals[0], "mean"))
        return f(primals[0]), slope * d.allreduce(tangents[0], "mean")

    f.defjvp(tangent)

    def program(f):
        def of(x):
            y = f(x)  # which some processes do not use
            return d.allreduce(np.sum(f(d.shift(x)) * x) + np.sum(y if comm.rank else x))

        return of

    own, plain = program(f), program(lambda x: np.sin(d.allreduce(x, "mean")))
    for transform in (wg.grad, lambda f: lambda x: wg.hvp(f, (x,), (v,))):
        expected = transform(plain)(x)
        for run in (lambda f: f, wg.jit):
            got = run(transform(own))(x)
            np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-12)


def check_branches_of_local_values_are_refused(comm):
    """A branch with messages whose condition may differ between processes."""
    x, v = _data(comm)

    def one_branch(x):
        y = wg.cond(np.sum(x) > 0.0, d.allreduce, lambda x: x, x)
        return d.allreduce(np.sum(y))

    def inner_branch(x):
        def inner(x):
            return wg.cond(np.sum(x) > 0.0, d.shift, lambda x: x, x)

        y = wg.cond(d.allreduce(np.sum(x)) > 0.0, inner, lambda x: x, x)
        return d.allreduce(np.sum(y))

    for f in (one_branch, inner_branch):
        for g in (f, wg.grad(f), lambda x, f=f: wg.jvp(f, (x,), (v,))[1]):
            with pytest.raises(TraceError, match="may differ between processes"):
                wg.jit(g)(x)

    def uniform(x):
        y = wg.cond(np.sum(d.replicated(x)) > 0.0, d.allreduce, lambda x: x, x)
        return d.allreduce(np.sum(y))

    x = np.array([1.0, 2.0, 3.0])
    for g in (wg.grad(uniform), wg.jit(wg.grad(uniform))):
        np.testing.assert_allclose(g(x), comm.size**2 * np.ones(3) / comm.size)


def check_loops_that_are_computed_again_keep_their_messages(comm):
    """A process that only sends in a loop sends again where others compute the loop again."""
    n, r = comm.size, comm.rank
    x, v = _data(comm)

    def pair(x):
        if r % 2:
            return d.recv(x, r - 1)
        if r + 1 < n:
            d.send(x, r + 1)
        return x

    def goes_on(state):
        return (state[0] < 4) & (d.allreduce(np.sum(state[1] ** 2)) < 99.0)

    def step(state):
        k, z = state
        return k + 1, 1.2 * z + 0.1 * pair(z if r == 0 else 0.3 * z)

    def f(x):
        z, k = np.cos(x), 0
        while k < 12 and d.allreduce(np.sum(x**2)) < 40.0:
            _, z = wg.while_loop(goes_on, step, (0, np.exp(-(x**2))))
            x = x * 1.3
            k += 1
        return d.allreduce(np.sum(np.sin(z)))

    expected = wg.hvp(f, (x,), (v,))
    second = wg.jit(wg.grad(lambda x: wg.jvp(f, (x,), (v,))[1]))
    np.testing.assert_allclose(second(x), expected, rtol=1e-9, atol=1e-11)
