"""What loops and branches mean: as Python's own, for containers, symbolic sizes and parameters."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
from wengert import nn

X = np.array([0.5, 1.5, -0.4])
M = np.arange(12.0).reshape(4, 3) / 10.0


def ways(f, *args):
    """A result step by step, of the graph, and of native code."""
    return f(*args), wg.trace(f)(*args)(*args), wg.jit(f)(*args)


def assert_same(found, wanted):
    assert type(found) is type(wanted)
    if isinstance(wanted, tuple | list):
        for a, b in zip(found, wanted, strict=True):
            assert_same(a, b)
    elif isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for k in wanted:
            assert_same(found[k], wanted[k])
    elif wanted is not None:
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, 1e-13, 1e-13)


# ---- as Python's own loops ---------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_is_a_loop_along_rows(reverse):
    def step(c, row):
        c = 0.5 * c + row
        return c, (c @ row, c[1:])

    carry, ys = X.copy(), [None] * 4
    for k in reversed(range(4)) if reverse else range(4):
        carry, ys[k] = step(carry, M[k])
    wanted = carry, tuple(np.stack(column) for column in zip(*ys, strict=True))
    for found in ways(lambda x, m: wg.scan(step, x, m, reverse=reverse), X, M):
        assert_same(found, wanted)
    for found in ways(lambda x, m: wg.scan(step, x, m, 4, reverse, unroll=3), X, M):
        assert_same(found, wanted)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("lower", "upper"), [(0, 4), (-2, 3), (2, 2), (3, 1), (-1, -5)])
def test_fori_loop_is_a_range(lower, upper):
    def step(i, c):
        return np.tanh(c * (i + 1.5)) + i

    wanted = X
    for i in range(lower, upper):
        wanted = step(i, wanted)
    for found in ways(lambda x, a, b: wg.fori_loop(a, b, step, x), X, lower, upper):
        np.testing.assert_allclose(found, wanted, 1e-13)
    for found in ways(lambda x: wg.fori_loop(lower, upper, step, x), X):
        np.testing.assert_allclose(found, wanted, 1e-13)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_bounds_of_all_integers(dtype):
    low, high = dtype(5), dtype(3)  # whose difference is no number of an unsigned dtype
    for found in ways(lambda a, b: wg.fori_loop(b, a, lambda i, c: c + i, 0), low, high):
        assert found == 7
    for found in ways(lambda a, b: wg.fori_loop(a, b, lambda i, c: c + i, 0), low, high):
        assert found == 0


def test_while_loop_is_a_while():
    for found in ways(
        lambda x: wg.while_loop(
            lambda c: np.sum(c[0]) < 50.0, lambda c: (c[0] * 1.5 + 1.0, c[1] + 1), (x, 0)
        ),
        X,
    ):
        value, count = X, 0
        while np.sum(value) < 50.0:
            value, count = value * 1.5 + 1.0, count + 1
        assert_same(found, (value, np.int64(count)))


@pytest.mark.sample(3)
@pytest.mark.parametrize("size", [None, 1, 2, 3, 4, 9])
def test_map_is_a_stack(size):
    def f(row):
        return {"a": np.sum(row**2), "b": (np.outer(row, row), None)}

    wanted = {"a": np.sum(M**2, 1), "b": (M[:, :, None] * M[:, None, :], None)}
    for found in ways(lambda m: wg.map(f, m, batch_size=size), M):
        assert_same(found, wanted)
    gradient = wg.grad(lambda m: np.sum(wg.map(f, m, batch_size=size)["b"][0] * M[:, :, None]))
    exact = wg.grad(lambda m: np.sum(m[:, :, None] * m[:, None, :] * M[:, :, None]))(M)
    for found in ways(gradient, M):
        np.testing.assert_allclose(found, exact, 1e-12)


@pytest.mark.sample(7)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_is_cumulative(n, reverse):
    a = np.random.default_rng(n).uniform(0.5, 1.5, (2, n))
    turned = a[:, ::-1] if reverse else a
    wanted = np.cumprod(turned, 1)[:, ::-1] if reverse else np.cumprod(turned, 1)
    for axis in (1, -1):
        for found in ways(lambda a: wg.associative_scan(np.multiply, a, reverse, axis), a):  # noqa: B023
            np.testing.assert_allclose(found, wanted, 1e-13)


def test_associative_scan_keeps_the_order_of_operands():
    m = np.random.default_rng(0).normal(size=(5, 2, 2))
    wanted, back = [m[0]], [m[-1]]
    for k in range(1, 5):
        wanted.append(wanted[-1] @ m[k])
        back.append(back[-1] @ m[-1 - k])
    for found in ways(lambda m: wg.associative_scan(np.matmul, m), m):
        np.testing.assert_allclose(found, np.stack(wanted), 1e-12)
    for found in ways(lambda m: wg.associative_scan(np.matmul, m, reverse=True), m):
        np.testing.assert_allclose(found, np.stack(back[::-1]), 1e-12)


# ---- containers --------------------------------------------------------------------------------


@dataclasses.dataclass
class State:
    place: Any
    counts: Any


class Pair(NamedTuple):
    left: Any
    right: Any


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "start",
    [
        State(X, [1, None]),
        Pair(X, {"a": 2.0, "b": ()}),
        {"z": X, "a": (np.float32(1.0), np.int8(3))},
        [X, [[1 + 2j], True]],
        (),
        None,
    ],
    ids=["dataclass", "named tuple", "dict", "lists", "empty", "nothing"],
)
def test_carries_are_containers(start):
    def step(c, _):
        return c, c

    for found, ys in ways(lambda: wg.scan(step, start, None, 2)):
        assert type(found) is type(start) and type(ys) is type(start)
        if isinstance(start, State):
            found, wanted = dataclasses.astuple(found), dataclasses.astuple(start)
        else:
            wanted = start
        assert str(found).replace("np.", "") != "" and len(str(ys)) > 0
        leaves = [np.asarray(v) for v in _leaves(found)]
        for a, b in zip(leaves, _leaves(wanted), strict=True):
            assert a.dtype == np.asarray(b).dtype
            np.testing.assert_array_equal(a, b)


def _leaves(x):
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, tuple | list):
        return [leaf for part in x for leaf in _leaves(part)]
    return [] if x is None else [x]


def test_nothing_to_carry_and_nothing_to_collect():
    for found in ways(lambda x: wg.scan(lambda c, v: (c, None), None, x), X):
        assert found == (None, None)
    for found in ways(lambda x: wg.scan(lambda c, v: (c, v), (), (x, None)), X):
        assert found[0] == () and found[1][1] is None
        np.testing.assert_array_equal(found[1][0], X)


def test_plain_arrays_give_plain_arrays_and_tensors_tensors():
    def f(x):
        return wg.scan(lambda c, v: (c * v, c), x, M)

    assert [type(v) for v in f(X)] == [np.ndarray, np.ndarray]
    assert [type(v) for v in f(wg.tensor(X))] == [wg.Tensor, wg.Tensor]
    assert type(wg.cond(True, np.sin, np.cos, X)) is np.ndarray
    assert type(wg.cond(True, np.sin, np.cos, wg.tensor(X))) is wg.Tensor
    x = wg.tensor(X, requires_grad=True)
    np.sum(f(x)[0]).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.prod(M, 0))


# ---- symbolic sizes --------------------------------------------------------------------------


def test_symbolic_lengths():
    def f(x, m):
        end, ys = wg.scan(lambda c, row: (np.tanh(c + row), c * row), x, m)
        same = wg.fori_loop(0, m.shape[0], lambda i, c: c + m[i], x)
        fewer = wg.fori_loop(0, m.shape[0] - 3, lambda i, c: c * m[i], x)
        idle = wg.scan(lambda c, _: (c * 1.1, None), x, None, x.shape[0])[0]
        return np.sum(end) + np.sum(ys) + np.sum(same * fewer * idle)

    value = wg.trace(f)(wg.spec("k"), wg.spec(("n", "k")))
    bars = wg.trace(wg.grad(f, (0, 1)))(wg.spec("k"), wg.spec(("n", "k")))
    second = wg.trace(wg.grad(lambda x, m: np.sum(wg.grad(f, 1)(x, m) ** 2)))
    second = second(wg.spec("k"), wg.spec(("n", "k")))
    hess = wg.grad(lambda x, m: np.sum(wg.grad(f, 1)(x, m) ** 2))
    for n, k in [(1, 1), (2, 3), (4, 3), (6, 2)]:
        rng = np.random.default_rng(n)
        x, m = rng.normal(size=k), rng.normal(size=(n, k))
        for graph in (value, value.simplify()):
            np.testing.assert_allclose(graph(x, m), f(x, m), 1e-12)
        for graph in (bars, bars.simplify()):
            for a, b in zip(graph(x, m), wg.grad(f, (0, 1))(x, m), strict=True):
                np.testing.assert_allclose(a, b, 1e-11, 1e-12)
        np.testing.assert_allclose(second(x, m), hess(x, m), 1e-10, 1e-11)


# ---- dtypes ------------------------------------------------------------------------------------


def test_single_precision_stays():
    def f(x):
        end, ys = wg.scan(lambda c, v: (np.sin(c) * v + 0.5, c / 2.0), x[0], x)
        return end + np.sum(ys)

    x = X.astype(np.float32)
    for found in ways(f, x):
        assert found.dtype == np.float32
    for found in ways(wg.grad(f), x):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, wg.grad(f)(x.astype(np.float64)), 3e-6)


def test_numbers_of_python_take_the_dtype_they_meet_in_branches():
    x = X.astype(np.float32)
    for found in ways(lambda x, p: wg.cond(p, lambda x, a: x * a, lambda x, a: x, x, 2.0), x, True):
        assert found.dtype == np.float32


# ---- what is taken from outside ----------------------------------------------------------------


def test_large_arrays_are_operands_once():
    table = np.random.default_rng(0).normal(size=(50, 50))

    def f(x):
        def step(i, c):
            return np.tanh(table @ c) + table[0] * np.sum(table)

        return wg.fori_loop(0, 3, step, x)

    graph = wg.trace(f)(np.ones(50))
    (loop,) = [n for n in graph.nodes if n.op.name == "scan"]
    assert [a.spec.shape for a in loop.inputs].count((50, 50)) == 1
    sizes = [np.size(n.value) for n in loop.params["body"].nodes if n.op.name == "constant"]
    assert max(sizes, default=0) <= 64
    np.testing.assert_allclose(graph(np.ones(50)), f(np.ones(50)), 1e-12)


def model():
    rng = np.random.default_rng(1)
    return nn.Linear(3, 2, rng=rng), nn.Linear(2, 1, rng=rng)


def loss_of(cell, head, xs):
    def step(h, x):
        h = np.tanh(cell(np.concatenate([h, x])))
        small = np.sum(h * h) < 0.5
        return wg.cond(small, lambda h: h * 2.0, lambda h: h, h), head(h)

    h, ys = wg.scan(step, np.zeros(2), xs)
    return np.sum(ys**2) + np.sum(h)


def test_gradients_reach_parameters_in_bodies():
    xs = np.random.default_rng(2).normal(size=(4, 1))
    found = []
    for way in (lambda f: f, wg.jit):
        cell, head = model()

        def train(xs, cell=cell, head=head):
            for p in (*cell.parameters(), *head.parameters()):
                p.grad = None
            loss = loss_of(cell, head, xs)
            loss.backward()
            return loss

        compiled = way(train)
        for _ in range(2):
            compiled(xs)
        found.append([p.grad.numpy() for p in (*cell.parameters(), *head.parameters())])
    for a, b in zip(*found, strict=True):
        assert np.any(a != 0.0)
        np.testing.assert_allclose(a, b, 1e-11, 1e-13)


def test_tensors_from_outside_receive_gradients():
    w = wg.tensor(X, requires_grad=True)

    def f(c):
        return wg.fori_loop(0, 3, lambda i, c: np.sum(w * c) * w[i], c)

    for way in (f, wg.jit(f)):
        w.grad = None
        way(0.7).backward()
        expected = wg.grad(lambda w: np.sum(w) ** 3 * np.prod(w) * 0.7)(X)
        np.testing.assert_allclose(w.grad.numpy(), expected, 1e-12)


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_second_derivatives_of_branches_with_one_number(dtype):
    """A number in half precision is not taken for the token of messages (core/message_order.py)."""

    def f(x):
        y = wg.cond(x > 0, lambda x: x * x * x, lambda x: x * x, x)
        return y * y

    x, one = dtype(1.5), dtype(1.0)
    expected = 30.0 * 1.5**4
    for second in (
        wg.grad(wg.grad(f)),
        lambda x: wg.hvp(f, (x,), (one,)),
        wg.grad(lambda x: wg.jvp(f, (x,), (one,))[1]),
    ):
        np.testing.assert_allclose(wg.jit(second)(x), expected, rtol=10 * np.finfo(dtype).eps)
