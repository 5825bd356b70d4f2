"""Profiles of compiled functions: steps, the user's lines, memory; pictures; what is left behind.

Times are compared only where one thing takes a hundred times as long as another.
"""

import json
import os
import pickle
import threading
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from wengert.backends import Interpreter

import wengert as wg
from wengert import compiling
from wengert._engine.backends.llvm.profile import instrumented
from wengert._engine.profiling.record import (
    LineShare,
    StepRecord,
    call_seconds,
    lower_quartile,
    timed_rounds,
)
from wengert.errors import ArgumentError, BackendError, MatrixError, TraceError

FEW = {"repeats": 3}


def here(text):
    """The line of this file that has this text, as profiles name it."""
    with open(__file__, encoding="utf-8") as file:
        (number,) = [n for n, line in enumerate(file, 1) if line.strip() == text]
    return f"{os.path.basename(__file__)}:{number}"


def check(seen):
    """What holds of every profile."""
    outer = [row for row in seen.rows if not row.depth]
    assert sum(row.share for row in outer) == pytest.approx(1.0)
    assert sum(row.seconds for row in outer) == pytest.approx(seen.seconds)
    lines = seen.by_line()
    assert sum(line.share for line in lines) == pytest.approx(1.0)
    assert [line.seconds for line in lines] == sorted((x.seconds for x in lines), reverse=True)
    assert all(row.seconds >= 0.0 and row.held >= 0 for row in seen.rows)
    for row in seen.rows:
        assert sum(share for _, share in row.lines) == pytest.approx(1.0), row
        inside = [r for r in seen.rows if r.number.rpartition(".")[0] == row.number != ""]
        assert sum(r.seconds for r in inside) <= row.seconds * (1 + 1e-9)
    assert seen.seconds > 0.0 and seen.plain > 0.0
    ElementTree.fromstring(seen.to_svg())
    told = json.loads(seen.to_json())
    assert len(told["rows"]) == len(seen.rows) and len(told["lines"]) == len(lines)
    assert repr(seen) == str(seen) and seen.name in str(seen)
    assert str(pickle.loads(pickle.dumps(seen))) == str(seen)
    return seen


def kinds(seen):
    return [row.kind for row in seen.rows]


def of_line(seen, text):
    """The user's line with this text."""
    (found,) = [line for line in seen.by_line() if line.place == here(text)]
    assert found.text == text
    return found


# ---- steps and lines ---------------------------------------------------------------------------


def heavy_and_light(x):
    y = x + 1.0
    z = np.linalg.inv(y)
    return np.sum(z)


def test_lines_stand_in_order_of_their_time():
    x = np.random.default_rng(0).normal(size=(150, 150))
    seen = check(wg.profile(heavy_and_light, repeats=5)(x))
    assert seen.value == pytest.approx(heavy_and_light(x))
    line = of_line(seen, "z = np.linalg.inv(y)")
    assert line.share > 0.0 and not line.is_estimated and line.levels.keys() == {0}
    assert "call" in kinds(seen) and kinds(seen)[-1] == "around"
    (call,) = [row for row in seen.rows if row.kind == "call"]
    assert call.operations == ("inv",) and call.calls == 1.0
    assert call.read == call.written == x.nbytes
    assert call.flops == pytest.approx(2 * 150**3) and call.gflops > 0 and call.gbytes > 0


def fused(x):
    y = np.tanh(x)
    z = y + x
    return np.sum(z * y)


def test_a_nest_is_shared_out_by_work():
    seen = check(wg.profile(fused, **FEW)(np.ones(2000)))
    (nest, _) = seen.rows
    assert nest.kind == "nest" and nest.is_estimated
    assert nest.operations == ("tanh", "add", "multiply", "sum")
    shares = dict(nest.lines)
    assert len(shares) == 3
    dear, cheap = of_line(seen, "y = np.tanh(x)"), of_line(seen, "z = y + x")
    assert dear.is_estimated and dear.seconds > 4 * cheap.seconds > 0.0
    assert dear.steps == ("1",)
    assert nest.read == 16000 and nest.written == 8 and nest.flops == 8000
    assert "~ " in str(seen) and "divided among" in str(seen)


