"""Graph: order, indices, consumers, parents and arguments, printing."""

import numpy as np

import wengert as wg
from wengert._engine.core.node import Node


def example():
    x = wg.tensor([1.0, -2.0], requires_grad=True)
    x.node.note(name="x")
    y = np.where(x > 0, x * x, np.exp(x) * 2.0)
    return x, y, np.sum(y)


def test_every_operand_comes_first_and_indices_agree():
    x, y, total = example()
    graph = wg.Graph(total)
    assert graph.verify() is graph
    for i, node in enumerate(graph):
        assert graph.index(node) == i and graph[i] is node
        assert all(k < i for k in graph.operands(i))
        for k in graph.operands(i):
            assert i in graph.consumers(k)
    assert x in graph and y in graph and len(graph) == len(graph.nodes)
    assert graph.outputs == (total.node,)


def test_repeated_operands_are_counted_once_as_consumers():
    x = wg.tensor(2.0, requires_grad=True)
    graph = wg.Graph(x * x)
    assert graph.operands(1) == (0, 0) and graph.consumers(0) == (1,)


def test_parents_and_arguments_are_listed_apart():
    _, y, total = example()
    graph = wg.Graph(total)
    where = graph.index(y)
    kinds = {graph[i].op.name: graph[i].kind for i in range(len(graph))}
    assert kinds["greater"] == "INPUT_DERIVED_NON_DIFF"
    assert kinds["input"] == "INPUT" and kinds["where"] == "INPUT_DERIVED"
    assert [graph[i].op.name for i in graph.arguments(where)] == ["greater"]
    assert [graph[i].op.name for i in graph.parents(where)] == ["multiply", "multiply"]
    assert all(type(graph[i]) is Node for i in graph.parents(where))


def test_it_can_be_read_aloud():
    _, _, total = example()
    lines = str(wg.Graph(total)).splitlines()
    assert lines[0].split() == ["%0", "=", "input", "x", "float64[2]"]
    assert lines[-1].startswith("return %")
    assert any("bool[2]" in line for line in lines)
    assert repr(wg.Graph(total)).startswith("<Graph of ")


def test_several_outputs_and_containers():
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    graph = wg.Graph({"a": x * 2.0, "b": [x + 1.0, 3.0]})
    assert len(graph.outputs) == 3
    graph.verify()


def test_looking_at_a_graph_does_not_change_derivatives():
    x, _, total = example()
    wg.Graph(total)
    total.backward()
    np.testing.assert_allclose(x.grad.numpy(), [2.0, 2 * np.exp(-2.0)])


def test_specs_of_every_operation_are_rederived():
    x = wg.tensor(np.linspace(0.1, 1.0, 6).reshape(2, 3), requires_grad=True)
    y = np.concatenate([x.T @ x, np.cumsum(x, axis=1)[:, :3]]).reshape(-1)[::2]
    sign, logdet = np.linalg.slogdet(x @ x.T)
    wg.Graph(np.sort(y), sign, logdet, np.mean(y), np.argmax(y)).verify()
