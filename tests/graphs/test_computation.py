"""Computations: what is fed, what comes back, what stays; threads, copies, interrupts."""

import copy
import threading

import numpy as np
import pytest
from tests.interrupts import moments_in

import wengert as wg
from wengert.errors import (
    ArgumentError,
    ConversionError,
    DtypeError,
    GraphError,
    ShapeError,
    StructureError,
)


def product():
    x, y = wg.input("x"), wg.input("y", shape=("n",))
    return x, y, wg.computation(np.sum(x * y), x, y)


# ---- feeding -----------------------------------------------------------------------------------


def test_fed_by_position_name_and_dictionary():
    x, y, f = product()
    array = np.array([1.0, 2.0])
    for call in (
        lambda: f(3.0, array),
        lambda: f(x=3.0, y=array),
        lambda: f(3.0, y=array),
        lambda: f({x: 3.0, y: array}),
        lambda: f({"x": 3.0, "y": array}),
        lambda: f({x: 3.0, "y": array}),
        lambda: f({x: 3.0}, y=array),
        lambda: f({x.node: 3.0}, y=array),
    ):
        assert call() == 9.0
    assert f.inputs == ("x", "y")


def test_inputs_are_found_in_order_of_creation():
    a, b = wg.input("a"), wg.input("b")
    assert wg.computation(b - 2.0 * a).inputs == ("a", "b")
    assert wg.computation(b - 2.0 * a)(1.0, 10.0) == 8.0
    assert wg.computation(b - 2.0 * a, b, a)(1.0, 10.0) == -19.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f, x: f(1.0), "y is missing"),
        (lambda f, x: f(), "x, y are missing"),
        (lambda f, x: f(1.0, [1.0], z=1.0), "'z' is not one of them"),
        (lambda f, x: f(1.0, x=2.0), "x is given twice"),
        (lambda f, x: f({x: 1.0, "x": 1.0}), "x is given twice"),
        (lambda f, x: f(1.0, [1.0], 3.0), "3 values"),
        (lambda f, x: f({3: 1.0}), "a int is not one of them"),
        (lambda f, x: f({wg.input("x"): 1.0}), "a Tensor is not one of them"),
    ],
)
def test_wrong_feeds_name_the_inputs(call, words):
    x, _, f = product()
    with pytest.raises(StructureError) as caught:
        call(f, x)
    assert words in str(caught.value)
    assert "(x, y)" in str(caught.value)
    assert "test_computation.py" in str(caught.value)


def test_two_inputs_of_one_name_are_fed_by_position_or_tensor():
    a, b = wg.input("x"), wg.input("x")
    f = wg.computation(a - b)
    assert f(3.0, 1.0) == 2.0
    assert f({a: 3.0, b: 1.0}) == 2.0
    with pytest.raises(StructureError, match="2 inputs have the name 'x'"):
        f(3.0, x=1.0)


def test_needed_input_that_is_not_listed():
    x, y, _ = product()
    with pytest.raises(GraphError, match=r"the input y, .*is needed"):
        wg.computation(x * y, x)


def test_inputs_that_are_not_needed():
    x, y, _ = product()
    f = wg.computation(2.0 * x, x, y)
    assert f(2.0, [1.0, 2.0]) == 4.0
    with pytest.raises(StructureError, match="y is missing"):
        f(2.0)
    with pytest.raises(ShapeError, match="y has shape"):
        f(2.0, 1.0)


def test_wrong_inputs_of_a_computation():
    x = wg.input("x")
    with pytest.raises(GraphError, match="listed twice"):
        wg.computation(x, x, x)
    with pytest.raises(GraphError, match="input 1 is a ndarray"):
        wg.computation(x, x, np.ones(2))
    with pytest.raises(StructureError, match="an output is a function"):
        wg.computation(lambda z: z)