def test_derivatives_belong_to_the_lines_that_they_stem_from():
    seen = check(wg.profile(wg.grad(fused), **FEW)(np.ones(500)))
    line = of_line(seen, "y = np.tanh(x)")
    assert line.levels.keys() == {0, 1}
    assert 0.0 < line.derivative < line.seconds
    np.testing.assert_allclose(seen.value, wg.grad(fused)(np.ones(500)))


def test_memory_between_steps_and_of_lines():
    def f(x):
        y = x @ x
        z = y @ x
        return np.sum(np.exp(z))

    x = np.full((100, 100), 1e-3)
    seen = check(wg.profile(f, **FEW)(x))
    assert seen.workspace >= 2 * x.nbytes and seen.peak == seen.workspace + 8
    assert seen.workspace < 3 * x.nbytes
    first, second, *_ = seen.rows
    assert (first.held, second.held) == (x.nbytes, 2 * x.nbytes)
    assert of_line(seen, "y = x @ x").kept == x.nbytes
    assert seen.timing.inputs == x.nbytes and seen.timing.outputs == 8


def test_several_results_and_named_sizes():
    f = wg.jit(lambda x: {"a": x + 1.0, "b": (np.sum(x), None)})
    f(np.ones(3)), f(np.ones(4))
    seen = check(wg.profile(f, **FEW)(np.ones(100)))
    assert f.cache_info().general == 1 and seen.timing.sizes == {"n": 100}
    assert seen.rows[0].written == 808 and "n = 100" in str(seen)
    assert seen.value["b"] == (100.0, None)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: np.sum(np.exp(x)), np.zeros((0, 3))),
        (lambda x: np.exp(x), np.zeros((0, 3))),
        (lambda x: x, np.ones(3)),
        (lambda x: 3.0, np.ones(3)),
        (lambda x: x * 2, 1.5),
        (lambda x: x * 2, np.ones((8, 6), np.float32)[::2].T),
        (lambda x: x * 1j, np.ones(3)),
    ],
    ids=["zero", "zero result", "identity", "constant", "number", "strided", "complex"],
)
def test_small_and_empty(f, x):
    seen = check(wg.profile(f, **FEW)(x))
    np.testing.assert_array_equal(seen.value, f(x))


@pytest.mark.usefixtures("unconverted")
def test_many_steps_are_printed_together():
    def f(x):
        for _ in range(60):
            x = np.sin(x) @ x
        return x

    seen = check(wg.profile(f, **FEW)(np.eye(3)))
    assert len(seen.rows) > 50
    assert len(str(seen).splitlines()) < 30 and "such steps" in str(seen)


def test_scopes():
    def f(x):
        with wg.scope("outer"):
            y = np.cos(x) @ x
            with wg.scope("inner"):
                y = np.exp(y) @ x
        return y

    seen = check(wg.profile(f, **FEW)(np.eye(40)))
    scopes = seen.by_scope()
    assert set(scopes) == {"", "outer", "outer/inner"}
    assert scopes["outer"] > scopes["outer/inner"] > 0.0
    assert scopes["outer"] + scopes[""] == pytest.approx(seen.seconds)
    assert "outer/inner" in str(seen)


def test_writes_belong_to_the_line_that_writes():
    def f(x):
        y = np.sin(x)
        y[1:] = y[1:] @ np.eye(3)
        y[0] = 0.0
        return y

    seen = check(wg.profile(wg.jit(f), **FEW)(np.ones((4, 3))))
    places = {line.place for line in seen.by_line()}
    assert here("y[1:] = y[1:] @ np.eye(3)") in places


# ---- loops and branches -------------------------------------------------------------------------


def rolling(w, xs):
    def step(h, x):
        g = np.tanh(w @ h + x)
        n = g / np.sqrt(np.sum(g * g))
        return n, np.sum(n)

    return np.sum(wg.scan(step, np.ones(40), xs)[1])


