"""Loops and branches as rewriting sees them: bodies, fused loops, dead code."""

import numpy as np
import pytest
from wengert.rewrite import DEFAULT, simplify

import wengert as wg
from wengert import control
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_fingerprint import equals
from wengert._engine.core.handle import wrap
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import placeholder
from wengert._engine.rewrite.loops.loop_view import Rewiring


def loops(graph, name="scan"):
    return [n for n in graph if n.op.name == name]


def assert_same(got, wanted, rtol=1e-12):
    got, wanted = wg._engine.core.pytree.flatten(got)[0], wg._engine.core.pytree.flatten(wanted)[0]
    for a, b in zip(got, wanted, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-13)


# ---- programs ------------------------------------------------------------------------------------


def lorenz(p, x0):
    def field(x):
        return np.stack(
            [p[0] * (x[1] - x[0]), x[0] * (p[1] - x[2]) - x[1], x[0] * x[1] - p[2] * x[2]]
        )

    def step(x, _):
        k1 = field(x)
        k2 = field(x + 0.005 * k1)
        k3 = field(x + 0.005 * k2)
        k4 = field(x + 0.01 * k3)
        return x + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return np.sum(control.scan(step, x0, None, length=7)[0] ** 2)


def recurrent(w, xs):
    def cell(h, x):
        h = np.tanh(h @ w + x * 1.0)
        return h, np.sum(h * h)

    return np.sum(control.scan(cell, np.zeros(3), xs)[1])


def backwards(w, xs):
    def cell(h, x):
        h = np.sin(w @ h) + x
        return h, h[0]

    return np.sum(control.scan(cell, np.zeros(3), xs, reverse=True)[1] ** 2)


def counted(x, n):
    return control.fori_loop(0, n, lambda i, v: np.sin(v) * x[0] + i * x[1], x[2])


def newton(a, x):
    def step(state):
        z, k = state
        return z - (z**3 - a[0] - a[1]) / (3.0 * z**2), k + 1

    def goes_on(state):
        return np.abs(state[0] ** 3 - a[0] - a[1]) > 1e-12

    return control.while_loop(goes_on, step, (x[0], 0), max_steps=50)[0] * x[1]


def nested(w, xs):
    def outer(h, x):
        inner = control.fori_loop(0, 3, lambda i, v: np.cos(w @ v) + x, h)
        return inner, np.sum(inner)

    h, ys = control.scan(outer, np.zeros(3), xs)
    return np.sum(h) + np.sum(ys**2)


def chosen(w, xs):
    def step(h, x):
        h = control.cond(
            x[0] > 0, lambda v, u: np.tanh(v @ w) + u, lambda v, u: v * np.sum(u), h, x
        )
        return control.switch(np.sum(x > 0.1), [np.sin, np.cos, lambda v: v * 0.5], h), h[1]

    h, ys = control.scan(step, np.ones(3), xs)
    return np.sum(h) + np.sum(ys)


SCALAR = Spec((), np.dtype(float))
RNG = np.random.default_rng(5)
W, XS = RNG.normal(size=(3, 3)) / 2, RNG.normal(size=(4, 3))
PROGRAMS = {
    "lorenz": (lorenz, np.array([10.0, 28.0, 8 / 3]), np.ones(3)),
    "recurrent": (recurrent, W, XS),
    "backwards": (backwards, W, XS),
    "newton": (newton, np.array([1.5, 2.5]), np.array([1.0, 2.0])),
    "nested": (nested, W, XS),
    "chosen": (chosen, W, XS),
}
DERIVATIVES = {
    "value": lambda f: f,
    "grad": lambda f: wg.grad(f, (0, 1)),
    "value_and_grad": lambda f: wg.value_and_grad(f, (0, 1)),
    "jvp": lambda f: lambda a, b: wg.jvp(f, (a, b), (np.ones(a.shape), np.ones(b.shape))),
    "hvp": lambda f: lambda a, b: wg.hvp(f, (a, b), (np.ones(a.shape), np.ones(b.shape))),
    "twice": lambda f: wg.grad(lambda a, b: np.sum(np.sin(wg.grad(f)(a, b))), (0, 1)),
}


