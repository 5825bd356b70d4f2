"""Booleans, small integers and half precision have NumPy's dtypes in graphs and native code.

Every step of random programs (random_program_steps.py) and the functions below run with each of
these dtypes.  What NumPy refuses (int8 times 200, an integer to the power -1) is refused in a
graph; what it accepts has the same dtype and value.
"""

import warnings

import numpy as np
import pytest
from wengert.rewrite import simplify

import wengert as wg

from . import random_program_steps as steps

DTYPES = ("bool", "int8", "uint8", "float16", "float64")
MORE = ("int16", "uint16", "int32", "float32")
UNARY = {
    **steps.SMOOTH,
    **steps.ROUGH,
    **steps.WHOLE,
    **steps.TRUTH,
    "times 200": lambda x: x * 200,
    "plus 70000": lambda x: x + 70000,
    "minus one": lambda x: x - 1,
    "from one": lambda x: 1 - x,
    "power 2": lambda x: x**2,
    "power 3": lambda x: x**3,
    "power -1": lambda x: x**-1,
    "power half": lambda x: x**0.5,
    "power of two": lambda x: 2**x,
    "power of minus one": lambda x: 2.0**-x,
    "by two": lambda x: x / 2,
    "floor by two": lambda x: x // 2,
    "equal 300": lambda x: x == 300,
    "equal 257": lambda x: x == 257,
    "less than -1": lambda x: x < -1,
    "at least -200": lambda x: x >= -200,
    "other than -255": lambda x: x != -255,
    "greater than 40000": lambda x: x > 40000,
    "greater than a long number": lambda x: x > 2**40,
    "clip": lambda x: np.clip(x, 0, 1),
    "clip single": lambda x: np.clip(x, 0, np.float32(1.0)),
    "clip half": lambda x: np.clip(x, np.float16(0.0), None),
    "maximum of a half": lambda x: np.maximum(x, 0.5),
    "where": lambda x: np.where(x > 0, x, 2),
    "half": lambda x: x.astype("float16") * 2,
    "sign": np.sign,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    "exp": lambda x: np.exp(x / 4),
    "square": np.square,
    "reciprocal": lambda x: np.reciprocal(x + x.dtype.type(1)),
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "mean of half": lambda x: np.mean(x, dtype="f2"),
    "nanmean": np.nanmean,
    "nansum": np.nansum,
    "var": np.var,
    "std": np.std,
    "max": np.max,
    "ptp": np.ptp,
    "median": np.median,
    "cumsum": np.cumsum,
    "cumprod": lambda x: np.cumprod(x[:3]),
    "diff": np.diff,
    "sort": np.sort,
    "dot": lambda x: x @ x,
    "outer": lambda x: np.outer(x, x),
    "correlate": lambda x: np.correlate(x, x[:2]),
    "convolve": lambda x: np.convolve(x, x[:2]),
    "norm": np.linalg.norm,
    "norm 1": lambda x: np.linalg.norm(np.outer(x, x), 1),
    "norm inf": lambda x: np.linalg.norm(x, np.inf),
    "trace": lambda x: np.trace(np.outer(x, x)),
    "average": np.average,
    "interp": lambda x: np.interp(x, [0.0, 2.0], [1.0, 5.0]),
    "linspace": lambda x: np.linspace(x[0], x[1], 3),
    "full": lambda x: np.full_like(x, 1),
    "arctan2": lambda x: np.arctan2(x, 0.5),
    "hypot": lambda x: np.hypot(x, x),
    "round": lambda x: np.round(x, 1),
    "einsum": lambda x: np.einsum("i,i->", x, x),
    "tensordot": lambda x: np.tensordot(x, x, 0),
    "kron": lambda x: np.kron(x, x),
    "concatenated": lambda x: np.concatenate([x, x.astype("int8")]),
    "in place": lambda x: _in_place(x),
}
VALUES = np.array([0, 1, 3, 2, 1, 5])


def _in_place(x):
    y = x.copy()
    y[1:3] = y[:2]
    y[None][0, 0] = 1
    return y


def outcome(function, x):
    """What a function gives, or the error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(x)
        except (TypeError, ValueError, OverflowError, IndexError) as error:
            return error


def differences(dtype):
    """What is not as NumPy says, as text."""
    x = VALUES.astype(dtype)
    wanted = {name: outcome(f, x) for name, f in UNARY.items()}
    taken, found = {}, []
    for name, f in UNARY.items():
        graph = outcome(wg.trace(f), x)
        if isinstance(wanted[name], Exception) != isinstance(graph, Exception):
            found.append(f"{name}: NumPy gives {wanted[name]!r}, a graph {graph!r}")
        elif not isinstance(graph, Exception):
            taken[name] = f

    def every(x):
        return {name: f(x) for name, f in taken.items()}

    graph = wg.trace(every)(x)
    runs = {"graph": graph, "simplified": simplify(graph), "native": wg.jit(every)}
    for way, run in runs.items():
        results = outcome(run, x)
        if isinstance(results, Exception):
            found.append(f"{way}: {results!r}")
            continue
        for name, result in results.items():
            want = np.asarray(wanted[name])
            result = np.asarray(result)
            if result.dtype != want.dtype or result.shape != want.shape:
                found.append(f"{name}, {way}: {result.dtype}{result.shape}, not {want.dtype}")
            elif not np.allclose(result, want, *_tolerances(want, x), equal_nan=True):
                found.append(f"{name}, {way}: {result}, not {want}")
    return found


def _tolerances(want, x):
    """Of a result; sines of numbers of one byte are of half precision, whatever is added later."""
    if want.dtype.kind != "f":
        return 0.0, 0.0
    dtype = np.dtype(np.float16) if x.dtype.itemsize == 1 else want.dtype
    eps = 8.0 * float(np.finfo(dtype).eps)
    return eps, eps


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "dtype", [*DTYPES, *[pytest.param(d, marks=pytest.mark.slow) for d in MORE]]
)
def test_as_numpy(dtype):
    found = differences(dtype)
    assert not found, "\n".join(found)


def test_numbers_that_arrive_later_are_compared_by_what_they_are_worth():
    compared = wg.jit(lambda x, n: (x < n, n == x, x >= n, x != n))
    for dtype in ("int8", "uint8", "int16", "uint32", "uint64", "int64"):
        x = np.array([0, 1, 44, 100]).astype(dtype)
        for n in (-1, 44, 300, -(2**40), 2**40):
            wanted = (x < n, n == x, x >= n, x != n)
            for found, want in zip(compared(x, n), wanted, strict=True):
                np.testing.assert_array_equal(found, want)
