"""Graphs with loops and branches as files: their bodies, and hostile files."""

import copy
import pickle

import numpy as np
import pytest
from tests.rewrite.test_loops import DERIVATIVES, PROGRAMS, counted, loops

import wengert as wg
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_fingerprint import equals
from wengert.errors import FileError

from .helpers import changed, packed, round_trip, unpacked

KINDS = ("value", "value_and_grad", "twice")


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_there_and_back(name, kind):
    f, *args = PROGRAMS[name]
    for graph in (wg.trace(DERIVATIVES[kind](f))(*args),):
        for g in (graph, graph.simplify()):
            made = round_trip(g)
            made.verify()
            assert equals(made, g)
            first, second = (wg._engine.core.pytree.flatten(h(*args))[0] for h in (g, made))
            for a, b in zip(first, second, strict=True):
                np.testing.assert_array_equal(a, b)
            lines = [n for n in made if n.op.kind == "control"]
            assert lines and all(type(b) is Body for n in lines for b in bodies(n))


def bodies(node):
    return [b for b in node.params.values() if isinstance(b, wg._engine.core.graph.BaseGraph)]


def test_derivatives_of_what_was_read():
    f, a, x = PROGRAMS["newton"]
    made = round_trip(wg.trace(f)(a, x))
    np.testing.assert_allclose(wg.grad(made)(a, x), wg.grad(f)(a, x), rtol=1e-12)
    both = round_trip(wg.trace(wg.grad(f))(a, x)), round_trip(wg.trace(wg.grad(f))(a, x))
    total = wg.trace(lambda a, x: both[0](a, x) + both[1](2.0 * a, x))(a, x).simplify()
    wanted = wg.grad(f)(a, x) + wg.grad(f)(2.0 * a, x)
    np.testing.assert_allclose(total(a, x), wanted, rtol=1e-12)


def test_pickles_and_copies():
    f, w, xs = PROGRAMS["nested"]
    graph = wg.trace(wg.grad(f))(w, xs)
    for made in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph), copy.copy(graph)):
        assert equals(made, graph)
        np.testing.assert_array_equal(made(w, xs), graph(w, xs))
    body = loops(graph)[0].params["body"]
    for made in (pickle.loads(pickle.dumps(body)), copy.deepcopy(body)):
        assert made == body and made is not body
        assert {made: 1}[body] == 1
        made.verify()

    def long(x):
        for _ in range(3000):
            x = np.sin(x)
        return x

    graph = wg.trace(lambda x: wg.control.fori_loop(0, 2, lambda i, v: long(v), x))(0.5)
    body = loops(graph)[0].params["body"]
    assert pickle.loads(pickle.dumps(body)) == body


def test_a_body_is_stored_once():
    def f(x):
        return counted(x, 3) + counted(x * 2.0, 4)

    graph = wg.trace(f)(np.ones(3))
    assert packed(graph).count(b'\\"body\\":true') == 1


def test_symbolic_sizes_in_bodies():
    def f(x):
        return wg.control.scan(lambda h, r: (h * 0.5 + r, np.sum(h)), x[0], x)[1]

    made = round_trip(wg.trace(f)(wg.spec(("n", "m"))))
    for shape in ((4, 3), (2, 5)):
        x = np.random.default_rng(1).normal(size=shape)
        np.testing.assert_allclose(made(x), f(x), rtol=1e-13)


def test_a_constant_that_was_computed_is_kept_as_a_constant():
    def f(x):
        def step(v, _):
            return v * wg.tensor([1.0, 3.0]).sum(0), None

        return wg.scan(step, x, None, length=2)[0]

    made = round_trip(wg.trace(f)(0.5))
    assert made(0.5) == 8.0


# ---- damage --------------------------------------------------------------------------------------


def line_of(made, name):
    """The first line of an operation."""
    for graph in reversed(made["graphs"]):
        for line in graph["lines"]:
            if isinstance(line[0], int) and graph["ops"][line[0]][0] == name:
                return line
    raise AssertionError(name)