def test_branches_in_registers_are_lines_too():
    def f(x):
        def step(s, _):
            t = wg.cond(s > 0.5, lambda s: np.sin(s), lambda s: np.exp(s), s)
            return t * 0.9, None

        return wg.scan(step, x, None, length=10)[0]

    seen = check(wg.profile(f, **FEW)(1.0))
    (inside,) = [row for row in seen.rows if row.depth]
    assert inside.kind == "straight" and inside.calls == 10.0
    assert {"sin", "exp", "multiply"} <= set(inside.operations)
    line = of_line(seen, "t = wg.cond(s > 0.5, lambda s: np.sin(s), lambda s: np.exp(s), s)")
    assert line.seconds > of_line(seen, "return t * 0.9, None").seconds > 0.0


def test_steps_of_a_loop():
    xs = np.random.default_rng(1).normal(size=(25, 40))
    seen = check(wg.profile(rolling, **FEW)(np.eye(40), xs))
    (loop,) = [row for row in seen.rows if row.kind == "loop"]
    assert loop.title == "scan of 25 steps" and loop.calls == 1.0
    inside = [row for row in seen.rows if row.number.startswith(f"{loop.number}.")]
    assert len(inside) > 1 and {row.calls for row in inside} == {25.0}
    assert all(row.depth == 1 and row.body for row in inside)
    assert loop.flops == sum(row.flops for row in inside) > 25 * 2 * 40 * 40
    assert of_line(seen, "g = np.tanh(w @ h + x)").seconds > 0.0


def test_a_gradient_of_a_loop():
    xs = np.random.default_rng(1).normal(size=(25, 40))
    seen = check(wg.profile(wg.grad(rolling), **FEW)(np.eye(40), xs))
    loops = [row for row in seen.rows if row.kind == "loop"]
    assert [row.title for row in loops] == ["scan of 25 steps"] * 2
    line = of_line(seen, "g = np.tanh(w @ h + x)")
    assert line.levels[0] > 0.0 and line.levels[1] > 0.0
    assert seen.by_line()[0].share > 0.1


def test_a_loop_in_registers_and_its_condition():
    def f(x):
        return wg.while_loop(lambda s: s > 1.0, lambda s: s * 0.5, x)

    seen = check(wg.profile(f, **FEW)(1024.0))
    (loop,) = [row for row in seen.rows if row.kind == "loop"]
    assert loop.title == "while of 10 steps"
    inside = [row for row in seen.rows if row.depth]
    assert [row.calls for row in inside] == [10.0, 11.0]
    assert inside[0].body != inside[1].body and f"<{inside[1].body}>" in str(seen)
    assert sum(row.seconds for row in inside) == pytest.approx(loop.seconds)


def test_loops_in_loops_and_a_choice():
    def f(x):
        def outer(s, _):
            t = wg.fori_loop(0, 7, lambda k, u: np.sin(u + k), s)
            return wg.cond(np.sum(t) > 0.0, lambda t: t + s, lambda t: t - s, t), None

        return np.sum(wg.scan(outer, x, None, length=5)[0])

    seen = check(wg.profile(f, **FEW)(np.eye(20)))
    assert max(row.depth for row in seen.rows) == 2
    (inner,) = [row for row in seen.rows if row.depth == 1 and row.kind == "loop"]
    assert inner.calls == 5.0 and inner.title.endswith("of 7 steps")
    assert {row.calls for row in seen.rows if row.depth == 2 and "sin" in row.operations} == {35.0}
    (choice,) = [row for row in seen.rows if row.kind == "branch"]
    assert choice.calls == 5.0


def test_a_loop_that_begins_again_from_what_it_kept():
    def f(x):
        def step(s, _):
            return np.tanh(s @ s), None

        return np.sum(wg.scan(step, x, None, length=40, memory=4)[0])

    seen = check(wg.profile(wg.grad(f), **FEW)(np.eye(12)))
    (replay,) = [row for row in seen.rows if row.title.startswith("replay")]
    assert replay.title == "replay of 40 steps"


# ---- threads, host callbacks, what is left behind ------------------------------------------------


def test_threads():
    f = wg.jit(lambda x: np.sum(np.sin(x)), threads=2)
    seen = check(wg.profile(f, repeats=2)(np.ones(600_000)))
    assert seen.timing.threads == 2 and "2 threads" in str(seen)
    assert kinds(seen) == ["nest", "around"]


