"""Graphs built by hand, taken apart, changed, and selected from."""

import copy
import inspect

import numpy as np
import pytest

import wengert as wg
from wengert.errors import (
    ArgumentError,
    DtypeError,
    GraphError,
    NotDifferentiableError,
    NotScalarError,
    ShapeError,
    StructureError,
    UnconnectedError,
)


@pytest.fixture
def graph():
    x, y = wg.input("x", ("n",)), wg.input("y", ("n",))
    with wg.scope("first", author="ada"):
        a = np.sin(x) * y
    with wg.scope("second"):
        b = np.exp(a)
        with wg.scope("inner"):
            c = np.exp(b - 1.0)
    return wg.Graph(np.sum(c))


def value(x, y):
    return np.sum(np.exp(np.exp(np.sin(x) * y) - 1.0))


X, Y = np.array([0.1, 0.2, 0.3]), np.array([1.0, -1.0, 0.5])


def test_by_hand(graph):
    assert [n.name for n in graph.inputs] == ["x", "y"]
    np.testing.assert_allclose(graph(X, Y), value(X, Y), rtol=1e-15)
    np.testing.assert_allclose(graph(Y, y=X), value(Y, X), rtol=1e-15)
    np.testing.assert_allclose(graph.grad(argnames="y")(X, Y), wg.grad(value, 1)(X, Y), rtol=1e-13)
    assert list(inspect.signature(graph).parameters) == ["x", "y"]
    for wrong in [(X,), (X, Y, Y), ([X], Y)]:
        with pytest.raises(StructureError, match=r"takes \(x, y\)"):
            graph(*wrong)


def test_gradients_of_tensors():
    x, y = wg.input("x", "n"), wg.input("y", ())
    energy = np.sum(x**3) * y
    force = wg.gradients(energy, x)
    rows = wg.gradients(np.sum(force), [x, {"y": y}])
    f = wg.Graph(force, rows, inputs=[x.node, y.node])
    out = f(np.array([1.0, 2.0]), 2.0)
    np.testing.assert_allclose(out[0], [6.0, 24.0])
    np.testing.assert_allclose(out[1][0], [12.0, 24.0])
    np.testing.assert_allclose(out[1][1]["y"], 15.0)
    middle = x * 2.0
    np.testing.assert_allclose(
        wg.Graph(wg.gradients(np.sum(middle**2), middle))(np.ones(2)), [4.0, 4.0]
    )
    seeded = wg.gradients(x * x, x, seed=wg.input("t", "n"))
    assert seeded.shape == x.shape
    with pytest.raises(NotScalarError, match="pass seed="):
        wg.gradients(x * x, x)
    with pytest.raises(ShapeError, match="same shape"):
        wg.gradients(x * x, x, seed=np.ones((2, 2)))
    with pytest.raises(NotDifferentiableError, match="Cast it first"):
        wg.gradients(energy, wg.input("i", (), "int64"))
    with pytest.raises(NotDifferentiableError, match="requires_grad"):
        wg.gradients(energy, wg.tensor(1.0))
    other = wg.input("z", "m")
    assert wg.gradients(energy, other, unconnected="none") is None
    assert wg.gradients(energy, other).shape == other.shape
    with pytest.raises(UnconnectedError, match="z"):
        wg.gradients(energy, other, unconnected="raise")
    with pytest.raises(ArgumentError):
        wg.gradients(energy, x, unconnected="loud")


def test_gradients_of_tensors_with_values():
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    first = wg.gradients(np.sum(x**3), x)
    np.testing.assert_allclose(first.numpy(), [3.0, 12.0])
    np.testing.assert_allclose(wg.gradients(np.sum(first), x).numpy(), [6.0, 12.0])


def test_printing_reads_aloud(graph):
    text = str(graph.grad())
    assert text.splitlines()[0].startswith("%0 = input x") and text.splitlines()[-1].startswith(
        "return %"
    )
    row = next(line for line in text.splitlines() if " cos " in line)
    assert "float64[n]" in row and "d1" in row and "test_graph.py:" in row
    assert repr(graph) == "<Graph of 9 nodes, 1 outputs>"


def test_names_are_unique_and_scoped(graph):
    assert len(set(graph.names)) == len(graph)
    assert {"x", "y", "first/sin", "second/exp", "second/inner/exp"} <= set(graph.names)
    twice = wg.trace(lambda x: np.sin(np.sin(np.sin(x))))(1.0)
    assert twice.names == ("x", "sin", "sin_1", "sin_2")
    assert graph.name_of(graph.node("second/exp")) == "second/exp"
    with pytest.raises(GraphError, match=r"Did you mean .*second/exp"):
        graph.node("second/ex")
    with pytest.raises(GraphError, match="not a node of this graph"):
        graph.node(99)