def put(made, name, key, value):
    for item in line_of(made, name)[4]["params"]["dict"]:
        if item[0] == key:
            item[1] = value


@pytest.mark.sample(10)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("body", {"graph": 0}),
        ("body", {"body": 99}),
        ("body", None),
        ("body", {"body": 1}),
        ("carried", -1),
        ("carried", 7),
        ("carried", True),
        ("carried", "n"),
        ("stacked", 0),
        ("stacked", 9),
        ("length", 7),
        ("length", -1),
        ("length", None),
        ("length", {"size": "steps.f0"}),
        ("length", {"size": "steps__f0 + steps.f0"}),
        ("reverse", 1),
        ("counted", True),
        ("counted", 0),
    ],
)
def test_parameters_that_no_program_writes(key, value):
    f, w, xs = PROGRAMS["recurrent"]
    graph = wg.trace(wg.grad(f))(w, xs)
    data = changed(packed(graph), lambda made: put(made, "scan", key, value))
    with pytest.raises(FileError):
        unpacked(data)


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.update(body=False),
        lambda b: b.update(structure=None),
        lambda b: b["inputs"].pop(),
        lambda b: b["inputs"].append(b["inputs"][0]),
        lambda b: b["inputs"].reverse(),
        lambda b: b["outputs"].pop(0),
        lambda b: b["outputs"].reverse(),
        lambda b: b["outputs"].append(0),
        lambda b: b["effects"].append(len(b["lines"]) - 1),
        lambda b: b.pop("body"),
        lambda b: b["lines"][0].__setitem__(0, "variable"),
        lambda b: b["lines"][0].__setitem__(1, "C"),
        lambda b: b["specs"][0].__setitem__(0, "float32"),
    ],
)
def test_bodies_that_no_program_writes(change):
    f, w, xs = PROGRAMS["recurrent"]
    data = packed(wg.trace(f)(w, xs))
    assert unpacked(data)
    with pytest.raises(FileError):
        unpacked(changed(data, lambda made: change(made["graphs"][0])))


def test_choices_and_whiles_that_no_program_writes():
    f, *args = PROGRAMS["chosen"]
    data = packed(wg.trace(f)(*args))
    for name, value in (
        ("cond", {"tuple": [{"body": 0}]}),
        ("cond", {"tuple": []}),
        ("switch", {"tuple": [{"body": 0}, {"body": 0}, 3]}),
        ("switch", []),
    ):
        with pytest.raises(FileError):
            unpacked(changed(data, lambda made, n=name, v=value: put(made, n, "branches", v)))
    f, *args = PROGRAMS["newton"]
    data = packed(wg.trace(wg.grad(f))(*args))
    for key, value in (
        ("condition", {"body": 0}),
        ("limit", -1),
        ("limit", {"float": "0x1.8p+3"}),
        ("length", None),
        ("length", 5),
        ("length", {"size": "n"}),
        ("length", {"size": "steps.f7"}),
    ):
        with pytest.raises(FileError):
            made = changed(data, lambda made, k=key, v=value: put(made, "while", k, v))
            assert made != data
            unpacked(made)


def test_a_graph_is_no_body_and_a_body_no_graph():
    data = packed(wg.trace(PROGRAMS["recurrent"][0])(*PROGRAMS["recurrent"][1:]))

    def root(made):
        made["root"] = {"graph": 0}

    with pytest.raises(FileError, match="is a body"):
        unpacked(changed(data, root))


def test_verify_looks_into_bodies():
    graph = wg.trace(PROGRAMS["recurrent"][0])(*PROGRAMS["recurrent"][1:])
    body = loops(graph)[0].params["body"]
    line = next(n for n in body if n.op.name == "tanh")
    line.info.spec = wg.spec(7)
    with pytest.raises(wg.errors.GraphError, match=r"scan: node %\d+ \(tanh\) has the spec"):
        graph.verify()
