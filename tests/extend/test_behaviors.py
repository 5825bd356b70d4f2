"""Style 000: behaviors on nodes, for values of any type."""

import copy
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import wengert as wg
from wengert.extend import Behavior, BehaviorGraph, ComputationGraph, Index, as_operation
from wengert.extend.behaviors.behavior import BEHAVIORS, behavior_named, name_of_behavior

# Values and derivatives at -30, from mpmath with 40 digits.
SATURATED = [
    ("tanh", -1.0, 3.502604305078608e-26),
    ("sigmoid", 9.357622968839299e-14, 9.357622968838423e-14),
]


class Affine:
    """A user-defined number type: a value and the expression that computed it."""

    def __init__(self, value, terms=1):
        self.value, self.terms = value, terms

    def __add__(self, other):
        return Affine(self.value + other.value, self.terms + other.terms)

    def __mul__(self, other):
        return Affine(self.value * other.value, self.terms)


def test_any_type_with_addition_and_multiplication():
    graph = BehaviorGraph()
    x, y = graph.leaf(Affine(3)), graph.leaf(Affine(4))
    product = graph.function("mul", x, y)
    graph.function("add", product, x)
    graph.forward()
    graph.backward(seed=Affine(1))
    assert graph.node(x).grad().value == 5  # y + 1
    assert graph.node(x).grad().terms == 2  # two contributions, added by the engine
    assert graph.node(y).grad().value == 3


@pytest.mark.parametrize("kind", [int, float, Fraction, Decimal, complex], ids=lambda k: k.__name__)
def test_number_types_are_preserved(kind):
    graph = BehaviorGraph()
    x = graph.leaf(kind(3))
    graph.function("sub", graph.function("mul", x, x), graph.function("neg", x))
    assert graph.forward() == 12
    graph.backward()
    assert graph.node(x).grad() == 7
    assert type(graph.node(x).grad()) is kind


def test_broadcasting_of_arrays_and_numbers(rng):
    a, b = rng.normal(size=(2, 3)), rng.normal(size=(3,))
    graph = BehaviorGraph()
    x, y, s = graph.leaf(a), graph.leaf(b), graph.leaf(2.0)
    z = graph.function("mul", graph.function("add", x, y), s)
    graph.function("mse", graph.function("tanh", z), np.zeros((2, 3)))
    graph.forward()
    graph.backward()
    exact = wg.grad(lambda a, b, s: np.mean(np.tanh((a + b) * s) ** 2), (0, 1, 2))(a, b, 2.0)
    for i, want in zip((x, y, s), exact, strict=True):
        np.testing.assert_allclose(graph.node(i).grad(), want, rtol=1e-12)
    assert graph.node(y).grad().shape == (3,)


@pytest.mark.parametrize(("name", "value", "slope"), SATURATED)
def test_functions_are_accurate_where_they_saturate(name, value, slope):
    graph = BehaviorGraph()
    x = graph.leaf(-30.0)
    graph.function(name, x)
    graph.forward()
    graph.backward()
    assert type(graph.node(x).grad()) is float
    np.testing.assert_allclose(graph.node(1).output(), value, rtol=1e-14)
    np.testing.assert_allclose(graph.node(x).grad(), slope, rtol=1e-14)


def test_integers_among_arrays_do_not_round_gradients():
    graph = BehaviorGraph()
    x, y = graph.leaf(np.array([1, 2])), graph.leaf(np.array([0.5, 0.25]))
    graph.function("mse", graph.function("mul", x, y), np.zeros(2))
    graph.forward()
    graph.backward()
    np.testing.assert_allclose(graph.node(x).grad(), [0.25, 0.125])


def test_copied_and_pickled_behaviors_are_separate_operations():
    behavior = Scaled(2.0)
    assert float(wg.grad(behavior)(1.0)) == 2.0
    twin = copy.copy(behavior)
    twin.factor = 3.0
    assert float(wg.grad(twin)(1.0)) == 3.0
    assert float(wg.grad(pickle.loads(pickle.dumps(behavior)))(1.0)) == 2.0
    assert float(wg.grad(copy.deepcopy(twin))(1.0)) == 3.0


class Scaled(Behavior):
    def __init__(self, factor):
        self.factor = factor

    def forward(self, nodes, curr_node_idx):
        return self.factor * nodes[nodes[curr_node_idx].inputs()[0]].output()

    def backward(self, nodes, curr_node_idx):
        (i,) = nodes[curr_node_idx].inputs()
        nodes[i].add_grad(self.factor * nodes[curr_node_idx].grad())


