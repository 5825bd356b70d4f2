"""Products in loops: sums of them are one product afterwards; matrices lie as they are read."""

import numpy as np
import pytest
from wengert.rewrite import simplify

import wengert as wg
from wengert._engine.rewrite.loops.code_motion import NAME as AFTERWARDS
from wengert._engine.rewrite.loops.code_motion import TRANSPOSED as LAID_OUT

STEPS, BATCH, WIDTH = 5, 6, 32


def done(f, *args):
    """The rules that were applied to the graph of f, with how often, and the graph."""
    graph = simplify(wg.trace(f)(*args), history=True)
    return [a.rule for step in graph.history for a in step.applied], graph


def agree(f, *args):
    """Run step by step, by the graph as it was and simplified, and by native code."""
    wanted = numbers(f(*args))
    _, graph = done(f, *args)
    for found in (wg.trace(f)(*args)(*args), graph(*args), wg.jit(f)(*args)):
        for a, b in zip(numbers(found), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def numbers(results):
    return [x for x in wg._engine.core.pytree.flatten(results)[0] if x is not None]


def recurrent(w, x):
    def step(h, x):
        h = np.tanh(h @ w.T + x)
        return h, np.sum(h)

    return np.sum(wg.scan(step, np.zeros((BATCH, WIDTH)), x)[1] ** 2)


def gated(w, x):
    """The factor of the weight is nothing that the loop stacks anyway."""

    def step(h, x):
        y = h @ w.T
        h = np.tanh(x * np.sin(y) + h)
        return h, h

    return np.sum(wg.scan(step, np.zeros((BATCH, WIDTH)), x, reverse=True)[1] ** 2)


@pytest.fixture
def given(rng):
    return rng.normal(size=(WIDTH, WIDTH)) / 6, rng.normal(size=(STEPS, BATCH, WIDTH))


@pytest.mark.parametrize("f", [recurrent, gated])
def test_gradients_of_weights(f, given):
    gradient = wg.grad(f, (0, 1))
    rules, graph = done(gradient, *given)
    assert rules.count(AFTERWARDS) == 1 and rules.count(LAID_OUT) >= 1
    backwards = [n for n in graph.nodes if n.op.name == "scan"][-1]
    assert all(s.shape != (WIDTH, WIDTH) for s in backwards.spec)
    agree(gradient, *given)


def test_second_derivatives(given):
    w, x = given
    agree(lambda w, v: wg.jvp(wg.grad(lambda w: gated(w, x)), (w,), (v,))[1], w, np.cos(w))


def test_a_total_that_begins_with_something(given):
    def total(w, x):
        def step(carry, row):
            s, k = carry
            return (s + (row.T @ (2.0 * row)).T, k + 1.0), row[0]

        return wg.scan(step, (w, 0.0), x)[0][0]

    rules, _ = done(total, *given)
    assert AFTERWARDS in rules  # twice the row is stacked for it
    agree(total, *given)

    def plain(w, x):
        return wg.scan(lambda s, row: (row.T @ row + s, None), w, x)[0]

    rules, graph = done(plain, *given)
    assert AFTERWARDS in rules and not [n for n in graph.nodes if n.op.name == "scan"]
    agree(plain, *given)


@pytest.mark.sample(3)
@pytest.mark.parametrize("what", ["read", "stacked", "scaled", "few", "unknown"])
def test_totals_that_stay(what, given):
    x = given[1]
    x = x[:, :, :4] if what == "few" else x

    def run(s, x, n):
        def step(s, row):
            added = s + row.T @ row
            added = added * 0.5 if what == "scaled" else added
            return added, s if what == "stacked" else np.sum(
                s * row[:1]
            ) if what == "read" else None

        if what == "unknown":
            return wg.fori_loop(0, n, lambda k, s: step(s, x[k])[0], s)
        return wg.scan(step, s, x)

    start = np.zeros((x.shape[-1],) * 2)
    rules, _ = done(run, start, x, np.int64(STEPS))
    assert AFTERWARDS not in rules
    agree(run, start, x, np.int64(STEPS))


@pytest.mark.parametrize("what", ["vector", "both", "value", "well"])
def test_matrices_that_stay_as_they_are(what, given):
    w, x = given

    def run(w, x):
        def step(h, row):
            if what == "well":
                return np.tanh(h @ w + row), None
            y = h @ w.T
            if what == "both":
                y = y + np.sin(h) @ w
            if what == "value":
                y = y + w[0]
            return np.tanh(y + row), None

        shape = (BATCH, WIDTH)
        return wg.scan(step, np.ones(shape[1:] if what == "vector" else shape), x)[0]

    x = x[:, 0] if what == "vector" else x
    rules, _ = done(run, w, x)
    assert LAID_OUT not in rules
    agree(run, w, x)


def test_infinite_factors_of_zeros(given):
    """What the product of a step makes NaN, the product of all does; what it hides, it hides."""
    w, x = given
    x = x.copy()
    x[2, 0, 0] = np.inf

    def f(w, x):
        def step(h, row):
            y = np.where(np.isinf(row), 0.0, row @ w.T)
            return h + np.sum(np.where(np.isinf(y), 0.0, y)), None

        return wg.scan(step, 0.0, x)[0]

    with np.errstate(invalid="ignore"):
        wanted = wg.grad(f)(w, x)
        found = wg.jit(wg.grad(f))(w, x)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