def test_host_callbacks_are_named():
    @wg.primitive(callback=True)
    def running(x):
        return np.cumsum(x) ** 2

    def f(x):
        return np.sum(running(x) * 2.0)

    seen = check(wg.profile(f, **FEW)(np.ones(10)))
    (callback,) = [row for row in seen.rows if row.kind == "host callback"]
    assert callback.lines == ((callback.lines[0][0], 1.0),)
    assert seen.by_line()[0].text == "return np.sum(running(x) * 2.0)"

    @wg.primitive
    def failing(x):
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        wg.profile(failing)(np.ones(3))


def test_what_a_call_leaves_behind_is_left_once():
    total = wg.variable(0.0, "total")
    step = wg.computation(total * 1.0, updates={total: total + 1.0}, backend="llvm")
    seen = wg.profile(wg.jit(lambda: step()), **FEW)()
    assert seen.value.item() == 0.0 and total.item() == 1.0

    def fill(x):
        x += 1.0
        return np.sum(x)

    x = np.zeros(4)
    assert check(wg.profile(fill, **FEW)(x)).value == 4.0
    np.testing.assert_array_equal(x, np.ones(4))


def test_a_step_of_training():
    layer = wg.nn.Linear(100, 30)
    weight, bias = layer.weight.numpy().copy(), layer.bias.numpy().copy()
    optimizer = wg.optim.SGD(layer.parameters(), lr=0.5, momentum=0.9)

    def train(x):
        loss = np.mean(layer(x) ** 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    x = np.ones((5, 100))
    seen = check(wg.profile(train, **FEW)(x))
    y = x @ weight.T + bias
    assert seen.value.item() == pytest.approx(np.mean(y**2))
    np.testing.assert_allclose(layer.weight.numpy(), weight - 0.5 * (2 / y.size * y).T @ x)
    assert 1 in of_line(seen, "optimizer.step()").levels
    # As in calls, of weights and what is remembered of them one is written where the old one lay.
    assert weight.nbytes < seen.timing.outputs < 2 * weight.nbytes
    assert of_line(seen, "loss = np.mean(layer(x) ** 2)").levels.keys() == {0, 1}


def test_from_several_threads_at_once():
    measured = wg.profile(wg.jit(fused), **FEW)
    found = []
    workers = [
        threading.Thread(target=lambda: found.append(check(measured(np.ones(300)))))
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 4 and {seen.value for seen in found} == {fused(np.ones(300))}
    assert {seen.rows[0].calls for seen in found} == {1.0}


def test_calls_have_no_clocks():
    f = wg.jit(fused)
    x = np.ones(50)
    before = f.lower(x).llvm_ir
    wg.profile(f, **FEW)(x)
    assert f.lower(x).llvm_ir == before
    assert "readcyclecounter" not in before and "clock" not in before
    assert f.cache_info().programs == 1


# ---- figures of several runs ---------------------------------------------------------------------


def step_of(seconds):
    return StepRecord("call", "", (), 1.0, seconds, None, 0, 0, 0, (LineShare("", 0, "", 1.0),))


def test_what_others_do_is_left_out():
    assert lower_quartile([[1.0, 9.0], [1.0, 2.0], [7.0, 2.0], [1.0, 2.0]]).tolist() == [1.0, 2.0]
    steps = [step_of(2.0), step_of(3.0)]
    assert call_seconds(steps, 1.0, [[5.5], [5.5], [9.0]]) == 5.5  # a run without clocks says so
    assert call_seconds(steps, 1.0, [[9.0]] * 4) == 6.0  # ... which was disturbed
    assert call_seconds(steps, -1.0, [[4.0]] * 4) == 5.0  # never less than the steps
    assert call_seconds([step_of(0.0)], -1.0, [[1e-9]]) == 1e-9  # nor nothing
    assert call_seconds(steps, 1.0, [[5.5, 7.5]] * 4) == 7.5  # and what is around a run


def test_in_turn():
    order = []
    runs = [lambda: order.append("a"), lambda: order.append("b")]
    found = list(timed_rounds(runs, 2, lambda: order.append("|")))
    assert "".join(order).endswith("|ab|ab") and len(found) == 2
    assert all(len(one) == 2 and min(one) >= 0.0 for one in found)
    assert 3 <= len(list(timed_rounds(runs, None, limit=10))) <= 10


# ---- other backends, errors --------------------------------------------------------------------


def test_line_by_line():
    x = np.random.default_rng(0).normal(size=(150, 150))
    seen = check(wg.profile(heavy_and_light, backend="interpret", **FEW)(x))
    assert [row.operations for row in seen.rows] == [("add",), ("inv",), ("sum",), ()]
    assert of_line(seen, "z = np.linalg.inv(y)").share > 0.0
    assert seen.peak == 2 * x.nbytes and not any(line.is_estimated for line in seen.by_line())
    loop = check(wg.profile(rolling, backend="interpret", **FEW)(np.eye(40), np.ones((5, 40))))
    assert loop.rows[0].title == "scan of 5 steps" and loop.rows[1].depth == 1
    assert of_line(loop, "g = np.tanh(w @ h + x)").seconds > 0.0


def test_a_backend_that_goes_line_by_line_is_asked_for_its_functions():
    class Doubled(Interpreter):
        """Doubles what exp gives."""

        name = "doubled"

        def function(self, op):
            run = super().function(op)
            return (lambda x: 2.0 * run(x)) if op.name == "exp" else run

    seen = check(wg.profile(lambda x: np.exp(x), backend=Doubled(), **FEW)(np.zeros(3)))
    np.testing.assert_array_equal(seen.value, [2.0, 2.0, 2.0])
    assert seen.timing.backend == "doubled"


def test_what_native_code_cannot_finish_the_interpreter_refuses():
    with pytest.raises(MatrixError, match="Singular"):
        wg.profile(lambda a: np.linalg.solve(a, np.ones(3)), **FEW)(np.zeros((3, 3)))


@pytest.mark.parametrize("repeats", [0, -1, 2.5, True, "often"])
def test_repeats_that_cannot_be(repeats):
    with pytest.raises(ArgumentError, match=r"must be an integer.*test_profile\.py"):
        wg.profile(fused, repeats=repeats)


@pytest.mark.skipif(os.name != "posix", reason="the clock of POSIX")
def test_the_clock_of_the_system(monkeypatch):
    monkeypatch.setattr(instrumented.platform, "machine", lambda: "another")
    seen = check(wg.profile(lambda x: np.sum(np.tanh(x)), **FEW)(np.ones(3000)))
    assert kinds(seen) == ["nest", "around"] and 0.0 < seen.rows[0].seconds < 0.1
    monkeypatch.setattr(instrumented, "is_available", lambda: False)
    monkeypatch.setattr(
        "wengert._engine.backends.llvm.profile.profile_runner.is_available",
        instrumented.is_available,
    )
    with pytest.raises(BackendError, match=r"cannot read a clock.*backend='interpret'"):
        wg.profile(lambda x: x * 3.0)(np.ones(3))


def test_errors():
    with pytest.raises(
        ArgumentError, match=r"profile of 3.0, which is not a function.*profile\(f\)"
    ):
        wg.profile(3.0)
    with pytest.raises(ArgumentError, match="threads: fused is already compiled"):
        wg.profile(wg.jit(fused), threads=1)
    with pytest.raises(BackendError, match="'null' does not support profiling"):
        wg.profile(fused, backend="null")(np.ones(3))
    with pytest.raises(TraceError, match="not available while a graph is built"):
        wg.jit(lambda x: wg.profile(fused)(x).seconds)(np.ones(3))
    with pytest.raises(TraceError, match="branch"):
        wg.profile(wg.jit(lambda x: x if np.sum(x) > 0 else -x, source=False))(np.ones(3))


def test_files(tmp_path):
    seen = wg.profile(fused, **FEW)(np.ones(30))
    assert isinstance(seen, compiling.Profile)
    for name, first in [
        ("p.svg", "<svg"),
        ("p.html", "<!doctype"),
        ("p.json", "{"),
        ("p.txt", "f"),
    ]:
        assert seen.save(tmp_path / name).read_text(encoding="utf-8").startswith(first)
    assert seen.to_svg(tmp_path / "q.svg") == (tmp_path / "q.svg").read_text(encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"\.svg, \.html, \.json, \.txt"):
        seen.save(tmp_path / "p.pdf")
    assert "<svg" in seen._repr_html_() and seen._repr_html_().count("<table>") == 2
