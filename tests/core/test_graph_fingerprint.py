"""The canonical form of a graph, on which its encoders are built."""

import numpy as np

import wengert as wg
from wengert._engine.core.graph_fingerprint import canonical, leaf_key


def name_of(node):
    return node.op.name


def test_inputs_are_numbered_first_and_operands_by_number():
    graph = wg.trace(lambda x, y: (np.sin(y) * x, x))(1.0, 2.0)
    rows, number = canonical(graph, name_of)
    assert rows == [("sin", (1,)), ("multiply", (2, 0))]
    assert [number[n] for n in graph.outputs] == [3, 0]


def test_the_order_of_inputs_in_the_list_does_not_count():
    """A list has its inputs where they are used first; numbers are those of the arguments."""
    one = wg.trace(lambda x, y: x - y)(1.0, 2.0)
    other = wg.trace(lambda x, y: -y + x)(1.0, 2.0)
    assert [list(canonical(g, name_of)[1].values())[:2] for g in (one, other)] == [[0, 1], [0, 1]]


def test_leaves_are_compared_by_value():
    a, b, c, d = (wg.trace(lambda x, v=v: x + v)(1.0) for v in (-0.0, -0.0, 0.0, np.nan))
    keys = [leaf_key(next(n for n in g.nodes if n.op.name == "constant")) for g in (a, b, c, d)]
    assert keys[0] == keys[1] != keys[2] and keys[3] == keys[3]
    x = a.inputs[0]
    assert leaf_key(x) is x
