"""What a run costs, counted by hand; the null backend; liveness."""

import numpy as np
import pytest
from wengert.backends import report

import wengert as wg
from wengert._engine.backends.liveness import in_place, last_uses, live_bytes, specs_at
from wengert.errors import ArgumentError, DtypeError, ShapeError


def layer(x, w):
    return np.sum(np.tanh(x @ w))


def test_counts_by_hand():
    graph = wg.trace(layer)(wg.spec(("n", 3)), wg.spec((3, 4), "float64"))
    found = report(graph, n=1000)
    assert found.operations == {"matmul": 1, "tanh": 1, "sum": 1}
    assert found.kinds == {"contraction": 1, "elementwise": 1, "reduction": 1}
    assert found.flops == 2 * 1000 * 3 * 4 + 4000 + 4000
    assert found.inputs == 8 * (3000 + 12)
    assert found.read == 8 * (3000 + 12 + 4000 + 4000)
    assert found.written == 8 * (4000 + 4000 + 1)
    assert found.outputs == 8
    assert found.peak == 8 * 8000
    assert found.peak_in_place == 8 * 4001
    assert found.peak_node.name == "tanh"
    assert found.peak_node.into == graph.index(graph.nodes[found.peak_node.index].inputs[0])
    assert found.unknown == []
    assert report(graph, {"n": 1}).flops == 24 + 8


def test_flops_of_kinds():
    a, b = wg.spec((4, 4)), wg.spec((4, 4))
    for f, specs, flops in (
        (lambda a, b: np.einsum("ij,jk->ik", a, b), (a, b), 2 * 64),
        (lambda a, b: np.linalg.solve(a, b), (a, b), 2 / 3 * 64 + 2 * 16 * 4),
        (lambda a: np.linalg.cholesky(a), (a,), 64 / 3),
        (lambda a: a.T.reshape(16)[::2], (a,), 0),
        (lambda a: np.convolve(a[0], a[1]), (a,), 2 * 16),
        (lambda a: np.mean(a, axis=0), (a,), 16),
    ):
        found = report(wg.trace(f)(*specs))
        assert found.flops == pytest.approx(flops), f
        assert found.unknown == []


def test_an_operation_of_a_user_is_not_guessed():
    @wg.primitive
    def mine(x):
        return x * 2.0

    found = report(wg.trace(lambda x: mine(x) + 1.0)(wg.spec(10)))
    assert found.unknown == [found.nodes[0].name]
    assert found.flops == 10
    assert "not counting" in str(found)


def test_variables_and_constants():
    w = wg.variable(np.zeros((3, 4)), "w")
    c = np.ones(4, np.float32)
    graph = wg.computation(wg.input("x", shape=("n", 3)) @ w + c).graph
    found = report(graph, n=2)
    assert (found.inputs, found.variables, found.constants) == (48, 96, 16)


def test_a_table_that_can_be_read():
    graph = wg.trace(wg.grad(layer))(wg.spec(("n", 3)), wg.spec((3, 4)))
    text = str(report(graph, n=1000))
    assert text.startswith("layer") or "operations at n = 1000" in text.splitlines()[0]
    for word in ("operations", "arithmetic", "traffic", "peak", "largest", "test_report.py:", "kB"):
        assert word in text
    assert "floating-point operations" in text
    assert str(report(wg.Graph(wg.input("x")))).count("\n") >= 5


def test_sizes_have_to_be_given():
    graph = wg.trace(lambda x: x[2:])(wg.spec("n"))
    with pytest.raises(ArgumentError, match="the size n has no number"):
        report(graph)
    with pytest.raises(ArgumentError, match="the size k is not in this graph"):
        report(graph, n=5, k=2)
    for bad in (0, -1, 2.5, True):
        with pytest.raises(ArgumentError, match="not a positive integer"):
            report(graph, n=bad)


# ---- liveness ----------------------------------------------------------------------------------


