"""The callbacks of Ipopt as C functions: results, counts, and results that are not finite."""

import ctypes

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.abi import ipopt_callbacks as words
from wengert.errors import ArgumentError


def memory(*inputs):
    """The data of a callback, and the flag that stops it."""
    flag = np.zeros(1, np.int64)
    data = np.zeros(words.FIRST_INPUT + len(inputs), np.int64)
    data[words.STOP] = flag.ctypes.data
    data[words.FIRST_INPUT :] = [x.ctypes.data for x in inputs]
    return data, flag


def doubles(array):
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def test_values_are_written_and_counted():
    roots = wg.jit(lambda x, a: a * np.sqrt(x)).address(wg.spec(3), wg.spec(3), signature="ipopt g")
    a, x, out = np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 9.0]), np.zeros(3)
    data, _ = memory(a)
    assert roots.function(3, doubles(x), 3, doubles(out), data.ctypes.data)
    assert out.tolist() == [1.0, 4.0, 9.0]
    assert data[words.CALLS] == 1 and data[words.FAILURES] == 0 and data[words.NANOSECONDS] >= 0


@pytest.mark.parametrize("bad", [-1.0, np.inf, np.nan])
def test_results_that_are_not_finite_are_refused_and_noted(bad):
    roots = wg.jit(np.sqrt).address(wg.spec(4), signature="ipopt f")
    x, out = np.array([1.0, 4.0, bad, 1.0]), np.zeros(4)
    data, _ = memory()
    assert not roots.function(4, doubles(x), doubles(out), data.ctypes.data)
    assert data[words.FAILURES] == 1 and data[words.ELEMENT] == 2 and data[words.STATUS] == 0


def test_the_hessian_gets_a_factor_and_multipliers():
    values = wg.jit(lambda x, factor, y, a: factor * x * a + y[0]).address(
        wg.spec(2), wg.spec(()), wg.spec(1), wg.spec(()), signature="ipopt h"
    )
    x, y, a, out = np.array([1.0, 2.0]), np.array([10.0]), np.array(3.0), np.zeros(2)
    data, _ = memory(a)
    given = 2, doubles(x), 0.5, 1, doubles(y), 2, doubles(out), data.ctypes.data
    assert values.function(*given) and out.tolist() == [11.5, 13.0]


def test_a_flag_stops_all_callbacks():
    square = wg.jit(np.square).address(wg.spec(1), signature="ipopt f")
    x, out = np.ones(1), np.zeros(1)
    data, flag = memory()
    flag[0] = 1
    assert not square.function(1, doubles(x), doubles(out), data.ctypes.data)
    assert data[words.CALLS] == 0


def test_programs_that_do_not_fit_are_refused():
    with pytest.raises(ArgumentError, match="arrays and numbers of doubles"):
        wg.jit(np.square).address(wg.spec(2, np.float32), signature="ipopt f")
    with pytest.raises(ArgumentError, match="arrays and numbers of doubles"):
        wg.jit(np.square).address(wg.spec("n"), signature="ipopt f")
