"""The programs of tests/regressions, which users would write: the same numbers after simplifying.

Programs that branch on values cannot be traced, and are left out by the error that says so.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from wengert.rewrite import DEFAULT, simplify

import wengert as wg
from wengert._engine.core import pytree
from wengert._engine.core.graph_classes import bodies_of
from wengert.errors import TraceError

PATH = Path(__file__).parents[1] / "regressions" / "test_programs.py"
_SPEC = importlib.util.spec_from_file_location("programs_for_rewriting", PATH)
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)
FOUND = {p.id: p.values for p in _MODULE.PROGRAMS}


def traced(function, args):
    try:
        return wg.trace(function)(*args)
    except TraceError:
        return None


def assert_same(got, wanted):
    for a, b in zip(pytree.flatten(got)[0], pytree.flatten(wanted)[0], strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


def has_loops(graph):
    """Whether nodes may be moved out of a loop, which adds nodes to the graph around it."""
    return any(bodies_of(n) for n in graph.nodes)


@pytest.mark.sample(8)
@pytest.mark.parametrize("order", [DEFAULT, DEFAULT.without("stabilise")], ids=["all", "exact"])
@pytest.mark.parametrize("name", FOUND)
def test_the_same_numbers(name, order):
    f, args = FOUND[name]
    for function in (f, wg.value_and_grad(f)):
        graph = traced(function, args)
        if graph is None:
            continue
        after = simplify(graph, order)
        after.verify()
        assert len(after) <= len(graph) or has_loops(graph)
        assert_same(after(*args), graph(*args))


def test_most_of_them_are_traced():
    count = sum(traced(f, args) is not None for f, args in FOUND.values())
    assert count >= 0.6 * len(FOUND)
