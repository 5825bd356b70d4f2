"""Arguments of another kind than wanted: an error of the library that says so, with the line."""

import json
import pathlib

import numpy as np
import pytest
from wengert.backends import Backend, Executable, backend, register_backend, report

import wengert as wg
from wengert.errors import WengertError

GRAPH = wg.trace(lambda x: np.sum(np.sin(x) * x))(wg.spec("n"))
ONE = wg.trace(lambda x: np.sum(np.sin(x) * x))(wg.spec(3))
W, X = wg.variable([1.0, 2.0], "w"), wg.input("x", 2)
STREAM = wg.random.Stream(0)
ODD = object()


def scope(name):
    with wg.scope(name):
        pass


def policy(**rules):
    with wg.policy(**rules):
        pass


CASES = {
    "spec of None": lambda: wg.spec(None),
    "spec of floats": lambda: wg.spec((1.5,)),
    "spec of NaN": lambda: wg.spec(float("nan")),
    "dim of a number": lambda: wg.dim(3),
    "dim of None": lambda: wg.dim(None),
    "a huge power": lambda: wg.dim("n**99999999"),
    "input without shape": lambda: wg.input("x", None),
    "input without a name": lambda: wg.input(""),
    "a ragged variable": lambda: wg.variable([[1.0], [1.0, 2.0]]),
    "a variable of a traced value": lambda: wg.variable(X),
    "the name of a variable": lambda: wg.variable(1.0, 3),
    "trace of None": lambda: wg.trace(None),
    "vmap of None": lambda: wg.vmap(None),
    "grad of None": lambda: wg.grad(None),
    "static numbers": lambda: wg.trace(np.sin, static_argnums=None),
    "static names": lambda: wg.trace(np.sin, static_argnames=3),
    "an array of objects": lambda: wg.trace(np.sin)(np.array([ODD])),
    "an array of words": lambda: wg.trace(np.sin)(np.array(["a"])),
    "inputs of a graph": lambda: wg.Graph(np.sum(X), inputs="x"),
    "inputs that are numbers": lambda: wg.Graph(np.sum(X), inputs=[3]),
    "effects of a graph": lambda: wg.Graph(np.sum(X), effects=[None]),
    "updates of a graph": lambda: wg.Graph(np.sum(X), updates=3),
    "a backend of None": lambda: wg.computation(np.sum(X), X, backend=None),
    "a backend of a list": lambda: backend([]),
    "updates": lambda: wg.computation(np.sum(X), X, updates=[W]),
    "a ragged update": lambda: wg.computation(np.sum(X), X, updates={W: [[1.0], [1.0, 2.0]]}),
    "effects": lambda: wg.computation(np.sum(X), X, effects=None),
    "one effect": lambda: wg.computation(np.sum(X), X, effects=np.sum(X)),
    "the name of a computation": lambda: wg.computation(np.sum(X), X, name=3),
    "argnums": lambda: ONE.grad(None),
    "argnums of words": lambda: ONE.grad("x"),
    "argnames": lambda: ONE.grad(argnames=3),
    "unconnected": lambda: ONE.grad(unconnected=None),
    "mode": lambda: ONE.jacobian(mode=None),
    "masked rows": lambda: wg.vmap(np.sin)(np.ma.array([1.0, 2.0], mask=[0, 1])),
    "rows": lambda: ONE.vmap(axis_size=[]),
    "minus one row": lambda: ONE.vmap(axis_size=-1),
    "a line of another graph": lambda: GRAPH.node(X),
    "a node of a list": lambda: GRAPH.index([]),
    "several lines": lambda: GRAPH.node(slice(0, 2)),
    "operands": lambda: GRAPH.operands("x"),
    "consumers": lambda: GRAPH.consumers(99),
    "select None": lambda: GRAPH.select(None),
    "select by number": lambda: GRAPH.select(op=3),
    "select where": lambda: GRAPH.select(where=3),
    "between": lambda: GRAPH.between(None, 0),
    "a sub-graph": lambda: GRAPH.subgraph(None),
    "substitute": lambda: GRAPH.substitute(None),
    "substitute by None": lambda: ONE.substitute({"x": None}),
    "an operation": lambda: GRAPH.with_operation("sin", None),
    "an unknown operation": lambda: GRAPH.with_operation("sin", "sine"),
    "an operation at several": lambda: GRAPH.with_operation(slice(0, 2), "cos"),
    "a huge axis": lambda: GRAPH.with_operation("sum", "sum", axis=2**63),
    "simplify None": lambda: wg.rewrite.simplify(None),
    "no passes": lambda: GRAPH.simplify(None),
    "sizes": lambda: GRAPH.report("n"),
    "report of None": lambda: report(None),
    "an executable of None": lambda: Executable(None, backend("null")),
    "a page": lambda: GRAPH.show(3),
    "not a backend": lambda: register_backend(wg.computation(GRAPH)),
    "why of a huge index": lambda: wg.why(np.sin, np.ones(3), index=2**63),
    "explain of None": lambda: wg.explain(None)(1.0),
    "explain a type": lambda: wg.explain(range)(1.0),  # which says no signature
    "scope of None": lambda: scope(None),
    "scope of bytes": lambda: scope(b"a"),
    "policy": lambda: policy(broadcast=np.ones(2)),
    "a cap": lambda: policy(max_float="wide"),
    "show of rows": lambda: wg.debug.show([[1.0], [1.0, 2.0]]),
    "show into a word": lambda: wg.debug.show(1.0, file="log"),
    "show to no logger": lambda: wg.debug.show(1.0, logger="log"),
    "guard of None": lambda: wg.debug.guard(None),
    "log of None": lambda: wg.debug.log(None, "log"),
    "keep too many": lambda: wg.debug.retrieve(1.0, "x", keep=2**63),
    "retrieved": lambda: wg.debug.retrieved[[]],
    "a seed that is a matrix": lambda: wg.random.Stream(np.ones((1, 2))),
    "a seed": lambda: wg.random.Stream(1.5),
    "low": lambda: STREAM.uniform(2, low=None),
    "mean": lambda: STREAM.normal(2, mean="x"),
    "a dtype": lambda: STREAM.normal(2, dtype="wide"),
    "bounds that are not integers": lambda: STREAM.integers(0.5, 2),
    "names of axes": lambda: wg.named(np.ones(2), None),
    "ragged axes": lambda: wg.named([[1.0], [1.0, 2.0]], "a b"),
}