def brute_force(graph, specs):
    """The bytes held at each line, from the definition."""
    nodes = graph.nodes
    kept = {graph.index(n) for n in graph.outputs}
    held = []
    for now in range(len(nodes)):
        total = 0
        for k in range(now + 1):
            users = graph.consumers(k)
            needed = k in kept or k == now or any(u >= now for u in users)
            if needed and nodes[k].op.name not in ("input", "constant"):
                total += int(specs[k].size) * specs[k].dtype.itemsize
        held.append(total)
    return held


def test_live_bytes_agree_with_the_definition():
    rng = np.random.default_rng(1)
    for _ in range(20):
        choices = rng.integers(0, 1 << 30, size=(15, 2))

        def f(x, choices=choices):
            have = [x]
            for i, j in choices:
                have.append(have[i % len(have)] * have[j % len(have)])
            return have[-1], have[len(have) // 2]

        graph = wg.trace(f)(wg.spec(10))
        specs = specs_at(graph, {})
        assert live_bytes(graph, specs, {}) == brute_force(graph, specs)
        planned = live_bytes(graph, specs, in_place(graph, specs))
        assert all(a <= b for a, b in zip(planned, brute_force(graph, specs), strict=True))


def test_last_uses():
    def f(x):
        a = np.sin(x)
        b = a * 2.0
        np.cos(b)
        return b + a

    graph = wg.trace(f)(wg.spec(3))
    names = [n.op.name for n in graph.nodes]
    gone = {names[i]: [names[k] for k in ks] for i, ks in enumerate(last_uses(graph)) if ks}
    assert gone == {"add": ["sin", "multiply"]}


def test_in_place_is_refused_where_something_else_looks():
    def f(x):
        a = np.sin(x)
        view = a[::-1]
        b = np.exp(a)  # a dies here, but view is of its memory
        return b + view

    graph = wg.trace(f)(wg.spec(4))
    specs = specs_at(graph, {})
    names = [n.op.name for n in graph.nodes]
    planned = {names[i]: names[k] for i, k in in_place(graph, specs).items()}
    assert planned == {"add": "exp"}
    graph = wg.trace(lambda x: np.sin(x) > 0.0)(wg.spec(4))
    assert in_place(graph, specs_at(graph, {})) == {}


# ---- null --------------------------------------------------------------------------------------


def test_null_gives_zeros_of_the_right_kind_and_checks_as_any_other():
    x = wg.input("x", shape=("n", "n"), dtype="float32")
    f = wg.computation({"inverse": np.linalg.inv(x), "count": np.sum(x > 0)}, x, backend="null")
    out = f(np.ones((3, 3), np.float32))
    assert out["inverse"].tolist() == [[0.0] * 3] * 3
    assert out["inverse"].dtype == np.float32
    assert out["inverse"].flags.writeable
    assert out["count"] == 0
    assert out["count"].dtype == np.int64
    with pytest.raises(DtypeError, match="x is float64"):
        f(np.ones((3, 3)))
    with pytest.raises(ShapeError):
        f(np.ones((3, 2), np.float32))


def test_null_touches_no_memory_and_no_variable():
    w = wg.variable(np.ones(3), "w")
    x = wg.input("x", shape="n")
    seen = wg.debug.guard(x, high=0.0)
    big = np.sum(np.ones(1 << 20)[:, None] * x) + np.sum(seen)
    f = wg.computation(
        (big, x[:, None] * np.ones(1 << 20)), x, updates={w: w * 5.0}, backend="null"
    )
    total, huge = f(np.ones(1 << 8))
    assert total == 0.0
    assert huge.shape == (1 << 8, 1 << 20)  # 2 GB, of which no page is touched
    assert w.tolist() == [1.0, 1.0, 1.0]


def test_null_reports():
    graph = wg.trace(layer)(wg.spec(("n", 3)), wg.spec((3, 4)))
    assert wg.backends.backend("null").report(graph, n=7).flops == report(graph, n=7).flops
