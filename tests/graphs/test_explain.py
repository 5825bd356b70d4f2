"""explain: what is said about a function, line by line, and the notes on it."""

import inspect

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.symbolic.constraints import dim
from wengert._engine.ops.cost_model import flops_of, shares_memory


def line_of(f, mark):
    """The number of the line of a function that bears a mark."""
    lines, first = inspect.getsourcelines(f)
    return first + next(k for k, text in enumerate(lines) if f"# {mark}" in text)


def model(x, w):
    with wg.scope("model"):
        h = np.where(x > 0, np.log(x), 0.0)  # log
        h = h @ w  # matmul
    c = wg.stop_gradient(np.max(h))  # stop
    return np.sum(np.exp(h - c))  # sum


SPECS = wg.spec(("n", 3), "float32"), wg.spec((3, 2))


def test_lines_of_the_program():
    told = wg.explain(model)(*SPECS)
    assert told.traced
    places = [line_of(model, mark) for mark in ("log", "matmul", "stop", "sum")]
    assert [line.place for line in told.lines] == [f"test_explain.py:{k}" for k in places]
    log, matmul, stop, total = told.lines
    assert log.text.startswith("h = np.where") and log.levels == [0]
    assert [n.op.name for n in log.at_level(0)] == ["greater", "log", "where"]
    assert matmul.words(0) == "matmul float64[n,2]"
    assert [n.op.name for n in stop.nodes] == ["max", "stop_gradient"]
    assert total.words(0) == "subtract float64[n,2], exp float64[n,2], sum float64[]"
    assert told.scopes == {"model": 4}


def test_derivative_lines_stand_at_what_they_stem_from():
    told = wg.explain(wg.grad(model, (0, 1)))(*SPECS)
    log = next(line for line in told.lines if "np.log" in line.text)
    assert log.levels == [0, 1]
    assert [n.op.name for n in log.at_level(1)] == ["where", "divide", "strong_zero"]
    assert set(told.kinds) == {0, 1} and told.kinds[0]["contraction"] == 1
    assert told.kinds[1]["contraction"] == 2
    assert "derivative of order 1" in str(told)


def test_second_derivatives():
    told = wg.explain(wg.grad(wg.grad(lambda x: np.sin(x) ** 3)))(1.0)
    assert set(told.kinds) == {0, 1, 2}


def test_cost():
    n = dim("n")
    told = wg.explain(model)(*SPECS)
    log, matmul, stop, total = told.lines
    assert log.flops == 9 * n and log.bytes == 3 * n + 12 * n + 12 * n
    assert matmul.flops == 2 * n * 3 * 2 and matmul.bytes == 16 * n
    assert stop.flops == 2 * n
    assert total.flops == 6 * n
    assert told.flops == 29 * n
    numbers = wg.explain(model)(np.ones((4, 3), np.float32), np.ones((3, 2)))
    assert numbers.flops == 29 * 4
    assert numbers.largest(1)[0].op.name == "matmul"


def flops(node):
    return flops_of(node, [a.spec for a in node.inputs], node.spec)


def test_cost_of_single_operations():
    graph = wg.trace(lambda x: np.linalg.inv(x) + x.T)(wg.spec((3, 3)))
    counted = {n.op.name: flops(n) for n in graph.nodes if n.args}
    assert counted == {"inv": 2 * 27, "transpose": 0, "add": 9}
    graph = wg.trace(lambda x, y: np.einsum("ij,jk->ik", x, y))(wg.spec((2, 3)), wg.spec((3, 5)))
    assert flops(graph.outputs[0]) == 2 * 2 * 3 * 5


def test_cost_of_a_factorization_is_not_known_where_sizes_have_names():
    told = wg.explain(lambda x: np.linalg.inv(x) + x)(wg.spec(("n", "n")))
    assert told.flops == dim("n") * dim("n")
    assert [flops(n) for n in told.graph.nodes if n.op.name == "inv"] == [None]
    numbers = wg.explain(lambda x: np.linalg.cholesky(x))(wg.spec((4, 4)))
    assert numbers.flops == round(64 / 3)


def test_widened_names_the_operand():
    told = wg.explain(model)(*SPECS)
    [note] = told.note("widened")
    assert note.line == line_of(model, "matmul")
    assert "float32 became float64" in note.message and "w float64[3,2]" in note.message


