"""Debug nodes and order: eager, traced, under derivatives; no effect is lost or repeated."""

import io
import json
import logging
import threading

import numpy as np
import pytest
from wengert.rewrite import simplify

import wengert as wg
from wengert._engine.ops.side_effects import Retrieved
from wengert.errors import ArgumentError, GuardError, RegistryError


def test_eager_values_pass_unchanged(capsys):
    x = np.array([1.0, 2.0])
    assert wg.debug.show(x, "x") is x
    t = wg.tensor(x, requires_grad=True)
    assert wg.debug.show(t, "t").tolist() == [1.0, 2.0]
    assert wg.debug.show(3, "n") == 3
    assert capsys.readouterr().out == (
        "x: float64[2] [1. 2.]\nt: float64[2] [1. 2.]\nn: int64[] 3\n"
    )


def test_show_without_a_label_says_where(capsys):
    wg.debug.show(np.ones(1))
    assert capsys.readouterr().out.startswith("test_debug.py:")
    graph = wg.trace(lambda x: wg.debug.show(x) + 1.0)(1.0)
    graph(2.0)
    assert capsys.readouterr().out.startswith("test_debug.py:")


def test_show_to_a_file_and_to_a_logger(caplog):
    file = io.StringIO()
    graph = wg.trace(lambda x: wg.debug.show(x, "x", file=file) * 2.0)(wg.spec(2))
    graph([1.0, 2.0])
    graph([3.0, 4.0])
    assert file.getvalue() == "x: float64[2] [1. 2.]\nx: float64[2] [3. 4.]\n"
    with caplog.at_level(logging.INFO):
        wg.debug.show(np.ones(1), "one", logger=logging.getLogger("test"))
    assert caplog.messages == ["one: float64[1] [1.]"]


def test_effects_of_a_graph_run_in_order_even_if_unused(capsys):
    def f(x):
        wg.debug.show(x, "first")
        y = x * 2.0
        wg.debug.show(y, "second")
        wg.debug.show(x, "third")
        return x + 1.0

    graph = wg.trace(f)(1.0)
    assert len(graph.effects) == 3
    assert capsys.readouterr().out == ""
    assert graph(5.0) == 6.0
    words = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert words == ["first", "second", "third"]
    assert len(wg.trace(graph)(1.0).effects) == 3


def test_order_stays_when_lines_are_written_again(capsys):
    w = wg.variable(2.0, "w")

    def f(x):
        wg.debug.show(w * 1.0, "a")  # of a variable: its line is rebuilt when the trace ends
        wg.debug.show(x, "b")
        wg.debug.show(w * x, "c")
        return x

    graph = wg.trace(f)(1.0)
    graph(1.0)
    assert [s[0] for s in capsys.readouterr().out.splitlines()] == ["a", "b", "c"]
    x = graph.nodes[graph.index(graph.inputs[0])]
    other = wg.input("other").node
    moved = wg._engine.core.graph_copies.rebuilt(graph.nodes, {x: other})
    again = graph.with_nodes(moved)
    again(1.0)
    assert [s[0] for s in capsys.readouterr().out.splitlines()] == ["a", "b", "c"]


def test_effect_of_a_variable_acts_when_the_graph_runs(capsys):
    w = wg.variable(2.0, "w")
    graph = wg.trace(lambda x: wg.debug.show(w, "w") * x)(1.0)
    assert capsys.readouterr().out == ""
    graph(1.0)
    with wg.no_grad():
        w *= 2.0
    graph(1.0)
    assert capsys.readouterr().out == "w: float64[] 2.0\nw: float64[] 4.0\n"


def test_derivatives_pass_and_are_shown(capsys):
    def f(x):
        return np.sum(wg.debug.show(np.sin(x), "sine", gradient=True) ** 2)

    x = np.array([0.3, 0.4])
    want = np.sin(2 * x)
    np.testing.assert_allclose(wg.grad(f)(x), want)
    eager = capsys.readouterr().out
    assert [s.split(":")[0] for s in eager.splitlines()] == ["sine", "gradient of sine"]
    graph = wg.trace(wg.grad(f))(x)
    np.testing.assert_allclose(graph(x), want)
    assert capsys.readouterr().out == eager
    np.testing.assert_allclose(wg.hessian(f)(x), np.diag(2 * np.cos(2 * x)), atol=1e-15)
    np.testing.assert_allclose(wg.jvp(f, (x,), (np.ones(2),))[1], want.sum())
    np.testing.assert_allclose(wg.trace(f)(x).grad()(x), want)


def test_vmap_acts_once_for_all_rows(capsys):
    rows = np.arange(6.0).reshape(3, 2)
    out = wg.vmap(lambda x: wg.debug.show(x, "x") * 2.0)(rows)
    np.testing.assert_array_equal(out, rows * 2.0)
    assert capsys.readouterr().out.count("x: ") == 1


# ---- retrieve ----------------------------------------------------------------------------------


