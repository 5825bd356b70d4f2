"""vmap: batches are what a Python loop over the rows gives.

The witness is a loop, of eager calls.  What each single operation does with rows is the law
`batching_is_right` (tests/laws); here are the transformation itself, its axes and containers, its
way through derivatives and graphs, and its errors.
"""

import dataclasses
from collections import namedtuple

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.dispatch import Operation
from wengert._engine.core.op import REGISTRY
from wengert.errors import (
    RuleError,
    ShapeError,
    StructureError,
    TracedBranchError,
    TraceError,
)

X = np.random.default_rng(0).normal(size=(5, 3))
W = np.random.default_rng(1).normal(size=(4, 3))
w = W[0]


def loss(w, x):
    return np.sum(np.tanh(w * x)) ** 2 + np.dot(w, x)


def loop(f, *columns):
    """The results of f for each row, stacked; containers of results as tuples."""
    rows = [f(*row) for row in zip(*columns, strict=True)]
    if isinstance(rows[0], tuple):
        return tuple(np.stack([np.asarray(r[k]) for r in rows]) for k in range(len(rows[0])))
    return np.stack([np.asarray(r) for r in rows])


def same(got, want):
    assert type(got) is np.ndarray
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


# ---- values and axes ---------------------------------------------------------------------------


def test_rows_are_what_a_loop_gives():
    same(wg.vmap(lambda x: loss(w, x))(X), loop(lambda x: loss(w, x), X))


@pytest.mark.parametrize("in_axes", [(None, 0), [None, 0], (None, -2)])
def test_an_argument_is_the_same_for_all_rows(in_axes):
    same(wg.vmap(loss, in_axes)(w, X), loop(lambda x: loss(w, x), X))


def test_rows_stand_in_any_axis():
    T = np.random.default_rng(2).normal(size=(2, 5, 3))
    f = np.cumsum
    for axis in (0, 1, 2, -1, -3):
        for out in (0, 1, -1):
            got = wg.vmap(lambda x: f(x, axis=1), axis, out)(T)
            want = np.moveaxis(loop(lambda x: f(x, axis=1), np.moveaxis(T, axis, 0)), 0, out)
            same(got, want)


def test_containers_have_axes_of_their_own():
    def f(p, x):
        return {"y": x @ p["A"] + p["b"], "norm": np.sum(x**2), "b": p["b"]}

    A, b = np.random.default_rng(3).normal(size=(3, 5, 2)), np.ones(2)
    got = wg.vmap(f, in_axes=({"A": 1, "b": None}, 0), out_axes={"y": 1, "norm": 0, "b": None})(
        {"A": A, "b": b}, X
    )
    assert list(got) == ["y", "norm", "b"]
    want = np.stack([x @ A[:, i] + b for i, x in enumerate(X)], 1)
    same(got["y"], want)
    same(got["norm"], np.sum(X**2, 1))
    assert got["b"].shape == (2,)


def test_an_entry_of_in_axes_holds_for_a_whole_container():
    f = lambda p, x: p[0] * x + p[1]["c"]  # noqa: E731
    got = wg.vmap(f, in_axes=(0, None))((X, {"c": X}), w)
    same(got, X * w + X)


def test_named_tuples_dataclasses_and_keywords():
    Point = namedtuple("Point", "x y")

    @dataclasses.dataclass
    class Pair:
        a: object
        b: object

    def f(p, *, scale):
        return Point(p.a * scale, p.b + p.a)

    got = wg.vmap(f)(Pair(X, 2.0 * X), scale=np.arange(5.0))
    assert isinstance(got, Point)
    same(got.x, X * np.arange(5.0)[:, None])
    same(got.y, 3.0 * X)


