"""Rounding to decimals, modf, frexp and norms of any power in native code, compared with NumPy.

float16 is tried with every number there is, float32 and float64 with random bits, so that subnormal
numbers, infinities and NaN are among them.
"""

from __future__ import annotations

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert._engine.backends.llvm.compiled_programs import LoadedProgram
from wengert._engine.backends.llvm.program import Program
from wengert._engine.core.op import lookup


def native(function, *args):
    """The results of a traced function, in machine code without host callbacks."""
    program = Program(wg.trace(function)(*args))
    assert not program.host_callbacks, program.host_callbacks
    return LoadedProgram(program).run(list(args), {})


def numbers(dtype):
    if dtype == "f2":
        return np.arange(2**16, dtype=np.uint16).view(np.float16)
    rng = np.random.default_rng(0)
    size = np.dtype(dtype).itemsize
    bits = rng.integers(0, 256, (5000, size), dtype=np.uint8).view(dtype)[:, 0]
    near = (rng.integers(-5000, 5000, 5000) / 8.0).astype(dtype)
    info = np.finfo(dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, info.tiny, info.smallest_subnormal,
                        info.max, -info.tiny / 2, 1 - info.epsneg], dtype)  # fmt: skip
    return np.concatenate([bits, near, special])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_mantissas_and_fractions(dtype):
    x = numbers(dtype)
    with np.errstate(all="ignore"):
        for name, wanted in (("frexp", np.frexp(x)), ("modf", np.modf(x))):
            found = native(lookup(name), x)
            for got, want in zip(found, wanted, strict=True):
                assert got.dtype == want.dtype
                np.testing.assert_array_equal(got, want)
                if want.dtype.kind == "f":
                    np.testing.assert_array_equal(
                        np.signbit(got)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)]
                    )


@pytest.mark.sample(9)
@pytest.mark.parametrize("decimals", [0, 1, 2, 5, 17, -1, -3])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_rounding_to_decimals(dtype, decimals):
    x = numbers(dtype)
    with np.errstate(all="ignore"):
        wanted = np.round(x, decimals)
    (found,) = native(lambda x: wnp.round(x, decimals), x)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_rounding_other_numbers():
    rng = np.random.default_rng(1)
    z = (rng.normal(size=9) + 1j * rng.normal(size=9)) * 100
    for decimals in (0, 2, -1):
        (found,) = native(lambda x, d=decimals: wnp.round(x, d), z)
        np.testing.assert_array_equal(found, np.round(z, decimals))
    for dtype in ("i1", "i4", "u2"):
        x = np.array([0, 4, 5, 15, 25, 26, 99, 120], dtype)
        for decimals in (0, 3, -1, -2):
            (found,) = native(lambda x, d=decimals: wnp.round(x, d), x)
            assert found.dtype == x.dtype
            np.testing.assert_array_equal(found, np.round(x, decimals))


@pytest.mark.sample(1)
@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, 4, 7.25, -1, -2])
def test_norms(p):
    rng = np.random.default_rng(2)
    norm = lookup("norm_p")
    for x in (rng.normal(size=(3, 40)), rng.normal(size=(5,)).astype("f4"),
              rng.normal(size=(4, 9)) + 1j * rng.normal(size=(4, 9))):  # fmt: skip
        for axis in (None, 0, -1):
            for keepdims in (False, True):
                wanted = norm.run(x, p=p, axis=axis, keepdims=keepdims)
                (found,) = native(lambda x, a=axis, k=keepdims: norm(x, p=p, axis=a, keepdims=k), x)
                assert found.dtype == wanted.dtype and found.shape == wanted.shape
                tolerance = 2e-5 if x.dtype == "f4" else 1e-12
                np.testing.assert_allclose(found, wanted, rtol=tolerance)


def test_what_only_says_something_costs_nothing():
    """`after` and `assume` are the value itself."""
    x, y = np.arange(3.0), np.arange(4.0)

    def function(x, y):
        return lookup("assume")(lookup("after")(x, y), facts=("finite",)) * 2.0

    program = Program(wg.trace(function)(x, y))
    assert len(program.plan.stages) == 1 and not program.host_callbacks
    np.testing.assert_array_equal(LoadedProgram(program).run([x, y], {})[0], 2 * x)
