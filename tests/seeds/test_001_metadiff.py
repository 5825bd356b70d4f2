"""What was wrong in Metadiff and GIR, one test for each fault (SEED_SYSTEMS 001.4)."""

import numpy as np
import pytest
import scipy.special

import wengert as wg
from wengert.extend import NodeType, OperatorGraph, UnaryOperator
from wengert.extend.operator_classes.library import Log
from wengert.nn import functional
from wengert.testing import check_grads


@pytest.fixture
def graph():
    return OperatorGraph()


def slope(function, x):
    """The derivative from a unary operator's own rule."""
    graph = OperatorGraph()
    node = graph.input()
    (grad,) = graph.gradient(function(graph, node), [node])
    return float(graph.function([node], grad)(x))


def test_log1p():
    """1: the derivative was a sigmoid."""
    for x in (-0.5, 0.0, 3.0):
        assert slope(lambda graph, x: graph.log1p(x), x) == pytest.approx(1 / (1 + x), rel=1e-15)
        assert float(wg.grad(np.log1p)(x)) == pytest.approx(1 / (1 + x), rel=1e-15)


def test_abs_of_negative_numbers():
    """1: the derivative was 0 for x < 0."""
    for x, want in [(-2.0, -1.0), (2.0, 1.0), (0.0, 0.0)]:
        assert slope(lambda graph, x: graph.abs(x), x) == want
        assert float(wg.grad(np.abs)(x)) == want


def test_prod_with_zeros():
    """1: g / x without the product, and wrong at zero."""
    for x in ([2.0, 3.0, 4.0], [2.0, 0.0, 4.0], [0.0, 0.0, 4.0]):
        x = np.array(x)
        want = [np.prod(np.delete(x, i)) for i in range(3)]
        np.testing.assert_allclose(wg.grad(np.prod)(x), want, rtol=1e-14)
        check_grads(np.prod, (x,), order=2, entries=False)


def test_mean_and_variance(rng):
    """1: divided by zero, and by indices of axes."""
    x = rng.normal(size=(2, 3, 4))
    for axis in (None, 0, (0, 2), -1):
        count = x.size // np.mean(x, axis).size
        np.testing.assert_allclose(wg.grad(lambda x, a=axis: np.sum(np.mean(x, a)))(x), 1 / count)
        centered = x - np.mean(x, axis, keepdims=True)
        got = wg.grad(lambda x, a=axis: np.sum(np.var(x, a)))(x)
        np.testing.assert_allclose(got, 2 * centered / count, rtol=1e-12, atol=1e-15)
        check_grads(lambda x, a=axis: np.sum(np.var(x, a, ddof=1)), (x,), order=2, entries=False)


def test_cross_entropy_from_logits(rng):
    """1: wrong sign, and one log-sum-exp for all rows."""
    logits, classes = 5.0 * rng.normal(size=(4, 3)), np.array([2, 0, 1, 1])
    rows = [-z[c] + np.log(np.sum(np.exp(z))) for z, c in zip(logits, classes, strict=True)]
    assert float(functional.cross_entropy(logits, classes)) == pytest.approx(np.mean(rows))
    check_grads(lambda z: functional.cross_entropy(z, classes), (logits,), order=2, entries=False)


def test_logsumexp_along_axes(rng):
    """1: ignored its axes; its forward rule took the softmax of the tangent."""
    x = 3.0 * rng.normal(size=(3, 4))
    for axis in (None, 0, 1, (0, 1)):

        def f(x, axis=axis):
            return wg.numpy.logsumexp(x, axis=axis)

        grad = wg.grad(lambda x, f=f: np.sum(f(x)))(x)
        np.testing.assert_allclose(grad, scipy.special.softmax(x, axis=axis), rtol=1e-12)
        check_grads(f, (x,), order=2, entries=False)
        check_grads(f, (x,), order=2, modes=("fwd", "rev"), entries=False)


def test_the_gradient_of_a_cast_has_the_type_of_its_operand(graph):
    """1: cast to the wrong type."""
    x = graph.input((3,), "float32")
    (grad,) = graph.gradient(graph.sum(graph.cast(x, "float64")), [x])
    assert grad.data_type == np.float32
    assert wg.grad(lambda x: np.sum(x.astype(float)))(np.ones(3, np.float32)).dtype == np.float32


def test_power_at_zero_and_of_negative_numbers():
    """1: log(x) and y / x were formed, NaN at x <= 0."""
    for x in (-2.0, 0.0):
        assert slope(lambda graph, x: x**3, x) == 3 * x**2
        assert float(wg.grad(lambda x: x**3)(x)) == 3 * x**2
        assert float(wg.grad(wg.grad(lambda x: x**2))(x)) == 2.0
        assert float(wg.grad(lambda x: x**0)(x)) == 0.0


