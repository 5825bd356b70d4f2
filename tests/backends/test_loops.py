"""Loops and branches in the interpreter, and in what derives from it."""

import re

import numpy as np
import pytest
from tests.rewrite.test_loops import DERIVATIVES, PROGRAMS, counted
from wengert.backends import Backend, Interpreter, Transformed

import wengert as wg
from wengert import control
from wengert._engine.backends.interpreter_profile import profile
from wengert.errors import BackendError, GuardError, MatrixError


@pytest.mark.sample(7)
@pytest.mark.parametrize("kind", ["value", "value_and_grad", "hvp"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_graph_runs_as_the_function_does(name, kind):
    f, *args = PROGRAMS[name]
    g = DERIVATIVES[kind](f)
    got, wanted = (wg._engine.core.pytree.flatten(h(*args))[0] for h in (wg.trace(g)(*args), g))
    for a, b in zip(got, wanted, strict=True):
        assert type(a) is type(b)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13)


def test_symbolic_sizes_are_compiled_for_each():
    def f(x):
        return control.scan(lambda h, r: (h * 0.5 + r * r.shape[0], np.sum(h)), x[0], x)

    graph = wg.trace(f)(wg.spec(("n", "m")))
    for shape in ((4, 3), (2, 5), (1, 1)):
        x = np.random.default_rng(1).normal(size=shape)
        for a, b in zip(graph(x), f(x), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)


def test_a_body_is_compiled_once_for_a_run():
    class Counting(Interpreter):
        """Counts."""

        name = "counting"
        bodies = 0
        calls = 0

        def compile_body(self, body, sizes):
            self.bodies += 1
            return super().compile_body(body, sizes)

        def function(self, op):
            def run(*xs, **params):
                self.calls += 1
                return op.run(*xs, **params)

            return run

    backend = Counting()
    f, w, xs = PROGRAMS["nested"]
    run = wg.computation(wg.trace(f)(w, xs), backend=backend)
    run(w, xs)
    made, calls = backend.bodies, backend.calls
    run(w, xs)
    assert backend.bodies == made == 2
    assert backend.calls == 2 * calls > 2 * 4 * 3  # every line of every step, by this backend


def test_backends_that_go_line_by_line_run_bodies_by_themselves():
    class Single(Interpreter):
        """NumPy, in single precision."""

        name = "single"

        def function(self, op):
            return lambda *xs, **params: op.run(*[np.float32(x) for x in xs], **params)

    graph = wg.trace(lambda x: control.fori_loop(0, 20, lambda i, v: v * x, x))(1.1)
    single = wg.computation(graph, backend=Single())(1.1)
    wanted = np.float32(1.1)
    for _ in range(20):
        wanted = wanted * np.float32(1.1)
    assert single == wanted != graph(1.1)


def test_a_transformer_runs_bodies_by_its_methods():
    scalar = wg.spec(())
    graph = wg.trace(lambda x: control.scan(lambda v, _: (v * x + 1.0, v), x, None, 3))(scalar)
    run = wg.computation(graph, backend=Transformed("python"))
    np.testing.assert_array_equal(run(2.0)[1], graph(2.0)[1])
    lacking = wg.trace(lambda x: control.scan(lambda v, _: (np.sort(v), None), x, None, 3)[0])
    with pytest.raises(BackendError, match="no implementation of argsort"):
        wg.computation(lacking(wg.spec(3)), backend=Transformed("python"))


def test_a_backend_that_lacks_loops_says_so():
    class Bare(Backend):
        """Has arithmetic only."""

        name = "bare"

        def lacks(self, op):
            return op.kind == "control"

        def compile(self, graph, sizes):
            raise AssertionError

    with pytest.raises(BackendError, match="no implementation of scan"):
        wg.computation(wg.trace(lambda x: counted(x, 3))(np.ones(3)), backend=Bare())


def test_null_gives_zeros():
    f, w, xs = PROGRAMS["nested"]
    run = wg.computation(wg.trace(wg.value_and_grad(f))(w, xs), backend="null")
    assert [np.shape(x) for x in run(w, xs)] == [(), (3, 3)]


# ---- what goes wrong inside ----------------------------------------------------------------------


def inverses(x):
    return control.scan(lambda h, a: (h, np.linalg.inv(a)), 0.0, x)[1]


def test_an_error_names_the_line_inside():
    graph = wg.trace(inverses)(np.ones((3, 2, 2)))
    with pytest.raises(MatrixError) as caught:
        graph(np.array([np.eye(2), np.eye(2), np.zeros((2, 2))]))
    text = str(caught.value)
    assert re.search(r"%\d+ = scan of .*: %\d+ = inv of float64\[2,2\]: ", text)
    assert "in <lambda>" in text and "test_loops.py" in text


def test_a_while_that_does_not_end_says_so():
    graph = wg.trace(
        lambda x: control.while_loop(lambda v: v > 0.0, lambda v: v * 2.0, x, max_steps=10)
    )(1.0)
    with pytest.raises(GuardError, match="max_steps=10"):
        graph(1.0)
    assert graph(-1.0) == -1.0


def test_what_is_fed_is_not_written_to():
    x = np.random.default_rng(2).normal(size=(5, 20_000))
    kept = x.copy()

    def f(x):
        def step(h, row):
            h = h * 0.5 + row
            h = np.tanh(h) * 0.1
            return h, h + 1.0

        return control.scan(step, x[0], x)

    carry, rows = x[0], []
    for row in x:
        carry = np.tanh(carry * 0.5 + row) * 0.1
        rows.append(carry + 1.0)
    graph = wg.trace(f)(x)
    first = graph(x)
    for a, b in zip(first, (carry, np.stack(rows)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15, atol=1e-16)  # a few ulp of their terms
    again = graph(x)
    np.testing.assert_array_equal(x, kept)
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.shares_memory(first[0], again[0])


# ---- profile -------------------------------------------------------------------------------------


def test_a_profile_shares_out_the_time_of_a_loop():
    f, w, xs = PROGRAMS["recurrent"]
    graph = wg.trace(wg.value_and_grad(f))(w, xs)
    found = profile(graph, [w, xs], repeat=3)
    loops = [line for line in found.nodes if line.name == "scan"]
    assert len(loops) == 3
    for line in loops:
        inside = found.inside[line.index]
        assert "tanh" in [x.name for x in inside] or "multiply" in [x.name for x in inside]
        assert sum(x.seconds for x in inside) == pytest.approx(line.seconds)
    assert sum(found.sources.values()) == pytest.approx(found.seconds)
    assert any("in cell" in where for where in found.sources)


def test_a_profile_of_symbolic_sizes():
    def f(x):
        def outer(h, row):
            return control.fori_loop(0, 3, lambda i, v: np.cos(v) + row, h), np.sum(h)

        return control.scan(outer, x[0], x)

    graph = wg.trace(f)(wg.spec(("n", "m")))
    found = profile(graph, [np.ones((4, 3))], repeat=1)
    (line,) = [x for x in found.nodes if x.name == "scan"]
    assert [x.name for x in found.inside[line.index] if x.name == "scan"]
