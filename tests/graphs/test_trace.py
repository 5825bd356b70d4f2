"""Tracing: a function is traced once, and means the same as running it."""

import functools
import threading
from typing import NamedTuple

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert._engine.core.node import DiscreteLeaf, Node
from wengert.errors import (
    ArgumentError,
    DtypeError,
    GraphError,
    PolicyError,
    ShapeError,
    StructureError,
    TracedBranchError,
    UnconnectedError,
    UnconnectedWarning,
    WengertError,
)


def loss(p, x, y):
    hidden = np.tanh(x @ p["w"] + p["b"])
    return np.mean((hidden - y) ** 2)


@pytest.fixture
def problem(rng):
    p = {"w": rng.normal(size=(3, 2)), "b": rng.normal(size=2)}
    return p, rng.normal(size=(5, 3)), rng.normal(size=(5, 2))


SPECS = (
    {"w": wg.spec((3, 2)), "b": wg.spec(2)},
    wg.spec(("n", 3)),
    wg.spec(("n", 2)),
)


def test_a_graph_is_the_function(problem):
    graph = wg.trace(loss)(*SPECS)
    assert graph.name == "loss"
    assert [n.name for n in graph.inputs] == ["p['b']", "p['w']", "x", "y"]
    np.testing.assert_allclose(graph(*problem), loss(*problem), rtol=1e-15)
    np.testing.assert_allclose(graph(problem[0], y=problem[2], x=problem[1]), loss(*problem))
    for m in (1, 7):
        args = (problem[0], problem[1][:1].repeat(m, 0), problem[2][:1].repeat(m, 0))
        np.testing.assert_allclose(graph(*args), loss(*args), rtol=1e-14)


def test_gradients_are_graphs(problem):
    graph = wg.trace(loss)(*SPECS)
    want = wg.value_and_grad(loss)(*problem)
    for got in (
        graph.value_and_grad()(*problem),
        wg.trace(wg.value_and_grad(loss))(*SPECS)(*problem),
        wg.value_and_grad(graph)(*problem),
    ):
        assert got[1].keys() == want[1].keys()
        np.testing.assert_allclose(got[0], want[0], rtol=1e-14)
        for k in "wb":
            np.testing.assert_allclose(got[1][k], want[1][k], rtol=1e-12)
    gradient = graph.grad()
    assert {n.level for n in gradient.nodes} == {0, 1}
    levels = [(n.level, max((a.level for a in n.inputs), default=0)) for n in gradient.nodes]
    assert all(mine >= operands for mine, operands in levels)


def test_second_order(problem):
    p, x, y = problem
    b = p["b"]

    def of_b(b):
        return loss({"w": p["w"], "b": b}, x, y)

    direction = np.array([1.0, -2.0])
    want = wg.hvp(of_b, (b,), (direction,))
    graph = wg.trace(of_b)(b)
    twice = wg.trace(lambda b, v: wg.jvp(graph.grad(), (b,), (v,))[1])(b, b)
    np.testing.assert_allclose(twice(b, direction), want, rtol=1e-12)
    assert max(n.level for n in twice.nodes) == 2
    third = wg.trace(lambda b: np.sum(wg.grad(lambda c: np.sum(wg.grad(of_b)(c) ** 2))(b)))(b)
    np.testing.assert_allclose(
        third.grad()(b),
        wg.grad(lambda b: np.sum(wg.grad(lambda c: np.sum(wg.grad(of_b)(c) ** 2))(b)))(b),
        rtol=1e-10,
    )


def test_vjp_and_jvp_graphs(problem):
    f = wg.trace(lambda x: np.sin(x) * x)(wg.spec("n"))
    x, t = np.array([0.3, 1.2, -2.0]), np.array([1.0, 2.0, 3.0])
    y, (bar,) = f.vjp()((x,), t)
    y2, dot = f.jvp()((x,), (t,))
    np.testing.assert_allclose(y, np.sin(x) * x)
    np.testing.assert_allclose(y2, y)
    np.testing.assert_allclose(bar, t * (np.cos(x) * x + np.sin(x)), rtol=1e-14)
    np.testing.assert_allclose(dot, bar, rtol=1e-14)