def test_retrieve_keeps_copies():
    wg.debug.retrieved.clear()
    graph = wg.trace(lambda x: np.sum(wg.debug.retrieve(x * 2.0, "twice", keep=2)))(wg.spec(2))
    for k in range(3):
        graph([float(k), 1.0])
    assert wg.debug.retrieved["twice"].tolist() == [4.0, 2.0]
    assert [a.tolist() for a in wg.debug.retrieved.history("twice")] == [[2.0, 2.0], [4.0, 2.0]]
    x = np.zeros(2)
    wg.debug.retrieve(x, "x")
    x += 1.0
    assert wg.debug.retrieved["x"].tolist() == [0.0, 0.0]
    assert list(wg.debug.retrieved) == ["twice", "x"]
    assert "x" in wg.debug.retrieved
    with pytest.raises(RegistryError, match="'z'; existing names: twice, x"):
        wg.debug.retrieved["z"]
    wg.grad(lambda x: np.sum(wg.debug.retrieve(x * 3.0, "g", gradient=True)))(np.ones(2))
    assert wg.debug.retrieved["gradient of g"].tolist() == [1.0, 1.0]


def test_retrieved_is_bounded_and_safe_in_threads():
    kept = Retrieved()
    kept.limit = 10

    def work(k):
        for i in range(200):
            kept.put(f"{k}, {i % 7}", i, 3)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(kept) == 10
    assert all(1 <= len(kept.history(name)) <= 3 for name in kept)


# ---- log ---------------------------------------------------------------------------------------


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_log_writes_lines_of_json(tmp_path, caplog):
    path = tmp_path / "values.jsonl"
    graph = wg.trace(lambda x: np.sum(wg.debug.log(x, path, "x", gradient=True) * 2.0))(wg.spec(3))
    graph([1.0, np.nan, np.inf])
    graph.grad()([1.0, 2.0, 6.0])
    first, second, third = read(path)
    assert (first["min"], first["max"], first["mean"]) == (1.0, 1.0, 1.0)
    assert (first["nan"], first["inf"]) == (1, 1)
    assert (first["label"], first["dtype"], first["shape"]) == ("x", "float64", [3])
    assert "test_debug.py" in first["where"]
    assert second["mean"] == 3.0
    assert (third["label"], third["mean"]) == ("gradient of x", 2.0)
    with caplog.at_level(logging.INFO):
        wg.debug.log(np.array([3 + 4j]), logging.getLogger("test"), "z")
    assert json.loads(caplog.messages[0])["max"] == 5.0
    for odd in (np.zeros((0, 2)), np.array([True, False]), 7, np.array([np.nan])):
        wg.debug.log(odd, path, "odd")
    *_, empty, truths, seven, nothing = read(path)
    assert empty["mean"] is None
    assert truths["mean"] == 0.5
    assert seven["min"] == 7
    assert nothing["max"] is None
    with pytest.raises(ArgumentError, match="path of a file, or a logger"):
        wg.debug.log(np.ones(1), 3.5)


def test_log_lines_of_threads_do_not_mix(tmp_path):
    path = tmp_path / "values.jsonl"
    graph = wg.trace(lambda x: wg.debug.log(x, path, "a" * 300) + 1.0)(wg.spec(2))
    threads = [
        threading.Thread(target=lambda: [graph([1.0, 2.0]) for _ in range(25)]) for _ in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(read(path)) == 100


# ---- guard -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "options", "words"),
    [
        ([1.0, np.nan], {}, "is nan at index 1; it must be finite"),
        (
            [[1.0, 2.0], [np.inf, np.inf]],
            {},
            "is inf at index (1, 0), the first of 2 such elements",
        ),
        ([1.0, -2.0], {"low": 0.0}, "is -2.0 at index 1; it must be at least 0.0"),
        ([1, 7], {"high": 5}, "is 7 at index 1; it must be at most 5"),
        (np.inf, {}, "is inf; it must be finite"),
        (np.inf, {"finite": False, "high": 1.0}, "at most 1.0"),
        ([1.0 + 1j, np.nan * 1j], {}, "at index 1; it must be finite"),
    ],
)
def test_guard_says_what_where_and_which_line(value, options, words):
    array = np.array(value)

    def f(x):
        return wg.debug.guard(x, label="the rate", **options) * 2

    graph = wg.trace(f)(array)
    for run in (f, graph):
        with pytest.raises(GuardError) as caught:
            run(array)
        text = str(caught.value)
        assert "the guarded value the rate, " in text
        assert words in text
        assert f"test_debug.py:{f.__code__.co_firstlineno + 1}, in f" in text


def test_guard_passes_what_is_allowed():
    for value, options in (
        (np.array([0.0, 1.0]), {"low": 0.0, "high": 1.0}),
        (np.array([np.nan, 1.0]), {"finite": False, "low": 0.0}),
        (np.array([np.inf]), {"finite": False, "low": 0.0}),
        (np.zeros((0, 3)), {"low": 1.0}),
        (np.array([1j]), {}),
        (np.array([True]), {}),
        (5, {"high": 6}),
    ):
        assert wg.debug.guard(value, **options) is value
    with pytest.raises(ArgumentError, match="complex numbers have no order"):
        wg.debug.guard(np.array([1j]), low=0.0)
    with pytest.raises(ArgumentError, match="low="):
        wg.debug.guard(1.0, low="a")
    with pytest.raises(ArgumentError, match="label"):
        wg.debug.guard(1.0, label=3)