def test_selection(graph):
    assert [n.op.name for n in graph.select("second/*exp")] == ["exp", "exp"]
    assert len(graph.select(scope="second")) == 3 and len(graph.select(scope="second/inner")) == 2
    assert len(graph.select(op="ex*", scope="second/inner")) == 1
    assert [n.op.name for n in graph.select(author="ada")] == ["sin", "multiply"]
    assert graph.select(author="bob") == ()
    assert len(graph.select(kind="INPUT")) == 2
    assert len(graph.select(lambda n: n.spec.shape == ())) == 2
    assert len(graph.select(where="test_graph.py")) == 6
    assert all(n.level == 1 for n in graph.grad().select(level=1)) and graph.grad().select(level=1)


def test_parts(graph):
    names = [graph.name_of(n) for n in graph.ancestors("second/exp")]
    assert names == ["x", "y", "first/sin", "first/multiply", "second/exp"]
    assert [graph.name_of(n) for n in graph.descendants("second/inner/exp")] == [
        "second/inner/exp",
        "sum",
    ]
    assert [graph.name_of(n) for n in graph.between("y", "second/exp")] == [
        "y",
        "first/multiply",
        "second/exp",
    ]
    head = graph.subgraph("second/exp")
    np.testing.assert_allclose(head(X, Y), np.exp(np.sin(X) * Y))
    tail = graph.subgraph(["sum", "second/exp"], inputs="first/multiply")
    total, inner = tail(np.sin(X) * Y)
    np.testing.assert_allclose(total, value(X, Y))
    np.testing.assert_allclose(inner, np.exp(np.sin(X) * Y))
    assert [n.name for n in graph.subgraph("first/sin").inputs] == ["x"]
    with pytest.raises(GraphError, match="y is needed too"):
        graph.subgraph("sum", inputs="first/sin")


def test_substitution(graph):
    before = str(graph)
    fixed = graph.substitute({"y": 2.0})
    np.testing.assert_allclose(fixed(X), value(X, 2.0))
    z = wg.input("z", ("n",))
    composed = graph.substitute({"x": z**2})
    assert [n.name for n in composed.inputs] == ["y", "z"]
    np.testing.assert_allclose(composed(Y, X), value(X**2, Y))
    np.testing.assert_allclose(
        composed.grad(argnames="z")(Y, X), wg.grad(lambda z: value(z**2, Y))(X)
    )
    inside = graph.substitute({"second/exp": np.ones(3)})
    np.testing.assert_allclose(inside(X, Y), 3.0)
    with pytest.raises(ShapeError):
        graph.substitute({"y": wg.input("w", ("m",))})
    assert str(graph) == before


def test_hot_swap(graph):
    swapped = graph.with_operation("first/sin", "cos")
    np.testing.assert_allclose(swapped(X, Y), np.sum(np.exp(np.exp(np.cos(X) * Y) - 1.0)))
    summed = graph.with_operation("sum", "mean")
    np.testing.assert_allclose(summed(X, Y), value(X, Y) / 3)
    assert swapped.node("first/cos").where == graph.node("first/sin").where
    with pytest.raises(GraphError, match="x is not an operation"):
        graph.with_operation("x", "sin")


def test_copies_share_nothing_but_variables(graph):
    w = wg.variable(3.0, "w")
    scaled = wg.Graph(w * wg.Graph(*graph.outputs)[0] if False else w * wg.input("a"))
    twin = copy.deepcopy(scaled)
    assert not set(twin.inputs) & set(scaled.inputs) and twin.variables == scaled.variables
    assert twin(2.0) == scaled(2.0) == 6.0
    other = graph.copy()
    assert str(other) == str(graph) and not set(other.nodes) & set(graph.inputs)


def test_multi_output_operations():
    graph = wg.trace(lambda a: np.linalg.qr(a)[1] + np.linalg.svd(a, compute_uv=False))(
        wg.spec((3, 3))
    )
    a = np.array([[2.0, 1, 0], [1, 3, 1], [0, 1, 4]])
    np.testing.assert_allclose(graph(a), np.linalg.qr(a)[1] + np.linalg.svd(a, compute_uv=False))
    swapped = graph.substitute({"a": wg.input("b", (3, 3)) * 2.0})
    np.testing.assert_allclose(swapped(a / 2), graph(a))


def test_inputs():
    with pytest.raises(ArgumentError, match="name of an input"):
        wg.input("")
    with pytest.raises(ShapeError, match="cannot be -1"):
        wg.input("x", (-1,))
    with pytest.raises(ShapeError, match=r"1\.5 is not a length"):
        wg.spec((1.5,))
    for dtype in ("str", "O", "M8[s]", "nonsense"):
        with pytest.raises(DtypeError):
            wg.spec(3, dtype)
    assert str(wg.spec(("n", "2*n + 1", 3), "float32")) == "float32[n,2*n + 1,3]"
    text = repr(wg.input("x", ("n",)))
    assert "x" in text and "float64[n]" in text
    with pytest.raises(DtypeError):
        wg.variable("abc")
    v = wg.variable([1.0, 2.0], "v")
    assert v.requires_grad and not wg.variable([1, 2]).requires_grad
    assert not wg.variable([1.0], differentiable=False).requires_grad