def test_every_line_knows_the_users_line():
    def f(x):
        y = np.sin(x)
        return np.sum(y * 2.0)

    graph = wg.trace(wg.grad(f))(wg.spec(3))
    lines = [n for n in graph.nodes if n.args]
    assert lines and all("test_trace.py" in n.where for n in lines)
    first = f.__code__.co_firstlineno
    cos = graph.select(op="cos")[0]
    assert f"test_trace.py:{first + 1}," in cos.where, "a derivative's line is its function's"


def test_containers_and_names():
    class Point(NamedTuple):
        x: float
        y: float

    graph = wg.trace(lambda p, *rest, scale: ([p.x * rest[0], {"s": p.y * scale}], None))(
        Point(1.0, 2.0), 3.0, scale=4.0
    )
    assert [n.name for n in graph.inputs] == ["p.x", "p.y", "rest0", "scale"]
    out = graph(Point(10.0, 20.0), 30.0, scale=40.0)
    assert out == ([300.0, {"s": 800.0}], None)
    with pytest.raises(StructureError, match="was called with"):
        graph(Point(1.0, 2.0), 3.0)


def test_what_is_static_is_passed_on():
    def f(x, n, how="sum"):
        y = x
        for _ in range(n):
            y = y * x
        return np.sum(y) if how == "sum" else y

    graph = wg.trace(f, static_argnums=1)(wg.spec(3), 2, how="sum")
    np.testing.assert_allclose(graph(np.full(3, 2.0), 2, how="sum"), 24.0)
    assert len(graph.inputs) == 1
    assert wg.trace(f, static_argnames="n")(wg.spec(3), n=1)(np.ones(3), n=1) == 3.0


def test_a_graph_called_with_another_static_argument_says_so():
    """The value was part of the program: it cannot be ignored."""

    def f(x, mode, scale=None):
        y = np.sin(x) if mode == "sin" else np.cos(x)
        return np.sum(y if scale is None else y * scale)

    graph = wg.trace(f)(wg.spec("n"), "sin")
    x = np.zeros(2)
    assert graph(x, "sin") == 0.0
    with pytest.raises(StructureError, match=r"built with 'sin' where it is called with 'cos'"):
        graph(x, "cos")
    with pytest.raises(StructureError, match=r"built with None where it is called with a ndarray"):
        wg.trace(f)(wg.spec("n"), "sin", None)(x, "sin", np.ones(2))
    with pytest.raises(StructureError, match=r"numpy\.sin where it is called with numpy\.cos"):
        wg.trace(lambda x, op: op(x))(wg.spec(2), np.sin)(x, np.cos)
    static = wg.trace(lambda x, n: x * n, static_argnums=1)(wg.spec(2), 3)
    assert static(x + 1.0, np.int64(3)).tolist() == [3.0, 3.0]
    with pytest.raises(StructureError, match="built with 3 where it is called with 4"):
        static(x, 4)


def test_static_arguments_stay_with_derived_and_loaded_graphs(tmp_path):
    graph = wg.trace(lambda x, mode: np.sum(getattr(np, mode)(x)))(wg.spec("n"), "sin")
    x = np.zeros(2)
    wg.save(graph, tmp_path / "graph")
    derived = [
        (graph.grad(), (x, "sin"), (x, "cos")),
        (graph.vjp(), ((x, "sin"), 1.0), ((x, "cos"), 1.0)),
        (graph.jvp(), ((x, "sin"), (x, None)), ((x, "cos"), (x, None))),
        (graph.vmap(in_axes=(0, None)), (np.zeros((3, 2)), "sin"), (np.zeros((3, 2)), "cos")),
        (wg.load(tmp_path / "graph"), (x, "sin"), (x, "cos")),
    ]
    for made, right, wrong in derived:
        made(*right)
        with pytest.raises(StructureError, match="built with 'sin'"):
            made(*wrong)