def test_guard_of_gradients():
    def f(x):
        return np.sum(np.sqrt(wg.debug.guard(x, label="x", gradient=True)))

    zero = np.array([1.0, 0.0])
    assert wg.grad(f)(np.ones(2)).tolist() == [0.5, 0.5]
    for run in (wg.grad(f), wg.trace(wg.grad(f))(zero)):
        with pytest.raises(GuardError, match=r"gradient of x, .* is inf at index 1") as caught:
            run(zero)
        assert f"test_debug.py:{f.__code__.co_firstlineno + 1}, in f" in str(caught.value)


def test_guard_of_gradients_in_a_branch_not_taken():
    def f(x):
        x = wg.debug.guard(x, label="x", gradient=True)
        return np.sum(np.where(x > 0, np.sqrt(x), 0.0))

    x = np.array([4.0, 0.0])
    assert wg.grad(f)(x).tolist() == [0.25, 0.0]
    assert wg.trace(wg.grad(f))(x)(x).tolist() == [0.25, 0.0]
    with pytest.raises(GuardError, match=r"gradient of x, .* is nan"):
        wg.grad(lambda x: f(x) * np.nan)(np.ones(2))


# ---- order -------------------------------------------------------------------------------------


def test_after_makes_unused_lines_run(capsys):
    x = wg.input("x", shape=2)
    y = wg.after(x * 2.0, wg.debug.show(x, "x"), wg.debug.show(x + 1.0, "y"))
    f = wg.computation(np.sum(y), x)
    assert f([1.0, 2.0]) == 6.0
    assert [s[0] for s in capsys.readouterr().out.splitlines()] == ["x", "y"]
    assert f.graph.grad()([1.0, 2.0]).tolist() == [2.0, 2.0]


def test_after_of_plain_values_and_rows():
    assert wg.after(3.0, np.ones(2)) == 3.0
    out = wg.vmap(lambda y: wg.after(np.ones(2) * 1.0, y))(np.zeros((4, 3)))
    assert np.array_equal(out, np.ones((4, 2)))
    np.testing.assert_array_equal(wg.grad(lambda x: wg.after(x * x, np.sin(x)))(3.0), 6.0)


def test_effects_built_by_hand(capsys):
    x = wg.input("x")
    shown = wg.debug.show(x * 3.0, "three")
    assert wg.computation(x, x)(1.0) == 1.0
    assert capsys.readouterr().out == ""
    f = wg.computation(x, x, effects=[shown])
    f(1.0)
    assert capsys.readouterr().out == "three: float64[] 3.0\n"
    g = wg.computation(wg.debug.show(x, "x"), x)
    assert len(g.graph.effects) == 1


def test_rewriting_keeps_effects_and_their_order(capsys):
    def f(x):
        wg.debug.show(x * 1.0 + 0.0 * 2.0, "a")
        wg.debug.show(x, "b")
        wg.debug.show(x, "b")
        wg.debug.show(np.negative(-x), "c")
        return np.sum(x * 1.0)

    graph = wg.trace(f)(wg.spec(2))
    for simple in (simplify(graph), simplify(graph.grad()), simplify(simplify(graph))):
        assert len(simple.effects) == 4
        simple([1.0, 2.0])
        assert [s[0] for s in capsys.readouterr().out.splitlines()] == ["a", "b", "b", "c"]


def test_a_log_has_a_histogram(tmp_path):
    path = tmp_path / "log.jsonl"

    def f(x):
        return np.sum(wg.debug.log(x, path, "x", bins=2, gradient=True) ** 2)

    graph = wg.trace(f)(wg.spec("n")).grad()
    graph([0.0, 1.0, 4.0, np.nan])
    value, cotangent = map(json.loads, path.read_text().splitlines())
    assert (value["counts"], value["edges"]) == ([2, 1], [0.0, 2.0, 4.0])
    assert cotangent["counts"] == [2, 1] and cotangent["nan"] == 1


@pytest.mark.parametrize(
    ("x", "counts"),
    [
        ([], []),
        ([np.nan, np.inf], []),
        ([2.0, 2.0], [2]),
        ([-1.7e308, 1.7e308], [2]),
        ([3 + 4j, 0j], [1, 0, 1]),
        ([True, False, True], [1, 0, 2]),
        ([1.0, np.nextafter(1.0, 2.0)], [2]),
    ],
)
def test_histograms_of_odd_values(x, counts, tmp_path):
    wg.debug.log(np.array(x), tmp_path / "log", bins=3)
    line = json.loads((tmp_path / "log").read_text())
    assert line["counts"] == counts and len(line["edges"]) == (len(counts) + 1 if counts else 0)


@pytest.mark.parametrize("bins", [0, -1, 2.5, True, "auto"])
def test_bins_that_are_no_number_are_refused(bins, tmp_path):
    with pytest.raises(ArgumentError, match="bins="):
        wg.debug.log(np.ones(2), tmp_path / "log", bins=bins)
