"""Errors in user code, in all styles: clear messages, and no state is changed."""

import re

import numpy as np
import pytest

import wengert as wg
from wengert.errors import (
    ConversionError,
    CycleError,
    DtypeError,
    GraphError,
    MixedGraphError,
    NotDifferentiableError,
    NotScalarError,
    OperandError,
    RegistryError,
    RuleError,
    ShapeError,
    UnconnectedError,
    UnconnectedWarning,
)
from wengert.extend import (
    Behavior,
    BehaviorGraph,
    Index,
    Op,
    OperatorGraph,
    Transformer,
    UnaryOperator,
    as_operation,
    backward,
    behavior_named,
    deriv,
    gradients,
    make_transformer,
    placeholder,
    primitive,
    register_behavior,
    vjp,
)

HERE = re.escape("test_user_errors.py")


def broken(style, rule):
    """An operation x -> 2 x of one style, whose reverse rule is `rule(t, x)`."""
    if style == "behavior":

        class Twice(Behavior):
            def forward(self, nodes, curr_node_idx):
                return 2.0 * nodes[nodes[curr_node_idx].inputs()[0]].output()

            def backward(self, nodes, curr_node_idx):
                i = nodes[curr_node_idx].inputs()[0]
                nodes[i].add_grad(rule(nodes[curr_node_idx].grad(), nodes[i].output()))

        return as_operation(Twice())
    if style == "primitive":

        @primitive
        def twice(x):
            return 2.0 * x

        vjp[twice] = lambda g, p, x: (rule(g, x),)
        return twice
    if style == "decorated":

        class Twice:
            @backward("test_user_errors.Twice")
            def forward(self, x):
                return 2.0 * x.data

            def grad_compute(self, name, grad, out, x):
                return (rule(grad, x),)

        return Twice().forward
    assert style == "op"

    class Twice(Op):
        def transform(self, transformer, x):
            return transformer.multiply(2.0, x)

        def generate_adjoints(self, adjoints, delta, x):
            x.generate_add_delta(adjoints, Rule(delta, x))

    class Rule(Op):
        def transform(self, transformer, t, x):
            return rule(t, x)

    return as_operation(Twice)


STYLES = ["behavior", "primitive", "decorated", "op"]


def raise_key_error(t, x):
    raise KeyError("inner")


def interrupt(t, x):
    raise KeyboardInterrupt


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda t, x: np.ones((7, 2)), r"\(7, 2\)|float64\[7,2\]"),
        (lambda t, x: np.array(["a", "b", "c"]), r"dtype|<U1"),
        (raise_key_error, r"raised KeyError: 'inner'"),
    ],
    ids=["shape", "dtype", "exception"],
)
def test_wrong_rules_raise_rule_errors_and_change_nothing(style, rule, message):
    op = broken(style, rule)
    x = wg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (op(x) * x).sum()
    with pytest.raises(RuleError, match=message) as caught:
        y.backward()
    assert "Twice" in str(caught.value) or "twice" in str(caught.value)
    assert x.grad is None
    (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 4.0, 6.0])


@pytest.mark.parametrize("style", STYLES)
def test_interrupts_are_propagated_and_change_nothing(style):
    op = broken(style, interrupt)
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    y = op(x).sum()
    with pytest.raises(KeyboardInterrupt):
        y.backward()
    assert x.grad is None
    assert wg.is_recording()
    (3.0 * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3.0, 3.0])


@pytest.mark.parametrize("style", STYLES)
def test_rule_with_a_captured_tensor_is_rejected(style):
    w = wg.tensor(3.0, requires_grad=True)
    op = broken(style, lambda t, x: t * w)
    with pytest.raises(ConversionError, match="Pass the tensor as an operand"):
        wg.grad(op)(1.0)


def test_messages_contain_the_line_of_the_user():
    op = broken("primitive", raise_key_error)
    with pytest.raises(RuleError, match=HERE):
        wg.grad(op)(1.0)


# ---- errors of the forward function -------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [None, "text", [1.0], np.array([object()])], ids=["None", "text", "list", "object"]
)
def test_results_of_invalid_types(value):
    @primitive
    def strange(x):
        return value

    with pytest.raises(DtypeError, match="strange returned a value of"):
        strange(wg.tensor(1.0))
    assert strange(1.0) is value  # plain values are not checked