@pytest.mark.usefixtures("unconverted")
def test_branches_on_values_are_refused():
    def relu(x):
        if x > 0:
            return x
        return 0.0 * x

    with pytest.raises(TracedBranchError, match=r"np\.where.*test_trace\.py:\d+, in relu"):
        wg.trace(relu)(1.0)
    for use in (float, int, bool, lambda x: [1, 2][x], lambda x: range(x), np.asarray):
        with pytest.raises(WengertError):
            wg.trace(use)(wg.spec((), "int64"))


def test_shapes_are_checked_while_building():
    with pytest.raises(ShapeError, match=r"add of float64\[n\] and float64\[m\].*test_trace"):
        wg.trace(lambda x, y: x + y)(wg.spec("n"), wg.spec("m"))
    with pytest.raises(ShapeError, match=r"matmul of float64\[2,3\] and float64\[4,5\]"):
        wg.trace(np.matmul)(wg.spec((2, 3)), wg.spec((4, 5)))
    with pytest.raises(DtypeError, match="bitwise_and"):
        wg.trace(lambda x: x & 1)(wg.spec(3))


def test_shapes_are_checked_when_called():
    graph = wg.trace(lambda x, y: x[:, 2:5] + y)(wg.spec(("n", "m")), wg.spec((1, 3)))
    np.testing.assert_allclose(graph(np.ones((2, 6)), np.ones((1, 3))), 2 * np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"m = 4|at the sizes"):
        graph(np.ones((2, 4)), np.ones((1, 3)))
    with pytest.raises(ShapeError, match="y has shape"):
        graph(np.ones((2, 6)), np.ones((2, 3)))
    with pytest.raises(DtypeError, match="x is complex128"):
        graph(np.ones((2, 6)) * 1j, np.ones((1, 3)))


def test_dtypes():
    single = np.ones(3, np.float32)
    graph = wg.trace(lambda x: np.sin(x) * 2.0 + 1)(single)
    assert graph.outputs[0].spec.dtype == np.float32 and graph(single).dtype == np.float32
    gradient = wg.trace(wg.grad(lambda x: np.sum(x * 2.0)))(single)
    assert gradient(single).dtype == np.float32
    scalar = wg.trace(lambda x, y: x * y)(2.0, single)
    assert scalar(3.0, single).dtype == np.float32, "a Python number is weak"
    z = np.array([1 + 2j, 3j])
    graph = wg.trace(wg.grad(lambda z: np.sum(np.abs(z) ** 2)))(z)
    np.testing.assert_allclose(graph(z), 2 * z)


def test_sizes_are_values():
    def f(x):
        n = x.shape[0]
        weights = wnp.arange(n) / n
        return np.sum(x * weights) / n + np.trace(wnp.eye(n)) - np.sum(x) * (1.0 / n)

    def plain(x):
        n = len(x)
        return np.sum(x * (np.arange(n) / n)) / n + n - np.sum(x) / n

    graph = wg.trace(f)(wg.spec("n"))
    gradient = graph.grad()
    for n in (1, 4, 9):
        x = np.linspace(1, 2, n)
        np.testing.assert_allclose(graph(x), plain(x), rtol=1e-14)
        np.testing.assert_allclose(gradient(x), wg.grad(plain)(x), rtol=1e-12, atol=1e-15)


def test_closures_are_constants_of_the_graphs_own():
    weights = np.ones(3000)
    graph = wg.trace(lambda x: x * weights)(wg.spec(3000))
    weights[:] = 7.0
    np.testing.assert_array_equal(graph(np.ones(3000)), np.ones(3000))


def test_parameters_are_read_when_the_graph_runs():
    w = wg.tensor([1.0, 2.0], requires_grad=True)
    graph = wg.trace(lambda x: np.sum(w * w * x))(wg.spec(2))
    assert graph(np.ones(2)) == 5.0
    with wg.no_grad():
        w[0] = 10.0
    assert graph(np.ones(2)) == 104.0
    with wg.no_grad():
        frozen = wg.trace(lambda x: np.sum((w * w) * x))(wg.spec(2))
        w[0] = 1.0
    assert frozen(np.ones(2)) == 5.0, "no_grad stops derivatives, it does not freeze variables"


