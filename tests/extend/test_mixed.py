"""Operations of all five styles, and a native one, in one expression."""

import math
from fractions import Fraction

import numpy as np
import pytest

import wengert as wg
from wengert.extend import (
    Behavior,
    BehaviorGraph,
    FromFunction,
    Op,
    OperatorGraph,
    UnaryOperator,
    as_operation,
    backward,
    deriv,
    gradients,
    make_transformer,
    opaque,
    placeholder,
    primitive,
    vjp,
)
from wengert.extend.op_classes.library import Apply, Cos
from wengert.testing import check_grads, check_op


@pytest.fixture(scope="module")
def styles():
    """sin, exp, x**3, tanh, x*y and sqrt(1 + x**2), each written in another style."""

    class Sine(Behavior):
        """The sine."""

        def forward(self, nodes, curr_node_idx):
            (x,) = nodes[curr_node_idx].inputs()
            return np.sin(nodes[x].output())

        def backward(self, nodes, curr_node_idx):
            (x,) = nodes[curr_node_idx].inputs()
            nodes[x].add_grad(nodes[curr_node_idx].grad() * np.cos(nodes[x].output()))

    class Exponential(UnaryOperator):
        """The exponential function."""

        def compute(self, x):
            return np.exp(x)

        def get_parent_grad(self, my_grad, index):
            return my_grad * self.graph.node_of(self)

    @primitive
    def cube(x):
        """The third power."""
        return x**3

    @vjp(cube)
    def _(g, p, x):
        return (g * (3.0 * x**2),)

    class HyperbolicTangent:
        @backward("HyperbolicTangent")
        def forward(self, x):
            return np.tanh(x.data)

    @gradients("HyperbolicTangent")
    def _(grad, out, x):
        return (grad * (1.0 - out * out),)

    class Times(Op):
        """The product."""

        def __init__(self, x, y):
            super().__init__(x, y)

        def transform(self, transformer, x, y):
            return transformer.multiply(x, y)

        def generate_adjoints(self, adjoints, delta, x, y):
            x.generate_add_delta(adjoints, y * delta)
            y.generate_add_delta(adjoints, x * delta)

    @opaque(replace=True)
    def hypot_one(x):
        """The length of (1, x)."""
        return np.sqrt(1.0 + x * x)

    @hypot_one.define_vjp
    def _(t, out, x):
        return (t * (x / out),)

    return {
        "sin": as_operation(Sine),
        "exp": as_operation(Exponential),
        "cube": cube,
        "tanh": HyperbolicTangent().forward,
        "times": as_operation(Times),
        "hypot": hypot_one,
    }


@pytest.fixture
def mixed(styles):
    s = styles

    def f(x):
        y = s["times"](s["sin"](x), s["exp"](0.3 * x))
        z = s["cube"](y) + s["tanh"](y) * np.cos(x) - s["hypot"](s["times"](x, x))
        return s["times"](z, y)

    def plain(x):
        y = np.sin(x) * np.exp(0.3 * x)
        z = y**3 + np.tanh(y) * np.cos(x) - np.sqrt(1.0 + (x * x) ** 2)
        return z * y

    return f, plain


def test_first_second_and_third_derivative_of_all_styles_in_one_expression(mixed):
    f, plain = mixed
    ours, exact = f, plain
    for _ in range(3):
        ours, exact = wg.grad(ours), wg.grad(exact)
        for x in (-1.3, 0.4, 2.0):
            assert float(ours(x)) == pytest.approx(float(exact(x)), rel=1e-11)


def test_second_derivative_agrees_with_finite_differences(mixed):
    f, plain = mixed
    x, h = 0.7, 1e-3
    d2 = (-plain(x + 2 * h) + 16 * plain(x + h) - 30 * plain(x) + 16 * plain(x - h)) / 12 / h**2
    d2 -= plain(x - 2 * h) / 12 / h**2
    assert float(wg.grad(wg.grad(f))(x)) == pytest.approx(d2, rel=1e-8)


def test_both_modes_and_arrays(mixed, rng):
    f, plain = mixed
    x, v = rng.uniform(-1.5, 1.5, (2, 4)), rng.normal(size=(2, 4))
    check_grads(lambda x: np.sum(f(x)), (x,), order=2, modes=("fwd", "rev"))
    np.testing.assert_allclose(wg.jvp(f, (x,), (v,))[1], wg.jvp(plain, (x,), (v,))[1], rtol=1e-12)
    x = x[0]
    ours = wg.hessian(lambda x: np.sum(f(x)) ** 2)(x)
    np.testing.assert_allclose(ours, wg.hessian(lambda x: np.sum(plain(x)) ** 2)(x), rtol=1e-10)