def test_results_that_are_the_same_for_all_rows():
    same(wg.vmap(lambda x: 1.0)(X), np.ones(5))
    same(wg.vmap(lambda x: w, out_axes=1)(X), np.stack([w] * 5, 1))
    same(wg.vmap(lambda x: w, out_axes=None)(X), w)
    same(wg.vmap(lambda: np.arange(3.0), axis_size=2)(), np.stack([np.arange(3.0)] * 2))
    assert wg.vmap(lambda x: (x, None))(X)[1] is None


def test_no_result_shares_memory_with_an_argument():
    x = X.copy()
    for f in (lambda x: x, lambda x: x[::-1], lambda x: 1.0, lambda x: np.broadcast_to(x, (2, 3))):
        out = wg.vmap(f)(x)
        out += 1.0
        assert np.array_equal(x, X)


def test_integers_and_booleans_are_rows():
    index = np.array([2, 0, 1, 1, 2])
    same(wg.vmap(lambda x, i: x[i])(X, index), X[np.arange(5), index])
    same(wg.vmap(lambda i: wg.tensor(w)[i])(index), w[index])
    same(wg.vmap(lambda x: x > 0)(X), X > 0)
    same(wg.vmap(np.where)(X > 0, X, -X), np.abs(X))


def test_no_rows_and_one_row():
    f = wg.vmap(wg.grad(lambda x: np.sum(np.sin(x) * x[0])))
    assert f(X[:0]).shape == (0, 3)
    same(f(X[:1]), loop(wg.grad(lambda x: np.sum(np.sin(x) * x[0])), X[:1]))


def test_float32_stays():
    assert wg.vmap(wg.grad(loss, 1), (None, 0))(w.astype("f"), X.astype("f")).dtype == np.float32


def test_it_is_a_function_like_the_one_it_is_made_of():
    assert wg.vmap(loss).__name__ == "loss"
    assert isinstance(wg.vmap(loss, (None, 0))(wg.tensor(w), X), wg.Tensor)


# ---- indexing: where NumPy puts axes -------------------------------------------------------------

I1, I2 = np.array([1, 0]), np.array([0, 2])
INDICES = [
    lambda x, i: x[i],
    lambda x, i: x[:, i],
    lambda x, i: x[..., i],
    lambda x, i: x[i, :, 1],
    lambda x, i: x[0, :, i],
    lambda x, i: x[:, i, i],
    lambda x, i: x[i, :, i],
    lambda x, i: x[i, None, i],
    lambda x, i: x[None, :, i, 0],
    lambda x, i: x[..., i, 1:],
    lambda x, i: x[i[:, None], i],
    lambda x, i: x[i[0]],
    lambda x, i: x[:, i[0], i],
    lambda x, i: x[1, ..., i[1]],
]


@pytest.mark.sample(20)
@pytest.mark.parametrize("read", INDICES)
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
def test_index_arrays(read, axes):
    rng = np.random.default_rng(4)
    xs, index = rng.normal(size=(4, 3, 2, 3)), rng.integers(-2, 2, size=(4, 2))
    x, i = (a if axis == 0 else a[0] for a, axis in zip((xs, index), axes, strict=True))
    rows = [(x[k] if axes[0] == 0 else x, i[k] if axes[1] == 0 else i) for k in range(4)]
    same(wg.vmap(read, axes)(x, i), np.stack([read(*row) for row in rows]))

    def gradient(x, i):
        return wg.grad(lambda x: np.sum(np.sin(read(x, i)) * 2.0))(x)

    same(wg.vmap(gradient, axes)(x, i), np.stack([gradient(*row) for row in rows]))

    def written(x, i):
        out = np.zeros_like(x) + x
        if read is not INDICES[-1]:
            out[i] = x[0] * 2.0
        return out

    same(wg.vmap(written, axes)(x, i), np.stack([written(*row) for row in rows]))


def test_a_mask_for_each_row_is_a_choice():
    def positive(x):
        y = x * 1.0
        y[y < 0] = 0.0
        return y

    same(wg.vmap(positive)(X), np.maximum(X, 0.0))
    f = lambda x: np.sum(positive(x) ** 2)  # noqa: E731
    same(wg.vmap(wg.grad(f))(X), 2.0 * np.maximum(X, 0.0))


