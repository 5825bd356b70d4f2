"""The pass manager: order, users' passes, verification, history; nothing given is changed."""

import hashlib

import numpy as np
import pytest
from wengert.rewrite import DEFAULT, Pass, Passes, Rule, register_pass, simplify

import wengert as wg
from wengert._engine.core.graph_fingerprint import equals
from wengert._engine.core.node import Node
from wengert._engine.core.node_properties import NodeInfo
from wengert._engine.rewrite import passes, rule
from wengert.errors import ArgumentError, GraphError, RegistryError

SPEC = wg.spec((4, 3))


def model(x, w):
    h = np.tanh(x @ w * 1.0) + 0.0 * np.sum(x - 0.0)
    return np.sum(np.log(1 + np.exp(h)) / 4.0)


def graph_of_gradient():
    return wg.trace(wg.grad(model, (0, 1)))(SPEC, wg.spec((3, 3)))


def snapshot(graph):
    """All that can be seen of a graph."""
    lines = [
        (id(n), n.op.name, tuple(map(id, n.args)), repr(n.params), repr(n.info)) for n in graph
    ]
    return hashlib.sha256((str(graph) + repr(lines)).encode()).hexdigest()


@pytest.mark.parametrize("order", [[name] for name in DEFAULT.names] + [DEFAULT])
def test_the_graph_given_is_not_changed(order):
    graph = graph_of_gradient()
    before = snapshot(graph)
    simplify(graph, order)
    assert snapshot(graph) == before


def test_nothing_is_left_behind_by_an_interrupted_pass():
    graph = graph_of_gradient()
    before = snapshot(graph)
    calls = []

    def interrupting(match):
        calls.append(match)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return False

    odd = Rule("interrupt", lambda x, y: x * y, lambda x, y: x, condition=interrupting)
    with pytest.raises(KeyboardInterrupt):
        simplify(graph, ["merge", [odd], *[n for n in DEFAULT.names if n != "merge"]])
    assert snapshot(graph) == before
    x, w = np.ones((4, 3)), np.eye(3)
    for got, want in zip(simplify(graph)(x, w), graph(x, w), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)


def test_once_is_enough():
    for function in (
        model,
        wg.grad(model, (0, 1)),
        wg.grad(lambda x, w: np.sum(wg.grad(model)(x, w))),
    ):
        once = simplify(wg.trace(function)(SPEC, wg.spec((3, 3))))
        assert simplify(once) is once


def test_joined_or_one_by_one_is_the_same():
    graph = graph_of_gradient()
    assert equals(simplify(graph), simplify(graph, DEFAULT.one_by_one()))


def test_lines_bear_what_they_replace():
    def f(x):
        with wg.scope("loss", kind="test"):
            y = np.log(np.sum(np.exp(x)))
        return y

    graph = wg.trace(f)(SPEC)
    old, new = graph.outputs[0], simplify(graph).outputs[0]
    assert new.op.name == "logsumexp"
    assert new.where == old.where and "test_passes.py" in new.where
    assert new.scope == old.scope == "loss"
    assert new.metadata == {"kind": "test"}
    gradient = simplify(graph_of_gradient())
    assert max(n.level for n in gradient) == 1
    assert all(n.where for n in gradient if n.args)


def test_names_stay_with_the_lines():
    graph = wg.trace(lambda x: np.log(1 + x))(SPEC)
    graph.outputs[0].note(name="result")
    after = simplify(graph)
    assert (after.outputs[0].op.name, after.outputs[0].name) == ("log1p", "result")
    assert after.inputs[0].name == "x"


# ---- history -----------------------------------------------------------------------------------


def test_history_says_what_was_done():
    graph = wg.trace(lambda x: np.log(np.sum(np.exp(x * 1.0))))(SPEC)
    after = simplify(graph, DEFAULT.one_by_one(), history=True)
    steps = {s.name: s for s in after.history.steps[: len(DEFAULT.names)]}  # of the first round
    assert list(steps) == DEFAULT.names
    assert steps["algebra"].before is graph
    assert [a.rule for a in steps["algebra"].applied] == ["x * 1"]
    (applied,) = steps["stabilise"].applied
    assert applied.rule == "log(sum(exp(x)))"
    assert applied.node.op.name == "log"
    assert applied.replacement.op.name == "logsumexp"
    assert applied.replacement in steps["stabilise"].after
    assert len(steps["stabilise"].before) > len(steps["stabilise"].after)
    assert all(s.seconds >= 0 for s in after.history)
    text = str(after.history)
    assert "algebra: 6 nodes -> 4" in text and "1 x log(sum(exp(x)))" in text
    assert "log(sum(exp(x))): log(sum) -> logsumexp(x)" in after.history.applications()
    assert "test_passes.py" in after.history.applications()


