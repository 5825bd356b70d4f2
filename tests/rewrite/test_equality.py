"""Equality of nodes and graphs."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.graph_fingerprint import equals
from wengert.errors import ArgumentError

X = wg.spec((3, 3))


def same(f, g, *specs):
    return equals(wg.trace(f)(*specs), wg.trace(g)(*specs))


@pytest.mark.parametrize(
    ("f", "g", "wanted"),
    [
        (lambda x, y: x + y, lambda x, y: y + x, True),
        (lambda x, y: x * y, lambda x, y: y * x, True),
        (lambda x, y: np.maximum(x, y), lambda x, y: np.maximum(y, x), True),
        (lambda x, y: np.equal(x, y), lambda x, y: np.equal(y, x), True),
        (lambda x, y: np.logical_and(x, y), lambda x, y: np.logical_and(y, x), True),
        (lambda x, y: x - y, lambda x, y: y - x, False),
        (lambda x, y: x / y, lambda x, y: y / x, False),
        (lambda x, y: x @ y, lambda x, y: y @ x, False),
        (lambda x, y: np.less(x, y), lambda x, y: np.less(y, x), False),
        (lambda x, y: np.arctan2(x, y), lambda x, y: np.arctan2(y, x), False),
        (lambda x, y: (x + y) * (y + x), lambda x, y: (y + x) * (x + y), True),
        (lambda x, y: np.sum(x, axis=0), lambda x, y: np.sum(x, axis=1), False),
        (lambda x, y: np.sum(x, axis=0), lambda x, y: np.sum(y, axis=0), False),
        (lambda x, y: x * 2.0, lambda x, y: x * 3.0, False),
        (lambda x, y: x * 0.0, lambda x, y: x * -0.0, False),
        (lambda x, y: x * np.nan, lambda x, y: x * np.nan, True),
        (lambda x, y: x * np.ones(3), lambda x, y: x * np.ones(3), True),
        (lambda x, y: x * np.ones(3), lambda x, y: x * np.ones((1, 3)), False),
        (lambda x, y: x.astype("float32"), lambda x, y: x.astype("float16"), False),
        (lambda x, y: x[0], lambda x, y: x[1], False),
        (lambda x, y: x[0:1], lambda x, y: x[0:1], True),
        (lambda x, y: (x, y), lambda x, y: (x, x), False),
        (lambda x, y: (x, y), lambda x, y: x, False),
        (lambda x, y: x + x, lambda x, y: 2 * x, False),
    ],
)
def test_of_graphs(f, g, wanted):
    assert same(f, g, X, X) is wanted
    assert same(g, f, X, X) is wanted


def test_of_graphs_with_other_inputs():
    f = lambda x: np.sin(x)  # noqa: E731
    assert not equals(wg.trace(f)(wg.spec(3)), wg.trace(f)(wg.spec(4)))
    assert not equals(wg.trace(f)(wg.spec(3)), wg.trace(f)(wg.spec(3, "float32")))
    assert equals(wg.trace(f)(wg.spec("n")), wg.trace(f)(wg.spec("n")))
    assert not equals(wg.trace(f)(wg.spec("n")), wg.trace(f)(wg.spec("m")))


def test_of_gradients():
    f = lambda x, y: np.sum(np.tanh(x @ y) / (1.0 + y * y))  # noqa: E731
    gradient = wg.trace(wg.grad(f, (0, 1)))
    assert equals(gradient(X, X), gradient(X, X))


def test_of_lines():
    x, y = wg.input("x", 3), wg.input("y", 3)
    assert equals(np.sin(x + y), np.sin(y + x))
    assert not equals(np.sin(x), np.sin(y))
    assert equals(x, x)
    assert not equals(x, y)
    assert equals((x * 2.0).node, x * 2.0)


def test_stopped_lines_are_other_lines():
    def f(x):
        with wg.no_grad():
            return np.sin(x)

    assert not same(f, np.sin, wg.spec(3))


def test_variables_are_who_they_are():
    a, b = wg.variable(1.0), wg.variable(1.0)
    assert equals(wg.Graph(a * 2.0), wg.Graph(a * 2.0))
    assert not equals(wg.Graph(a * 2.0), wg.Graph(b * 2.0))
    assert not equals(wg.Graph(a * 2.0, updates={a.node: (a + 1.0).node}), wg.Graph(a * 2.0))


def test_long_lists():
    def f(x):
        for _ in range(5_000):
            x = np.sin(x) + 0.5
        return x

    assert same(f, f, wg.spec(3))
    x = wg.input("x", 3)
    assert equals(f(x), f(x))


def test_of_something_else():
    with pytest.raises(ArgumentError, match="two graphs or two nodes, but was given a int"):
        equals(1, wg.input("x"))
    with pytest.raises(ArgumentError, match="Graph"):
        equals(wg.trace(np.sin)(1.0), wg.input("x"))


def test_what_is_called_commutative_is():
    from wengert._engine.core.op import REGISTRY

    rng = np.random.default_rng(0)
    special = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan])
    pairs = np.stack(np.meshgrid(special, special)).reshape(2, -1)
    commutative = [op for op in REGISTRY.values() if op.commutative]
    assert {"add", "multiply", "maximum", "equal", "logical_and"} <= {op.name for op in commutative}
    for op in commutative:
        whole = op.make_examples is not None and op.name.startswith(("bitwise", "gcd", "lcm"))
        x, y = rng.integers(0, 50, (2, 20)) if whole else pairs
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(op.run(x, y), op.run(y, x), err_msg=op.name)