def test_rows_of_a_stored_value_lose_leading_axes_of_length_one():
    def stored(x, v):
        x = x * 1.0
        x[:2] = v
        return x

    v = np.arange(10.0).reshape(5, 1, 2)
    same(wg.vmap(stored)(X, v), np.stack([stored(*row) for row in zip(X, v, strict=True)]))


# ---- derivatives, inside and outside -----------------------------------------------------------


def test_gradients_of_each_row():
    same(wg.vmap(wg.grad(loss), (None, 0))(w, X), loop(lambda x: wg.grad(loss)(w, x), X))


def test_gradient_of_all_rows():
    total = lambda f: lambda w: np.sum(np.cos(f(w)))  # noqa: E731
    got = wg.grad(total(lambda w: wg.vmap(loss, (None, 0))(w, X)))(w)
    want = wg.grad(total(lambda w: np.stack([loss(w, x) for x in X])))(w)
    same(got, want)


def test_gradient_of_gradients():
    def penalty(w):
        return np.sum(wg.vmap(wg.grad(loss), (None, 0))(w, X) ** 2)

    def by_loop(w):
        return sum(np.sum(wg.grad(loss)(w, x) ** 2) for x in X)

    same(wg.grad(penalty)(w), wg.grad(by_loop)(w))
    same(wg.hessian(penalty)(w), wg.hessian(by_loop)(w))


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: lambda w, x: wg.jvp(f, (w, x), (x, w))[1],
        lambda f: lambda w, x: wg.vjp(f, w, x)[1](1.5)[1],
        lambda f: lambda w, x: wg.value_and_grad(f, 1)(w, x)[1],
        lambda f: lambda w, x: wg.hvp(lambda x: f(w, x), (x,), (w,)),
        lambda f: lambda w, x: wg.grad(lambda x: np.sum(wg.grad(f, 1)(w, x) ** 2))(x),
        lambda f: wg.hessian(f, 1),
        lambda f: wg.jacobian(lambda w, x: np.stack([f(w, x), f(x, x)]), 1),
        lambda f: wg.jacrev(lambda w, x: np.stack([f(w, x), f(x, x)]), 1),
        lambda f: wg.jacfwd(lambda w, x: np.stack([f(w, x), f(x, x)]), 1),
    ],
)
def test_of_every_derivative(transform):
    g = transform(loss)
    same(wg.vmap(g, (None, 0))(w, X), loop(lambda x: g(w, x), X))


@pytest.mark.parametrize("derivative", [wg.jacobian, wg.jacrev, wg.jacfwd])
def test_in_every_derivative(derivative):
    got = derivative(lambda w: wg.vmap(loss, (None, 0))(w, X))(w)
    same(got, loop(lambda x: wg.grad(loss)(w, x), X))
    dot = wg.jvp(lambda w: wg.vmap(loss, (None, 0))(w, X), (w,), (W[1],))[1]
    same(dot, got @ W[1])


def test_of_itself():
    got = wg.vmap(wg.vmap(loss, (None, 0)), (0, None))(W, X)
    same(got, np.array([[loss(w, x) for x in X] for w in W]))
    got = wg.vmap(wg.vmap(wg.grad(loss), (0, None)), (None, 0), out_axes=1)(W, X)
    same(got, np.array([[wg.grad(loss)(w, x) for x in X] for w in W]))


def test_values_from_outside():
    scale = wg.tensor(w, requires_grad=True)
    got = wg.vmap(lambda x: np.sum(scale * np.sin(x)))(X)
    np.sum(got).backward()
    np.testing.assert_allclose(scale.grad, np.sum(np.sin(X), 0), rtol=1e-13)
    other = wg.grad(lambda w: np.sum(wg.vmap(lambda x: np.exp(w * x) * w)(X)))
    same(other(w), np.sum(np.exp(w * X) * (1 + w * X), 0))


