"""Style 004: ops, adjoints, transformers."""

from fractions import Fraction

import numpy as np
import pytest

import wengert as wg
from wengert.extend import (
    Op,
    Transformer,
    as_operation,
    constant,
    deriv,
    make_transformer,
    placeholder,
    transformer_choices,
    variable,
)
from wengert.extend.op_classes.library import (
    Apply,
    Cos,
    Equal,
    Exp,
    Log,
    MatMul,
    Maximum,
    Sin,
    Sum,
    Tanh,
    Transpose,
    Where,
)
from wengert.extend.op_classes.op import ordered_ops

numpy = make_transformer("numpy")


def value(op, feeds=None):
    return numpy.computation(op)(feed_dict=feeds) if feeds else numpy.computation(op)()


class Multiply(Op):
    """x y, which records the arguments that the engine passes."""

    seen = ()

    def __init__(self, x, y):
        super().__init__(x, y)

    def transform(self, transformer, x, y):
        return transformer.multiply(x, y)

    def generate_adjoints(self, adjoints, delta, x, y):
        type(self).seen = (*self.seen, delta)
        x.generate_add_delta(adjoints, y * delta)
        assert x in adjoints
        y.generate_add_delta(adjoints, x * delta)


def test_f_is_xy():
    x, y = placeholder("x"), placeholder("y")
    f = Multiply(x, y)
    compute = numpy.computation([f, deriv(f, x), deriv(f, y)], x, y)
    assert [float(v) for v in compute(3.0, 5.0)] == [15.0, 5.0, 3.0]
    assert numpy.computation(deriv(f, x, error=constant(2.0)), x, y)(3.0, 5.0) == 10.0


def test_generate_adjoints_is_called_once_with_the_complete_delta():
    Multiply.seen = ()
    x = placeholder()
    y = Multiply(x, x)
    z = y * 2.0 + y * 3.0 + Multiply(y, y)
    assert float(numpy.computation(deriv(z, x), x)(2.0)) == 5 * 4.0 + 4 * 8.0
    assert len(Multiply.seen) == 2  # y * y, then x * x


def test_transform_can_return_a_method():
    class Add(Op):
        def transform(self, transformer):
            return transformer.add

        def generate_adjoints(self, adjoints, delta, x, y):
            x.generate_add_delta(adjoints, delta)
            y.generate_add_delta(adjoints, delta)

    x = placeholder()
    assert numpy.computation(Add(x, x), x)(2.0) == 4.0
    add = as_operation(Add)
    assert float(wg.grad(lambda x: add(x, x) * x)(3.0)) == 12.0
    assert float(wg.jvp(lambda x: add(x, x), (3.0,), (1.0,))[1]) == 2.0


def every_op(x, y):
    return [
        x + y,
        x - y,
        x * y,
        x / y,
        -x,
        x**y,
        x**2,
        2.0**x,
        Exp(x),
        Log(x),
        Sin(x),
        Cos(x),
        Tanh(x),
        Sum(x) * y,
        MatMul(x, Transpose(x)),
        x @ Transpose(x),
        Maximum(x, y),
        Where(x > y, x, 3.0 * y),
        Where(Equal(x, y), x, y * y),
        Apply(np.sinh, x),
    ]


def test_ops_agree_with_the_engine_to_second_order(rng):
    x, y = placeholder("x"), placeholder("y")
    a, b = rng.uniform(0.3, 2.0, (2, 3)), rng.uniform(0.3, 2.0, 3)
    for op in every_op(x, y):
        total = Sum(op * op)
        dx, dy = deriv(total, [x, y], unconnected="zero")
        bend = deriv(Sum(dx * dx), x, unconnected="zero")
        got = numpy.computation([total, dx, dy, bend], x, y)(a, b)

        def f(a, b, op=op):
            return np.sum(plainly(op, {x: a, y: b}) ** 2)

        def square(a, f=f):
            return np.sum(wg.grad(f)(a, b) ** 2)

        exact = [f(a, b), *wg.grad(f, (0, 1))(a, b), wg.grad(square)(a)]
        for p, q in zip(got, exact, strict=True):
            np.testing.assert_allclose(p, q, rtol=1e-10, atol=1e-12, err_msg=repr(op))


