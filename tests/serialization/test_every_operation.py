"""Every operation of the registry is kept: a graph of its examples, and of their derivatives."""

import inspect
import zlib

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.op import REGISTRY
from wengert._engine.serialization.specs_json import is_library
from wengert.errors import StructureError, WengertError

from .helpers import round_trip, same_graph

# Acts on files, streams and processes of the program that runs it.
OUTSIDE = {"debug_callback", "debug_log", "debug_show", "partition_sum"}
HAS_CODE = {"scipy_solver", "sparse.iterative_method"}  # a solver or a matrix is an object
LIBRARY = sorted(
    n
    for n, op in REGISTRY.items()
    if is_library(op) and n not in OUTSIDE and op.kind != "collective"
)


def examples(op, rng):
    if op.make_examples is not None:
        yield from op.make_examples(rng)
    elif op.kind == "elementwise":
        count = len(inspect.signature(op.body).parameters) - 1
        yield tuple(rng.uniform(0.1, 0.9, size=(2, 3)) for _ in range(count)), {}


def objective(op, params):
    def total(*args):
        out = op(*args, **params)
        return sum(np.sum(np.real(y)) for y in (out if isinstance(out, tuple) else (out,)))

    return total


def traced(function, args):
    """The graph, or None where the operation cannot be traced for these operands."""
    try:
        return wg.trace(function)(*args)
    except (WengertError, TypeError, ValueError, IndexError):
        return None


@pytest.mark.sample(44)
@pytest.mark.parametrize("name", LIBRARY)
def test_operation(name):
    op, rng = REGISTRY[name], np.random.default_rng(zlib.crc32(name.encode()))
    for args, params in examples(op, rng):
        with np.errstate(all="ignore"):
            graphs = [traced(lambda *a, op=op, params=params: op(*a, **params), args)]
            if not op.discrete:
                graphs.append(traced(wg.grad(objective(op, params)), args))
            for graph in graphs:
                if graph is not None and name in HAS_CODE:
                    with pytest.raises(StructureError, match="cannot be saved"):
                        round_trip(graph)
                elif graph is not None:
                    again = round_trip(graph)
                    assert same_graph(graph, again)
                    assert not any(n.info is not None and n.info.unchecked for n in again.nodes)


def test_most_operations_are_traced(rng):
    """So that the test above says something."""
    kept = [
        name
        for name in LIBRARY
        if any(traced(lambda *a, n=name, p=p: REGISTRY[n](*a, **p), args) is not None
               for args, p in examples(REGISTRY[name], rng))
    ]  # fmt: skip
    assert len(kept) > 150
