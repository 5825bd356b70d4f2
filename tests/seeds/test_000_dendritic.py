"""What was wrong in dendritic, one test for each fault (SEED_SYSTEMS 000.4)."""

import inspect

import numpy as np
import pytest

import wengert as wg
from wengert.data import DataLoader
from wengert.errors import GraphError, WengertError
from wengert.extend import Behavior, BehaviorGraph, behavior_named
from wengert.nn import functional
from wengert.testing import check_grads


def test_shared_nodes_add_their_gradients():
    """1: a node with two consumers panicked, and gradients were overwritten."""
    for op in ("add", "sub", "mul", "div"):
        graph = BehaviorGraph()
        x = graph.leaf(3.0)
        y = graph.function("tanh", x)
        graph.function("add", graph.function(op, y, x), graph.function("mul", y, y))
        graph.forward()
        graph.backward()

        def f(x, op=op):
            t = np.tanh(x)
            results = {"add": t + x, "sub": t - x, "mul": t * x, "div": t / x}
            return results[op] + t * t

        assert graph.node(x).grad() == pytest.approx(float(wg.grad(f)(3.0)), rel=1e-12)
    x = wg.tensor(3.0, requires_grad=True)
    y = np.tanh(x)
    (y * x + y + y).backward()
    assert x.grad.item() == pytest.approx((3.0 + 2.0) / np.cosh(3.0) ** 2 + np.tanh(3.0))


def test_gradients_of_a_hidden_layer(rng):
    """2: the factor of the second layer's weights was lost; cosine with the truth 0.65."""
    x, w1, w2 = rng.normal(size=(8, 3)), rng.normal(size=(3, 5)), rng.normal(size=(5, 1))
    y = rng.normal(size=(8, 1))
    graph = BehaviorGraph()
    a, b = graph.leaf(w1), graph.leaf(w2)
    hidden = graph.function("sigmoid", graph.function("matmul", x, a))
    graph.function("mse", graph.function("tanh", graph.function("matmul", hidden, b)), y)
    graph.forward()
    graph.backward()

    def loss(w1, w2):
        return np.mean((np.tanh(1.0 / (1.0 + np.exp(-(x @ w1))) @ w2) - y) ** 2)

    for i, exact in zip((a, b), wg.grad(loss, (0, 1))(w1, w2), strict=True):
        got = graph.node(i).grad()
        cosine = np.sum(got * exact) / np.linalg.norm(got) / np.linalg.norm(exact)
        assert cosine == pytest.approx(1.0, abs=1e-14)
        np.testing.assert_allclose(got, exact, rtol=1e-10)
    check_grads(loss, (w1, w2), order=2, entries=False)


def test_the_scalar_chain():
    """3: ((5 + 10) + 100) * 20 - 10 gave 1, 1, 1, 115, 1."""

    def f(a, b, c, d, e):
        return ((a + b) + c) * d - e

    point = (5.0, 10.0, 100.0, 20.0, 10.0)
    assert [float(g) for g in wg.grad(f, range(5))(*point)] == [20, 20, 20, 115, -1]
    graph = BehaviorGraph()
    graph.binary(5.0, 10.0, "add")
    graph.unary(100.0, "add")
    graph.unary(20.0, "mul")
    graph.unary(10.0, "sub")
    graph.forward()
    graph.backward()
    assert [graph.node(i).grad() for i in graph.variables()] == [20, 20, 20, 115, -1]


def test_losses_have_their_factors_signs_and_both_gradients(rng):
    """4: MSE lacked 2/n and a sign; BCE wrote nothing; CCE wrote softmax to the target."""
    p, y = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    by_p, by_y = wg.grad(functional.mse_loss, (0, 1))(p, y)
    np.testing.assert_allclose(by_p, 2.0 * (p - y) / 12, rtol=1e-13)
    np.testing.assert_allclose(by_y, -by_p, rtol=1e-13)
    check_grads(functional.mse_loss, (p, y), order=2, entries=False)
    share = rng.uniform(0.1, 0.9, (4, 3))
    check_grads(functional.binary_cross_entropy_with_logits, (p, share), order=2, entries=False)
    check_grads(
        lambda q: functional.binary_cross_entropy(q, share), (1 - share,), order=2, entries=False
    )
    classes = np.array([0, 2, 1, 1])
    check_grads(lambda p: functional.cross_entropy(p, classes), (p,), order=2, entries=False)
    graph = BehaviorGraph()
    a, b = graph.leaf(p), graph.leaf(y)
    loss = graph.function("mse", a, b)
    graph.unary(10.0, "mul")
    graph.forward()
    graph.backward()
    np.testing.assert_allclose(graph.node(a).grad(), 10 * by_p, rtol=1e-13)
    np.testing.assert_allclose(graph.node(b).grad(), 10 * by_y, rtol=1e-13)
    assert (
        graph.node(loss).grad() == 10.0
    )  # the gradient with respect to the loss, and nothing else