def plainly(root, known):
    """The forward value by NumPy's functions only, never `generate_adjoints`."""
    for op in ordered_ops([root]):
        if op not in known:
            known[op] = numpy.implementation(op, [known[a] for a in op.args])
    return known[root]


def test_shapes_of_computations():
    x, y = placeholder("x"), placeholder("y")
    assert numpy.computation(x + y, x, y)(1.0, 2.0) == 3.0
    assert numpy.computation((x + y, x), x, y)(1.0, 2.0) == (3.0, 1.0)
    assert numpy.computation({"sum": x + y}, x, y)(1.0, 2.0) == {"sum": 3.0}
    assert numpy.computation(x + y)(feed_dict={x: 1.0, y: 2.0}) == 3.0
    inner = x * x
    assert numpy.computation(inner + y, inner, y)(10.0, 1.0) == 11.0


def test_variables_persist_and_can_be_set():
    w = variable(lambda: np.array([1.0, 2.0]), name="w")
    x = placeholder()
    step = numpy.computation([Sum(w * x), deriv(Sum(w * x), w)], x)
    loss, grad = step(np.array([3.0, 4.0]))
    assert loss == 11.0
    w.set_value(w.value - 0.1 * grad)
    assert step(np.array([3.0, 4.0]))[0] == pytest.approx(8.5)
    with pytest.raises(wg.errors.ShapeError, match="set_value of"):
        w.set_value(1.0)


def test_python_transformer_preserves_fractions():
    x, y = placeholder(), placeholder()
    f = x * x * y - x / y
    compute = make_transformer("python").computation([f, deriv(f, x), deriv(deriv(f, x), y)], x, y)
    third, two = Fraction(1, 3), Fraction(2)
    assert compute(third, two) == (Fraction(1, 18), Fraction(5, 6), Fraction(11, 12))


def test_user_defined_transformer_and_missing_methods():
    class Counting(Transformer):
        """Counts operations without running them."""

        transformer_name = "tests.counting"

        def __init__(self):
            self.calls = []

        def multiply(self, x, y):
            self.calls.append("multiply")
            return x * y

    assert {"numpy", "python", "tests.counting"} <= set(transformer_choices())
    x = placeholder("x")
    counting = make_transformer("tests.counting")
    assert counting.computation(x * x * x, x)(2.0) == 8.0
    assert counting.calls == ["multiply"] * 2
    with pytest.raises(wg.errors.RegistryError, match=r"'tests.counting' has no implementation of"):
        counting.computation(Sin(x), x)(2.0)


def test_transformers_do_not_modify_graphs():
    x = placeholder()
    f = x * x + 1.0
    before = [(type(op), op.args) for op in ordered_ops([f])]
    assert numpy.computation(f, x)(2.0) == make_transformer("python").computation(f, x)(2.0) == 5.0
    assert [(type(op), op.args) for op in ordered_ops([f])] == before


def test_deep_graphs():
    x = op = placeholder()
    for _ in range(2000):
        op = op + op * 0.0
    assert numpy.computation(deriv(op, x), x)(1.0) == 1.0


def test_ops_on_tensors_are_nodes_with_their_own_rule():
    class Odd(Op):
        """x, with a derivative of 10, to detect which rule is used."""

        def transform(self, transformer, x):
            return transformer.multiply(x, 1.0)

        def generate_adjoints(self, adjoints, delta, x):
            x.generate_add_delta(adjoints, 10.0 * delta)

    x = placeholder()
    f = numpy.computation(Odd(x) * 2.0, x)
    assert float(wg.grad(f)(1.0)) == 20.0
    assert float(value(constant(2.0) * 3.0)) == 6.0
