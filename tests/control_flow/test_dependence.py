"""What moves in a loop: choices and loops inside it are looked into.

Only what depends on what is differentiated is derived; a loop of which nothing does is not run
backwards.  Numbers are compared with those of Python's own loop, whose tape knows every step.
"""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.control_flow.dependence import Dependence
from wengert._engine.core.graph_classes import Body

X = np.array([0.4, -0.7])


def least(both, x):
    """Gradient descent, as simple as it can be: a failed step halves eta."""

    def step(state):
        x, value, slope, eta = state
        new = x - eta * slope
        there, more = both(new)
        return wg.cond(
            there < value,
            lambda: (new, there, more, eta),
            lambda: (x, value, slope, 0.5 * eta),
        )

    return wg.while_loop(lambda s: np.sum(s[2] ** 2) > 1e-6, step, (x, *both(x), 0.8))[0]


def where_least(p):
    """The values that are compared depend on p, where it ends does not."""
    return least(wg.value_and_grad(lambda q: np.sum((q - 0.3) ** 2) + np.sum(p * p)), X)


def moves(p):
    """Where it ends depends on p."""
    return least(wg.value_and_grad(lambda q: np.sum((q - p) ** 2) + np.sum(p * p)), X)


@pytest.mark.parametrize("f", [where_least, moves])
def test_derivatives_through_a_descent(f):
    p = np.array([0.5, 0.2])

    def loss(p):
        return np.sum(np.sin(f(p))) + np.sum(p)

    expected = wg.grad(loss)(p)
    for derive in (wg.grad, wg.jacfwd):
        np.testing.assert_allclose(wg.jit(derive(loss))(p), expected, 1e-12, 1e-12)
    np.testing.assert_allclose(
        wg.jit(wg.hessian(loss))(p), wg.jacrev(wg.grad(loss))(p), 1e-10, 1e-10
    )


def test_a_loop_whose_result_does_not_move_is_not_run_backwards():
    graph = wg.trace(wg.grad(lambda p: np.sum(where_least(p)) + np.sum(p)))(X)
    assert not [n for n in graph.nodes if n.op.name == "scan"]
    assert graph(X).tolist() == [1.0, 1.0]
    backwards = wg.trace(wg.grad(lambda p: np.sum(moves(p))))(X)
    assert [n for n in backwards.nodes if n.op.name == "scan"]


def inside(a, b):
    """Of two carries of an inner loop one depends on a and the other on b; they cross at last."""

    def outer(state, _):
        def inner(k, pair):
            x, y = pair
            return np.sin(x) + 0.1 * a, y * 0.9 + b * k

        return wg.fori_loop(0, 3, inner, state), None

    (x, y), _ = wg.scan(outer, (0.2, 0.3), None, length=4)
    return x, y


def handed_on(a, b):
    """Of three carries of an inner loop each is given what the next one was."""

    def outer(state, _):
        def inner(_, carries):
            _, y, z = carries
            return y * 1.1, z, np.sin(z) + b

        return wg.fori_loop(0, 3, inner, state), None

    return wg.scan(outer, (0.1, 0.2, a), None, length=2)[0][:2]


def unstepped(a, b):
    """An inner loop of no steps gives what it started with."""

    def outer(state, n):
        first = 0.0, state[1]
        loop = wg.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1.0, 2.0 * b), first)
        return (loop[1], state[1]), None

    return wg.scan(outer, (b, a), np.array([-1.0, -1.0]))[0]


def ended(a, b):
    """An inner loop whose number of steps nobody knows keeps what the backward pass needs."""

    def outer(state, _):
        def inner(pair):
            return pair[0] + 0.4, np.sin(pair[1]) * a

        x, y = wg.while_loop(lambda pair: pair[0] < 1.0, inner, (0.0, state[0]))
        return (y, x + b * state[1]), None

    return wg.scan(outer, (a, b), None, length=2)[0]


def collected(a, b):
    """Of an inner scan what is stacked and what is carried depend on different operands."""

    def outer(state, _):
        last, rows = wg.scan(lambda c, x: (c * x, a * x), 1.0, np.array([0.5, 2.0, 1.5]) + b)
        return (state[0] + np.sum(rows), state[1] * last), None

    return wg.scan(outer, (0.0, 1.0), None, length=2)[0]


def switched(a, b):
    """What a branch gives may be what another is given."""

    def outer(state, k):
        x, y = state
        return wg.switch(k, [lambda: (y, x * a), lambda: (x + b, y), lambda: (x, x)]), None

    return wg.scan(outer, (a, b), np.array([0, 1, 2, 1, 0]))[0]


@pytest.mark.sample(5)
@pytest.mark.parametrize("f", [inside, handed_on, unstepped, ended, collected, switched])
@pytest.mark.parametrize("derive", [wg.jacfwd, wg.jacrev])
def test_what_loops_and_branches_inside_move(f, derive):
    at = 0.7, 0.6
    for k in (0, 1):
        for z in (0, 1):
            slope = derive(lambda a, b, k=k: f(a, b)[k], z)
            np.testing.assert_allclose(wg.trace(slope)(*at)(*at), slope(*at), 1e-13, 1e-15)


@pytest.mark.parametrize("f", [handed_on, ended])
def test_what_moves_in_second_derivatives(f):
    at = 0.7, 0.6
    twice = wg.jacfwd(wg.grad(lambda a, b: f(a, b)[0] * f(a, b)[1], 1), 0)
    np.testing.assert_allclose(wg.jit(twice)(*at), twice(*at), 1e-12, 1e-14)


def test_a_stack_of_rows_that_does_not_move_has_no_cotangent():
    def f(a, b):
        return inside(a, b)[0]

    assert wg.jit(wg.grad(f, 1))(0.7, 0.6) == 0.0
    graph = wg.trace(wg.grad(f, 1))(0.7, 0.6)
    assert not [n for n in graph.nodes if n.op.name in ("scan", "while")]


def test_what_a_while_loop_keeps_depends_on_its_own_carry():
    def f(a, b):
        def step(state):
            k, x, y = state
            return k + 1, np.sin(x) * a, np.cos(y) * b

        _, x, y = wg.while_loop(lambda state: state[0] < 3, step, (0, 0.3, 0.4))
        return x * y

    graph = wg.trace(wg.grad(f, (0, 1)))(0.7, 0.6)
    parts = [n for n in graph.nodes if n.op.name == "part" and n.args[0].op.name == "while"]
    found = Dependence(Body(*parts, inputs=graph.inputs))
    on = {n.params["index"]: sorted(found.on(k)) for k, n in enumerate(parts)}
    assert [on[k] for k in (1, 2, 3)] == [[0], [1], []]  # the carry, and the number of steps
    assert {tuple(x) for k, x in on.items() if k > 3} == {(0,), (1,)}