@pytest.mark.sample(10)
@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_numbers(name, derivative):
    f, *args = PROGRAMS[name]
    graph = wg.trace(DERIVATIVES[derivative](f))(*args)
    made = simplify(graph)
    made.verify()
    assert_same(made(*args), graph(*args), rtol=1e-10)
    assert simplify(made) is made


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_what_was_simplified(name):
    """A simplified gradient differentiates again, by everything."""
    f, *args = PROGRAMS[name]
    graph = wg.trace(wg.grad(f))(*args)
    made = simplify(graph)

    def again(g):
        return wg.grad(lambda a, b: np.sum(np.cos(g(a, b))), (0, 1))

    wanted = again(wg.grad(f))(*args)
    assert_same(again(made)(*args), wanted, rtol=1e-9)
    assert_same(simplify(wg.trace(again(made))(*args))(*args), wanted, rtol=1e-9)


COUNTS = {
    "lorenz": (1, 2, 2, 1, 2),
    "recurrent": (1, 2, 2, 1, 2),
    "backwards": (1, 2, 2, 1, 2),
    "nested": (1, 2, 2, 1, 3),
    "chosen": (1, 2, 2, 1, 2),
}


@pytest.mark.parametrize("name", COUNTS)
def test_each_loop_runs_once(name):
    """One loop forward and one back, also for second derivatives along a direction."""
    f, *args = PROGRAMS[name]
    kinds = ("value", "grad", "value_and_grad", "jvp", "hvp")
    made = [simplify(wg.trace(DERIVATIVES[k](f))(*args)) for k in kinds]
    assert tuple(len(loops(g)) for g in made) == COUNTS[name]


def test_loops_that_end_by_themselves_run_once():
    f, *args = PROGRAMS["newton"]
    for kind, back in (("grad", 1), ("value_and_grad", 1), ("jvp", 0), ("hvp", 1)):
        made = simplify(wg.trace(DERIVATIVES[kind](f))(*args))
        assert len(loops(made, "while")) == 1, kind
        assert len(loops(made)) == back, kind


def test_a_number_of_steps_that_is_known_later():
    x = np.array([0.3, 0.1, 0.7])
    graph = wg.trace(wg.value_and_grad(counted))(x, 5)
    made = simplify(graph)
    assert len(loops(graph)) == 3 and len(loops(made)) == 2
    for n in (5, 0, 1):
        assert_same(made(x, n), graph(x, n))
    twice = wg.trace(wg.hessian(counted))(x, 5)
    less = simplify(twice)
    assert len(loops(less)) == 2 < len(loops(twice))
    assert_same(less(x, 5), twice(x, 5))


# ---- what nobody needs ---------------------------------------------------------------------------


def only(graph, name="scan"):
    (line,) = loops(graph, name)
    return line


def done(f, *args):
    """What the pass `loops` did to a graph, in words, and what came out."""
    graph = wg.trace(f)(*args)
    made = simplify(graph, history=True)
    assert_same(made(*args), graph(*args))
    return {a.rule for s in made.history for a in s.applied if s.name == "loops"}, made


def test_what_is_used_by_nobody_is_dropped():
    def f(x, xs, unused):
        def step(carry, row):
            a, b, c = carry
            return (a * x, b + row[0], c * b), (a, np.sin(b), unused * b)

        (a, _, _), (ys, _, _) = control.scan(step, (1.0, 2.0, 3.0), (xs, unused))
        return a + np.sum(ys)

    words, made = done(f, 0.5, XS[:, 0], XS[:, 1])
    assert words == {"unused carry removed", "unused output removed", "unused input removed"}
    line = only(made)
    assert line.params["carried"] == 1 and line.params["stacked"] == 0
    assert len(line.params["body"].outputs) == 2 and len(line.args) == 2


def test_a_carry_that_another_one_needs_stays():
    def f(x):
        def step(carry, _):
            a, b = carry
            return (a + b, b * 2.0), None

        return control.scan(step, (x, x), None, length=4)[0][0]

    words, made = done(f, 0.5)
    assert words == set() and only(made).params["carried"] == 2


def test_a_while_keeps_what_its_condition_reads():
    def f(x):
        def step(carry):
            return carry[0] * 1.5, carry[1] + 1, carry[2] * 2.0

        return control.while_loop(lambda c: c[1] < 4, step, (x, 0, x))[0]

    words, made = done(f, 0.5)
    assert words == {"unused carry removed"}
    assert only(made, "while").params["carried"] == 2