def test_gradient_with_respect_to_something_from_outside_within():
    def f(x):
        return wg.grad(lambda w: np.sum(np.sin(w * x)))(w)

    same(wg.vmap(f)(X), loop(f, X))
    both = lambda v: np.sum(wg.vmap(lambda x: wg.grad(lambda u: np.sum(u**2 * v * x))(v))(X))  # noqa: E731
    same(wg.grad(both)(w), 4.0 * w * np.sum(X, 0))


def test_no_grad_and_stop_gradient_hold():
    def f(x):
        with wg.no_grad():
            y = x * 2.0
        return np.sum(x * y * wg.stop_gradient(x))

    same(wg.grad(lambda X: np.sum(wg.vmap(f)(X)))(X), 2.0 * X**2)
    same(wg.vmap(wg.grad(f))(X), 2.0 * X**2)
    with wg.no_grad():
        assert not wg.vmap(f)(wg.tensor(X, requires_grad=True)).requires_grad


def test_checkpoints():
    f = wg.checkpoint(lambda x: np.sin(x) * x)
    same(wg.vmap(f)(X), np.sin(X) * X)
    total = lambda x: np.sum(f(x))  # noqa: E731
    same(wg.vmap(wg.grad(total))(X), loop(wg.grad(total), X))
    whole = wg.checkpoint(lambda X: wg.vmap(np.sin)(X))
    same(wg.grad(lambda X: np.sum(whole(X)))(X), np.cos(X))
    scaled = lambda s: np.sum(wg.checkpoint(lambda x: x * s)(X[0]))  # noqa: E731
    same(wg.vmap(wg.grad(scaled))(X[:, 0]), np.full(5, np.sum(X[0])))


def test_branches_not_taken_do_not_poison():
    f = lambda x: np.sum(np.where(x > 0, np.sqrt(np.where(x > 0, x, 0.0)), 0.0))  # noqa: E731
    same(wg.vmap(wg.grad(f))(X), loop(wg.grad(f), X))


# ---- in graphs and of graphs ---------------------------------------------------------------------


def test_in_a_graph_for_any_number_of_rows():
    f = wg.vmap(wg.grad(loss), (None, 0))
    graph = wg.trace(f)(wg.spec(3), wg.spec(("n", 3)))
    graph.verify()
    for n in (1, 2, 5):
        same(graph(w, X[:n]), f(w, X[:n]))
    assert {node.level for node in graph.nodes} == {0, 1}


def test_of_a_graph():
    graph = wg.trace(loss)(w, w)
    same(wg.vmap(graph, (None, 0))(w, X), loop(lambda x: loss(w, x), X))
    again = wg.trace(wg.vmap(graph, (None, 0)))(w, wg.spec(("n", 3)))
    same(again(w, X), loop(lambda x: loss(w, x), X))
    same(again(w, X[:2]), loop(lambda x: loss(w, x), X[:2]))


def test_nested_in_a_graph_with_two_sizes():
    f = wg.vmap(wg.vmap(loss, (None, 0)), (0, None))
    graph = wg.trace(f)(wg.spec(("m", "k")), wg.spec(("n", "k")))
    same(graph(W, X), f(W, X))
    same(graph(W[:2, :2], X[:, :2]), f(W[:2, :2], X[:, :2]))


def test_derivative_of_a_graph_with_rows():
    graph = wg.trace(lambda w, X: np.sum(wg.vmap(loss, (None, 0))(w, X) ** 2))(
        wg.spec(3), wg.spec(("n", 3))
    )
    want = wg.grad(lambda w: np.sum(np.stack([loss(w, x) for x in X]) ** 2))(w)
    same(wg.trace(wg.grad(graph))(w, wg.spec(("n", 3)))(w, X), want)


# ---- operations of one's own -------------------------------------------------------------------


@pytest.fixture
def unregistered():
    before = dict(REGISTRY)
    yield
    for name in set(REGISTRY) - set(before):
        del REGISTRY[name]