def test_indices_connect_nodes():
    graph = BehaviorGraph()
    x = graph.leaf(2.0)
    y = graph.function("mul", x, x)
    z = graph.function("add", y, x)
    assert graph.node(z).inputs() == (y, x)
    assert graph.node(x).upstream() == (y, z)
    assert graph.node(z).upstream() == ()
    assert (graph.variables(), graph.operations()) == ([x], [y, z])
    assert graph.curr_node() is graph.node(z)
    assert repr(x) == "node 0"
    assert repr(graph.node(y)) == "<node 1: Pointwise(0, 0) = None>"
    assert len(graph) == 3 and ComputationGraph is BehaviorGraph


def test_graph_runs_again_with_changed_leaves_and_operations():
    graph = BehaviorGraph()
    x, w = graph.leaf(2.0), graph.leaf(3.0, is_param=True)
    y = graph.function("mul", x, w)
    assert graph.parameters() == [w]
    graph.add_parameter(x)
    assert graph.parameters() == [x, w]
    assert graph.forward() == 6.0
    assert graph.path == [0, 1, 2]
    graph.backward()
    graph.backward()  # of this output, not added to the last
    assert graph.node(w).grad() == 2.0
    graph.mut_node_output(x, 5.0)
    assert graph.forward() == 15.0
    graph.backward()
    assert graph.node(w).grad() == 5.0
    graph.mut_node_operation(y, "sub")
    assert graph.forward() == 2.0
    graph.backward()
    assert graph.node(w).grad() == -1.0
    graph.mut_node_inputs(y, [w, w])
    assert graph.forward() == 0.0
    assert graph.node(x).upstream() == ()


def test_intermediate_node_as_output():
    graph = BehaviorGraph()
    x = graph.leaf(2.0)
    y = graph.function("mul", x, x)
    z = graph.function("exp", y)
    graph.forward()
    graph.backward(output=y)
    assert graph.node(x).grad() == 4.0
    assert graph.node(z).grad() is None


def test_behavior_can_read_the_whole_graph():
    class Monitor(Behavior):
        """The sum of its input, recording the nodes it reads."""

        def forward(self, nodes, curr_node_idx):
            self.saw = [type(n.operation).__name__ for n in nodes]
            return float(np.sum(nodes[nodes[curr_node_idx].inputs()[0]].output()))

        def backward(self, nodes, curr_node_idx):
            node = nodes[curr_node_idx]
            self.consumers = [nodes[i].grad() for i in node.upstream()]
            (i,) = node.inputs()
            nodes[i].set_grad_output(node.grad() * np.ones_like(nodes[i].output()))

    monitor = Monitor()
    graph = BehaviorGraph()
    x = graph.leaf(np.array([1.0, 2.0]))
    graph.function(monitor, x)
    graph.unary(3.0, "mul")
    graph.forward()
    graph.backward()
    np.testing.assert_array_equal(graph.node(x).grad(), [3.0, 3.0])
    assert monitor.saw == ["Leaf", "Monitor", "Leaf", "Pointwise"]
    assert monitor.consumers == [1.0]
    op = as_operation(monitor)
    np.testing.assert_array_equal(wg.grad(lambda x: op(x) * 5.0)(np.ones(2)), [5.0, 5.0])
    assert monitor.consumers == [5.0]


def test_discrete_behaviors_have_no_gradient():
    class Larger(Behavior):
        discrete = True

        def forward(self, nodes, curr_node_idx):
            x, y = (nodes[i].output() for i in nodes[curr_node_idx].inputs())
            return float(x > y)

    graph = BehaviorGraph()
    x, y = graph.leaf(2.0), graph.leaf(1.0)
    graph.function("mul", graph.function(Larger(), x, y), x)
    graph.forward()
    graph.backward()
    assert graph.node(x).grad() == 1.0
    assert graph.node(y).grad() is None
    assert float(wg.grad(lambda x: x * Larger()(x, 1.0))(2.0)) == 1.0


def test_ints_are_values_and_indices_are_nodes():
    graph = BehaviorGraph()
    graph.binary(5, 10, "add")
    assert graph.forward() == 15
    total = graph.function("mul", Index(2), 2)
    assert graph.forward() == 30
    assert graph.node(total).inputs() == (2, 3)


def test_registry_of_behaviors():
    assert name_of_behavior(behavior_named("mul")) == "mul"
    assert {"add", "sub", "mul", "div", "matmul", "mse"} <= set(BEHAVIORS)
    graph = BehaviorGraph()
    graph.register("tests.again", behavior_named("add"))
    assert graph.binary(1.0, 2.0, "tests.again") == 2


def test_deep_and_wide_graphs_take_linear_time():
    graph = BehaviorGraph()
    x = node = graph.leaf(1.0)
    for _ in range(3000):  # each doubles the number of paths
        node = graph.function("add", node, node)
        node = graph.function("mul", node, 0.5)
    assert graph.forward() == 1.0
    graph.backward()
    assert graph.node(x).grad() == 1.0
