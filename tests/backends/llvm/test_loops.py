"""Loops in native code: the same as step by step, in memory of their own, and interruptible.

Values and derivatives of all kinds of loops are compared in tests/control; here is what only native
code has: registers, places that are written over, stacks that grow, pages without access.
"""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm import tuning
from wengert._engine.backends.llvm.profile.program_summary import summary_of
from wengert._engine.backends.llvm.program import Program
from wengert.errors import GuardError

from .guard_pages import guarded


def program_of(f, *args):
    graph = wg.trace(f)(*args).simplify()
    return graph, Program(graph)


def rate(s, p):
    x, y, z = s[0], s[1], s[2]
    return np.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])


def lorenz(p, n=20):
    def step(s, _):
        return s + 0.01 * rate(s + 0.005 * rate(s, p), p), s[0]

    s, ys = wg.scan(step, np.ones(3), None, n)
    return np.sum(s) + np.sum(ys * ys)


def written(x, y):
    """Writes into a carried array, and reads it."""

    def step(i, c):
        a, s = c
        a = a.copy()
        a[i] = np.sin(s) + a[i] * y[i]
        return a, s + a[i]

    a, s = wg.fori_loop(0, len(y), step, (x * 1.0, 0.0))
    return np.sum(a * a) + s


def counted(x, n):
    return wg.fori_loop(0, n, lambda i, c: c * 0.5 + x[i % 3] * np.cos(c), 0.1)


def until(x):
    """A loop that ends by itself, in a loop."""

    def step(total, a):
        root = wg.while_loop(
            lambda r: np.abs(r * r - a) > 1e-12, lambda r: 0.5 * (r + a / r), a + total * 0.0
        )
        return total + root * x[0], root

    total, roots = wg.scan(step, 0.5, np.abs(x) + 1.0)
    return total + np.sum(roots * roots)


def chosen(x):
    def step(c, a):
        c = wg.cond(a > 0.0, lambda c: np.tanh(c + a), lambda c: c * a - 0.5, c)
        k = (a * 10.0).astype(int) % 3
        return wg.switch(k, [np.sin, np.cos, lambda v: v * v], c), c

    c, ys = wg.scan(step, 0.3, x)
    return c + np.sum(ys)


def matrices(a, x):
    """Products, which are steps of a library, and what is carried in turn in two places."""
    n = len(x)

    def step(c, row):
        m, v = c
        m = 0.5 * (m @ a) / n + np.outer(row, v) / n
        return (m, np.tanh(m @ v)), v[0]

    (m, v), ys = wg.scan(step, (a * 1.0, x[0]), x)
    return np.sum(m * m) + np.sum(v) + np.sum(ys)


RNG = np.random.default_rng(0)
X = RNG.normal(size=7)
PROGRAMS = {
    "lorenz": (lorenz, (np.array([10.0, 28.0, 8.0 / 3.0]),)),
    "written": (written, (X, RNG.normal(size=7))),
    "counted": (counted, (X, 11)),
    "until": (until, (X,)),
    "chosen": (chosen, (X,)),
    "matrices": (matrices, (RNG.normal(size=(20, 20)), RNG.normal(size=(20, 20)))),
    "little memory": (
        lambda x: wg.scan(lambda c, a: (np.sin(c * a), c), 0.5, x, memory=2)[0],
        (X,),
    ),
}
DERIVATIVES = {
    "value": lambda f: f,
    "gradient": wg.grad,
    "second": lambda f: wg.grad(lambda *xs: np.sum(wg.grad(f)(*xs) ** 2)),
    "forward": lambda f: wg.jacfwd(f),
    "rows": lambda f: (
        lambda x, *xs: wg.vmap(wg.grad(f), (0, *[None] * len(xs)))(np.stack([x, x * 1.1]), *xs)
    ),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", DERIVATIVES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_in_memory_of_their_own(name, kind):
    """Each array lies between pages without access, which kill the process that touches them."""
    f, args = PROGRAMS[name]
    graph = wg.trace(DERIVATIVES[kind](f))(*args)
    want = np.asarray(graph(*args))
    for made in (graph, graph.simplify()):
        for at_end in (True, False):
            (found,) = guarded(made, at_end)([np.asarray(a) for a in args], {})
            np.testing.assert_allclose(found, want, rtol=1e-11, atol=1e-12)


def test_a_few_numbers_stay_in_registers():
    _, made = program_of(lorenz, np.ones(3))
    assert not made.host_callbacks
    [body] = [text for name, text in made.module.parts.items() if name.startswith("body")]
    assert "alwaysinline" in body
    assert "llvm.masked" not in body


def test_compiling_does_not_depend_on_the_number_of_steps():
    texts = {}
    for n in (100, 1_000_000):
        _, made = program_of(wg.grad(lambda p, n=n: lorenz(p, n)), np.ones(3))
        parts = made.module.parts.items()
        texts[n] = [text for name, text in parts if name.startswith("body")]
    assert texts[100] == texts[1_000_000]


def test_what_users_wrote_is_called_back_inside_of_a_loop():
    @wg.primitive(name="test_loops_cube")
    def cube(x):
        return np.asarray(x) ** 3

    @wg.extend.vjp(cube)
    def _(t, out, x):
        return (3.0 * t * x * x,)

    f = lambda x: wg.scan(lambda c, a: (0.5 * c + cube(a), c), x[0], x)[0]  # noqa: E731
    np.testing.assert_allclose(wg.jit(f)(X), f(X), rtol=1e-14)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X), wg.grad(f)(X), rtol=1e-14)

    @wg.primitive(name="test_loops_fails")
    def fails(x):
        if x > 2.0:
            raise RuntimeError("not today")
        return x

    g = wg.jit(lambda x: wg.fori_loop(0, 9, lambda i, c: fails(c) + 1.0, x))
    assert g(-10.0) == -1.0
    with pytest.raises(RuntimeError, match="not today"):
        g(1.0)