def test_an_operation_states_its_rule(unregistered):
    calls = []

    class Twice(Operation):
        def run(self, x):
            calls.append(np.shape(x))
            return 2.0 * x

    twice = Twice("twice_of_rows")
    same(wg.vmap(twice)(X), 2.0 * X)
    assert calls.count((3,)) >= 5  # one by one
    calls.clear()

    @twice.batch
    def _(args, batched, size):
        assert batched == [True] and size == 5
        return twice(args[0])

    same(wg.vmap(twice)(X), 2.0 * X)
    assert calls.count((5, 3)) == 1
    twice.batch(lambda args, batched, size: twice(args[0])[0])
    with pytest.raises(RuleError, match="twice_of_rows gave"):
        wg.vmap(twice)(X)


def test_operations_without_a_rule_are_taken_row_by_row(unregistered):
    @wg.primitive(callback=True)
    def longest_first(x):
        return x[np.argsort(-np.abs(x))] if x.ndim == 1 else 1 / 0

    @wg.extend.vjp(longest_first)
    def _(g, out, x):
        back = np.argsort(np.argsort(-np.abs(x)))
        return (g[back],)

    f = lambda x: np.sum(longest_first(x)[:2] ** 2)  # noqa: E731
    same(wg.vmap(f)(X), loop(f, X))
    same(wg.vmap(wg.grad(f))(X), loop(wg.grad(f), X))
    same(wg.grad(lambda X: np.sum(wg.vmap(f)(X)))(X), loop(wg.grad(f), X))
    graph = wg.trace(wg.vmap(longest_first))(wg.spec(("n", 3)))  # any number of rows, in one line
    same(graph(X), loop(longest_first, X))
    assert [n.op.name for n in graph if n.args] == ["row_by_row"]


def test_convolutions():
    kernel = np.array([1.0, -2.0])
    for f in (lambda x: np.sum(np.convolve(x, kernel) ** 3), lambda x: np.convolve(x, x)[1]):
        same(wg.vmap(f)(X), loop(f, X))
        same(wg.vmap(wg.grad(f))(X), loop(wg.grad(f), X))
    both = wg.vmap(np.correlate)(X, X[:, :2])
    same(both, np.stack([np.correlate(x, x[:2]) for x in X]))


def test_user_primitives(unregistered):
    @wg.primitive
    def cube(x):
        return x**3

    @wg.extend.vjp(cube)
    def _(g, out, x):
        return (g * 3.0 * x**2,)

    f = lambda x: np.sum(cube(x))  # noqa: E731
    same(wg.vmap(cube)(X), X**3)
    same(wg.vmap(wg.grad(f))(X), 3.0 * X**2)
    same(wg.grad(lambda X: np.sum(wg.vmap(cube)(X)))(X), 3.0 * X**2)


# ---- errors --------------------------------------------------------------------------------------


def test_numbers_of_rows_that_differ():
    with pytest.raises(
        ShapeError, match=r"argument 1 has batch size 4 .* argument 0 has 5"
    ) as error:
        wg.vmap(loss)(X, W)
    assert "test_vmap.py" in str(error.value)
    with pytest.raises(ShapeError, match=r"argument 0 at \['b'\] has batch size 4"):
        wg.vmap(lambda p: p["a"])({"a": X, "b": W})
    with pytest.raises(ShapeError, match=r"but axis_size is 3"):
        wg.vmap(loss, axis_size=3)(X, X)
    with pytest.raises(ShapeError, match=r"argument y has batch size 4"):
        wg.vmap(lambda x, y: x)(X, y=W)