def test_what_is_computed_can_be_given_instead():
    x = wg.input("x", shape=3)
    hidden = np.tanh(x)
    loss = np.sum(hidden**2)
    f = wg.computation(loss, hidden)
    assert f([1.0, 2.0, 3.0]) == 14.0
    assert wg.computation(loss, x, hidden)(np.zeros(3), np.ones(3)) == 3.0
    w = wg.variable([1.0, 2.0], "w")
    g = wg.computation(np.sum(w * w), w)
    assert g([3.0, 4.0]) == 25.0
    assert g(w=[0.0, 1.0]) == 1.0
    assert w.tolist() == [1.0, 2.0]


def test_an_eager_history_is_a_graph():
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    y = np.sum(np.sin(x))
    f = wg.computation(y, x)
    assert f(np.zeros(2)) == 0.0
    assert f(np.array([0.5, 0.0])) == np.sin(0.5)


# ---- values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [2, 2.0, True, np.float32(2), np.int8(2), np.array(2.0), [2][0]])
def test_numbers_for_a_scalar(value):
    x = wg.input("x")
    out = wg.computation(x * 2.0, x)(value)
    assert out == 2.0 * value
    assert type(out) is np.float64


def test_lists_and_other_dtypes():
    x = wg.input("x", shape=2, dtype="float32")
    f = wg.computation(x * 2.0, x)
    assert f([1, 2]).dtype == np.float32
    assert f([0.5, 2.5]).tolist() == [1.0, 5.0]
    assert f(np.array([1, 2], np.int16)).tolist() == [2.0, 4.0]
    assert f(np.array([1, 2], ">f4")).dtype == np.dtype("float32")
    assert f((1.0, 2.0)).tolist() == [2.0, 4.0]
    with pytest.raises(DtypeError, match=r"x is float64\[2\], but the graph was built for float32"):
        f(np.ones(2))
    with pytest.raises(DtypeError, match="complex128"):
        f([1j, 2.0])
    i = wg.computation(wg.input("i", dtype="uint8") + 1)
    assert i(7) == 8
    for bad in (300, -1, 2.5):
        with pytest.raises(DtypeError, match="i is"):
            i(bad)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("ab", DtypeError),
        (None, DtypeError),
        ([[1.0], [1.0, 2.0]], ShapeError),
        (np.ones(3), ShapeError),
        (1.0, ShapeError),
        (np.array([object(), object()]), DtypeError),
        (np.array(["a", "b"]), DtypeError),
        (np.ma.masked_array([1.0, 2.0], [True, False]), ConversionError),
        (wg.input("z", shape=2), None),
    ],
)
def test_what_does_not_fit_names_the_input(value, error):
    f = wg.computation(wg.input("x", shape=2) * 2.0)
    if error is None:  # a tensor of another graph: its nodes are recorded again
        assert f(value).shape == (2,)
        return
    with pytest.raises(error, match=r"^x ") as caught:
        f(value)
    assert "test_computation.py" in str(caught.value)


def test_python_numbers_stay_weak():
    graph = wg.trace(lambda k, x: (k * 2.0, k * x))(1.5, wg.spec(2, "float32"))
    f = wg.computation(graph)
    twice, product = f(3.0, np.ones(2, np.float32))
    assert type(twice) is np.float64
    assert product.dtype == np.float32
    assert f(2, np.ones(2, np.float32))[1].dtype == np.float32
    with pytest.raises(DtypeError, match="k is complex128"):
        f(1j, np.ones(2, np.float32))


def test_symbolic_sizes_are_solved_and_checked():
    x, y = wg.input("x", shape=("n", "m")), wg.input("y", shape=("m",))
    f = wg.computation(x @ y)
    for n, m in ((2, 3), (4, 1), (2, 3), (1, 7)):
        np.testing.assert_array_equal(f(np.ones((n, m)), np.ones(m)), np.full(n, float(m)))
    with pytest.raises(ShapeError, match="axis 0 of y has length 4"):
        f(np.ones((2, 3)), np.ones(4))


# ---- results -----------------------------------------------------------------------------------