def test_widened_by_a_constant():
    told = wg.explain(lambda x: x * np.float64(2.0))(np.ones(3, np.float32))
    assert "constant" in told.note("widened")[0].message
    assert not wg.explain(lambda x: x * 2.0)(np.ones(3, np.float32)).notes


def test_cast():
    told = wg.explain(lambda x, k: x * k)(np.ones(3), np.arange(3))
    [note] = told.notes
    assert note.kind == "cast" and "float64[3] and int64[3]" in note.message


def test_broadcast():
    told = wg.explain(lambda x: x[:, None] - x)(np.ones(3))
    [note] = told.notes
    assert note.kind == "broadcast" and "float64[3,1] and float64[3]" in note.message
    assert not wg.explain(lambda x: x * 2.0 + x)(np.ones(3)).notes


def test_stopped():
    def f(x):
        a = np.floor(x)  # floor
        b = x.astype(np.int64) * 1.0  # cast
        with wg.no_grad():
            c = x * 3.0  # no_grad
        return np.sum(x * a + b + c + np.where(x > 0, x, 0.0))

    stopped = wg.explain(f)(np.ones(3)).note("stopped")
    assert [n.line for n in stopped] == [line_of(f, m) for m in ("floor", "cast", "no_grad")]


def test_guarded_names_the_slope():
    told = wg.explain(wg.grad(model))(*SPECS)
    [note] = told.note("guarded")
    assert "the slope of log" in note.message and note.line == line_of(model, "log")
    assert not wg.explain(wg.grad(lambda x: np.sum(np.sin(x))))(np.ones(3)).note("guarded")


def test_what_only_keeps_the_order_is_not_opaque():
    told = wg.explain(lambda x: wg.after(x * 2.0, np.sum(x)))(np.ones(3))
    assert told.note("opaque") == []
    [line] = [n for n in told.graph.nodes if n.op.name == "after"]
    assert flops(line) == 0 and shares_memory(line)


def test_opaque():
    told = wg.explain(lambda x: np.linalg.inv(x))(wg.spec((3, 3)))
    assert "a library" in told.note("opaque")[0].message
    mine = wg.extend.opaque(lambda x: x * 2.0, name="explain_test_mine", vjp=lambda t, out, x: t)
    told = wg.explain(lambda x: mine(x))(wg.spec(3))
    assert "the user" in told.note("opaque")[0].message


def test_unused_inputs():
    told = wg.explain(lambda x, y, z: x * np.floor(z))(1.0, 2.0, 3.0)
    y, z = told.note("unused")
    assert y.message == "no output depends on input y float64[]"
    assert z.message.startswith("outputs depend on input z float64[], but no derivative")
    told = wg.explain(lambda z: np.floor(z) * 2.0)(3.0)
    assert "no derivative leads back" in told.note("unused")[0].message


def test_held_constants():
    data = np.ones(1 << 18)

    def f(x):
        return np.sum(x * data)  # here

    told = wg.explain(f)(2.0)
    assert told.note("held")[0].line == line_of(f, "here")
    assert told.constants == data.nbytes


def test_loops_are_slow():
    def f(x):
        for _ in wg.unroll(range(400)):
            x = x * 1.01  # here
        return x

    told = wg.explain(f)(1.0)
    assert told.note("loop")[0].line == line_of(f, "here")
    assert told.lines[0].words(0) == "multiply float64[] x 400"


def test_repetitions_are_reported():
    def f(x):
        return np.sum(np.sin(x) * np.sin(x))  # here

    [note] = wg.explain(f)(wg.spec("n")).notes
    assert note.kind == "repeated" and note.line == line_of(f, "here")


def test_what_simplifying_would_do():
    def f(x):
        h = np.log(1.0 + x)  # here
        return np.sum(np.sin(h))

    assert not wg.explain(f)(wg.spec("n")).notes
    [note] = wg.explain(f, simplify=True)(wg.spec("n")).notes
    assert note.kind == "simplify" and note.line == line_of(f, "here")
    graph = wg.trace(f)(wg.spec("n"))
    assert [n.message for n in wg.explain(graph, simplify=True)().notes] == [note.message]


def test_modules():
    model = wg.nn.Linear(3, 2)
    told = wg.explain(model)(wg.spec(("n", 3)))
    assert told.traced and told.kinds[0]["contraction"] == 1
    assert [note.kind for note in told.notes] == ["broadcast"]  # of the bias