def test_what_never_changes_is_not_carried():
    def f(x, y):
        def step(carry, _):
            a, b, zero = carry
            return (a * b + zero[0], b, np.zeros(2)), b

        (a, b, _), ys = control.scan(step, (x, y, np.zeros(2)), None, length=3)
        return a + b, ys

    words, made = done(f, 0.5, 2.0)
    assert words >= {"unchanged carry removed", "invariant output hoisted"}
    line = only(made)
    assert line.params["carried"] == 1 and len(line.params["body"].outputs) == 1
    got = wg.grad(lambda x, y: np.sum(made(x, y)[1]) + made(x, y)[0], (0, 1))(0.5, 2.0)
    assert_same(got, (8.0, 3 * 0.5 * 4.0 + 1.0 + 3.0))


def test_twice_is_once():
    def f(x, xs):
        def step(carry, rows):
            a, b = carry
            y = np.sin(a) * rows[0]
            return (a * x + rows[0], b * x + rows[1]), (y, np.sin(b) * rows[1])

        (a, b), (u, v) = control.scan(step, (x, x), (xs, xs))
        return a + 2.0 * b, u * v

    words, made = done(f, 0.5, XS[:, 0])
    assert words == {"duplicates in a loop merged"}
    line = only(made)
    assert (line.params["carried"], line.params["stacked"]) == (1, 1)
    assert len(line.params["body"].outputs) == 2


def test_known_numbers_are_parts_of_the_body():
    def f(x):
        c = np.full((3,), 2.0) * 1.5
        rows = np.zeros((4, 3))
        return control.scan(lambda v, r: (v * c + r, None), x, rows)[0]

    words, made = done(f, np.ones(3))
    assert len(only(made).args) == 1
    assert words == set() or words == {"constant inlined"}


def test_what_is_the_same_in_every_step_is_computed_before():
    def f(x, w):
        return control.scan(lambda v, _: (v * np.exp(np.sin(w) * 1.0), None), x, None, length=3)[0]

    graph = wg.trace(f)(0.5, 0.2)
    body = only(simplify(graph)).params["body"]
    assert [n.op.name for n in body] == ["input", "input", "multiply"]

    def g(x, w):  # the exponential depends on the carry as written, and not when simplified
        return control.scan(lambda v, _: (v + np.exp(w + (v - v * 1.0) * 0), None), x, None, 3)[0]

    assert_same(simplify(wg.trace(g)(0.5, 0.2))(0.5, 0.2), g(0.5, 0.2))


def test_fused_loops_need_the_same_start_and_work():
    def f(x, y):
        one = control.fori_loop(0, 5, lambda i, v: np.sin(v), x)
        two = control.fori_loop(0, 5, lambda i, v: np.sin(v), y)
        three = control.fori_loop(0, 5, lambda i, v: np.cos(v), x)
        four = control.fori_loop(0, 6, lambda i, v: np.sin(v), x)
        return one + two + three + four

    _, made = done(f, 0.5, 0.25)
    assert len(loops(made)) == 4


def test_one_loop_after_another_is_not_in_step():
    def f(x):
        def step(v, _):
            return np.sin(v), v

        _, ys = control.scan(step, x, None, length=4)

        def follow(v, y):
            return np.sin(v), y * v

        return control.scan(follow, x, ys)[1]

    words, made = done(f, 0.5)
    assert len(loops(made)) == 2 and "fused loops" not in words


def test_loops_that_wait_for_each_other_crosswise():
    """a -> d and b -> c: a and c may run in step, or b and d, but not both pairs."""

    def f(x, y):
        def run(v, more):
            return control.scan(lambda u, r: (np.sin(u), u * r), v, more)[1]

        a, b = run(x, np.ones(4)), run(y, np.ones(4))
        c, d = run(x, b), run(y, a)
        return c, d

    words, made = done(f, 0.5, 0.25)
    assert "fused loops" in words and len(loops(made)) == 3


def test_what_a_loop_inside_ends_with_is_not_what_it_collects():
    def f(x):
        def outer(carry, _):
            a, b = carry
            last, ys = control.scan(lambda v, _: (np.sin(v), np.sin(v)), a, None, length=3)
            return (last, b + ys), (last, np.sum(ys))

        return control.scan(outer, (x, x * np.ones(3)), None, length=2)

    g = wg.grad(lambda x: sum(np.sum(v) for v in wg._engine.core.pytree.flatten(f(x))[0]))
    _, made = done(f, 0.5)
    assert_same(made(0.5), f(0.5))
    _, made = done(g, 0.5)
    assert_same(made(0.5), g(0.5))


