"""Programs found on disk by the traced graph: nothing is simplified until the graph is needed."""

import os
import re
import subprocess
import sys
import threading

import numpy as np
import optree
import pytest
import scipy

import wengert as wg
from wengert import nn
from wengert._engine.backends.llvm import compiled_programs, program_fingerprint, tuning
from wengert._engine.cache import disk_cache
from wengert._engine.core.graph_classes import DeferredGraph
from wengert._engine.core.node import Node
from wengert._engine.graphs import Graph

X = np.linspace(0.1, 1.3, 12).reshape(4, 3)


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """An empty cache of the test's own."""
    monkeypatch.setenv("WENGERT_CACHE", str(tmp_path))
    monkeypatch.setattr(disk_cache._CacheState, "enabled", None)
    monkeypatch.setattr(disk_cache, "STARTED", 1 << 62)  # sources may be new
    disk_cache.library_sources.cache_clear()
    yield tmp_path
    disk_cache.library_sources.cache_clear()


@pytest.fixture
def simplified(monkeypatch):
    """The graphs that are simplified."""
    found = []
    simplify = Graph.simplify
    monkeypatch.setattr(Graph, "simplify", lambda g, *a, **k: (found.append(g), simplify(g))[1])
    return found


def relaxed(x, steps):
    for _ in range(steps):
        x[1:-1] = 0.25 * (x[2:] + x[:-2]) + 0.5 * x[1:-1] * x[0]
    return np.sum(np.sin(x) ** 2)


@wg.custom_vjp
def clipped(x):
    return np.tanh(x)


clipped.defvjp(lambda x: (np.tanh(x), x), lambda x, t: (2.0 * t * (1.0 - np.tanh(x) ** 2),))

