"""Functions of the floating-point format: as NumPy's, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from wengert._engine.ops.elementwise.arithmetic import floor_divide, remainder
from wengert._engine.ops.elementwise.number_parts import spacing

from .scalar_body_driver import run_body, same, ufunc_body
from .ufunc_driver import hard_points, ulps

DTYPES = [np.float64, np.float32]
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 3.0, -3.0, 1e30, -1e-30, 1e-44]


def pairs(dtype, count=8000, seed=0):
    """All pairs of special values, and random ones of hard points."""
    random = np.random.default_rng(seed)
    points = hard_points(np.float32 if dtype == np.float16 else dtype, 2000).astype(dtype)
    x, y = np.meshgrid(np.array(SPECIAL, dtype), np.array(SPECIAL, dtype))
    some = random.random(count).astype(dtype) * dtype(100)
    divisors = random.choice(np.array([0.1, -0.1, 0.3, 1, 2, -7], dtype), count)
    tiny = random.random(count).astype(dtype) * dtype(40) * np.finfo(dtype).eps
    x = np.concatenate([x.ravel(), random.choice(points, count), some, some])
    y = np.concatenate([y.ravel(), random.choice(points, count), divisors, tiny])
    return x, y


def check(name, dtype, *arrays, width, body=None):
    with np.errstate(all="ignore"):
        right = getattr(np, name)(*arrays)
    found = run_body(body or ufunc_body(name), right.dtype, *arrays, width=width)
    wrong = np.flatnonzero(~same(found, right))
    shown = [(*[x[i] for x in arrays], found[i], right[i]) for i in wrong[:3]]
    assert not len(wrong), f"{name}: {len(wrong)} differ: {shown}"


@pytest.mark.sample(15)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("dtype", [*DTYPES, np.float16])
@pytest.mark.parametrize("name", "fmod remainder floor_divide nextafter heaviside copysign".split())
def test_of_pairs(name, dtype, width):
    check(name, dtype, *pairs(dtype), width=width)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("operation", [floor_divide, remainder], ids=["floor_divide", "remainder"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bodies_of_quotients(operation, dtype):
    check(operation.name, dtype, *pairs(dtype), width=8, body=operation.body)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [*DTYPES, np.float16])
def test_spacing(dtype):
    points = hard_points(np.float32 if dtype == np.float16 else dtype, 2000).astype(dtype)
    check("spacing", dtype, points, width=8)
    if dtype != np.float16:
        check("spacing", dtype, points, width=8, body=spacing.body)


@pytest.mark.parametrize("width", [1, 4, 16])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sign(dtype, width):
    check("sign", dtype, hard_points(dtype, 2000), width=width)


def test_huge_quotients():
    x = np.array([1e308, 1e308, np.finfo(float).max, 1.0, 5e-324, 2.0**1000])
    y = np.array([3.0, 5e-324, 7e-310, 5e-324, 1e308, 2.0**-1000 * 3])
    check("fmod", np.float64, x, y, width=8)
    assert run_body(ufunc_body("fmod"), float, x, y)[0] == np.fmod(1e308, 3.0) == 2.0


@pytest.mark.sample(8)
@pytest.mark.parametrize("whole", "int8 int32 int64 uint8 uint16 bool".split())
@pytest.mark.parametrize("dtype", [*DTYPES, np.float16])
def test_ldexp(dtype, whole):
    random = np.random.default_rng(1)
    points = hard_points(np.float32 if dtype == np.float16 else dtype, 6000)
    with np.errstate(all="ignore"):
        x = points.astype(dtype)
        if whole == "bool":
            n = random.integers(0, 2, len(x)).astype(bool)
        else:
            limits = np.iinfo(whole)
            near = random.integers(max(-2200, limits.min), min(2200, limits.max), len(x))
            n = np.where(random.random(len(x)) < 0.7, near, random.choice([limits.min, limits.max]))
            n = n.astype(whole)
        check("ldexp", dtype, x, n, width=8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_hypot_within_one_unit(dtype):
    random = np.random.default_rng(3)
    points = hard_points(dtype, 1000)
    x, y = random.choice(points, 1500), random.choice(points, 1500)
    with np.errstate(all="ignore"):
        y[:750] = x[:750] * (1 + random.random(750) * random.choice([1e-3, 1e-9, 1], 750))
        found = run_body(ufunc_body("hypot"), dtype, x, y, width=8)
        assert ulps(found, "hypot", x, y).max() < 0.76