def test_structure_of_outputs_is_kept():
    x = wg.input("x", shape=2)
    f = wg.computation({"a": [x, (x * 2.0, None)], "b": np.sum(x)}, x)
    out = f([1.0, 2.0])
    assert out["a"][1][0].tolist() == [2.0, 4.0]
    assert out["a"][1][1] is None
    assert out["b"] == 3.0
    assert wg.computation((x,), x)([1.0, 2.0])[0].tolist() == [1.0, 2.0]
    assert wg.computation((), x)([1.0, 2.0]) == ()


def test_results_belong_to_the_caller():
    x = wg.input("x", shape=(2, 3))
    w = wg.variable(np.arange(3.0), "w")
    c = np.arange(6.0).reshape(2, 3)
    twice = x * 2.0
    outputs = [
        x,
        x.T,
        x[0],
        w,
        w[1:],
        twice,
        twice,
        twice.reshape(6),
        x + c,
        np.broadcast_to(w, (2, 3)),
    ]
    outputs += [wg.Tensor(c), twice.T]
    f = wg.computation(outputs, x)
    fed = np.ones((2, 3))
    first = f(fed)
    expected = [np.array(r) for r in first]
    for i, result in enumerate(first):
        assert result.flags.writeable
        result[...] = 100.0 + i
    for i, result in enumerate(first):
        assert (result == 100.0 + i).all(), "two results share memory"
    assert (fed == 1.0).all()
    assert w.tolist() == [0.0, 1.0, 2.0]
    for result, old in zip(f(fed), expected, strict=True):
        np.testing.assert_array_equal(result, old)


def test_a_view_of_own_memory_is_not_copied():
    x = wg.input("x", shape=1000)
    f = wg.computation((x * 2.0).reshape(10, 100), x)
    assert f(np.ones(1000)).base is not None


def test_derivatives_pass_through_a_computation():
    x = wg.input("x", shape=3)
    f = wg.computation(np.sum(np.sin(x)), x)
    np.testing.assert_allclose(wg.grad(f)(np.zeros(3)), np.ones(3))
    t = wg.tensor(np.zeros(3), requires_grad=True)
    f(t).backward()
    assert t.grad.tolist() == [1.0, 1.0, 1.0]
    assert isinstance(f(wg.tensor(np.zeros(3))), np.float64)
    graph = wg.trace(lambda z: f(z) * 2.0)(wg.spec(3))
    assert graph(np.zeros(3)) == 0.0


def test_a_computation_with_updates_inside_others():
    x, w = wg.input("x", shape=3), wg.variable(1.0, "w", differentiable=False)
    f = wg.computation(np.sum(w * x), x, updates={w: w + 1.0})
    np.testing.assert_array_equal(wg.grad(f)(np.ones(3)), np.ones(3))
    assert w.item() == 2.0
    graph = wg.trace(lambda z: f(z) + f(z))(wg.spec(3))
    assert w.item() == 2.0
    assert graph(np.ones(3)) == 6.0 + 9.0
    assert w.item() == 4.0
    assert (
        wg.computation(np.sum(w * x), x)(wg.tensor(np.ones(3), requires_grad=True)).item() == 12.0
    )
    fixed = wg.Graph(np.sum(w * x))
    with wg.no_grad():
        w += 1.0
    assert fixed(wg.tensor(np.ones(3), requires_grad=True)).item() == 15.0


# ---- updates -----------------------------------------------------------------------------------


def test_outputs_come_from_old_values_and_updates_go_together():
    a, b = wg.variable(1.0, "a"), wg.variable(10.0, "b")
    swap = wg.computation((a, b), updates={a: b, b: a})
    assert swap() == (1.0, 10.0)
    assert (a.item(), b.item()) == (10.0, 1.0)
    assert swap() == (10.0, 1.0)
    assert (a.item(), b.item()) == (1.0, 10.0)


def test_all_or_none():
    a, b = wg.variable(1.0, "a"), wg.variable(np.ones(2), "b")
    x = wg.input("x", shape=2)
    checked = wg.debug.guard(b + x, label="b")
    f = wg.computation(a, x, updates={a: a + 1.0, b: checked})
    f([1.0, 1.0])
    assert a.item() == 2.0
    with pytest.raises(wg.errors.GuardError):
        f([np.nan, 1.0])
    assert a.item() == 2.0
    assert b.tolist() == [2.0, 2.0]


