"""Predefined operators in graphs: NumPy nodes, so that graphs can be saved and batched."""

import io

import numpy as np
import pytest

import wengert as wg
from wengert import extend
from wengert.extend.op_classes import library as op_library
from wengert.extend.operator_classes import library

rng = np.random.default_rng(0)
X, Y, SQUARE = rng.uniform(0.5, 1.5, (2, 3)), rng.uniform(0.5, 1.5, 3), rng.normal(size=(2, 2))
OPERANDS = {"Where": (X > 1.0, X, Y), "MatMul": (SQUARE, X)}
PAIRS = """
    Add Subtract Multiply Divide Maximum Power Sub Mul Div Greater Less Equal LessEqual GreaterEqual
    NotEqual LogicalAnd LogicalOr
""".split()

LIBRARY = [
    cls
    for module in (op_library, library)
    for cls in vars(module).values()
    if isinstance(cls, type) and cls.__module__ == module.__name__ and "elementary" in vars(cls)
]


def _operands(cls):
    return OPERANDS.get(cls.__name__, (X, Y) if cls.__name__ in PAIRS else (X,))


@pytest.mark.parametrize("cls", LIBRARY, ids=lambda c: f"{c.__module__[15:]}.{c.__name__}")
def test_predefined_operators_are_traced_as_numpy_functions(cls):
    op, operands = extend.as_operation(cls), _operands(cls)
    graph = wg.trace(op)(*[wg.spec(x.shape, x.dtype) for x in operands])
    assert not [n for n in graph if n.op.name.startswith("wengert.extend")]
    np.testing.assert_array_equal(graph(*operands), op(*operands))
    wg.save(graph, io.BytesIO())
    if graph.outputs[0].spec.dtype.kind != "f":
        return
    by = tuple(i for i, x in enumerate(operands) if x.dtype.kind == "f")

    def f(*xs):
        return np.sum(np.sin(op(*xs)))

    slopes = wg.trace(f)(*[wg.spec(x.shape, x.dtype) for x in operands]).grad(argnums=by)
    for ours, eager in zip(slopes(*operands), wg.grad(f, by)(*operands), strict=True):
        np.testing.assert_allclose(ours, eager, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("cls", [op_library.Tanh, library.Tanh])
def test_derivatives_of_tanh_are_accurate_where_it_saturates(cls):
    slope = wg.grad(extend.as_operation(cls))
    np.testing.assert_allclose(slope(-30.0), 3.502604305078608e-26, rtol=1e-14)  # by mpmath
    np.testing.assert_allclose(wg.grad(slope)(-30.0), 7.005208610157217e-26, rtol=1e-14)
    assert wg.grad(wg.grad(slope))(0.0) == -2.0


@pytest.mark.parametrize("transformer", extend.transformer_choices())
def test_derivative_of_tanh_on_all_transformers(transformer):
    x = extend.placeholder()
    slope = extend.deriv(op_library.Tanh(x), x)
    found = extend.make_transformer(transformer).computation(slope, x)(-30.0)
    np.testing.assert_allclose(found, 3.502604305078608e-26, rtol=1e-14)


def _operator():
    class Squared(extend.UnaryOperator):
        """The square."""

        def compute(self, x):
            return x * x

        def get_parent_grad(self, my_grad, index):
            return my_grad * (2.0 * self.parent)

    return Squared


def _op():
    class Squared(extend.Op):
        """The square."""

        def __init__(self, x):
            super().__init__(x)

        def transform(self, transformer, x):
            return transformer.multiply(x, x)

        def generate_adjoints(self, adjoints, delta, x):
            x.generate_add_delta(adjoints, 2.0 * x * delta)

    return Squared


@pytest.mark.parametrize("make", [_operator, _op])
def test_rules_of_user_defined_operators_are_traced(make, request):
    """So graphs of derivatives can be saved, and Hessians work for symbolic sizes."""
    name = f"{request.node.name}.squared"
    square = extend.as_operation(make(), name=name)
    graph = wg.trace(lambda x: np.sum(square(x) * x))(wg.spec("n"))
    slope = graph.grad()
    assert {n.op.name for n in slope if "." in n.op.name} == {name}
    file = io.BytesIO()
    wg.save(slope, file)
    file.seek(0)
    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(wg.load(file)(x), 3 * x**2)
    np.testing.assert_allclose(graph.hessian()(x), np.diag(6 * x))


def test_subclasses_of_predefined_operators_use_their_own_rules():
    class Straight(op_library.Exp):
        """exp with a derivative of 1."""

        def generate_adjoints(self, adjoints, delta, x):
            x.generate_add_delta(adjoints, delta)

    class Cut(library.Exp):
        """exp with a derivative of 2."""

        def get_parent_grad(self, my_grad, index):
            return my_grad * 2.0

    for cls, slope in ((Straight, 1.0), (Cut, 2.0)):
        op = extend.as_operation(cls)
        assert float(wg.trace(lambda x, op=op: op(x))(1.0).grad()(3.0)) == slope


def test_predefined_logical_operators_are_traced():
    op = extend.as_operation(library.Greater)
    graph = wg.trace(lambda x, y: np.where(op(x, y), x, y))(wg.spec("n"), wg.spec("n"))
    assert graph([1.0, 2.0], [2.0, 1.0]).tolist() == [2.0, 2.0]
    assert graph.select(op="greater")


def test_names_of_predefined_operators():
    operators = """Abs Add Broadcast Call Cast ConstantValue Cos Div Equal Exp Eye Greater
        GreaterEqual Input IsInf IsNaN Less LessEqual Log Log1p LogicalAnd LogicalNot LogicalOr
        MakeConstant MatMul Mul Neg NotEqual Power Range Reshape Select Shared Sin Size Sub Sum
        SumTo Tanh Transpose""".split()
    ops = """Add Apply Cos Divide Equal Exp Expand Greater Less Log MatMul Maximum Multiply
        Negative Power Sin Subtract Sum Tanh Transpose Where""".split()
    assert all(isinstance(getattr(extend.operator_classes, name), type) for name in operators)
    assert all(isinstance(getattr(op_library, name), type) for name in ops)
    behaviors = "add sub mul div neg exp log tanh sigmoid mse matmul".split()
    assert all(extend.behavior_named(name) for name in behaviors)
    assert {getattr(extend.operator_classes, n).__name__ for n in operators} == set(operators)


class Word(str):
    """Strings, whose product is their concatenation."""

    def __mul__(self, other):
        return Word(self + other)


def test_mul_preserves_the_order_of_noncommuting_values():
    value, contributions = extend.behaviors.library.LIBRARY["mul"]
    x, y, t = map(Word, "xyt")
    assert value(x, y) == "xy" and contributions(t, "xy", x, y) == ("ty", "xt")
