"""What is known of values is true of them, special values included; and rules make use of it."""

import numpy as np
import pytest
from wengert.rewrite import simplify

import wengert as wg
from wengert._engine.rewrite import assume
from wengert._engine.rewrite.driver import Driver
from wengert._engine.rewrite.rule_index import RuleIndex
from wengert._engine.rewrite.value_properties import FACTS, closed, facts_of_value
from wengert.errors import ArgumentError

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e308, -5e-324, 0.5, 3.0, 800.0])
PAIRS = np.stack(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)


def known(f, *specs):
    """What is known of the result of a function."""
    graph = wg.trace(f)(*specs)
    walk = Driver(graph, RuleIndex(()), False)
    return walk.facts.of(graph.outputs[0])


ELEMENTWISE = {
    "exp": lambda x, y: np.exp(x),
    "exp + 1": lambda x, y: np.exp(x) + 1.0,
    "cosh": lambda x, y: np.cosh(x),
    "square": lambda x, y: np.square(x),
    "abs": lambda x, y: abs(x),
    "sqrt": lambda x, y: np.sqrt(abs(x)),
    "sum of squares": lambda x, y: np.square(x) + np.square(y),
    "product": lambda x, y: np.square(x) * np.exp(y),
    "quotient": lambda x, y: np.square(x) / np.exp(y),
    "maximum": lambda x, y: np.maximum(x, 1.0),
    "maximum of any": lambda x, y: np.maximum(abs(x), abs(y)),
    "minimum": lambda x, y: np.minimum(abs(x), abs(y)),
    "fmax": lambda x, y: np.fmax(abs(x), abs(y)),
    "fmin": lambda x, y: np.fmin(abs(x), abs(y)),
    "where": lambda x, y: np.where(x > y, abs(x), np.exp(y)),
    "tanh": lambda x, y: np.tanh(np.where(np.isnan(x), 0.0, x)),
    "floor": lambda x, y: np.floor(x),
    "floor + floor": lambda x, y: np.floor(x) + np.ceil(y),
    "product of whole": lambda x, y: np.floor(x) * np.rint(y),
    "negative": lambda x, y: -abs(x),
    "comparison": lambda x, y: x > y,
    "sigmoid": lambda x, y: wg.ops.elementwise.exponential.sigmoid(x),
    "softplus": lambda x, y: wg.ops.elementwise.exponential.softplus(x),
    "sum": lambda x, y: np.sum(abs(x)) + 0.0 * np.sum(abs(y)),
    "moved": lambda x, y: np.reshape(abs(x), (12, 12)).T[::-1],
    "constant": lambda x, y: x * 0.0 + 2.0,
    "integers": lambda x, y: np.sign(x).astype(bool).astype(int) * 3 - 7,
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_what_is_known_is_true(name):
    f = ELEMENTWISE[name]
    facts = known(f, *PAIRS)
    with np.errstate(all="ignore"):
        value = np.asarray(wg.trace(f)(*PAIRS)(*PAIRS))
    assert facts <= facts_of_value(value), facts - facts_of_value(value)


def test_sums_of_integers_wrap_around():
    x = np.array([100, 3], np.int8)
    f = lambda x: abs(assume(x, nonnegative=True) + assume(x, nonnegative=True))  # noqa: E731
    np.testing.assert_array_equal(wg.trace(f)(x).simplify()(x), f(x))


@pytest.mark.parametrize(
    ("f", "facts"),
    [
        (lambda x: np.exp(x), {"nonnegative"}),
        (lambda x: np.exp(x) + 1.0, {"positive", "nonzero"}),
        (lambda x: np.full_like(x, 2.0), {"finite", "positive"}),
        (lambda x: abs(x).T, {"nonnegative"}),
        (lambda x: x > 0.0, {"finite", "number"}),
        (lambda x: np.floor(x), {"integer"}),
        (lambda x: assume(x, positive=True) + np.exp(x), {"positive"}),
        (lambda x: assume(x, symmetric=True) + assume(x.T, symmetric=True), {"symmetric"}),
        (lambda x: assume(x, lower=True).T, {"upper"}),
        (lambda x: np.linalg.inv(assume(x, diagonal=True)), {"diagonal", "symmetric"}),
        (lambda x: assume(x, definite=True).mT, {"definite", "symmetric"}),
        (lambda x: np.linalg.cholesky(x), {"lower"}),
        (lambda x: wg.numpy.eye(3, like=x) * 2.0, set()),
    ],
)
def test_what_should_be_known_is(f, facts):
    assert facts <= known(f, wg.spec((3, 3)))


@pytest.mark.parametrize(
    ("f", "facts"),
    [
        (lambda x: np.exp(x), {"positive", "nonzero", "finite", "number"}),  # 0 far down
        (lambda x: x * x, {"positive", "finite"}),
        (lambda x: np.sin(x), {"finite"}),  # of infinity it is NaN
        (lambda x: np.maximum(x, 0.0), {"nonnegative"}),  # which of two zeros is not said
        (lambda x: np.sqrt(x), {"nonnegative"}),  # of -0.0 it is -0.0
        (lambda x: assume(x, finite=True) + assume(x, finite=True), {"finite"}),
        (lambda x: assume(x, symmetric=True) @ assume(x, symmetric=True), {"symmetric"}),
        (lambda x: x[:1] + assume(x, symmetric=True), {"symmetric"}),
        (lambda x: np.transpose(assume(x[None], symmetric=True), (1, 0, 2)), {"symmetric"}),
        (lambda x: abs(x.astype(np.int8)), {"nonnegative"}),  # abs(-128) is -128
    ],
)
def test_what_must_not_be_thought_is_not(f, facts):
    assert not facts & known(f, wg.spec((3, 3)))


def test_facts_of_values():
    assert facts_of_value(np.eye(3)) >= {"diagonal", "definite", "nonnegative", "integer", "finite"}
    assert "nonnegative" not in facts_of_value(-0.0)
    assert facts_of_value(np.nan) == closed({"positive", "integer"}) | {"nonzero"}
    assert "definite" not in facts_of_value(-np.eye(2))
    assert "symmetric" not in facts_of_value(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert facts_of_value(1j) == frozenset()


def test_what_follows():
    assert closed({"lower", "upper"}) >= {"diagonal", "symmetric"}
    assert closed({"symmetric", "lower"}) >= {"diagonal"}
    assert closed({"nonnegative", "nonzero"}) >= {"positive"}
    assert closed({"definite"}) >= {"symmetric"}


def test_assume_is_the_identity():
    x = np.array([[2.0, 1.0], [1.0, 3.0]])
    assert assume(x, symmetric=True) is x
    np.testing.assert_array_equal(wg.grad(lambda x: np.sum(assume(x, finite=True) * x))(x), 2 * x)
    graph = wg.trace(lambda x: assume(x, symmetric=True).T @ x)(x)
    after = simplify(graph)
    assert "transpose" not in [n.op.name for n in after]
    np.testing.assert_array_equal(after(x), x @ x)


def test_a_known_value_is_checked():
    with pytest.raises(ArgumentError, match="assumed to be symmetric, but it is not"):
        assume(np.array([[1.0, 2.0], [3.0, 4.0]]), symmetric=True)
    with pytest.raises(ArgumentError, match="positive"):
        assume(wg.tensor([1.0, 0.0]), positive=True)
    with pytest.raises(ArgumentError, match=r"'even' is not a property.*finite, number"):
        assume(1.0, even=True)
    assert assume(np.array([-1.0]), positive=False) == -1.0


def test_matrices_are_solved_as_what_they_are():
    def f(a, b):
        lower = assume(a, lower=True)
        return np.linalg.solve(lower, b), np.linalg.solve(lower.T, b), np.linalg.det(lower)

    a, b = np.array([[2.0, 0.0], [1.0, 3.0]]), np.array([1.0, 2.0])
    after = simplify(wg.trace(f)(a, b))
    names = [n.op.name for n in after]
    assert names.count("solve_triangular") == 2
    assert not {"solve", "det"} & set(names)
    wanted = np.linalg.solve(a, b), np.linalg.solve(a.T, b), np.linalg.det(a)
    for got, want in zip(after(a, b), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)
    with pytest.raises(wg.errors.MatrixError):
        after(np.zeros((2, 2)), b)


def test_facts_reach_far_without_recursion():
    def f(x):
        y = abs(x)
        for _ in range(5000):
            y = np.sqrt(y)
        return abs(y)

    graph = wg.trace(f)(wg.spec(3))
    after = simplify(graph)
    assert len(after) == len(graph) - 1


def test_all_facts_are_documented():
    doc = assume.__doc__
    assert all(fact in doc for fact in FACTS)