def test_an_update_that_cannot_be():
    x, w = wg.input("x"), wg.variable(np.ones(2), "w")
    k = wg.variable(1, "k")
    with pytest.raises(ArgumentError, match=r"x, .*is not a variable"):
        wg.computation(x, updates={x: x + 1.0})
    with pytest.raises(ShapeError, match=r"w, .*keeps its shape"):
        wg.computation(x, updates={w: x})
    with pytest.raises(DtypeError, match=r"k, .*keeps its dtype"):
        wg.computation(x, updates={k: k * 0.5})
    with pytest.raises(ArgumentError, match="is an input, so it cannot be updated"):
        wg.computation(w, w, updates={w: w * 2.0})
    with pytest.raises(ShapeError, match="variable keeps its shape"):
        n = wg.input("n", shape="n")
        wg.computation(None, n, updates={wg.variable(np.ones(2), "v"): n})


def test_names_kinds_and_dtypes_of_variables_stay():
    w = wg.variable(np.ones((2, 3), np.float32, order="F"), "w")
    f = wg.computation(None, updates={w: np.full((2, 3), 2.0)})
    assert f() is None
    assert w.dtype == np.float32
    assert w.node.name == "w"
    assert w.requires_grad
    assert w.is_leaf
    row = w[0]
    wg.computation(None, updates={w: w * 3.0})()
    assert row.tolist() == [6.0, 6.0, 6.0]


def test_a_store_of_parameters_shared_by_several_computations():
    rng = np.random.default_rng(0)
    x, y = wg.input("x", shape=("n", 2)), wg.input("y", shape="n")
    w, b = wg.variable(np.zeros(2), "w"), wg.variable(0.0, "b")
    velocity = wg.variable(np.zeros(2), "velocity", differentiable=False)
    error = x @ w + b - y
    loss = np.mean(error**2)
    w_bar, b_bar = wg.gradients(loss, [w, b])
    faster = 0.5 * velocity - 0.1 * w_bar
    train = wg.computation(
        loss, x, y, updates={velocity: faster, w: w + faster, b: b - 0.1 * b_bar}, name="train"
    )
    test = wg.computation(loss, x, y, name="test")
    predict = wg.computation(x @ w + b, x)
    data = rng.normal(size=(50, 2))
    target = data @ [2.0, -3.0] + 0.5
    first = test(data, target)
    losses = [train(data[k % 5 :: 5], target[k % 5 :: 5]) for k in range(300)]
    assert losses[-1] < 1e-6 < first
    assert test(data, target) < 1e-6
    np.testing.assert_allclose(
        w.numpy() if hasattr(w, "numpy") else np.asarray(w), [2, -3], atol=1e-3
    )
    assert abs(predict([[0.0, 0.0]])[0] - 0.5) < 1e-3


def test_a_variable_that_nobody_else_holds():
    x = wg.input("x")

    def counter():
        count = wg.variable(0, "count")
        return wg.computation(count + x, x, updates={count: count + 1})

    f = counter()
    assert [int(f(10)) for _ in range(3)] == [10, 11, 12]


# ---- around ------------------------------------------------------------------------------------


def test_many_threads():
    count = wg.variable(0, "count")
    x = wg.input("x", shape="n")
    f = wg.computation(np.sum(x * 2.0), x, updates={count: count + 1})
    pair = wg.computation((count, count * 2))
    wrong = []

    def work(k):
        for i in range(50):
            n = 1 + (i + k) % 7
            if f(np.full(n, float(k))) != 2.0 * n * k:
                wrong.append((k, n))
            a, b = pair()
            if b != 2 * a:
                wrong.append((a, b))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert int(count) == 400