def test_positions_out_of_range_and_endless_loops():
    f = wg.jit(lambda x, n: wg.fori_loop(0, n, lambda i, c: c + x[i], 0.0))
    assert f(np.ones(5), 5) == 5.0
    with pytest.raises(IndexError, match="out of bounds"):
        f(np.ones(5), 6)
    assert f(np.ones(5), 0) == 0.0
    g = wg.jit(lambda x: wg.while_loop(lambda c: c > 0.0, lambda c: c + 1.0, x, max_steps=100))
    assert g(-1.0) == -1.0
    with pytest.raises(GuardError, match="max_steps=100"):
        g(1.0)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals of POSIX")
def test_an_endless_loop_can_be_interrupted():
    """By another thread, which runs beside native code."""
    code = """
import os, signal, threading, time
import wengert as wg
f = wg.jit(lambda x: wg.while_loop(lambda c: c[0] > 0, lambda c: (c[0] + 1, c[1] * 0.5), (1, x))[1])
threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    f(1.0)
except KeyboardInterrupt:
    print("interrupted", wg.jit(lambda x: wg.fori_loop(0, 9, lambda i, c: c * 2.0, x))(1.0))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=dict(os.environ), capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    assert done.stdout.split() == ["interrupted", "512.0"], done.stderr


def test_threads_have_their_own_stacks():
    f = wg.jit(wg.grad(lambda a: wg.while_loop(lambda c: c < 1e6, lambda c: c * a, a + 0.0)))
    points = np.linspace(1.01, 3.0, 40)
    want = [float(f(a)) for a in points]
    found = {}

    def run(k):
        found[k] = [float(f(a)) for a in points]

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(found[k] == want for k in range(4))


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int32", "bool"])
def test_dtypes(dtype):
    x = (RNG.normal(size=9) * 3.0).astype(dtype)

    def f(x):
        def step(c, a):
            c = c ^ a if dtype == "bool" else c + a if dtype == "int32" else 0.5 * c + a * a
            return c, c

        return wg.scan(step, x[0], x, reverse=True)

    for got, want in zip(wg.jit(f)(x), f(x), strict=True):
        assert got.dtype == want.dtype == np.dtype(dtype)
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_named_sizes():
    def f(a, xs):
        return np.sum(wg.scan(lambda c, x: (np.tanh(c * a + x), c), a * 0.0, xs)[1] ** 2)

    graph = wg.trace(wg.grad(f))(wg.spec("n"), wg.spec(("t", "n")))
    for t, n in ((3, 5), (0, 2), (17, 40)):
        args = RNG.normal(size=n), RNG.normal(size=(t, n))
        (got,) = guarded(graph, True)(list(args), {"n": n, "t": t})
        np.testing.assert_allclose(got, wg.grad(f)(*args), rtol=1e-12, atol=1e-13)


def test_summary_names_loops():
    _, made = program_of(wg.grad(lorenz), np.ones(3))
    assert [s.title for s in summary_of(made).loops] == ["scan", "scan"]
    assert "loop scan" in str(summary_of(made))


def descent(x):
    """Branches in branches, as an optimizer has them; in registers."""

    def step(c):
        x, fx, eta, k, _ = c

        def tried(x, fx, eta, k):
            new = x - eta * 2.0 * (x - 1.0)
            there = np.sum((new - 1.0) ** 2)
            better = lambda: (new, there, eta, k + 1, True)  # noqa: E731
            return wg.cond(there < fx, better, lambda: (x, fx, eta * 0.5, 0 * k, True))

        def moved(x, fx, eta, k):
            return wg.cond(fx < 1e-9, lambda: (x, fx, eta, k, False), lambda: tried(x, fx, eta, k))

        larger = lambda x, fx, eta, k: (x, fx, eta * 2.0, 0 * k, True)  # noqa: E731
        return wg.switch((k == 3).astype(int), [moved, larger], x, fx, eta, k)

    first = (x, np.sum((x - 1.0) ** 2), 0.01, 0, True)
    return wg.while_loop(lambda c: c[4], step, first, max_steps=10_000)


def test_branches_of_a_few_numbers_need_no_functions():
    x = np.array([3.0, -2.0])
    _, made = program_of(lambda x: descent(x)[0], x)
    bodies = [name for name in made.module.parts if name.startswith("body")]
    assert len(bodies) == 2  # of the loop, and of its condition
    for got, want in zip(wg.jit(descent)(x), descent(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    f = lambda x: np.sum(descent(x)[0] * np.array([1.0, 3.0]))  # noqa: E731
    np.testing.assert_allclose(wg.jit(wg.grad(f))(x), wg.grad(f)(x), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.jacfwd(f))(x), wg.grad(f)(x), rtol=1e-9, atol=1e-12)


def test_branches_read_positions_where_they_are_taken_only():
    def f(x, n):
        def step(i, c):
            return wg.cond(i < 5, lambda c: c + x[i], lambda c: c * 0.5 + x[0], c)

        return wg.fori_loop(0, n, step, 0.0)

    x = RNG.normal(size=5)
    graph = wg.trace(f)(x, 9)
    for n in (0, 4, 5, 9):
        (got,) = guarded(graph, True)([x, np.asarray(n)], {})
        np.testing.assert_allclose(got, f(x, n), rtol=1e-14)
    g = wg.jit(
        lambda x, n: wg.fori_loop(
            0, n, lambda i, c: wg.cond(i > 2, lambda c: c + x[i + 3], lambda c: c, c), 0.0
        )
    )
    assert g(x, 3) == 0.0
    with pytest.raises(IndexError, match="out of bounds"):
        g(x, 4)


def test_switches_choose_the_nearest_branch():
    def f(ks):
        def step(c, k):
            c = wg.switch(k, [lambda c: c + 1.0, lambda c: c * 2.0, lambda c: -c], c)
            return c, c

        return wg.scan(step, 3.0, ks)

    ks = np.array([-7, 0, 1, 2, 9, 1, -1])
    for got, want in zip(wg.jit(f)(ks), f(ks), strict=True):
        assert np.array_equal(got, want)


def test_stacks_begin_small_and_grow():
    def f(x):
        step = lambda c: (c[0] + 1, np.tanh(c[1] * 1.01 + 0.1))  # noqa: E731
        return np.sum(wg.while_loop(lambda c: c[0] < 40, step, (0, x))[1])

    x = RNG.normal(size=30_000)
    wg.memory.trim()
    g = wg.jit(wg.grad(f))
    before = wg.memory.info().peak
    np.testing.assert_allclose(g(x), wg.grad(f)(x), rtol=1e-10, atol=1e-14)
    # 40 states, up to twice as many while they grow, and a few beside them.
    assert wg.memory.info().peak <= max(before, 150 * x.nbytes)


def test_long_bodies_keep_loops_over_their_columns():
    """Columns of dozens of elements are unrolled in a short body only."""

    def edges(a, count):
        for _ in range(20):
            for k in range(count):
                a[1:-1, k] = a[1:-1, k + 1] * a[:-2, k] - 0.5 * a[2:, k + 1] ** 2
        return np.sum(a)

    a = np.random.default_rng(0).normal(size=(50, 12)) / 3
    results, lines = [], []
    for most in (1_000_000, 1000):
        with tuning.using(unrolled_body_work=most):
            compiled = wg.jit(wg.value_and_grad(edges), static_argnums=1)
            results.append(compiled(a.copy(), 8))
            lines.append(compiled.lower(a, 8).llvm_ir.count("\n"))
    assert lines[1] < 0.75 * lines[0]
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(results[1][0], edges(a.copy(), 8), rtol=1e-12)
