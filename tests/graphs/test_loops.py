"""What is said of loops: reports, explanations, and why a gradient in a loop is what it is."""

import numpy as np
import pytest
from tests.rewrite.test_loops import PROGRAMS, loops

import wengert as wg
from wengert import control
from wengert._engine.ops.cost_model import flops_of, steps_of


def running(x):
    def step(h, row):
        h = np.tanh(h * 0.5 + row)
        return h, np.sum(h)

    return control.scan(step, x[0], x)


# ---- costs and reports ---------------------------------------------------------------------------


def test_a_loop_costs_its_steps():
    graph = wg.trace(running)(wg.spec(("n", "m")))
    (line,) = loops(graph)
    n, m = graph.inputs[0].spec.shape
    assert flops_of(line, [a.spec for a in line.inputs], line.spec) == 4 * n * m
    assert steps_of(line) == n
    found = graph.report(n=1000, m=10)
    cost = next(c for c in found.nodes if c.name == "scan")
    assert (cost.loop.steps, cost.loop.operations, cost.loop.flops) == (1000, 4, 40.0)
    assert (cost.loop.carried, cost.loop.taken, cost.loop.stacked) == (80, 0, 8)
    assert cost.flops == 40_000.0 == found.flops
    assert cost.read == 1000 * cost.loop.read and cost.loop.read == 8 * (11 + 20 + 10 + 10)
    text = str(found)
    assert "1000 steps of 4 operations, 40 floating-point each; 80 bytes carried" in text
    assert "8 bytes stacked by each step, 8 kB in all" in text


def test_what_values_decide_is_not_counted():
    f, *args = PROGRAMS["newton"]
    found = wg.trace(wg.value_and_grad(f))(*args).simplify().report()
    assert {"scan", "while"} == set(found.unknown)
    assert all(c.loop.steps is None for c in found.nodes if c.loop)
    assert "a dynamic number of steps of 9 operations" in str(found)


def test_the_dearest_branch_counts():
    def f(x):
        return control.cond(x[0] > 0, lambda v: np.sin(np.exp(v)), lambda v: v * 2.0, x)

    graph = wg.trace(f)(np.ones(5))
    (line,) = loops(graph, "cond")
    assert flops_of(line, [a.spec for a in line.inputs], line.spec) == 10


def test_memory_inside_of_a_step_counts():
    def f(x):
        return control.fori_loop(0, 3, lambda i, v: v + np.sum(np.outer(v, v), axis=0), x)

    found = wg.trace(f)(np.ones(100)).report()
    assert 80_000 < found.peak < 90_000


# ---- explain -------------------------------------------------------------------------------------


def test_explain_looks_into_loops():
    told = wg.explain(running)(wg.spec(("n", "m")))
    (note,) = told.note("loop")
    assert note.message == (
        "scan (scan): n steps; each computes 4 operations, 4*m of floating point, carries 8*m "
        "bytes, and stacks 8 bytes (8*n in all)"
    )
    line = next(x for x in told.lines if "np.tanh" in x.text)
    assert [n.op.name for n in line.nodes] == ["multiply", "add", "tanh"]
    assert str(line.flops) == "3*m*n" and str(told.flops) == "4*m*n"
    assert "np.tanh" in str(told) and "<td>" in told._repr_html_()


def test_explain_says_what_is_kept_for_the_backward_pass():
    told = wg.explain(wg.grad(lambda x: np.sum(running(x)[1])))(wg.spec((100, 3)))
    assert any("stacks 32 bytes (3200 in all)" in f.message for f in told.note("loop"))
    f, *args = PROGRAMS["newton"]
    told = wg.explain(wg.grad(f))(*args)
    assert any("the number of steps depends on values" in x.message for x in told.note("loop"))
    assert str(told)


# ---- why -----------------------------------------------------------------------------------------


def sinking(x):
    def step(v, _):
        return np.sqrt(v) - 0.5, None

    return control.scan(step, x, None, length=4)[0]


@pytest.mark.parametrize("of", [sinking, wg.trace(sinking)(1.0)], ids=["function", "graph"])
def test_why_names_the_step(of):
    found = wg.why(of, 1.0)
    assert found[0].kind in ("operation", "singular")
    assert found[0].message.startswith("in step 3 of scan: sqrt of -0.0449")
    assert found[0].text == "return np.sqrt(v) - 0.5, None"
    assert any("run step by step" in note for note in found.notes)


@pytest.mark.parametrize("traced", [False, True])
def test_why_names_the_steps_of_loops_in_loops(traced):
    def f(x):
        def inner(j, u):
            return u - np.log(u)

        def outer(v):
            return control.fori_loop(0, 3, inner, v) * 0.0

        return control.while_loop(lambda v: v > -1.0, outer, x, max_steps=9)

    asked = wg.trace(f)(2.0) if traced else f
    found = wg.why(asked, 2.0)
    assert found[0].message.startswith("in step 0 of fori_loop, in step 1 of while_loop: log of 0")


def test_a_graph_with_loops_is_looked_at_step_by_step():
    for name, (f, *args) in PROGRAMS.items():
        found = wg.why(wg.trace(f)(*args), *args)
        wanted = wg.grad(f)(*args)
        first = found.gradient[0] if isinstance(found.gradient, tuple | list) else found.gradient
        np.testing.assert_allclose(first, wanted, rtol=1e-9, err_msg=name)


def test_lines_say_no_step_where_nobody_asks():
    x = wg.tensor(1.0, requires_grad=True)
    y = control.fori_loop(0, 3, lambda i, v: np.sin(v), x)
    assert y.node.info is None or not y.node.info.step
    with wg.note_lines():
        y = control.fori_loop(0, 3, lambda i, v: np.sin(v), x)
        z = y * 2.0
    assert y.node.info.step == "step 2 of fori_loop" and not z.node.info.step


# ---- surgery -------------------------------------------------------------------------------------


def test_graphs_with_loops_are_copied_and_changed():
    f, w, xs = PROGRAMS["recurrent"]
    graph = wg.trace(f)(w, xs)
    assert graph.copy().equals(graph)
    (scan,) = loops(graph)
    ys = next(n for n in graph if n.op.name == "part" and n.params["index"] == 1)
    doubled = graph.substitute({ys: (wg._engine.core.handle.wrap(ys) * 2.0).node})
    np.testing.assert_allclose(doubled(w, xs), 2 * graph(w, xs))
    np.testing.assert_allclose(doubled.grad()(w, xs), 2 * wg.grad(f)(w, xs))
    assert scan in graph and not graph.equals(doubled)