def test_verify_finds_what_is_wrong(graph):
    assert graph.verify() is graph
    node = graph.node("first/sin")
    spec = node.info.spec
    node.info.spec = wg.spec(("n", 2))
    with pytest.raises(GraphError, match="sin"):
        graph.verify()
    node.info.spec = spec


def _nested(x):
    with wg.scope("encoder", device="gpu"):
        with wg.scope("layer1"):
            h = np.tanh(x)
        with wg.scope("layer2", part=2):
            h = np.tanh(h)
    with wg.scope("head"):
        return np.sum(h)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("encoder/*", ["encoder/layer1/tanh", "encoder/layer2/tanh"]),
        ("tanh", ["encoder/layer1/tanh", "encoder/layer2/tanh"]),
        ("encoder layer2 *", ["encoder/layer2/tanh"]),
        ("layer2 encoder *", []),
        ("layer? t[a-b]nh", ["encoder/layer1/tanh", "encoder/layer2/tanh"]),
        ("*[op=su*]", ["head/sum"]),
        ("[device=gpu][part=2]", ["encoder/layer2/tanh"]),
        ("[kind=INPUT]", ["x"]),
        ("encoder *[level=1]", []),
    ],
)
def test_lines_are_selected_by_scopes_names_and_conditions(pattern, names):
    graph = wg.trace(_nested)(wg.spec(3))
    assert [graph.name_of(n) for n in graph.select(pattern)] == names


@pytest.mark.parametrize("pattern", ["", "*[op=tanh", "encoder[device=gpu] *"])
def test_a_pattern_that_cannot_be_read_is_refused(pattern):
    with pytest.raises(ArgumentError, match="pattern"):
        wg.trace(_nested)(wg.spec(3)).select(pattern)


def test_a_line_is_found_by_its_name():
    graph = wg.trace(_nested)(wg.spec(3))
    assert graph["head/sum"] is graph[-1] is graph.outputs[0]
    with pytest.raises(GraphError, match=r"Did you mean head/sum"):
        graph["head/sun"]


def test_metadata_and_scopes_stay_with_what_is_made_of_a_graph(tmp_path):
    graph = wg.trace(_nested)(wg.spec(3))
    wg.save(graph, tmp_path / "graph")
    for made in (graph.simplify(), graph.vmap(), graph.copy(), wg.load(tmp_path / "graph")):
        assert len(made.select("[part=2]")) == 1
    assert graph.grad().select("encoder *[part=2][level=1][device=gpu]")

    def outer(x):
        with wg.scope("outer", device="cpu", seen=True):
            return graph(x)

    inside = wg.trace(outer)(wg.spec(3))
    assert "outer/encoder/layer1/tanh" in inside.names
    assert len(inside.select("outer *[seen=True]")) == 3
    assert [inside.name_of(n) for n in inside.select(device="cpu")] == ["outer/head/sum"]


def test_derivatives_by_hand_are_for_all_values_of_variables():
    w = wg.variable([1.0, 3.0, 2.0], "w")
    x = wg.input("x", 3)
    for loss in (np.max(w) ** 2, np.max(w * x) ** 2, np.max(np.abs(w)) * np.sum(x)):
        slope = wg.gradients(loss, w)
        f = wg.computation(slope, x)
        for value in ([1.0, 3.0, 2.0], [5.0, 3.0, 2.0], [0.0, -7.0, 1.0]):
            w.data = np.array(value)

            def plain(w, loss=loss):
                return wg.Graph(loss, inputs=[x.node]).substitute({"w": wg.input("v", 3)})(
                    np.ones(3), w
                )

            want = wg.grad(plain)(np.array(value))
            np.testing.assert_allclose(f(np.ones(3)), want)
        w.data = np.array([1.0, 3.0, 2.0])


def test_a_variable_that_was_set_is_the_variable_still():
    w = wg.variable([1.0, 2.0], "w")
    loss = np.sum(w**2)
    w.data = np.array([3.0, 4.0])
    both = loss + np.sum(w**3)  # the same variable, met before and after
    f = wg.computation([wg.gradients(loss, w), wg.gradients(both, w)])
    for value in ([3.0, 4.0], [-1.0, 2.0]):
        w.data = v = np.array(value)
        np.testing.assert_allclose(f()[0], 2 * v)
        np.testing.assert_allclose(f()[1], 2 * v + 3 * v**2)


def test_lines_that_are_right_for_one_value_only_are_refused():
    w = wg.variable([1.0, 3.0, 2.0], "w")
    x = wg.input("x", 3)
    ordered = np.sort(w) * x
    with pytest.raises(GraphError, match="trace it"):
        wg.computation(ordered, x)
    with pytest.raises(GraphError, match="trace it"):
        wg.gradients(np.sum(ordered), w)
    with pytest.raises(GraphError, match="trace it"):
        wg.Graph(ordered)(np.ones(3))
    graph = wg.trace(lambda x: np.sort(w) * x)(wg.spec(3))
    w.data = np.array([3.0, 2.0, 1.0])
    np.testing.assert_array_equal(graph(np.ones(3)), [1.0, 2.0, 3.0])
