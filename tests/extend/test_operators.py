"""Style 001: the base classes of operators, and the graph of operators."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import NotDifferentiableError
from wengert.extend import (
    AbstractOperator,
    BinaryOperator,
    ConstantOperator,
    InputOperator,
    LogicalBinary,
    LogicalOperator,
    LogicalUnary,
    NaryOperator,
    OperatorGraph,
    OrphanOperator,
    UnaryOperator,
    as_operation,
)
from wengert.extend.operator_classes import library
from wengert.extend.operator_classes import shape_operators as shapes
from wengert.extend.operator_classes.operator import b8, f32, f64, i64


@pytest.fixture
def graph():
    return OperatorGraph()


def test_operator_hierarchy():
    for cls, base in [
        (OrphanOperator, AbstractOperator),
        (InputOperator, OrphanOperator),
        (ConstantOperator, OrphanOperator),
        (LogicalOperator, AbstractOperator),
        (LogicalUnary, LogicalOperator),
        (LogicalBinary, LogicalOperator),
        (NaryOperator, AbstractOperator),
        (BinaryOperator, AbstractOperator),
        (UnaryOperator, AbstractOperator),
        (library.Input, InputOperator),
        (library.Shared, InputOperator),
        (library.Eye, ConstantOperator),
        (library.Range, ConstantOperator),
        (library.ConstantValue, ConstantOperator),
        (library.LogicalNot, LogicalUnary),
        (library.IsNaN, LogicalUnary),
        (library.IsInf, LogicalUnary),
        (library.Less, LogicalBinary),
        (library.Mul, NaryOperator),
        (library.Div, BinaryOperator),
        (library.Exp, UnaryOperator),
    ]:
        assert issubclass(cls, base)


def test_node_types(graph):
    x = graph.input((2,))
    w = graph.shared(np.ones(2), name="w")
    c = graph.constant(2.0)
    n = graph.size(x, axis=0)
    kinds = {
        "INPUT": [x, w],
        "CONSTANT": [c, graph.eye(3), graph.range(4)],
        "CONSTANT_DERIVED": [c * 3.0, graph.is_nan(c), c < 3.0],
        "INPUT_DERIVED": [x * w, graph.exp(x) + c],
        "INPUT_DERIVED_NON_DIFF": [
            n,
            graph.eye(n),
            graph.range(n),
            x < w,
            graph.is_inf(x),
            ~graph.is_nan(x),
            graph.eye(n) * 2.0,
            graph.make_constant(x),
            graph.cast(x, i64),
        ],
    }
    for kind, nodes in kinds.items():
        assert [str(node.node_type) for node in nodes] == [kind] * len(nodes)
        assert all(node.node_type is node.operator.get_node_type() for node in nodes)


def test_data_types_and_shapes(graph):
    x = graph.input((2, 3), f32)
    assert graph.is_nan(x).data_type == b8
    assert (x < 0.0).shape == (2, 3)
    assert (x * graph.constant(np.float32(2))).data_type == f32
    assert (x * graph.input((3,), f64)).data_type == f64
    assert graph.range(4).data_type == i64
    assert graph.eye(2).data_type == f64
    assert graph.div(graph.range(3), 2).data_type == f64
    assert graph.sum(x, axis=1).shape == (2,)
    assert (x @ graph.transpose(x)).shape == (2, 2)
    assert graph.reshape(x, (6,)).shape == (6,)


def test_parents_arguments_and_ancestors(graph):
    x, y = graph.input(), graph.input()
    condition = x < y
    chosen = graph.select(condition, x, x * y)
    assert chosen.parents == [x, x * y]
    assert chosen.arguments == [condition]
    assert chosen.operator.get_ancestors() == [x, x * y, condition]
    assert (x * x).operator.get_ancestors() == [x]
    assert (x * x).parents == [x, x]
    eye = graph.eye(graph.size(graph.input((3,))))
    assert eye.parents == [] and len(eye.operator.get_ancestors()) == 1
    assert graph.consumers(condition) == [chosen]


def test_gradients_of_orphans_and_logical_operators_raise(graph):
    x = graph.input()
    t = graph.constant(1.0)
    for node in (x, graph.eye(2), graph.constant(3.0), x < 1.0, graph.is_nan(x)):
        with pytest.raises(NotDifferentiableError, match=type(node.operator).__name__):
            node.operator.get_parent_grad(t, 0)
    with pytest.raises(NotDifferentiableError, match="stops gradients"):
        graph.make_constant(x).operator.get_parent_grad(t, 0)
    op = as_operation(library.IsNaN)
    assert bool(op(np.nan)) and not bool(op(1.0))
    assert float(wg.grad(lambda x: x * op(x))(2.0)) == 0.0  # a known zero


def test_gradient_messages_are_summed_and_converted(graph):
    x = graph.input((3,))
    y = x * x
    t = graph.input((2, 3))
    messages = {y: graph.input((3,))}
    y.operator.generate_gradients(messages)
    assert messages[x].operator.name == "Add"  # two messages to one parent
    y.operator.send_grad_message(x, t, other := {})
    assert other[x].shape == (3,)
    y.operator.send_grad_message(x, graph.cast(t, f32), other)
    assert other[x].data_type == f64


def test_equality_of_operators(graph):
    x, y = graph.input((2, 3)), graph.input((2, 3))
    assert graph.sum(x, axis=0) is graph.sum(x, axis=0)
    assert graph.sum(x, axis=0) is not graph.sum(x, axis=1)
    assert x * y is y * x
    assert x / y is not y / x
    assert graph.constant(2.0) is graph.constant(2.0)
    assert graph.constant(2.0) is not graph.constant(2)
    assert graph.input() is not graph.input()
    sums = graph.sum(x, axis=0).operator, graph.sum(x, axis=1).operator
    assert sums[0].equals(sums[0]) and not sums[0].equals(sums[1])
    assert not (x / y).operator.equals((y / x).operator)
    new = graph.copy()
    assert new[x * y].operator.equals((y * x).operator)
    assert not new[x / y].operator.equals((y / x).operator)
    assert not new[x].operator.equals(y.operator)


def every_operator(graph):
    """One node of every operator with a gradient, and the inputs."""
    x, y = graph.input((3, 3), name="x"), graph.input((3,), name="y")
    nodes = [x + y, x * y * x, x - y, x / y, x**y, x @ x, x**2.0, x**0.0, 2.0**x]
    nodes += [-x, graph.exp(x), graph.log(x), graph.log1p(x), graph.tanh(x), graph.sin(x)]
    nodes += [graph.cos(x), graph.abs(x - 1.0), graph.sum(x, axis=0), graph.sum(x) * y]
    nodes += [graph.sum_to(x, (3,)), graph.broadcast(y, (2, 3)), graph.reshape(x, (9,))]
    nodes += [graph.transpose(x), graph.select(x < y, x, y * 2.0), graph.cast(x, f32)]
    nodes += [graph.call(np.sinh, x), graph.plus(x, y, x)]
    return x, y, nodes


def test_gradients_agree_with_the_engine_and_finite_differences(graph, rng):
    """get_parent_grad against derivatives of compute; second derivatives against differences."""
    x, y, nodes = every_operator(graph)
    values = rng.uniform(0.3, 2.0, (3, 3)), rng.uniform(0.3, 2.0, 3)
    weights = np.arange(1.0, 10.0).reshape(3, 3)
    for node in nodes:
        if node.data_type == f32:
            continue
        total = graph.sum(node * node)
        first = graph.gradient(total, [x, y])
        run = graph.function([x, y], [total, *first])
        exact = wg.grad(by_numpy(graph, x, y, total), (0, 1))(*values)
        for got, want in zip(run(*values)[1:], exact, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12, err_msg=repr(node))
        again = graph.gradient(graph.sum(first[0] * weights), [x])[0]
        step = 1e-5 * rng.normal(size=(3, 3))
        slope = graph.function([x, y], graph.sum(first[0] * weights))
        plus, minus = slope(values[0] + step, values[1]), slope(values[0] - step, values[1])
        directional = np.sum(graph.function([x, y], again)(*values) * step)
        assert float(plus - minus) / 2 == pytest.approx(float(directional), rel=2e-5, abs=1e-9)


def by_numpy(graph, x, y, node):
    """The graph as a plain function of arrays: `compute` only, never `get_parent_grad`."""

    def f(a, b):
        known = {x: a, y: b}
        for n in graph.nodes[: node.index + 1]:
            if n not in known:
                operands = [known[p] for p in n.operator.operands() if p in known]
                if len(operands) == len(n.operator.operands()):
                    known[n] = n.operator.compute(*operands)
        return known[node]

    return f


def test_copy_of_a_graph(graph, rng):
    x, y, nodes = every_operator(graph)
    new = graph.copy()
    a, b = rng.uniform(0.3, 2.0, (3, 3)), rng.uniform(0.3, 2.0, 3)
    before = graph.function([x, y], nodes)(a, b)
    after = new[x].graph.function([new[x], new[y]], [new[n] for n in nodes])(a, b)
    for p, q in zip(before, after, strict=True):
        np.testing.assert_array_equal(p, q)
    assert str(new[x].graph) == str(graph)
    assert {type(n.operator) for n in graph.nodes} == {type(n.operator) for n in new.values()}
    assert all(new[n].operator.equals(n.operator) for n in nodes)


def test_gradient_levels_and_third_order(graph):
    x = graph.input(name="x")
    y = x**5.0
    levels = [y.grad_level]
    for _ in range(3):
        (y,) = graph.gradient(y, [x])
        levels.append(y.grad_level)
    assert levels == [0, 1, 2, 3]
    assert float(graph.function([x], y)(2.0)) == pytest.approx(60 * 4)
    assert y.operator.get_grad_level() == 3


def test_gradients_of_intermediate_nodes_and_shared_variables(graph):
    w = graph.shared(np.array([1.0, 2.0]), name="w")
    x = graph.input((2,))
    z = w * x
    loss = graph.sum(z * z)
    by_w, by_z = graph.gradient(loss, [w, z])
    run = graph.function([x], [by_w, by_z])
    np.testing.assert_array_equal(run(np.array([3.0, 1.0])), [[18.0, 4.0], [6.0, 4.0]])
    w.operator.set_value([2.0, 2.0])
    np.testing.assert_array_equal(run(np.array([3.0, 1.0]))[0], [36.0, 4.0])
    with pytest.raises(wg.errors.ShapeError, match="set_value of"):
        w.operator.set_value(1.0)


def test_power_at_zero_and_of_a_negative_base(graph):
    x, y = graph.input(), graph.input()
    square = graph.gradient(x**2, [x])[0]
    assert float(graph.function([x], square)(-3.0)) == -6.0
    by_x, by_y = graph.gradient(x**y, [x, y])
    run = graph.function([x, y], [by_x, by_y])
    assert [float(v) for v in run(0.0, 2.0)] == [0.0, 0.0]
    assert [float(v) for v in run(0.0, 0.0)] == [0.0, 0.0]
    assert float(graph.function([x], graph.gradient(x**0, [x])[0])(0.0)) == 0.0


def test_user_defined_operator_with_an_argument_and_a_parameter():
    class Scaled(UnaryOperator):
        """x times a number that is a parameter."""

        def __init__(self, graph, parent, factor):
            super().__init__(graph, parent)
            self.factor = factor

        def compute(self, x):
            return x * self.factor

        def get_params(self):
            return (self.factor,)

        def get_parent_grad(self, my_grad, index):
            return self.graph.add(Scaled(self.graph, my_grad, self.factor))

    scaled = as_operation(Scaled)
    assert float(wg.grad(lambda x: scaled(x, factor=3.0) * scaled(x, factor=2.0))(1.0)) == 12.0
    graph = OperatorGraph()
    x = graph.input()
    assert graph.add(Scaled(graph, x, 2.0)) is graph.add(Scaled(graph, x, 2.0))
    assert graph.add(Scaled(graph, x, 2.0)) is not graph.add(Scaled(graph, x, 3.0))
    assert shapes.Sum(graph, x).get_params() == (None,)