FUNCTIONS = {
    "elementwise": (lambda x: np.log(np.exp(x) * 1.0) + x * 0.0, (X,)),
    "gradient": (wg.grad(lambda x: np.sum(np.log(1.0 + np.exp(x)))), (X,)),
    "gradient of a loop": (wg.grad(relaxed), (X[0], 30)),
    "tuples": (lambda x: ((x, x + 1), {"sum": np.sum(x)}), (X,)),
    "fortran order": (lambda x: x @ x.T * 1.0, (np.asfortranarray(X),)),
    "constants": (lambda x: x * np.arange(3.0) + np.zeros((400, 4, 3)), (X,)),
    "hessian": (wg.hessian(lambda x: np.sum(np.exp(x) * x)), (X[0],)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_second_program_needs_no_simplified_graph(name, simplified):
    f, args = FUNCTIONS[name]
    first = wg.jit(f)
    expected = [first(*args) for _ in range(2)][1]  # programs for layouts are made if they recur
    assert simplified
    simplified.clear()
    compiled = wg.jit(f)
    for _ in range(2):
        results = compiled(*args)
        assert not simplified
        for a, b in zip(optree.tree_leaves(results), optree.tree_leaves(expected), strict=True):
            assert np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype
    assert optree.tree_structure(results) == optree.tree_structure(expected)
    # Inspection makes the graph, of the same nodes as without a cache.
    graph = compiled.lower(*args).graph
    assert simplified and type(graph) is Graph
    disk_cache.enabled(False)
    again = wg.jit(f).lower(*args)
    assert graph.equals(again.graph)
    loops = [re.sub(r"[.]\d+", "", x.loops) for x in (compiled.lower(*args), again)]
    assert loops[0] == loops[1]  # without the names of lengths


def second(f, *args):
    """The compiled function, whose program is read from the disk."""
    wg.jit(f)(*args)
    compiled = wg.jit(f)
    compiled(*args)
    program, _ = compiled.program(*args)
    assert type(program._graph) is type(program._executed) is DeferredGraph
    return compiled, program


def test_derivatives_are_derived_from_the_graph_when_they_are_needed(simplified):
    def f(x):
        return np.sum(np.log(np.exp(x) * 2.0) ** 3)

    compiled, program = second(f, X)
    gradient = wg.grad(compiled)(X)
    np.testing.assert_allclose(gradient, wg.grad(f)(X), rtol=1e-13)
    np.testing.assert_allclose(wg.hessian(compiled)(X[0]), wg.hessian(f)(X[0]), rtol=1e-12)
    x = wg.tensor(X, requires_grad=True)
    compiled(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), gradient, rtol=1e-13)
    assert type(program.graph) is Graph


def test_a_run_that_fails_raises_the_error_with_the_line_of_this_process():
    def f(x, k):
        return x[k] * 1.0

    compiled, _ = second(f, X, 2)
    np.testing.assert_array_equal(compiled(X, 3), X[3])
    with pytest.raises(IndexError, match=r"out of bounds.*test_deferred_graphs\.py"):
        compiled(X, 7)
    np.testing.assert_array_equal(compiled(X, 1), X[1])


def test_a_user_s_rule_is_used_after_a_program_was_found():
    def f(x):
        return np.sum(clipped(x) * 1.0)

    for _ in range(2):  # a function of the user is not encoded
        compiled = wg.jit(f)
        compiled(X)
        assert type(compiled.program(X)[0]._executed) is Graph
        np.testing.assert_allclose(wg.grad(compiled)(X), 2.0 * (1.0 - np.tanh(X) ** 2), rtol=1e-13)


def test_a_graph_with_a_user_s_rule_is_simplified_once_before_it_runs(simplified):
    def f(x):
        return np.sum(clipped(x) * 1.0)

    compiled = wg.jit(f)
    compiled(X)
    assert len(simplified) == 1  # as it runs, with the rule's function inlined
    np.testing.assert_allclose(wg.grad(compiled)(X), 2.0 * (1.0 - np.tanh(X) ** 2), rtol=1e-13)
    assert len(simplified) > 1  # with the rule


def test_other_layouts_shapes_and_dtypes_have_their_own_programs(simplified):
    def f(x):
        return np.sum(np.exp(x) * 1.0, axis=0)

    compiled, _ = second(f, X)
    for x in (np.asfortranarray(X), X.astype(np.float32), X[:2], X[::2], X[0]):
        for _ in range(4):
            np.testing.assert_allclose(compiled(x), np.sum(np.exp(x), axis=0), rtol=1e-6)


def test_threads_make_the_graph_once(simplified):
    _, program = second(lambda x: np.sum(np.exp(x) * 1.0), X)
    simplified.clear()
    found = []

    def use():
        found.append((len(program._executed.nodes), program.graph, program._graph.names))

    threads = [threading.Thread(target=use) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 8 and len({(n, names) for n, _, names in found}) == 1
    assert len({id(g) for _, g, _ in found}) == 1 and len(simplified) == 1


def test_the_graph_belongs_to_no_trace_that_is_active_when_it_is_made():
    _, program = second(lambda x: np.sum(np.exp(x) * 1.0), X)

    def traced(y):
        with wg.policy(max_float="float32"), wg.no_grad():
            assert len(program.graph) == len(program.executed) > 2
        return y * 2.0

    assert [n.op.name for n in wg.trace(traced)(X)] == ["input", "constant", "multiply"]
    assert all(n.spec.dtype == np.float64 for n in program.graph)
    assert type(program.graph.outputs[0]) is Node


def test_what_depends_on_more_than_its_inputs_is_not_found_by_the_traced_graph():
    scale = wg.variable(2.0, "scale")
    layer = nn.Linear(3, 2, rng=0)

    def checked(x):
        wg.debug.retrieve(x, "x")
        return x * 2.0

    for f in (lambda x: x * scale, lambda x: layer(x), checked):
        for _ in range(2):
            compiled = wg.jit(f)
            compiled(X)
            assert type(compiled.program(X)[0]._graph) is Graph
    with wg.policy(cast="raise"):
        compiled = wg.jit(lambda x: x * 3.0)
        compiled(X)
        assert type(compiled.program(X)[0]._graph) is Graph


def test_a_program_with_host_callbacks_is_found_by_the_simplified_graph():
    def f(x):
        return scipy.linalg.matrix_balance(x @ x.T * 1.0)[0] + 1.0

    expected = wg.jit(f)(X)
    for _ in range(2):
        compiled = wg.jit(f)
        np.testing.assert_array_equal(compiled(X), expected)
        graph = compiled.program(X)[0]._executed
        assert type(graph) is Graph and graph.cache_key is not None
        assert compiled_programs.program_of(graph, None).host_callbacks
        assert type(compiled_programs.program_of(graph, None)) is compiled_programs.CachedProgram


def keys(*functions, args=(X,)):
    return [compiled_programs.traced_key(wg.trace(f)(*args)) for f in functions]


@pytest.mark.parametrize(
    "functions",
    [
        (lambda x: x * 2.0, lambda x: x * 3.0, lambda x: x * np.float32(2.0)),
        (lambda x: x + np.arange(3), lambda x: x + np.arange(1, 4), lambda x: x + np.arange(3.0)),
        (lambda x: x * 1.0, lambda x: x, lambda x: (x,), lambda x: {"x": x}),
        (lambda x: wg.rewrite.assume(x, finite=True) * 0.0, lambda x: x * 0.0),
        (lambda x: wg.stop_gradient(x) * x, lambda x: x * x, lambda x: x * wg.stop_gradient(x)),
        (wg.grad(lambda x: np.sum(x**2)), lambda x: 2.0 * x, wg.grad(lambda x: np.sum(x * x))),
    ],
)
def test_functions_that_differ_have_other_keys(functions):
    found = keys(*functions)
    assert None not in found and len(set(found)) == len(functions)
    assert keys(*functions) == found


@pytest.mark.parametrize("fact", ["level", "linear", "interval", "held", "probed"])
def test_what_rewrite_rules_read_of_a_node_is_part_of_the_key(fact):
    graph = wg.trace(lambda x: np.sum(np.exp(x) * x))(X)
    before = program_fingerprint.traced_fingerprint_of(graph)
    node = graph.outputs[0]
    changed = {"level": 1, "linear": (0,), "interval": (0, 3), "held": True, "probed": True}
    node.note(**{fact: changed[fact]})
    assert program_fingerprint.traced_fingerprint_of(graph) not in (None, before)


def test_thresholds_that_change_after_tracing_have_other_programs():
    _, program = second(lambda x: np.sum(np.exp(x)), X)
    key = compiled_programs._with_options(program._executed.cache_key, (None, "", False))
    name = tuning.names()[0]
    try:
        tuning.install({name: tuning.describe(name).default + 1})
        after = compiled_programs._with_options(program._executed.cache_key, (None, "", False))
        assert after != key
    finally:
        tuning.install({})


@pytest.mark.parametrize("damage", ["cut off", "other bytes", "empty", "of another program"])
def test_a_damaged_record_is_made_again(folder, damage):
    def f(x):
        return np.sum(np.exp(x) * 1.0, axis=0)

    expected = wg.jit(f)(X)
    wg.jit(lambda x: np.cumsum(x, axis=0) * 2.0)(X)
    key = compiled_programs._with_options(keys(f)[0], (None, "", False))
    path = folder / f"{key.hex()}.object"
    content = path.read_bytes()
    if damage == "cut off":
        path.write_bytes(content[:-3])
    elif damage == "other bytes":
        path.write_bytes(content[:-3] + b"abc")
    elif damage == "empty":
        disk_cache.write(key, b"")
    else:
        other = compiled_programs._with_options(
            keys(lambda x: np.cumsum(x, axis=0) * 2.0)[0], (None, "", False)
        )
        disk_cache.write(key, disk_cache.read(other))
    for _ in range(2):
        np.testing.assert_array_equal(wg.jit(f)(X), expected)


PROGRAM = """
import numpy as np, wengert as wg
from wengert._engine.graphs import Graph

def relaxed(x, steps):
    last = steps - 1
    for i in range(steps):
        y, z = x[2:] + x[:-2], SCALE * x[1:-1] * x[0]
        x[1:-1] = 0.25 * y + z if i < last else z
    return np.sum(np.sin(x) ** 2)

simplify, calls = Graph.simplify, []
Graph.simplify = lambda g, *a, **k: (calls.append(g), simplify(g))[1]
gradient = wg.jit(wg.grad(relaxed))(np.linspace(0.1, 1.3, 12), 20)
print(gradient.tobytes().hex(), len(calls))
"""


def start(folder, scale="0.5", hash_seed="0"):
    """A process that compiles the program; its files are in a folder."""
    script = folder / "program.py"
    content = PROGRAM.replace("SCALE", scale)
    if not script.exists() or script.read_text() != content:
        script.write_text(content)  # not while another process may be reading it
    # The order of sets of names differs between processes.
    own = {"WENGERT_CACHE": str(folder / "cache"), "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, str(script)]
    return subprocess.Popen(command, env=os.environ | own, stdout=subprocess.PIPE, text=True)


def results(process):
    """The gradient that it computed, and how many graphs it simplified."""
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    printed = re.fullmatch(r"([0-9a-f]+) (\d+)\n", out)
    assert printed, f"the process printed {out!r}"
    values, count = printed.groups()
    return np.frombuffer(bytes.fromhex(values)), int(count)


@pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_processes_that_compile_at_once_and_others_after_them(count, tmp_path):
    def expected(scale):
        def relaxed(x):
            for i in range(20):
                z = scale * x[1:-1] * x[0]
                inner = 0.25 * (x[2:] + x[:-2]) + z if i < 19 else z
                x = np.concatenate([x[:1], inner, x[-1:]])
            return np.sum(np.sin(x) ** 2)

        return wg.grad(relaxed)(np.linspace(0.1, 1.3, 12))

    processes = [start(tmp_path, hash_seed=str(k)) for k in range(count)]
    for process in processes:  # one that fails leaves no other behind
        process.wait(timeout=120)
    for process in processes:
        values, _ = results(process)
        np.testing.assert_allclose(values, expected(0.5), rtol=1e-12)
    again, count = results(start(tmp_path, hash_seed="3"))
    assert np.array_equal(again, values)
    assert count == 0
    other, _ = results(start(tmp_path, "0.4"))  # the same file and lines with other content
    np.testing.assert_allclose(other, expected(0.4), rtol=1e-12)