def test_conditions_on_sizes():
    told = wg.explain(lambda x: x[5])(wg.spec("n"))
    assert any("is an error unless" in n.message for n in told.note("shape"))


def branching(x, unused, power=2):
    if x[0] > 0:  # branch
        x = np.exp(x) * power  # taken
    return np.sum(x)


@pytest.mark.usefixtures("unconverted")
def test_what_cannot_be_traced_is_run():
    told = wg.explain(branching)(np.ones(3), 1.0, power=3)
    assert not told.traced and "branch on greater" in told.reason
    assert [line.text for line in told.lines] == [
        "x = np.exp(x) * power  # taken",
        "return np.sum(x)",
    ]
    assert "A record of one run" in str(told)
    assert [n.message for n in told.note("unused")] == [
        "no output depends on input unused float64[]"
    ]


@pytest.mark.usefixtures("unconverted")
def test_derivatives_that_cannot_be_traced():
    told = wg.explain(wg.grad(branching))(np.ones(3), 1.0)
    taken = next(line for line in told.lines if "# taken" in line.text)
    assert taken.levels == [0, 1]
    assert set(wg.explain(wg.grad(lambda x: wg.grad(deep)(x)))(1.5).kinds) == {0, 1, 2}


def deep(x):
    return np.sin(x) ** 2 if x > 0 else x


@pytest.mark.usefixtures("unconverted")
def test_specs_that_cannot_be_traced_raise():
    with pytest.raises(wg.WengertError, match="branch"):
        wg.explain(branching)(wg.spec(3), 1.0)


def test_graphs_are_explained_as_they_are():
    graph = wg.trace(model)(*SPECS)
    told = wg.explain(graph)()
    assert told.graph is graph and len(told.lines) == 4


def test_static_arguments():
    told = wg.explain(lambda x, n: np.sum(x) * n, static_argnums=1)(np.ones(3), 3)
    assert len(told.inputs) == 1


def test_text_and_html():
    told = wg.explain(wg.grad(model))(*SPECS)
    text, page = str(told), told._repr_html_()
    assert text == repr(told)
    assert "h = h @ w" in text and "Notes" in text and "d1" in text
    assert page.startswith("<div>") and page.count("<tr>") == 1 + len(told.lines)
    assert "x &gt; 0" in page and "<script" not in page


def test_updates_are_reported():
    count = wg.variable(0.0, "count")

    def f(x):
        count[...] = count + 1.0
        return x * count

    assert "1 variables are updated" in str(wg.explain(f)(2.0))
    assert count.item() == 0.0


def repeated(x, n):
    s = 0.0
    for _ in range(n):  # loop
        x = np.sin(x) * 1.01
        s = s + np.sum(x)
    return s


def nested(x):
    s = 0.0
    for i in range(50):
        y = x[i % 3]
        for _ in range(40):
            y = np.sin(y)
        s = s + y
    return s


def until(x):
    y = x[0]
    while y < 10.0:
        y = np.exp(y * 0.1) * y
    return y


def test_the_bytes_that_backward_passes_store():
    def stored(f, *args, **options):
        found = wg.explain(f, **options)(*args).note("residuals")
        return [(n.message.split(" bytes")[0].rsplit(" ", 1)[1], n.line) for n in found]

    x = np.ones(3)
    told = stored(wg.jit(wg.grad(repeated)), x, 1000, static_argnums=1)
    assert told == [(str(1000 * 3 * 8), line_of(repeated, "loop"))]
    assert stored(wg.grad(nested), x)[0][0] == str(50 * 40 * 8 + 50 * 8)  # values, and indices
    assert "*steps" in stored(wg.grad(until), x)[0][0]
    assert stored(repeated, x, 1000, static_argnums=1) == []  # no derivative
    assert stored(wg.grad(lambda x: np.sum(x * x)), x) == []


def test_the_time_of_long_loops_without_compilation():
    x = np.ones(3)
    (found,) = wg.explain(wg.grad(repeated), static_argnums=1)(x, 10**6).note("eager")
    assert "seconds without wengert.jit" in found.message
    assert found.line == line_of(repeated, "loop")
    for f in (wg.jit(wg.grad(repeated)), wg.grad(wg.jit(repeated))):
        assert not wg.explain(f, static_argnums=1)(x, 10**6).note("eager")
    assert not wg.explain(wg.grad(repeated), static_argnums=1)(x, 1000).note("eager")
