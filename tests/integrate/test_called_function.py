"""Long right-hand sides, which stages call (ivp/program.py), beside inlined ones."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.graph_classes import bodies_of
from wengert.integrate import solve
from wengert.scipy.integrate.ivp import program

COUNT = 10
SPECIES = tuple(range(COUNT))  # not a range, which would become a loop


def ring(t, y, p):
    """Reactions in a ring, written one by one."""
    rates = [p[k % 3] * y[k] * y[(k + 1) % COUNT] * (1.0 + 0.1 * t) for k in SPECIES]
    changes = [rates[k - 1] - rates[k] - 0.1 * y[k] for k in SPECIES]
    return np.array(changes)


START = np.linspace(0.5, 1.5, COUNT)
RATES = np.array([0.7, 1.1, 0.4])


def total(method):
    def run(p, y0):
        found = solve(ring, (0.0, 0.2), y0, (p,), method=method, rtol=1e-5, atol=1e-7)
        return np.sum(np.sin(found.y))

    return run


def both(monkeypatch, function):
    """What a function computes with calls, and with inlined right-hand sides."""
    called = function()
    monkeypatch.setattr(program, "_LEAST_LONG_OPERATIONS", 10**6)
    return called, function()


SLOW = [pytest.param(m, marks=pytest.mark.slow) for m in ("tsit5", "kvaerno3", "BDF")]


@pytest.mark.parametrize("method", ["rodas5p", *SLOW])
def test_gradients_are_those_of_inlined_functions(method, monkeypatch):
    run = total(method)
    called, inlined = both(
        monkeypatch, lambda: wg.jit(wg.value_and_grad(run, argnums=(0, 1)))(RATES, START)
    )
    np.testing.assert_allclose(called[0], inlined[0], rtol=1e-12)
    for a, b in zip(called[1], inlined[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.slow  # test_solve.py has both, of functions that are inlined
@pytest.mark.parametrize("method", ["RK23", pytest.param("rodas4", marks=pytest.mark.slow)])
def test_second_derivatives_and_batches(method, monkeypatch):
    run = total(method)
    start = np.stack((START, 0.9 * START))

    def everything():
        slope = wg.grad(lambda p: run(p, START))
        second = wg.jit(lambda p: wg.jvp(slope, (p,), (np.ones(3),))[1])(RATES)
        rows = wg.jit(wg.vmap(wg.grad(run), in_axes=(None, 0)))(RATES, start)
        return second, rows

    for a, b in zip(*both(monkeypatch, everything), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def test_stages_share_one_function():
    graph = wg.trace(wg.grad(total("rodas5p")))(RATES, START).simplify()
    calls, pending = [], [graph]
    while pending:
        for node in pending.pop().nodes:
            pending += bodies_of(node)
            if node.op.name == "sized":
                calls.append(node.params["branches"][0])
    assert len(calls) > 20
    assert len(set(calls)) < 10


def test_short_functions_are_inlined():
    graph = wg.trace(lambda y: solve(lambda t, y: -y, (0.0, 1.0), y).y)(START)
    assert "sized" not in str(graph)


def test_captured_times_do_not_move(monkeypatch):
    """A compiled function has no derivative with respect to arrays that it captures."""
    times = np.linspace(0.0, 1.0, 4)

    def refused(*args):
        raise AssertionError("the ends of the interval are constants")

    monkeypatch.setattr("wengert.scipy.integrate.ivp.loop.flow", refused)
    slope = wg.jit(wg.grad(lambda k: solve(lambda t, y: -k * y, times, np.ones(1)).y[-1, 0]))(2.0)
    np.testing.assert_allclose(slope, -np.exp(-2.0), rtol=1e-5)
    times[-1] = 0.5  # read at each call
