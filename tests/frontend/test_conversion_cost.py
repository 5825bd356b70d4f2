"""The code of a function is converted once."""

import numpy as np

import wengert as wg
from wengert._engine.cache import disk_cache
from wengert._engine.frontend.rewriting import functions as rewriting

X = np.array([0.5, 1.5])


def test_a_second_call_converts_nothing(monkeypatch):
    made = []

    def counting(definition, code, whole=True):
        made.append(code.co_name)
        return convert(definition, code, whole)

    convert = rewriting.rewritten_code
    monkeypatch.setattr(rewriting, "rewritten_code", counting)
    monkeypatch.setattr(disk_cache._CacheState, "enabled", False)  # not read from the disk

    def helper(v, make=np.zeros):
        y = make(1)
        y[0] = v
        return y[0]

    def f(x):
        return helper(x[0]) * helper(x[1])

    first = wg.grad(f)(X)
    assert sorted(made) == ["f", "helper"]
    np.testing.assert_array_equal(wg.grad(f)(X), first)
    np.testing.assert_array_equal(wg.value_and_grad(f)(X)[1], first)
    assert sorted(made) == ["f", "helper"]

    made.clear()
    wg.trace(f)(X)
    again = sorted(made)
    wg.trace(f)(X)
    assert sorted(made) == again and len(again) <= 2