@pytest.mark.parametrize("call", CASES.values(), ids=CASES)
def test_refused_with_words_and_the_users_line(call):
    with pytest.raises(WengertError) as caught:
        call()
    message = str(caught.value)
    assert f"(at {__file__}:" in message, message


def test_a_backend_needs_a_name():
    class Nameless(Backend):
        def compile(self, graph, sizes):
            raise NotImplementedError

    with pytest.raises(wg.errors.ArgumentError, match="name of a backend"):
        register_backend(Nameless())


def test_wide_floats_are_logged(tmp_path):
    path = pathlib.Path(tmp_path) / "log"
    wg.debug.log(np.array([1.0, 2.0], np.longdouble), path)  # json knows no longdouble
    line = json.loads(path.read_text())
    assert (line["min"], line["max"]) == (1.0, 2.0)


def test_a_path_is_no_logger(tmp_path):
    """Since Python 3.14 paths have an attribute `info`."""

    class Path(type(tmp_path)):
        info = "of the file"

    path = Path(tmp_path / "log")
    wg.debug.log(np.ones(2), path)
    assert json.loads(path.read_text())["mean"] == 1.0
    with pytest.raises(wg.errors.ArgumentError, match="is not a logger"):
        wg.debug.show(1.0, logger=path)


def test_rows_of_what_does_not_depend_on_the_input():
    graph = wg.trace(lambda x: (3.0, np.ones(2)))(np.ones(3)).vmap()  # TracedBranchError
    three, ones = graph(np.ones((4, 3)))
    assert three.tolist() == [3.0] * 4 and ones.shape == (4, 2)