def test_axes_that_do_not_match():
    with pytest.raises(StructureError, match="in_axes has 1 entries, but 2"):
        wg.vmap(loss, (0,))(X, X)
    with pytest.raises(StructureError, match="not nested like"):
        wg.vmap(lambda p: p["a"], ({"b": 0},))({"a": X})
    with pytest.raises(StructureError, match="'x', which is not an axis"):
        wg.vmap(loss, (0, "x"))(X, X)
    with pytest.raises(StructureError, match="is not an integer, None"):
        wg.vmap(loss, {"x": 0})(X, X)
    with pytest.raises(StructureError, match="no argument has a batch axis"):
        wg.vmap(loss, None)(w, w)
    with pytest.raises(ShapeError, match=r"shape \(3,\) and no axis 1"):
        wg.vmap(loss, (0, 1))(X, w)
    with pytest.raises(ShapeError, match="no axis 0"):
        wg.vmap(loss)(X, 2.0)
    with pytest.raises(StructureError, match="is a str, which has no batch axis"):
        wg.vmap(lambda x, s: x)(X, "a")
    with pytest.raises(ShapeError, match="out_axes=2"):
        wg.vmap(lambda x: x, out_axes=2)(X)
    with pytest.raises(StructureError, match="out_axes is None"):
        wg.vmap(lambda x: x, out_axes=None)(X)
    with pytest.raises(StructureError, match="out_axes"):
        wg.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(X)
    with pytest.raises(StructureError, match="returned a str"):
        wg.vmap(lambda x: "a")(X)


@pytest.mark.usefixtures("unconverted")
def test_branching_on_a_row():
    with pytest.raises(TracedBranchError, match=r"np\.where") as error:
        wg.vmap(lambda x: x if x[0] > 0 else -x)(X)
    assert "test_vmap.py" in str(error.value)


def test_lengths_that_depend_on_values():
    with pytest.raises((ShapeError, TraceError)):
        wg.vmap(lambda x: x[x > 0])(X)
    with pytest.raises((ShapeError, TraceError)):
        wg.vmap(lambda x: np.nonzero(x)[0])(np.abs(X) * (X > 0))


def test_writing_to_something_from_outside():
    total = wg.tensor(np.zeros(3), requires_grad=True)

    def f(x):
        total[...] = total + x
        return x

    with pytest.raises(TraceError, match="wrote to a tensor from outside"):
        wg.vmap(f)(X)
    assert np.array_equal(total, np.zeros(3))

    def outer(X, total):
        def f(x):
            total[...] = total + x
            return x

        return wg.vmap(f)(X)

    with pytest.raises(TraceError, match="wrote to a tensor from outside"):
        wg.trace(outer)(X, w)


def test_writing_to_arguments_stays_inside():
    def f(w, x):
        w[0] = 5.0
        x[1:] = w[1:] * x[:-1]
        return x

    got = wg.vmap(f, (None, 0))(w, X)
    same(got, np.concatenate([X[:, :1], w[1:] * X[:, :-1]], 1))
    assert np.array_equal(W[0], w)
    assert w[0] != 5.0


def test_rows_of_rows_of_a_graph_are_of_different_numbers():
    graph = wg.trace(lambda x: np.sum(x * x))(wg.spec("n")).grad().vmap().vmap()
    assert [str(d) for d in graph.inputs[0].spec.shape] == ["rows_2", "rows", "n"]
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(graph(x), 2.0 * x)
    same = wg.trace(np.sin)(wg.spec("n")).vmap(axis_size="n")  # asked for: as many as columns
    assert same(np.zeros((3, 3))).shape == (3, 3)


def test_numbers_that_differ_in_the_batch_promote_as_one_element_does():
    def f(x):
        h, q = (x * 0.5).astype(np.float32), 0.25
        if x[0] > 0:
            q = q + 0.5
        for k in range(12):
            q = q + h[0] * h[k % 3]
        return q * h

    x = np.random.default_rng(0).normal(size=(4, 3))
    found = wg.vmap(wg.jit(f))(x)
    assert found.dtype == wg.jit(f)(x[0]).dtype == np.float32
    np.testing.assert_allclose(found, [f(row) for row in x], rtol=1e-5)