def test_outer_derivatives_pass_through_a_graph():
    def f(c):
        graph = wg.trace(lambda x: np.sum(np.sin(c * x)))(wg.spec(2))
        return graph(np.array([1.0, 2.0]))

    np.testing.assert_allclose(wg.grad(f)(0.5), np.cos(0.5) + 2 * np.cos(1.0))


def test_graphs_inside_functions_and_graphs():
    inner = wg.trace(lambda x: np.sin(x) ** 2)(wg.spec("n"))
    outer = wg.trace(lambda a, b: np.sum(inner(a) * inner(a @ b)))(wg.spec(3), wg.spec((3, 3)))
    a, b = np.array([0.1, 0.2, 0.3]), np.eye(3) * 2
    np.testing.assert_allclose(outer(a, b), np.sum(np.sin(a) ** 2 * np.sin(2 * a) ** 2))
    np.testing.assert_allclose(wg.grad(lambda a: np.sum(inner(a)))(a), np.sin(2 * a), rtol=1e-14)
    assert outer.inputs[0].spec.shape == (3,) and "[n" not in str(outer)


def test_mixed_with_tensors_that_have_values():
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    y = np.sin(x)  # recorded before: its value is a constant of the graph, its history is not lost
    graph = wg.trace(lambda z: np.sum(y * z))(wg.spec(2))
    out = graph(np.array([3.0, 4.0]))
    out.backward()
    np.testing.assert_allclose(x.grad.numpy(), np.array([3.0, 4.0]) * np.cos([1.0, 2.0]))


def test_updates_and_state():
    w = wg.variable(np.ones(2), "w")
    seen = wg.variable(0, "seen")

    def step(x):
        gradient = wg.grad(lambda w: np.sum((w * x - 1.0) ** 2))(w)
        w[...] = w - 0.1 * gradient
        seen[...] = seen + 1
        return np.sum((w * x - 1.0) ** 2)

    graph = wg.trace(step)(wg.spec(2))
    assert len(graph.updates) == 2
    np.testing.assert_array_equal(w.numpy(), np.ones(2))
    x, plain = np.array([0.5, 2.0]), np.ones(2)
    for _ in range(3):
        plain = plain - 0.2 * (plain * x - 1) * x
        np.testing.assert_allclose(graph(x), np.sum((plain * x - 1) ** 2), rtol=1e-13)
        np.testing.assert_allclose(w.numpy(), plain, rtol=1e-13)
    assert seen.item() == 3 and seen.dtype.kind == "i"


def test_a_failed_trace_leaves_nothing_behind():
    w = wg.variable(np.ones(2))

    def bad(x):
        w[...] = w * x
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wg.trace(bad)(wg.spec(2))
    np.testing.assert_array_equal(w.numpy(), np.ones(2))
    assert wg.is_recording()


def test_writing_to_a_constant_from_outside_is_refused():
    buffer = wg.tensor(np.zeros(2))

    def f(x):
        buffer[0] = x[0]
        return x

    with pytest.raises(WengertError, match="variable of the graph"):
        wg.trace(f)(wg.spec(2))
    np.testing.assert_array_equal(buffer.numpy(), np.zeros(2))


def test_in_place_programs():
    def f(x):
        y = np.zeros_like(x)
        for i in range(3):
            y[i] = x[i] * (i + 1.0)
        row = y[1:]
        row += 1.0
        y *= 2.0
        return np.sum(y * y)

    x = np.array([1.0, 2.0, 3.0])
    graph = wg.trace(f)(x)
    np.testing.assert_allclose(graph(x), f(wg.tensor(x)).item())
    np.testing.assert_allclose(graph.grad()(x), wg.grad(f)(x))


def test_threads_build_their_own_graphs():
    found = {}

    def work(k):
        for _ in range(20):
            found[k] = wg.trace(wg.grad(lambda x: np.sum(np.sin(x) * k)))(wg.spec("n"))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(4):
        np.testing.assert_allclose(found[k](np.zeros(2)), np.full(2, float(k)))