def test_function_with_a_captured_tensor_is_rejected():
    w = wg.tensor(3.0, requires_grad=True)

    @primitive
    def scaled(x):
        return w * x

    with pytest.raises(ConversionError, match="not among its operands"):
        scaled(wg.tensor(1.0))


def test_exceptions_of_the_function_are_propagated():
    @primitive
    def careful(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        careful(wg.tensor(1.0))


def test_rounding_function_has_no_derivative_unless_discrete():
    @primitive
    def rounded(x):
        return np.rint(x).astype(int)

    vjp[rounded] = lambda g, p, x: (g,)
    x = wg.tensor(1.3, requires_grad=True)
    with pytest.raises(NotDifferentiableError, match="integers have no derivative"):
        wg.grad(lambda x: 2.0 * rounded(x))(x)

    @primitive(discrete=True)
    def steps(x):
        return np.rint(x)

    assert float(wg.grad(lambda x: x * steps(x))(1.3)) == 1.0


# ---- no rule ------------------------------------------------------------------------------------


def test_operation_without_a_rule_can_only_be_evaluated():
    class NoBackward(Behavior):
        def forward(self, nodes, curr_node_idx):
            return nodes[nodes[curr_node_idx].inputs()[0]].output()

    class NoAdjoints(Op):
        def transform(self, transformer, x):
            return x

    class NoTable:
        @backward("test_user_errors.nobody registered this")
        def forward(self, x):
            return x.data

    @primitive
    def no_vjp(x):
        return x

    cases = {
        "NoBackward": as_operation(NoBackward),
        "NoAdjoints": as_operation(NoAdjoints),
        "NoTable.forward": NoTable().forward,
        "no_vjp": no_vjp,
    }
    for name, op in cases.items():
        assert float(op(wg.tensor(2.0)).item()) == 2.0
        with pytest.raises(NotDifferentiableError, match=re.escape(name)):
            wg.grad(op)(2.0)


# ---- behaviors ---------------------------------------------------------------------------------


class Twice(Behavior):
    def forward(self, nodes, curr_node_idx):
        return 2 * nodes[nodes[curr_node_idx].inputs()[0]].output()

    def backward(self, nodes, curr_node_idx):
        nodes[nodes[curr_node_idx].inputs()[0]].add_grad(2 * nodes[curr_node_idx].grad())


def graph_of(behavior, value=1.0):
    graph = BehaviorGraph()
    x = graph.leaf(value)
    graph.function(behavior, graph.function(Twice(), x))
    return graph, x


def test_backward_before_forward():
    graph, x = graph_of(Twice())
    with pytest.raises(GraphError, match=r"backward\(\) was called before forward\(\)"):
        graph.backward()
    graph.forward()
    graph.mut_node_output(x, 2.0)
    with pytest.raises(GraphError, match="Call forward"):
        graph.backward()
    graph.forward()
    graph.backward()
    assert graph.node(x).grad() == 4.0


def test_failing_behavior_leaves_values_and_gradients_unchanged():
    class Moody(Twice):
        mood = "good"

        def forward(self, nodes, curr_node_idx):
            if self.mood == "no forward":
                raise ValueError("bad day")
            return super().forward(nodes, curr_node_idx)

        def backward(self, nodes, curr_node_idx):
            if self.mood == "no backward":
                raise ValueError("bad night")
            if self.mood == "interrupt":
                raise KeyboardInterrupt
            super().backward(nodes, curr_node_idx)

    moody = Moody()
    graph, x = graph_of(moody)
    graph.forward()
    graph.backward()
    moody.mood = "no backward"
    with pytest.raises(RuleError, match="raised ValueError: bad night"):
        graph.backward()
    assert graph.node(x).grad() == 4.0
    moody.mood = "interrupt"
    with pytest.raises(KeyboardInterrupt):
        graph.backward()
    assert [n.grad() for n in graph.nodes] == [4.0, 2.0, 1.0]
    moody.mood = "no forward"
    graph.mut_node_output(x, 5.0)
    with pytest.raises(ValueError, match="bad day"):
        graph.forward()
    assert [n.output() for n in graph.nodes] == [5.0, 2.0, 4.0]
    moody.mood = "good"
    assert graph.forward() == 20.0


def behavior_with_backward(back):
    class Identity(Behavior):
        def forward(self, nodes, curr_node_idx):
            return nodes[nodes[curr_node_idx].inputs()[0]].output()

        def backward(self, nodes, curr_node_idx):
            back(nodes, curr_node_idx)

    return Identity()


@pytest.mark.parametrize(
    ("back", "error", "message"),
    [
        (lambda nodes, i: None, RuleError, "wrote nothing for operand 0"),
        (
            lambda nodes, i: nodes[0].add_grad(1.0),
            RuleError,
            "not one of its inputs",
        ),
        (
            lambda nodes, i: nodes[1].grad(),
            GraphError,
            "is not complete during",
        ),
        (lambda nodes, i: nodes[1].add_grad("ten"), RuleError, "gave str for a value that is"),
        (lambda nodes, i: nodes[9], RuleError, "raised IndexError"),
    ],
    ids=["forgotten", "foreign", "too early", "text", "index"],
)
def test_errors_in_backward(back, error, message):
    graph, x = graph_of(behavior_with_backward(back))
    graph.forward()
    with pytest.raises(error, match=message):
        graph.backward()
    assert graph.node(x).grad() is None


def test_contribution_of_wrong_shape():
    back = behavior_with_backward(lambda nodes, i: nodes[1].add_grad(np.ones((4, 4))))
    graph, _ = graph_of(back, np.ones(3))
    graph.forward()
    with pytest.raises(RuleError, match=r"float64\[4,4\] for a value that is float64\[3\]"):
        graph.backward(seed=np.ones(3))


def test_contributions_that_cannot_be_added():
    class Money:
        def __mul__(self, other):
            return Money()

    graph = BehaviorGraph()
    x = graph.leaf(Money())
    graph.function("mul", x, x)
    graph.forward()
    with pytest.raises(NotScalarError, match="pass a seed"):
        graph.backward()
    with pytest.raises(RuleError, match=r"Money \+ Money raised TypeError"):
        graph.backward(seed=Money())


def test_none_is_no_contribution():
    graph, x = graph_of(behavior_with_backward(lambda nodes, i: nodes[1].add_grad(None)))
    graph.forward()
    graph.backward()
    assert graph.node(x).grad() is None


def test_graph_building_errors():
    graph = BehaviorGraph()
    with pytest.raises(GraphError, match="no running node yet"):
        graph.unary(1.0, "add")
    x = graph.leaf(1.0)
    y = graph.function("neg", x)
    with pytest.raises(GraphError, match="Node 9 does not exist"):
        graph.function("neg", Index(9))
    with pytest.raises(GraphError, match="Only leaves have a value"):
        graph.mut_node_output(y, 2.0)
    with pytest.raises(GraphError, match="is not a behavior"):
        graph.function(np.sin, x)
    with pytest.raises(GraphError, match="is a leaf and has no behavior"):
        graph.mut_node_operation(x, "neg")
    with pytest.raises(CycleError, match="may only use earlier nodes"):
        graph.mut_node_inputs(y, [y])
    with pytest.raises(GraphError, match="outside a backward pass"):
        graph.node(x).add_grad(1.0)
    with pytest.raises(RegistryError, match="No behavior named 'nope'"):
        behavior_named("nope")
    with pytest.raises(RegistryError, match="already registered"):
        register_behavior("add", Twice())


# ---- operators ----------------------------------------------------------------------------------


def operator_with_gradient(get_parent_grad):
    return type(
        "Odd",
        (UnaryOperator,),
        {"compute": lambda self, x: x, "get_parent_grad": get_parent_grad},
    )


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda self, g, i: self.graph.constant(np.ones((5, 5))), r"returned shape \(5, 5\)"),
        (lambda self, g, i: 3.0, "returned a float, not a node"),
        (lambda self, g, i: 1 / 0, "raised ZeroDivisionError"),
    ],
    ids=["shape", "no node", "exception"],
)
def test_a_wrong_get_parent_grad(rule, message):
    cls = operator_with_gradient(rule)
    graph = OperatorGraph()
    x = graph.input((3,))
    y = graph.sum(graph.add(cls(graph, x)))
    with pytest.raises(RuleError, match=message):
        graph.gradient(y, [x])
    with pytest.raises(RuleError, match=message):
        wg.grad(lambda x: np.sum(as_operation(cls)(x)))(np.ones(3))


