"""While something is compiled the collector of cycles looks less often; afterwards as before."""

import gc
import importlib
import sys
import threading

import numpy as np
import pytest

import wengert as wg
from wengert._engine.jit.programs import relaxed_gc


@pytest.fixture(autouse=True)
def usual():
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_it_is_as_before_however_it_ends():
    seen = []

    def f(x):
        seen.append(gc.get_threshold())
        if len(seen) > 1:
            raise ValueError
        return x

    for thresholds in ((700, 10, 10), (900, 5, 7)):
        gc.set_threshold(*thresholds)
        seen.clear()
        wg.jit(f)(np.ones(3))
        assert seen[0][0] > 10_000 and seen[0][1:] == thresholds[1:]
        assert gc.get_threshold() == thresholds
        with pytest.raises(ValueError):
            wg.jit(f)(np.ones(4))
        assert gc.get_threshold() == thresholds


@pytest.mark.parametrize("thresholds", [(0, 10, 10), (1_000_000, 10, 10)])
def test_whoever_has_it_rarely_or_never_keeps_that(thresholds):
    gc.set_threshold(*thresholds)
    with relaxed_gc():
        assert gc.get_threshold() == thresholds
    assert gc.get_threshold() == thresholds


def test_what_is_set_meanwhile_stays():
    with relaxed_gc():
        gc.set_threshold(123, 4, 5)
    assert gc.get_threshold() == (123, 4, 5)


def test_several_threads_leave_it_as_it_was(usual):
    barrier = threading.Barrier(4)

    def work():
        for _ in range(50):
            barrier.wait()
            with relaxed_gc(), relaxed_gc():
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert gc.get_threshold() == usual


def test_functions_are_freed_after_the_names_of_their_module(monkeypatch):
    """When a program ends, names of modules become None before all objects are freed."""
    module = importlib.import_module("wengert._engine.jit.jitted")
    f = wg.jit(lambda x: x + 1.0)
    assert f(1.0) == f(1.0) == 2.0
    errors = []
    monkeypatch.setattr(sys, "unraisablehook", errors.append)
    for name in ("_empty", "Jitted"):
        monkeypatch.setitem(vars(module), name, None)
    del f
    gc.collect()
    assert not errors