def test_history_of_nothing():
    after = simplify(wg.trace(np.sin)(SPEC), [], history=True)
    assert str(after.history) == "nothing was done"
    assert len(after.history) == 0


# ---- users' passes -----------------------------------------------------------------------------


def test_a_user_adds_rules_and_passes():
    pythagoras = Rule(
        "pythagoras", lambda x: np.sin(x) ** 2 + np.cos(x) ** 2, lambda x: 1.0, kinds="f"
    )
    # After algebra has made squares of the powers the pattern is not there any more.
    mine = DEFAULT.add([pythagoras], "mine", before="algebra")
    assert mine.names.index("mine") == mine.names.index("algebra") - 1
    assert "mine" not in DEFAULT.names
    graph = wg.trace(lambda x: x * (np.cos(x) ** 2 + np.sin(x) ** 2))(SPEC)
    after = mine(graph)
    assert after.outputs[0] is after.inputs[0]
    assert mine.without("mine").names == DEFAULT.names


def test_a_function_of_graphs_runs_where_it_was_put():
    seen = []

    def look(graph):
        seen.append([n.op.name for n in graph])
        return graph

    order = DEFAULT.add(look, before="stabilise")
    assert order.names[5:7] == ["look", "stabilise"]
    graph = wg.trace(lambda x: np.log(1 + x * 1.0))(SPEC)
    assert order(graph).outputs[0].op.name == "log1p"
    assert seen[0] == ["input", "constant", "add", "log"]


def test_passes_are_repeated_until_nothing_changes():
    def unwrap(graph):
        out = graph.outputs[0]
        inner = out.args[0] if out.op.name == "negative" else out
        return graph.with_nodes({out: inner}) if inner is not out else graph

    graph = wg.trace(lambda x: -np.negative(-np.negative(-x)))(SPEC)
    assert [n.op.name for n in Passes([unwrap])(graph)] == ["input"]
    limited = Passes([unwrap], rounds=2)(graph)
    assert len(limited) == len(graph) - 2


def test_a_rule_may_be_a_function_that_writes_with_numpy():
    from wengert._engine.core.handle import wrap

    @rule("sinc", on="divide", over="sin", reason="0 / 0")
    def sinc(line, new):
        top, x = line.args
        return np.sinc(wrap(x) / np.pi) if top.args[0] is x else None

    graph = wg.trace(lambda x: np.sin(x) / x)(SPEC)
    with wg.no_grad():  # the graph is what it is, wherever it is simplified
        after = simplify(graph, [[sinc]])
    assert type(after.outputs[0]) is Node
    assert after.outputs[0].where == graph.outputs[0].where
    assert "divide" in [n.op.name for n in after] and after.outputs[0].op.name == "sinc"
    assert float(after(np.zeros((4, 3)))[0, 0]) == 1.0
    other = wg.trace(lambda x: np.sin(x) / (x + 1.0))(SPEC)
    assert simplify(other, [[sinc]]) is other


def test_registered_passes_are_called_by_name():
    try:
        register_pass("test: nothing", lambda graph: graph)
        assert "test: nothing" in passes()
        graph = wg.trace(np.sin)(SPEC)
        assert simplify(graph, "test: nothing") is graph
        with pytest.raises(RegistryError, match="registered already"):
            register_pass("test: nothing", lambda graph: graph)
    finally:
        from wengert._engine.rewrite.pass_manager import _REGISTRY

        _REGISTRY.pop("test: nothing", None)


# ---- errors ------------------------------------------------------------------------------------


def wrong_output(graph):
    return graph.with_nodes({graph.outputs[0]: graph.inputs[0]})


def wrong_input(graph):
    return wg.trace(np.sin)(wg.spec((4, 3)))


def wrong_line(graph):
    out = graph.outputs[0]
    made = Node(out.op, graph.inputs, {"axis": 0}, None, NodeInfo(out.spec))
    return graph.with_nodes({out: made})


def one_too_many(graph):
    return type(graph)(*graph.outputs, graph.outputs[0], inputs=graph.inputs)