def test_partials_and_methods_trace():
    class Model:
        def __init__(self):
            self.w = np.array([1.0, 2.0])

        def energy(self, x):
            return np.sum(self.w * x)

    assert wg.trace(Model().energy)(wg.spec(2))(np.ones(2)) == 3.0
    assert wg.trace(functools.partial(np.sum, axis=0))(wg.spec((2, 3)))(np.ones((2, 3))).shape == (
        3,
    )


def test_policies():
    specs = wg.spec((3, 4)), wg.spec(4, "float32")
    with (
        wg.policy(broadcast="raise"),
        pytest.raises(WengertError, match=r"broadcast implicitly.*test_trace"),
    ):
        wg.trace(np.add)(*specs)
    with wg.policy(cast="raise"), pytest.raises(WengertError, match="cast implicitly"):
        wg.trace(np.add)(wg.spec(4), specs[1])
    with wg.policy(cast="warn"), pytest.warns(UserWarning, match="cast implicitly"):
        wg.trace(np.add)(wg.spec(4), specs[1])
    with wg.policy(broadcast="raise", cast="raise"):
        wg.trace(lambda x: x * 2.0 + np.sum(x))(wg.spec(3))
    with wg.policy(independent="raise"), pytest.raises(UnconnectedError):
        wg.trace(wg.grad(lambda x: np.sum(np.ones(2))))(wg.spec(2))
    with pytest.raises(ValueError, match="broadcast='loud'"), wg.policy(broadcast="loud"):
        pass


def test_caps_on_width():
    with wg.policy(max_float="float32", max_int="int32"):
        graph = wg.trace(lambda x: (np.sin(x) * np.float64(2.0), np.argmax(x)))(
            wg.spec(3, "float32")
        )
    assert [n.spec.dtype for n in graph.outputs] == [np.float32, np.int32]
    out = graph(np.ones(3, np.float32))
    assert out[0].dtype == np.float32 and out[1].dtype == np.int32
    with wg.policy(max_float="float32"):
        wide = wg.trace(wg.value_and_grad(lambda x: np.sum(np.sin(x))))(wg.spec(3))
    value, slope = wide(np.ones(3))
    assert value.dtype == slope.dtype == np.float32
    inside = [n for n in wide.nodes if n not in wide.inputs]
    assert all(n.spec.dtype != np.float64 for n in inside)


def test_kinds_of_lines():
    table = np.arange(3.0)

    def f(x):
        mask = x > 0
        return np.sum(np.where(mask, x, 0.0)) + np.sum(wnp.zeros(2, like=x) + 1.0)

    graph = wg.trace(f)(wg.spec(3))
    kinds = {n.op.name: n.kind for n in graph.nodes}
    assert kinds["input"] == "INPUT" and kinds["greater"] == "INPUT_DERIVED_NON_DIFF"
    assert kinds["where"] == "INPUT_DERIVED" and kinds["constant"] == "CONSTANT"
    del table
    number = wg.trace(lambda n: n + 1)(wg.spec((), "int64"))
    assert number.inputs[0].kind == "INPUT" and isinstance(number.inputs[0], DiscreteLeaf)
    assert number.outputs[0].kind == "INPUT_DERIVED_NON_DIFF"
    i = graph.index(graph.select(op="where")[0])
    assert [graph[k].op.name for k in graph.parents(i)] == ["input"]
    assert [graph[k].op.name for k in graph.arguments(i)] == ["greater", "constant"]
    assert all(isinstance(n, Node) for n in graph)


@pytest.mark.usefixtures("unconverted")
def test_long_chains_are_linear_and_not_recursive():
    def f(x):
        for _ in range(5_000):
            x = x * 1.0001
        return x

    graph = wg.trace(f)(1.0)
    assert len(graph.select(op="multiply")) == 5_000
    np.testing.assert_allclose(graph.grad()(1.0), 1.0001**5_000, rtol=1e-9)


def test_python_numbers_stay_weak_when_a_graph_goes_into_another():
    single = np.ones(3, np.float32)
    inner = wg.trace(lambda s, x: (s * s + 1.0) * x)(2.0, single)
    outer = wg.trace(lambda s, x: np.sum(inner(s, x)))(2.0, single)
    assert outer.outputs[0].spec.dtype == np.float32
    assert outer(3.0, single).dtype == np.float32 == wg.grad(inner_sum(inner), 1)(3.0, single).dtype
    assert inner(wg.tensor(2.0, dtype=np.float64), single).dtype == np.float64