def test_batches(mixed, rng):
    """No style has batching rules, so the items of a batch are computed one by one."""
    f, plain = mixed
    x = rng.uniform(-1.5, 1.5, (3, 4))
    np.testing.assert_allclose(wg.vmap(f)(x), plain(x), rtol=1e-13)
    ours, exact = (wg.grad(lambda x, g=g: np.sum(g(x) ** 2)) for g in (f, plain))
    np.testing.assert_allclose(wg.vmap(ours)(x), exact(x), rtol=1e-12)
    got = wg.grad(lambda x: np.sum(wg.vmap(f)(x) ** 2))(x)
    np.testing.assert_allclose(got, exact(x), rtol=1e-12)
    twice = wg.vmap(wg.hessian(lambda x: np.sum(f(x)) ** 2))(x)
    for row, found in zip(x, twice, strict=True):
        want = wg.hessian(lambda x: np.sum(plain(x)) ** 2)(row)
        np.testing.assert_allclose(found, want, rtol=1e-10, atol=1e-12)


def test_values_on_arrays_and_tensors_are_equal(mixed, rng):
    f, plain = mixed
    x = rng.normal(size=5)
    np.testing.assert_allclose(f(x), plain(x), rtol=1e-14)
    assert not isinstance(f(x), wg.Tensor)
    np.testing.assert_allclose(f(wg.tensor(x)).numpy(), plain(x), rtol=1e-14)


def test_float32_in_float32_gradient_out(mixed):
    f, _ = mixed
    x = np.linspace(0.1, 1.0, 4, dtype=np.float32)
    assert wg.grad(lambda x: np.sum(f(x)))(x).dtype == np.float32


@pytest.mark.parametrize("shape", [(), (0,), (1, 3)])
def test_shapes(mixed, shape):
    f, plain = mixed
    x = np.full(shape, 0.5)
    got = wg.grad(lambda x: np.sum(f(x)))(x)
    np.testing.assert_allclose(got, wg.grad(lambda x: np.sum(plain(x)))(x), rtol=1e-12)
    assert got.shape == shape


def test_all_styles_pass_check_op(styles):
    oracles = {
        "sin": np.vectorize(math.sin, otypes=[float]),
        "exp": np.vectorize(math.exp, otypes=[float]),
        "cube": lambda x: x * x * x,
        "times": lambda x, y: y * x,
        "hypot": lambda x: np.hypot(1.0, x),
    }

    def examples(count):
        def make(rng):
            for shape in [(), (3,), (2, 3)]:
                yield tuple(rng.uniform(0.2, 1.5, shape) for _ in range(count)), {}

        return make

    for name, oracle in oracles.items():
        op = styles[name]
        op.oracle = oracle
        op.examples(examples(2 if name == "times" else 1))
        report = check_op(op)
        assert report.name == op.name


# ---- one style's graph with operations of the others --------------------------------------------


def test_behavior_graph_with_operations_of_other_styles(styles):
    graph = BehaviorGraph()
    x = graph.leaf(0.6)
    a = graph.function(FromFunction(styles["times"]), x, x)
    b = graph.function(FromFunction(styles["cube"]), a)
    graph.function(as_operation(styles["sin"]).behavior, graph.function("mul", b, x))
    graph.forward()
    graph.backward()
    assert float(graph.node(x).grad()) == pytest.approx(7 * 0.6**6 * math.cos(0.6**7))


def test_operator_graph_with_operations_of_other_styles(styles):
    graph = OperatorGraph()
    x = graph.input()
    y = graph.call(styles["cube"], graph.call(styles["times"], x, graph.sin(x)))
    (first,) = graph.gradient(y, [x])
    (second,) = graph.gradient(first, [x])
    got = graph.function([x], [y, first, second])(1.2)
    f = lambda x: (x * np.sin(x)) ** 3  # noqa: E731
    exact = [f(1.2), wg.grad(f)(1.2), wg.grad(wg.grad(f))(1.2)]
    np.testing.assert_allclose([float(v) for v in got], [float(v) for v in exact], rtol=1e-12)


def test_op_graph_with_operations_of_other_styles(styles):
    x = placeholder("x")
    y = Apply(styles["exp"], Apply(styles["sin"], x) * Cos(x))
    second = deriv(deriv(y, x), x)
    got = make_transformer("numpy").computation(second, x)(0.9)
    f = lambda x: np.exp(np.sin(x) * np.cos(x))  # noqa: E731
    assert float(got) == pytest.approx(float(wg.grad(wg.grad(f))(0.9)), rel=1e-12)


