"""Entries of whole programs: results are the interpreter's, errors too, and memory is recycled."""

import threading

import numpy as np
import pytest
import scipy
import scipy.integrate
from wengert.backends import backend

import wengert as wg

from .entry_programs import never


def entry_of(fun, *specs, otherwise=never):
    graph = wg.trace(fun)(*specs)
    return backend("llvm").entry(graph, single=len(graph.outputs) == 1, otherwise=otherwise)


def several(x, y, c):
    z = np.sin(x) * c + np.sum(y, axis=0)
    return z, np.sum(z), y.T, np.max(x) > 0.5, np.sum(z * 0).astype(np.int32)


def magnitudes(x, y, c):
    """For each result of `several` the sum of the absolute values of its terms."""
    z = np.abs(np.sin(x) * c) + np.sum(np.abs(y), axis=0)
    return z, np.sum(z), np.abs(y.T), 0, 0


def test_results_are_the_interpreter_s():
    specs = wg.spec("n"), wg.spec(("m", "n")), wg.spec(())
    entry = entry_of(several, *specs)
    graph = wg.trace(several)(*specs)
    run = wg.computation(graph, backend="interpret")
    rng = np.random.default_rng(3)
    for n, m in ((1, 1), (3, 2), (17, 5), (1000, 40)):
        given = rng.normal(size=n), rng.normal(size=(m, n)), np.float64(rng.normal())
        results = zip(entry(*given), run(*given), magnitudes(*given), strict=True)
        for one, other, magnitude in results:
            assert type(one) is type(other)
            assert one.dtype == other.dtype
            if one.dtype != np.float64:
                np.testing.assert_array_equal(one, other)
            else:  # the order of sums differs: rounding is that of their terms, which may cancel
                assert one.shape == other.shape
                assert np.all(np.abs(one - other) <= 1e-14 * magnitude)


def test_what_has_no_result_goes_to_the_slow_path():
    entry = entry_of(np.linalg.inv, wg.spec(("n", "n")), otherwise=lambda *args: ("slow", args))
    a = np.array([[2.0, 0.0], [0.0, 4.0]])
    np.testing.assert_array_equal(entry(a), [[0.5, 0.0], [0.0, 0.25]])
    singular = np.zeros((2, 2))
    kind, (given,) = entry(singular)
    assert kind == "slow"
    assert given is singular


def test_exceptions_in_host_callbacks_are_raised():
    @wg.primitive
    def picky(x):
        if x[0] < 0.0:
            raise LookupError("less than nothing")
        return x * 2.0

    entry = entry_of(lambda x: picky(x) + 1.0, wg.spec(3))
    np.testing.assert_array_equal(entry(np.ones(3)), np.full(3, 3.0))
    for _ in range(3):
        with pytest.raises(LookupError, match="less than nothing"):
            entry(-np.ones(3))
    np.testing.assert_array_equal(entry(np.ones(3)), np.full(3, 3.0))


def test_large_results_are_recycled():
    entry = entry_of(lambda x: x * 2.0, wg.spec("n"))
    x = np.arange(100_000.0)
    places = set()
    for k in range(20):
        result = entry(x)
        np.testing.assert_array_equal(result, x * 2.0)
        assert np._core.multiarray.get_handler_name(result) == "wengert"
        places.add(result.ctypes.data)
        if k % 2:
            result.resize(10, refcheck=False)
        del result
    assert len(places) < 10
    kept = [entry(x + k) for k in range(5)]
    for k, result in enumerate(kept):
        np.testing.assert_array_equal(result, (x + k) * 2.0)


def test_threads_get_their_own_results():
    entry = entry_of(lambda x: (np.exp(x), np.sum(x)), wg.spec("n"))
    wrong = []

    def work(k):
        for size in (5, 50_000):
            x = np.full(size, 0.1 * k)
            for _ in range(40):
                one, total = entry(x)
                if not (np.allclose(one, np.exp(x)) and np.isclose(total, 0.1 * k * size)):
                    wrong.append((k, size))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_pointer_of_a_derivative():
    graph = wg.trace(wg.grad(lambda x: np.sin(x) * x**2))(wg.spec(()))
    made = backend("llvm").address(graph)
    area, _ = scipy.integrate.quad(scipy.LowLevelCallable(made.function), 0.0, 2.0)
    assert area == pytest.approx(np.sin(2.0) * 4.0)