def test_nodes_of_two_graphs_cannot_be_combined():
    one, other = OperatorGraph(), OperatorGraph()
    x, y = one.input(), other.input()
    with pytest.raises(MixedGraphError, match="belongs to another graph"):
        x + y
    with pytest.raises(MixedGraphError, match="belongs to another graph"):
        one.gradient(x * x, [y])
    with pytest.raises(MixedGraphError):
        one.function([y], x)


def test_cycle_of_operators():
    graph = OperatorGraph()
    x = graph.input()
    y = x * x
    z = y + x
    y.operator.parents[0] = z
    for act in (graph.verify, lambda: graph.gradient(z, [x]), lambda: graph.function([x], z)(1.0)):
        with pytest.raises(CycleError, match="has a cycle"):
            act()


def test_operator_graph_errors():
    graph = OperatorGraph()
    x, k = graph.input((3,), name="x"), graph.input((), "int64")
    with pytest.raises(ShapeError, match="do not broadcast"):
        x + graph.input((2,))
    with pytest.raises(ShapeError, match="both must be matrices"):
        x @ x
    with pytest.raises(NotScalarError, match="must be a real scalar"):
        graph.gradient(x, [x])
    with pytest.raises(NotDifferentiableError, match="it is an integer, a boolean"):
        graph.gradient(graph.sum(x), [k])
    with pytest.raises(NotDifferentiableError, match="a constant, or depends on shapes only"):
        graph.gradient(graph.sum(x * graph.constant(2.0)), [graph.constant(2.0)])
    with pytest.raises(DtypeError, match="cannot be cast safely"):
        graph.function([k], k)(2.7)
    with pytest.raises(OperandError, match="has no value"):
        graph.function([k], graph.sum(x))(1)
    with pytest.raises(ShapeError, match=r"Pass an array of shape \(3,\)"):
        graph.function([x], x)(np.ones(4))
    with pytest.raises(GraphError, match="1 values for 2 inputs"):
        graph.function([x, k], x)(1.0)
    with pytest.raises(OperandError, match="cannot be a constant"):
        x + "text"
    with pytest.raises(AttributeError):
        graph.no_such_maker  # noqa: B018
    y = graph.sum(x)
    other = graph.input()
    with pytest.raises(UnconnectedError, match="does not depend on"):
        graph.gradient(y, [other], unconnected="raise")
    with pytest.warns(UnconnectedWarning):
        (zero,) = graph.gradient(y, [other], unconnected="warn")
    assert float(graph.function([], zero)()) == 0.0