# ---- inlined -------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_short_loops_are_written_out(length, reverse):
    def f(x, w):
        return control.scan(
            lambda v, r: (v * w + r, (np.sin(v), 2)), x, w * np.ones((length, 2)), reverse=reverse
        )

    words, made = done(f, np.array([0.5, 2.0]), 0.25)
    assert words >= {"inlined"} and not loops(made)
    for g in (f, made):
        total = wg.grad(
            lambda x, w, g=g: sum(np.sum(v) for v in wg._engine.core.pytree.flatten(g(x, w))[0])
        )
        assert_same(
            total(np.array([0.5, 2.0]), 0.25),
            np.full(2, 0.25 if length else 1.0) + (np.cos([0.5, 2.0]) if length else 0.0),
        )


def test_a_known_choice_is_written_out():
    def f(x, n):
        which = wg.zeros_like(n) if hasattr(wg, "zeros_like") else n * 0
        return control.switch(which, [np.sin, np.cos], x), control.cond(
            which == 0, np.exp, np.log, x
        )

    graph = wg.trace(f)(0.5, 3)
    assert_same(simplify(graph)(0.5, 3), (np.sin(0.5), np.exp(0.5)))
    assert [n.op.name for n in simplify(graph) if n.op.kind == "control"] == []


def test_choices_compute_what_is_used():
    def f(x, y):
        return (
            control.cond(x > 0, lambda u, v: (u, v, u * v), lambda u, v: (v, u, u + v), x, y)[0]
            * control.cond(x > 0, lambda u, v: (u * 2.0, v), lambda u, v: (u, v), x, y)[0]
        )

    words, made = done(f, 0.5, 2.0)
    assert words == {"unused result removed", "unused input removed"}
    assert [len(n.args) for n in loops(made, "cond")] == [3, 2]


# ---- derivatives that were stopped ---------------------------------------------------------------


def test_what_was_stopped_stays_stopped():
    def f(x):
        def step(v, _):
            return v * wg.stop_gradient(x), None

        kept = control.scan(step, x, None, length=1)[0]
        with wg.no_grad():
            stopped = control.scan(lambda v, _: (v * x, v), x, None, length=1)[0]
            many = control.scan(lambda v, _: (v * x, v), x, None, length=3)[0]
        same = control.scan(lambda v, _: (v * x, v), x, None, length=3)[0]
        zero = wg.stop_gradient(control.scan(lambda v, _: (v, v), x, None, length=3)[0])
        return kept + stopped * x + many * same + zero * x

    graph = wg.trace(f)(1.5)
    made = simplify(graph)
    assert_same(made(1.5), graph(1.5))
    wanted = 1.5 + 1.5**2 + 1.5**4 * 4 * 1.5**3 + 1.5
    assert_same([wg.grad(g)(1.5) for g in (graph, made)], [wanted, wanted])
    assert len(loops(made)) == 2  # a stopped loop and another do not run in step


def test_a_loop_whose_carry_is_stopped_inside():
    def f(x, y):
        def step(v, _):
            return (v[0] * v[1], wg.stop_gradient(v[1])), v[1]

        (a, b), ys = control.scan(step, (x, y), None, length=3)
        return a + b + np.sum(ys)

    graph = wg.trace(f)(1.5, 0.5)
    made = simplify(graph)
    wanted = [wg.grad(g, (0, 1))(1.5, 0.5) for g in (f, graph)]
    assert_same(wanted[0], wanted[1])
    assert_same(wg.grad(made, (0, 1))(1.5, 0.5), wanted[0])


def test_mixed_derivatives_of_a_gradient_of_one_argument():
    """What the first derivative was not taken by is not a constant for the second."""

    def f(p, c):
        return control.fori_loop(0, 3, lambda i, x: np.sin(p * x) + np.cos(c * x), 1.0)

    g = wg.trace(wg.grad(f))(0.3, 0.7)
    wanted = wg.grad(lambda c: wg.grad(f)(0.3, c))(0.7)
    for graph in (g, simplify(g)):
        assert_same(wg.grad(lambda c, graph=graph: graph(0.3, c))(0.7), wanted)
    assert abs(wanted) > 0.1


# ---- what is reported, and its cost ------------------------------------------------------------


def test_history_says_what_was_done_inside():
    f, *args = PROGRAMS["recurrent"]
    made = simplify(wg.trace(wg.value_and_grad(f))(*args), history=True)
    text = str(made.history)
    assert "1 x x * 1" in text.split("in scan:")[1]
    assert (
        str(simplify(wg.trace(wg.value_and_grad(f))(*args), history=True).history)[:8] == text[:8]
    )
    assert "2 x fused loops" in text
    assert "x * 1: multiply" in made.history.applications()


