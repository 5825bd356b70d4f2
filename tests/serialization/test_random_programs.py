"""Random programs: traced, saved and loaded they read the same, and give the same numbers.

A program is a list of steps, each an operation on earlier results; sizes, gradients, variables,
users' operations of every style, and results in containers are among them.
"""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from wengert.backends import backends

import wengert as wg
import wengert.numpy as wnp
from wengert import extend

from .helpers import packed, round_trip, same_graph


@extend.primitive(name="tests.serialization.cube")
def cube(x):
    return x * x * x


extend.vjp[cube] = lambda g, y, x: (3.0 * g * x * x,)


class Halve(extend.UnaryOperator):
    def compute(self, x):
        return 0.5 * x

    def get_parent_grad(self, my_grad, index):
        return 0.5 * my_grad


halve = extend.as_operation(Halve, name="tests.serialization.halve")


@extend.elementwise
def bump_of_the_tests_of_keeping(s, x):
    """exp(-x**2)."""
    return s.exp(-x * x)


bump = bump_of_the_tests_of_keeping


bump.partials(lambda t, out, x: -2.0 * t * x * out)


class Double:
    @extend.backward("tests.serialization.Double")
    def forward(self, x):
        return 2.0 * x.data


@extend.gradients("tests.serialization.Double")
def _double(grad, out, x):
    return (2.0 * grad,)


# Each takes and gives arrays of shape (n, 3), so that any follows any.
STEPS = {
    "tanh": lambda x, y, k: np.tanh(x),
    "add": lambda x, y, k: x + y * (k + 0.5),
    "multiply": lambda x, y, k: x * np.cos(y),
    "divide": lambda x, y, k: x / (1.0 + y * y),
    "center": lambda x, y, k: x - x.mean(axis=k % 2, keepdims=True),
    "sort": lambda x, y, k: np.sort(x, axis=k % 2),
    "roll": lambda x, y, k: np.concatenate([x[k % 2 :], x[: k % 2]]),
    "columns": lambda x, y, k: x[:, np.array([k % 3, 2, 0])],
    "backwards": lambda x, y, k: x[::-1, ::-1],
    "where": lambda x, y, k: np.where(x > y, x, 0.1 * y),
    "einsum": lambda x, y, k: np.einsum("ij,jk->ik", x, np.full((3, 3), 0.1 * k)),
    "matmul": lambda x, y, k: x @ np.tanh(x.T @ y) / x.shape[0],
    "split": lambda x, y, k: np.concatenate(np.split(x, [1 + k % 2], axis=1)[::-1], axis=1),
    "solve": lambda x, y, k: np.linalg.solve(np.eye(3) * 4.0 + np.tanh(y.T @ y), x.T).T,
    "reshape": lambda x, y, k: np.tanh(x).reshape(3, -1).T,
    "cumulate": lambda x, y, k: np.cumsum(x, axis=k % 2) * 0.5,
    "eye": lambda x, y, k: x + wnp.eye(x.shape[0]) @ y,
    "pad": lambda x, y, k: np.pad(x, ((1, 1), (0, 0)))[1:-1],
    "float32": lambda x, y, k: x.astype("float32").astype("float64"),
    "complex": lambda x, y, k: np.real(np.exp(x * 1j) * (1.0 - 2.0j)),
    "clip": lambda x, y, k: np.clip(x, -1.0 - k, 1.0),
    "primitive": lambda x, y, k: cube(np.tanh(x)),
    "operator": lambda x, y, k: halve(x),
    "body": lambda x, y, k: bump(x),
}
# Those whose derivative or shape rule a symbolic size does not have stay with numbers.
NUMBERED = {"pad", "solve", "operator", "split"}


def programs_of(names):
    number = st.integers(0, 5)
    step = st.tuples(st.sampled_from(sorted(names)), number, number, number)
    return st.lists(step, min_size=1, max_size=8)


programs = programs_of(STEPS)
# The rules of operator classes look at values, which a graph does not have.
differentiable = programs_of(STEPS.keys() - {"operator"})