# ---- primitives ---------------------------------------------------------------------------------


def test_registration_errors():
    @primitive
    def area(a, b):
        return a * b

    with pytest.raises(RuleError, match=r"takes \(g, p, a\), but it will be called with \(g, p, a"):
        vjp[area] = lambda g, p, a: (g,)
    with pytest.raises(RuleError, match="is a int, not a function"):
        vjp[area] = 3
    with pytest.raises(RegistryError, match="is not a primitive"):
        vjp[np.sin] = lambda g, p, x: (g,)
    with pytest.raises(RegistryError, match="3 types for"):
        vjp(area, float, float, float)(lambda g, p, a, b: (g, g))
    with pytest.raises(RegistryError, match="has no vjp rule"):
        vjp.lookup(area)
    with pytest.raises(RegistryError, match="There is no vjp rule"):
        del vjp[area]
    vjp[area] = lambda g, p, a, b: (g * b,)
    with pytest.raises(RuleError, match="returned 1 cotangents for 2 operands"):
        wg.grad(area)(2.0, 3.0)


def test_missing_and_ambiguous_overloads():
    @primitive
    def power(x, y):
        return x**y

    vjp[power, float, np.ndarray] = lambda g, p, x, y: (g, g)
    with pytest.raises(NotDifferentiableError, match=r"no vjp rule for operands of types \(float"):
        wg.grad(power)(2.0, 3.0)
    vjp[power, object, float] = lambda g, p, x, y: (g, None)
    vjp[power, float, object] = lambda g, p, x, y: (g, None)
    with pytest.raises(RegistryError, match=r"match .* equally well"):
        wg.grad(power)(2.0, 3.0)


# ---- decorated methods --------------------------------------------------------------------------