def test_graphs_on_tensors_use_their_own_rules(styles):
    """A graph of each style as a function inside wg.grad; wrong rules would show."""
    graph = OperatorGraph()
    n = graph.input()
    of_operators = graph.function([n], n * n * graph.tanh(n))
    p = placeholder()
    of_ops = make_transformer("numpy").computation(p * p * Cos(p), p)

    def f(x):
        return of_operators(x) * of_ops(x) + styles["sin"](x)

    def plain(x):
        return x * x * np.tanh(x) * (x * x * np.cos(x)) + np.sin(x)

    for x in (0.3, 1.1):
        assert float(wg.grad(f)(x)) == pytest.approx(float(wg.grad(plain)(x)), rel=1e-12)
        got, exact = wg.grad(wg.grad(f))(x), wg.grad(wg.grad(plain))(x)
        assert float(got) == pytest.approx(float(exact), rel=1e-12)
        got, exact = wg.jvp(f, (x,), (2.0,))[1], wg.jvp(plain, (x,), (2.0,))[1]
        assert float(got) == pytest.approx(float(exact), rel=1e-12)


def test_behavior_graph_on_tensors_has_second_derivatives():
    a = wg.tensor(1.3, requires_grad=True)
    graph = BehaviorGraph()
    x = graph.leaf(a)
    graph.function("mul", graph.function("mul", x, x), x)
    graph.forward()
    graph.backward()
    slope = graph.node(x).grad()
    assert float(slope.item()) == pytest.approx(3 * 1.3**2)
    slope.backward()
    assert a.grad.item() == pytest.approx(6 * 1.3)


def test_fractions_remain_exact():
    graph = BehaviorGraph()
    x = graph.leaf(Fraction(1, 3))
    square = graph.function("mul", x, x)
    graph.function("div", square, graph.function("add", x, Fraction(1)))
    assert graph.forward() == Fraction(1, 12)
    graph.backward()
    assert graph.node(x).grad() == Fraction(7, 16)  # (x**2 + 2 x) / (x + 1)**2
    assert type(graph.node(x).grad()) is Fraction


def test_as_operation_caches_the_operation(styles):
    class Double(Op):
        def transform(self, transformer, x):
            return transformer.add(x, x)

        def generate_adjoints(self, adjoints, delta, x):
            x.generate_add_delta(adjoints, delta + delta)

    assert as_operation(Double) is as_operation(Double)
    assert as_operation(styles["cube"]) is styles["cube"]
    assert as_operation(styles["tanh"]) is as_operation(styles["tanh"])
    named = as_operation(Double, name="tests.double", oracle=lambda x: x + x)
    assert named.oracle(2.0) == 4.0
    with pytest.raises(wg.errors.OperandError, match="not an operation in any of the five styles"):
        as_operation(3.0)


def wrong(style, factor):
    """2 x in one style, with a derivative that is `factor` times too large."""
    rule = lambda t: t * (2.0 * factor)  # noqa: E731
    if style == "behavior":

        class Double(Behavior):
            """2 x."""

            def forward(self, nodes, curr_node_idx):
                return 2.0 * nodes[nodes[curr_node_idx].inputs()[0]].output()

            def backward(self, nodes, curr_node_idx):
                nodes[nodes[curr_node_idx].inputs()[0]].add_grad(rule(nodes[curr_node_idx].grad()))

        return as_operation(Double), {}
    if style == "operator":

        class Double(UnaryOperator):
            """2 x."""

            def compute(self, x):
                return 2.0 * x

            def get_parent_grad(self, my_grad, index):
                return rule(my_grad)

        return as_operation(Double), {}
    if style == "primitive":

        @primitive
        def double(x):
            """2 x."""
            return 2.0 * x

        vjp[double] = lambda g, p, x: (rule(g),)
        return double, {}
    if style == "decorated":

        class Double:
            @backward("test_mixed.Double")
            def forward(self, x):
                """2 x."""
                return 2.0 * x.data

            def grad_compute(self, name, grad, out, x):
                return (rule(grad),)

        layer = Double()
        return as_operation(layer.forward), {"owner": layer, "cls": None}

    class Double(Op):
        """2 x."""

        def transform(self, transformer, x):
            return transformer.multiply(2.0, x)

        def generate_adjoints(self, adjoints, delta, x):
            x.generate_add_delta(adjoints, rule(delta))

    return as_operation(Double), {}


@pytest.mark.sample(2)
@pytest.mark.parametrize("style", ["behavior", "operator", "primitive", "decorated", "op"])
def test_check_op_detects_wrong_rules_of_all_styles(style):
    for factor in (1.0, 1.0 + 1e-4):
        op, params = wrong(style, factor)
        op.oracle = lambda x, **_: x + x
        op.examples(lambda rng, p=params: iter([((rng.normal(size=(2, 3)),), p)]))
        if factor == 1.0:
            check_op(op)
            continue
        with pytest.raises(wg.errors.CheckError, match="differences of the function give"):
            check_op(op)