def inner_sum(graph):
    return lambda s, x: np.sum(graph(s, x))


def test_updates_happen_when_a_graph_goes_into_another():
    count = wg.variable(0, "count")

    def step(x):
        count[...] = count + 1
        return x * 2.0

    inner = wg.trace(step)(1.0)
    outer = wg.trace(lambda x: inner(inner(x)))(1.0)
    assert count.item() == 0 and len(outer.updates) == 1
    assert outer(1.0) == 4.0 and count.item() == 2
    assert inner(wg.tensor(1.0, requires_grad=True)).item() == 2.0 and count.item() == 3


def test_graphs_traced_inside_traces_see_what_is_outside():
    def inner(c):
        return wg.trace(lambda x: x * c * np.sum(c * 2.0))(1.0)(3.0)

    want = inner(2.0)
    assert wg.trace(inner)(2.0)(2.0) == want == inner(wg.tensor(2.0)).item()
    assert wg.grad(inner)(2.0) == wg.trace(wg.grad(inner))(2.0)(2.0) == 24.0
    twice = wg.trace(wg.grad(wg.grad(inner)))(2.0)
    assert twice(2.0) == wg.grad(wg.grad(inner))(2.0) == 12.0
    mask = wg.trace(lambda c: wg.trace(lambda x: np.where(c > 0, x, -x))(1.0)(3.0))(2.0)
    assert mask(1.0) == 3.0 and mask(-1.0) == -3.0


def test_a_leaked_tensor_is_never_a_number():
    leaked = []

    def f(x):
        leaked.append(x * 2.0)
        return x

    wg.trace(f)(1.0)
    with pytest.raises(GraphError, match=r"stored while f was traced.*x, float64\[\].*Return it"):
        wg.trace(lambda y: y + leaked[0])(1.0)
    for use in (
        lambda: wg.computation(leaked[0] + 1.0)(),
        lambda: float(wg.grad(lambda x: x * leaked[0])(1.0)),
        lambda: float(leaked[0]),
    ):
        with pytest.raises(WengertError):
            use()


def test_gradients_by_hand_follow_the_policy_for_what_is_independent():
    x, y = wg.input("x", shape=2), wg.input("y", shape=2)
    with wg.policy(independent="raise"), pytest.raises(UnconnectedError, match="depend on 'y'"):
        wg.gradients(np.sum(x), y)
    with wg.policy(independent="warn"), pytest.warns(UnconnectedWarning, match="depend on 'y'"):
        zero = wg.gradients(np.sum(x), y)
    assert wg.computation(zero)().tolist() == [0.0, 0.0]
    with wg.policy(independent="raise"):
        assert wg.gradients(np.sum(x), y, unconnected="none") is None


def test_an_error_in_a_with_statement_names_the_user_and_not_the_standard_library():
    with pytest.raises(ArgumentError, match=r"test_trace\.py"), wg.policy(broadcast="never"):
        pass


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: np.where(x > 0, x, y),
        lambda x, y: np.concatenate([x, y]),
        lambda x, y: np.stack([x, y]),
        np.matmul,
    ],
)
def test_choices_and_joined_arrays_are_cast_by_policy_too(f):
    with wg.policy(cast="raise"):
        with pytest.raises(PolicyError, match=r"float32\[2\] and float64\[2\]"):
            wg.trace(f)(wg.spec(2, "float32"), wg.spec(2))
        wg.trace(f)(wg.spec(2), wg.spec(2))
        wg.trace(lambda x: np.where(x > 0, x, 0.0))(wg.spec(2, "float32"))


def test_parameters_that_cannot_be_compared_are_themselves_only():
    from wengert._engine.core.node_properties import frozen

    class Odd:
        __hash__ = None

    one, other = Odd(), Odd()
    assert frozen({"f": one}) == frozen({"f": one}) != frozen({"f": other})
    assert len({frozen((one,)), frozen((one,)), frozen((other,))}) == 2