def test_gradient_table_errors():
    with pytest.raises(RegistryError, match="No gradient named 'nowhere'"):
        gradients["nowhere"]
    with pytest.raises(RegistryError, match="already registered"):
        gradients("add")(test_gradient_table_errors)


# ---- ops ----------------------------------------------------------------------------------------


def test_op_errors():
    x, y = placeholder("x"), placeholder("y")

    class Strange(Op):
        def transform(self, transformer, x):
            return transformer.multipyl(x, x)

    class Silent(Op):
        def transform(self, transformer, x, y):
            return x * y

        def generate_adjoints(self, adjoints, delta, x, y):
            x.generate_add_delta(adjoints, delta * y)

    class Foreign(Silent):
        def generate_adjoints(self, adjoints, delta, a, b):
            placeholder("other").generate_add_delta(adjoints, delta)

    class FewArguments(Silent):
        def generate_adjoints(self, adjoints, delta, a):
            a.generate_add_delta(adjoints, delta)

    numpy = make_transformer("numpy")
    with pytest.raises(
        RegistryError,
        match=r"'numpy' has no implementation of 'multipyl', which "
        r"<Strange> needs. Did you mean multiply",
    ):
        numpy.computation(Strange(x), x)(1.0)
    with pytest.raises(RuleError, match="wrote nothing for operand 1"):
        deriv(Silent(x, y), y)
    assert deriv(Silent(x, y), x) is not None  # y takes no part
    with pytest.raises(RuleError, match="is not one of its arguments"):
        deriv(Foreign(x, y), x)
    with pytest.raises(RuleError, match="raised TypeError"):
        deriv(FewArguments(x, y), x)
    with pytest.raises(UnconnectedError, match="does not depend on <Placeholder y>"):
        deriv(x * x, y)
    with pytest.warns(UnconnectedWarning):
        deriv(x * x, y, unconnected="warn")
    zero = deriv(x * x, y, unconnected="zero")
    assert numpy.computation(zero, x, y)(2.0, np.ones(2)).tolist() == [0.0, 0.0]
    with pytest.raises(OperandError, match="<Placeholder y> has no value"):
        numpy.computation(x * y, x)(2.0)
    with pytest.raises(OperandError, match="1 values for 2 placeholders"):
        numpy.computation(x * y, x, y)(2.0)
    with pytest.raises(NotScalarError, match="only one number has a gradient"):
        numpy.computation(deriv(x * y, x), x, y)(np.ones(2), 1.0)
    with pytest.raises(OperandError, match="A str cannot be an argument"):
        x * "text"
    with pytest.raises(GraphError, match="deriv was given a float"):
        deriv(x, 2.0)
    with pytest.raises(RegistryError, match=r"no transformer named 'abacus'; there are .*numpy"):
        make_transformer("abacus")


def test_transformers_with_the_same_name():
    class Mine(Transformer):
        transformer_name = "test_user_errors"

    assert isinstance(make_transformer("test_user_errors"), Mine)
    with pytest.raises(RegistryError, match="already registered"):
        type("Other", (Transformer,), {"transformer_name": "test_user_errors"})


def test_cycle_of_ops():
    x = placeholder()
    y = x * x
    z = y * x
    y.args = (z, x)
    with pytest.raises(CycleError, match="has a cycle"):
        deriv(z, x)


@pytest.mark.parametrize("way", ["eager", "jit", "jvp", "vmap", "interpreted", "loop"])
def test_an_exception_keeps_the_cause_that_the_user_gave_it(way):
    @primitive(callback=True)
    def positive(x):
        try:
            return {True: x}[bool(np.all(np.asarray(x) > 0.0))]
        except KeyError as error:
            raise ValueError("not positive") from error

    run = {
        "eager": positive,
        "jit": wg.jit(positive),
        "jvp": lambda x: wg.jvp(positive, (x,), (1.0,)),
        "vmap": lambda x: wg.vmap(positive)(np.array([1.0, x])),
        "interpreted": wg.jit(positive, backend="interpret"),
        "loop": wg.jit(lambda x: wg.fori_loop(0, 2, lambda i, c: positive(c), x)),
    }[way]
    with pytest.raises(ValueError, match="not positive") as caught:
        run(-1.0)
    assert type(caught.value.__cause__) is KeyError