def test_each_distinct_body_is_simplified_once():
    def f(x):
        for k in range(5):
            x = control.fori_loop(0, 3 + k, lambda i, v: np.sin(v * 1.0), x)
        return x

    made = simplify(wg.trace(f)(0.5), history=True)
    assert len(loops(made)) == 5
    (inside,) = [b for s in made.history for b in s.inside][:1]
    assert inside.name == "fori_loop"
    assert sum(len(s.inside) for s in made.history) == 1
    assert len({n.params["body"] for n in loops(made)}) == 1


def test_functions_of_users_do_not_enter_bodies():
    seen = []

    def look(graph):
        seen.append(type(graph))
        return graph

    graph = wg.trace(lambda x: control.fori_loop(0, 3, lambda i, v: np.sin(v) * 1.0, x))(0.5)
    made = simplify(graph, DEFAULT.add(look, "look"))
    assert not any(issubclass(t, Body) for t in seen)
    names = [n.op.name for n in only(made).params["body"]]
    assert names == ["input", "sin"]
    rules = simplify(graph, ["algebra"])
    assert "multiply" not in [n.op.name for n in only(rules).params["body"]]


def test_symbolic_sizes():
    def f(x, w):
        def step(h, row):
            return np.tanh(h * w + row), np.sum(h)

        h, ys = control.scan(step, w * 0.0, x)
        return np.sum(h) + np.sum(ys)

    graph = wg.trace(wg.value_and_grad(f, (0, 1)))(wg.spec(("n", "m")), wg.spec("m"))
    made = simplify(graph)
    assert len(loops(made)) == 2
    for n, m in ((4, 3), (1, 2), (2, 1)):
        x, w = RNG.normal(size=(n, m)), RNG.normal(size=m)
        assert_same(made(x, w), graph(x, w))
        assert_same(made(x, w), wg.value_and_grad(f, (0, 1))(x, w))


def test_graphs_are_the_same_whichever_way_they_are_written():
    a = wg.trace(lambda x, y: control.fori_loop(0, 3, lambda i, v: v * x + y, x))(0.5, 1.0)
    b = wg.trace(lambda x, y: control.fori_loop(0, 3, lambda i, v: y + x * v, x))(0.5, 1.0)
    assert equals(simplify(a), simplify(b))


def test_bodies_that_take_other_inputs_as_constants_are_others():
    """Whether a derivative passes an input is part of what a body is."""
    differentiable, fixed = (
        Body((x * c).node, inputs=[x.node, c.node])
        for x, c in (
            (wrap(placeholder(SCALAR)), wrap(placeholder(SCALAR))),
            (wrap(placeholder(SCALAR)), wrap(placeholder(SCALAR, differentiable=False))),
        )
    )
    assert differentiable != fixed


def test_lengths_of_loops_that_end_by_themselves_have_no_name_of_their_own():
    """Two traces of the same function are the same, and one graph used twice ends twice."""
    f, a, x = PROGRAMS["newton"]
    g, h = (wg.trace(wg.grad(f))(a, x) for _ in range(2))
    assert equals(g, h)
    both = wg.trace(lambda a, x: g(a, x) + g(8.0 * a, x))(a, x)
    kept = [n.params["length"] for n in loops(both, "while") if n.params["length"] is not None]
    assert len(set(kept)) == 2
    for graph in (both, simplify(both)):
        assert_same(graph(a, x), g(a, x) + g(8.0 * a, x))


def test_nodes_that_follow_replacements_do_not_copy_them():
    """The time is linear in the nodes: each looks up its own operands only."""

    class Counting(dict):
        copies = 0

        def __iter__(self):
            Counting.copies += 1
            return super().__iter__()

        def keys(self):
            Counting.copies += 1
            return super().keys()

    graph = wg.trace(lambda x: np.sin(np.exp(x * 2.0) + x))(1.0)
    rewiring = Rewiring()
    rewiring.replacements = Counting()
    first = graph.inputs[0]
    rewiring.replacements[first] = other = wg.trace(lambda x: x)(1.0).inputs[0]
    for node in graph.nodes:
        rewiring.follow(node)
    assert Counting.copies == 0
    replaced = rewiring.replaced(graph.outputs)[0]
    assert replaced is not graph.outputs[0] and replaced.op is graph.outputs[0].op
    sources, waiting = set(), [replaced]
    while waiting:
        node = waiting.pop()
        sources.add(node)
        waiting += node.inputs
    assert other in sources and first not in sources