def test_interrupt_leaves_variables_untouched():
    a, b = wg.variable(1.0, "a"), wg.variable(2.0, "b")

    class Interrupting:
        def write(self, text):
            raise KeyboardInterrupt

    x = wg.input("x")
    shown = wg.debug.show(a * x, "a", file=Interrupting())
    f = wg.computation(a, x, updates={b: b + 1.0, a: shown})
    with pytest.raises(KeyboardInterrupt):
        f(5.0)
    assert (a.item(), b.item()) == (1.0, 2.0)
    assert float(wg.computation(b, updates={b: b + 1.0})()) == 2.0  # no lock is left behind
    assert b.item() == 3.0


def test_copies():
    w = wg.variable([1.0, 2.0], "w")
    k = wg.variable(3, "k")
    f = wg.computation((np.sum(w), k), updates={w: w * 2.0, k: k + 1})
    same, other = copy.copy(f), copy.deepcopy(f)
    assert f() == (3.0, 3)
    assert same() == (6.0, 4)
    assert other() == (3.0, 3)
    assert other() == (6.0, 4)
    assert w.tolist() == [4.0, 8.0]
    assert int(k) == 5
    model = {"w": w, "f": f}
    twin = copy.deepcopy(model)
    twin["f"]()
    assert twin["w"].tolist() == [8.0, 16.0]
    assert w.tolist() == [4.0, 8.0]


def test_repr_and_parts():
    x, _, f = product()
    g = wg.computation(x, x, name="same")
    assert repr(g) == "<computation same(x) -> 1 output, 1 nodes, interpret>"
    assert f.backend.name == "interpret"
    assert [n.name for n in f.graph.inputs] == ["x", "y"]
    assert g(2.5) == 2.5


def test_a_graph_as_a_computation():
    def f(p, *, scale):
        return {"y": p["a"] * scale + p["b"]}

    graph = wg.trace(f)({"a": 1.0, "b": np.ones(2)}, scale=2.0)
    g = wg.computation(graph)
    out = g({"a": 2.0, "b": np.zeros(2)}, scale=3.0)
    assert out["y"].tolist() == [6.0, 6.0]
    with pytest.raises(ArgumentError, match="has its own inputs"):
        wg.computation(graph, wg.input("x"))
    with pytest.raises(StructureError):
        g(1.0)


def test_the_users_graph_is_not_changed():
    x = wg.input("x", shape="n")
    graph = wg.Graph(np.sum(np.exp(x)))
    before = str(graph), [id(n) for n in graph.nodes]
    for backend in ("interpret", "null", "interpret"):
        wg.computation(graph, backend=backend)(np.zeros(3))
    assert (str(graph), [id(n) for n in graph.nodes]) == before


def test_ctrl_c_at_any_moment_writes_all_updates_or_none():
    variables = [wg.variable(0, f"v{k}") for k in range(20)]
    counts = [wg.variable(np.zeros(3), f"a{k}", differentiable=False) for k in range(5)]
    row = counts[0][1:]  # a view, which follows
    updates = {v: v + 1 for v in variables} | {a: a + 1.0 for a in counts}
    f = wg.computation(None, updates=updates)
    f()
    f()
    number = moments_in(f)
    assert number > 100
    for moment in range(1, number + 1):
        moments_in(f, moment)
        found = {v.item() for v in variables} | {float(n) for a in counts for n in a.numpy()}
        assert len(found) == 1, (moment, found)
        assert row.tolist() == [found.pop()] * 2
    f()
    assert 3 < variables[0].item() < number + 4  # some of them came before the updates


def test_a_variable_written_to_by_hand_stays_one_without_recording():
    v = wg.variable(np.zeros(2), "v")
    with wg.no_grad():
        v[...] = 5.0
    step = wg.computation(np.sum(v), updates={v: v + 1.0})
    assert (float(step()), v.numpy().tolist()) == (10.0, [6.0, 6.0])
    v[...] = 1.0  # recorded: v is computed now
    with pytest.raises(ArgumentError, match=r"not a variable.*with wengert\.no_grad"):
        wg.computation(np.sum(v), updates={v: v + 1.0})


def test_updates_that_are_no_dict_are_refused():
    stream, x = wg.random.Stream(0), wg.input("x")
    with pytest.raises(ArgumentError, match=r"updates is a method.*Call it"):
        wg.computation(x, updates=stream.updates)
