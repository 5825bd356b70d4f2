"""Keywords: each value goes to its own name, in whatever order names are written.

Containers give the values of a dict in the order of its keys, and calls in the order in which they
were written; arrays of one shape that change places would be numbers that are silently wrong.
"""

import itertools

import numpy as np
import pytest

import wengert as wg

VALUES = {"y": np.arange(3.0), "k": np.full(3, 7.0), "a": {"z": np.ones(3), "b": np.full(3, 2.0)}}


def f(x, y, k, a):
    return x * y - k + 10.0 * a["z"] - 100.0 * a["b"]


def several(x, **more):
    return [x * n + v for n, v in enumerate(more[name] for name in more if name != "a")]


@pytest.mark.parametrize("order", list(itertools.permutations(VALUES)), ids="-".join)
def test_keywords_in_any_order(order):
    x, given = np.full(3, 2.0), {name: VALUES[name] for name in order}
    want = f(x, **given)
    assert np.array_equal(wg.jit(f)(x, **given), want)
    graph = wg.trace(f)(x, **given)
    again = {name: VALUES[name] for name in reversed(order)}
    assert np.array_equal(graph(x, **given), want) and np.array_equal(graph(x, **again), want)
    jitted = wg.jit(f)
    jitted(x, **again)
    assert np.array_equal(jitted(x, **given), want)
    assert np.array_equal(graph.jacobian()(x, **given), np.diag(VALUES["y"]))


def test_the_function_sees_the_order_of_the_call():
    x = np.ones(3)
    given = {"y": VALUES["y"], "k": VALUES["k"]}
    for a, b in zip(wg.jit(several)(x, **given), several(x, **given), strict=True):
        assert np.array_equal(a, b)