def test_a_fresh_leaf_has_no_gradient():
    """5: the gradient of a fresh leaf was its value."""
    graph = BehaviorGraph()
    assert graph.node(graph.leaf(7.0)).grad() is None
    assert wg.tensor([7.0], requires_grad=True).grad is None


def test_any_shape_broadcasts(rng):
    """6: only 2-d arrays, and a broadcast only if the first axis was 1."""
    for shape in [(3, 1), (1, 4), (4,), (), (1, 1)]:
        a, b = rng.normal(size=(3, 4)), rng.normal(size=shape)
        graph = BehaviorGraph()
        x, y = graph.leaf(a), graph.leaf(b)
        graph.function("mse", graph.function("mul", x, y), np.ones((3, 4)))
        graph.forward()
        graph.backward()
        assert np.shape(graph.node(y).grad()) == shape
        exact = wg.grad(lambda b, a=a: np.mean((a * b - 1.0) ** 2))(b)
        np.testing.assert_allclose(graph.node(y).grad(), exact, rtol=1e-12)


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "exp", "log"])
def test_functions_work_on_single_numbers(name):
    """7: Sigmoid, Tanh and the cross-entropies on f64 were not implemented."""
    graph = BehaviorGraph()
    x = graph.leaf(0.5)
    graph.function(name, x)
    value = graph.forward()
    graph.backward()
    assert type(value) is float
    f = {"sigmoid": lambda x: 1 / (1 + np.exp(-x))}.get(name) or getattr(np, name)
    assert graph.node(x).grad() == pytest.approx(float(wg.grad(f)(0.5)), rel=1e-13)


def test_operands_can_be_named_and_need_not_be_guessed():
    """8: the previous node was implicit, and binary(None, None) guessed the other operand."""
    graph = BehaviorGraph()
    x, y = graph.leaf(2.0), graph.leaf(5.0)
    d = graph.function("sub", y, x)
    assert graph.node(d).inputs() == (y, x)
    with pytest.raises(GraphError, match="no running node yet"):
        BehaviorGraph().function("neg")


def test_every_behavior_in_use_has_a_name_to_be_found_by():
    """9: loading knew the default operations only, by their debug text."""
    for name in ("add", "sub", "mul", "div", "neg", "exp", "log", "tanh", "sigmoid", "mse"):
        assert isinstance(behavior_named(name), Behavior)


def test_looking_at_a_value_does_not_copy_it():
    """11: each look at an output or a gradient copied the array."""
    a = np.ones((50, 50))
    graph = BehaviorGraph()
    x = graph.leaf(a)
    graph.function("neg", x)
    graph.forward()
    assert graph.node(x).output() is a is graph.node(x).output()


def test_errors_are_errors_and_the_last_batch_is_not_dropped():
    """12: every error was a panic; the last partial batch was dropped."""
    assert issubclass(GraphError, WengertError)
    with pytest.raises(WengertError):
        BehaviorGraph().backward()
    batches = list(DataLoader(np.arange(10), batch_size=4))
    assert sum(len(b) for b in batches) == 10


def test_second_order():
    """13: there were no derivatives of derivatives."""
    multiply = behavior_named("mul")
    f = lambda x: multiply(x, multiply(x, behavior_named("exp")(x)))  # noqa: E731
    assert float(wg.grad(wg.grad(f))(1.0)) == pytest.approx(7 * np.e)
    assert list(inspect.signature(Behavior.backward).parameters)[1:] == ["nodes", "curr_node_idx"]