def function(program, weight=None):
    def f(x, options=None):
        made = [x, np.tanh(x) if weight is None else x * weight]
        for i, (name, first, second, k) in enumerate(program):
            with wg.scope(f"step{i}", step=name):
                made.append(STEPS[name](made[first % len(made)], made[second % len(made)], k))
        return {"last": made[-1], "sums": [np.sum(made[-1]), (made[len(made) // 2][0], 1.5)]}

    return f


def same_numbers(a, b):
    a, b = (wg._engine.core.pytree.flatten(x)[0] for x in (a, b))
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


@given(programs, st.booleans())
@example([("primitive", 0, 0, 0)], True)
@example([("body", 0, 0, 0), ("columns", 1, 2, 0)], True)
@settings(max_examples=60)
def test_programs(program, symbolic):
    symbolic = symbolic and not NUMBERED & {step[0] for step in program}
    graph = wg.trace(function(program))(wg.spec(("n" if symbolic else 4, 3)), {"a": None, "b": "x"})
    again = round_trip(graph)
    assert same_graph(graph, again)
    x = np.random.default_rng(len(program)).normal(size=(4, 3))
    same_numbers(graph(x, {"a": None, "b": "x"}), again(x, {"a": None, "b": "x"}))


@given(differentiable)
@settings(max_examples=30)
def test_gradients(program):
    f = function(program)
    graph = wg.trace(wg.grad(lambda x: f(x)["sums"][0]))(wg.spec((4, 3)))
    again = round_trip(graph)
    assert same_graph(graph, again)
    x = np.random.default_rng(len(program)).normal(size=(4, 3))
    same_numbers(graph(x), again(x))


@given(differentiable)
@settings(max_examples=15)
def test_derivatives_after_loading(program):
    f = function(program)
    loaded = round_trip(wg.trace(lambda x: f(x)["sums"][0])(wg.spec((4, 3))))
    x = np.random.default_rng(len(program)).normal(size=(4, 3))
    expected = wg.grad(lambda x: f(x)["sums"][0])(x)
    np.testing.assert_allclose(loaded.grad()(x), expected, rtol=1e-9, atol=1e-9)


@given(programs)
@settings(max_examples=15)
def test_variables_and_updates(program):
    weight, count = wg.variable(np.linspace(0.5, 1.5, 3), "weight"), wg.variable(0, "count")

    def step(x):
        out = function(program, weight)(x)
        count[...] = count + 1
        return out

    graph = wg.trace(step)(wg.spec((4, 3)))
    again = round_trip(graph)
    x = np.random.default_rng(len(program)).normal(size=(4, 3))
    for _ in range(2):
        same_numbers(graph(x), again(x))
    counts = {n.name: n.info.owner() for n in again.variables}
    assert counts["count"].item() == count.item() == 2


@pytest.mark.parametrize("name", [n for n in backends() if n != "null"])
def test_a_loaded_graph_runs_on_every_backend(name, rng):
    program = [("tanh", 0, 1, 2), ("sort", 2, 0, 0), ("matmul", 2, 3, 0), ("add", 4, 1, 1)]
    graph = wg.trace(function(program))(wg.spec((4, 3)))
    x = rng.normal(size=(4, 3))
    tolerance = wg.backends.backend(name).tolerance
    with wg.backends.emulated_device():  # of the backend "cuda"
        a, b = (
            wg._engine.core.pytree.flatten(wg.device_get(g.run(x, backend=name)))[0]
            for g in (graph, round_trip(graph))
        )
    for u, v in zip(a, b, strict=True):
        np.testing.assert_allclose(u, v, rtol=tolerance)


def test_another_process_reads_it(tmp_path, rng):
    program = [(name, i, i + 1, i) for i, name in enumerate(sorted(STEPS)) if name not in
               ("primitive", "operator", "body")]  # fmt: skip
    f = function(program)
    graph = wg.trace(wg.grad(lambda x: f(x)["sums"][0]))(wg.spec((4, 3)))
    x = rng.normal(size=(4, 3))
    wg.save([graph, x], tmp_path / "graph")
    code = """
        import sys, numpy as np, wengert as wg
        graph, x = wg.load(sys.argv[1])
        wg.save([str(graph), graph(x)], sys.argv[2])
        wg.save([graph, x], sys.argv[1] + ".again")
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), tmp_path / "graph", tmp_path / "values"],
        check=True,
        timeout=120,
    )
    text, value = wg.load(tmp_path / "values")
    assert text == str(wg.load(tmp_path / "graph")[0])
    np.testing.assert_array_equal(value, graph(x))
    assert (tmp_path / "graph").read_bytes() == (tmp_path / "graph.again").read_bytes()


def test_another_process_names_the_operation_that_it_lacks(tmp_path):
    for k, op in enumerate((cube, halve)):
        wg.save(wg.trace(lambda x, op=op: op(x))(wg.spec(3)), tmp_path / f"graph{k}")
    code = """
import sys, wengert as wg
for name in sys.argv[1:]:
    try:
        wg.load(name)
    except wg.errors.RegistryError as error:
        print(error)
"""
    files = [tmp_path / "graph0", tmp_path / "graph1"]
    done = subprocess.run([sys.executable, "-c", code, *files], capture_output=True, text=True)
    first, second = done.stdout.splitlines()
    assert "tests.serialization.cube" in first and __name__ in first
    assert halve.name in second


def test_an_operation_without_a_name_of_its_own_is_refused():
    class Shift(extend.UnaryOperator):
        def compute(self, x):
            return x + 1.0

        def get_parent_grad(self, my_grad, index):
            return my_grad

    shift = extend.as_operation(Shift)
    with pytest.raises(wg.errors.RegistryError, match="Shift is saved by its name"):
        packed(wg.trace(lambda x: shift(x))(wg.spec(3)))


def test_a_method_of_an_object_is_refused():
    """Its line holds the object, which no file can."""
    double = Double()
    with pytest.raises(
        wg.errors.StructureError, match=r"owner is a .*Double, which cannot be saved"
    ):
        packed(wg.trace(lambda x: double.forward(x))(wg.spec(3)))