def no_graph(graph):
    return str(graph)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (wrong_output, r"float64\[4,3\] for output 0, which was float64\[\]"),
        (wrong_input, "with other inputs"),
        (wrong_line, r"node %1 \(sum\) has the spec float64\[\], but its operands give"),
        (one_too_many, "2 outputs instead of 1"),
        (no_graph, "a str"),
    ],
)
def test_a_pass_that_breaks_the_graph_is_named(broken, words):
    graph = wg.trace(lambda x: np.sum(np.sin(x)))(SPEC)
    with pytest.raises(GraphError, match=rf"the pass '{broken.__name__}' returned .*{words}"):
        simplify(graph, ["fold", broken])
    with pytest.raises(GraphError, match=broken.__name__):
        Pass(broken.__name__, function=broken)(graph)


def test_a_pass_that_fails_is_named():
    def fails(graph):
        raise ZeroDivisionError("one")

    with pytest.raises(ZeroDivisionError) as caught:
        simplify(wg.trace(np.sin)(SPEC), [fails])
    assert "in the rewriting pass 'fails'" in caught.value.__notes__


def test_rules_that_undo_each_other():
    there = Rule("there", lambda x: np.sin(x), lambda x: np.cos(x))
    back = Rule("back", lambda x: np.cos(x), lambda x: np.sin(x))
    with pytest.raises(GraphError, match=r"rules undo each other.*(there, back|back, there)"):
        simplify(wg.trace(np.sin)(SPEC), [[there, back]])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Rule("a", lambda x: x, lambda x: x).trees, "match every node"),
        (lambda: Rule("a", lambda x: np.sin(x), lambda y: y), "takes y"),
        (lambda: Rule("a", lambda *x: x[0], lambda: 0), r"takes \*x"),
        (lambda: Rule("a", lambda x: x / x.shape[0], lambda x: x).trees, "depends on the shape"),
        (lambda: Rule("a", lambda x, *, k: x[k], lambda x: x).trees, "two values to trace with"),
        (
            lambda: (
                Rule("a", lambda x, *, axis: np.sum(x, axis=axis) * (axis + 1), lambda x: x).trees
            ),
            "computes with the value of axis",
        ),
        (lambda: simplify(wg.trace(np.sin)(SPEC), [3]), "a list of rules, not 3"),
        (lambda: simplify(wg.trace(np.sin)(SPEC), ["fold", "fold"]), "'fold' is listed twice"),
    ],
)
def test_what_is_no_rule_or_pass(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


def test_unknown_passes():
    with pytest.raises(
        RegistryError, match=r"no pass 'fuld'; choose among fold, .*Did you mean 'fold'"
    ):
        simplify(wg.trace(np.sin)(SPEC), ["fuld"])
    with pytest.raises(RegistryError, match="no pass 'x' in this list"):
        DEFAULT.add(lambda g: g, before="x")
    with pytest.raises(RegistryError, match="no pass 'x' in this list"):
        DEFAULT.without("x")


# ---- size --------------------------------------------------------------------------------------


def long(n):
    def f(x):
        y = x
        for _ in range(n):
            y = np.log(1 + np.exp(y)) * 1.0 + x
        return np.sum(y)

    return f


@pytest.mark.usefixtures("unconverted")
def test_long_lists_without_recursion():
    graph = wg.trace(wg.grad(long(1500)))(wg.spec(3))
    after = simplify(graph)
    assert len(after) < 0.5 * len(graph)
    assert "log" not in {n.op.name for n in after}
    np.testing.assert_allclose(after(np.zeros(3)), wg.grad(long(1500))(np.zeros(3)), rtol=1e-12)


def test_work_is_linear(calls):
    simplify(wg.trace(long(2))(wg.spec(3)))  # patterns are traced at first use
    small, large = (calls(simplify, wg.trace(long(n))(wg.spec(3))) for n in (50, 400))
    assert large < 1.2 * 8 * small


def test_patterns_do_not_see_what_is_open_around_them():
    graph = wg.trace(lambda x: np.log(1 + np.sin(x)))(SPEC)
    mine = Rule("mine", lambda x: np.log(1 + np.sin(x)), lambda x: np.log1p(np.sin(x)) * 1.0)
    with (
        wg.policy(broadcast="raise", cast="raise", max_float="float32"),
        wg.no_grad(),
        wg.scope("s"),
    ):
        after = simplify(graph, [[mine]])
    assert after.outputs[0].op.name == "multiply"
    assert after.outputs[0].scope == ""
    assert after.outputs[0].spec == graph.outputs[0].spec
    assert type(after.outputs[0]) is Node