def test_a_copied_operator_is_the_same_operator(graph):
    """2: Log10 was copied as Log."""

    class Log10(UnaryOperator):
        def compute(self, x):
            return np.log10(x)

        def get_parent_grad(self, my_grad, index):
            return my_grad / (self.parent * np.log(10.0))

    x = graph.input()
    y = graph.add(Log10(graph, x))
    new = graph.copy()
    assert type(new[y].operator) is Log10 and type(new[y].operator) is not Log
    assert float(new[y].graph.function([new[x]], new[y])(1000.0)) == pytest.approx(3.0)
    assert float(wg.grad(np.log10)(2.0)) == pytest.approx(1 / (2 * np.log(10)))


def test_trace_is_not_the_logarithm_of_the_determinant(rng):
    """2: trace() called logdet."""
    m = rng.normal(size=(3, 3)) + 4 * np.eye(3)
    np.testing.assert_array_equal(wg.grad(np.trace)(m), np.eye(3))
    got = wg.grad(lambda m: np.linalg.slogdet(m)[1])(m)
    np.testing.assert_allclose(got, np.linalg.inv(m).T, rtol=1e-12)


def test_ancestors_include_arguments(graph):
    """3: parents only, so arguments were lost, also when copying."""
    x, y = graph.input(), graph.input()
    chosen = graph.select(x < y, x * 2.0, y)
    assert chosen.operator.get_ancestors() == [x * 2.0, y, x < y]
    new = graph.copy()
    run = new[x].graph.function([new[x], new[y]], new[chosen])
    assert [float(run(1.0, 5.0)), float(run(7.0, 5.0))] == [2.0, 5.0]


def test_node_types_of_what_depends_on_a_shape(graph):
    """3: a unary operator of an INPUT_DERIVED_NON_DIFF parent was CONSTANT_DERIVED."""
    n = graph.size(graph.input((3,)))
    assert graph.exp(graph.eye(n)).node_type is NodeType.INPUT_DERIVED_NON_DIFF
    assert (-graph.range(n)).node_type is NodeType.INPUT_DERIVED_NON_DIFF


def test_equality_compares_parameters(graph):
    """4: sums over axis 0 and axis 1 of the same x merged; reorderings likewise."""
    x = graph.input((3, 3))
    zero, one = graph.sum(x, axis=0), graph.sum(x, axis=1)
    assert zero is not one and not zero.operator.equals(one.operator)
    assert graph.sum(x, axis=0) is zero
    a = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(graph.function([x], [zero, one])(a), [a.sum(0), a.sum(1)])
    y = graph.input((6,))
    assert graph.reshape(y, (2, 3)) is not graph.reshape(y, (3, 2))


def test_functions_with_more_outputs_than_inputs(graph):
    """5: inputs were looped over by the number of outputs."""
    x, y = graph.input(), graph.input()
    assert len(graph.function([x], [x, x * x, x * 3.0])(2.0)) == 3
    assert [float(v) for v in graph.function([x, y], [x * y])(2.0, 3.0)] == [6.0]
    assert float(graph.function([x, y], x * y)(2.0, 3.0)) == 6.0


def test_any_rank_and_empty_arrays(rng):
    """6: at most four axes, no empty arrays, scalars implicit."""
    x = rng.normal(size=(2, 1, 2, 1, 2, 2))
    assert wg.grad(lambda x: np.sum(np.sin(x) ** 2))(x).shape == x.shape
    assert wg.grad(lambda x: np.sum(np.exp(x)))(np.zeros((0, 3))).shape == (0, 3)
    assert wg.grad(lambda x: x * x)(np.array(3.0)).shape == ()


def test_slices_indices_and_sorting_have_derivatives(rng):
    """8: raised NotImplemented."""
    x = rng.normal(size=6)
    check_grads(lambda x: np.sum(x[1:5:2] ** 3), (x,), order=2, entries=False)
    check_grads(
        lambda x: x[np.array([1, 1, 2])] @ np.array([1.0, 2.0, 3.0]), (x,), order=1, entries=False
    )
    check_grads(lambda x: np.sort(x) @ np.arange(6.0), (x,), order=1, entries=False)
    assert not wg.grad(lambda x: np.sum(np.argmax(x) * 1.0))(x).any()


def test_dropped_nodes_are_no_danger(graph):
    """9: expired weak pointers crashed; shared variables were global."""
    other = OperatorGraph()
    w = other.shared(1.0)
    assert len(graph) == 0 and len(other) == 1
    f = other.function([], w * 2.0)
    del other
    assert float(f()) == 2.0
