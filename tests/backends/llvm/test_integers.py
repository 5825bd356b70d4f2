"""Integers, booleans and casts: as NumPy's, for every dtype."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from .scalar_body_driver import run_body, same, ufunc_body
from .ufunc_driver import hard_points

WHOLE = "i1 i2 i4 i8 u1 u2 u4 u8".split()
KINDS = ["b1", *WHOLE]
ALL = [*KINDS, "f2", "f4", "f8", "c8", "c16"]
ONE = """negative positive absolute sign square reciprocal invert bitwise_count logical_not isnan
    isinf isfinite rint floor ceil trunc conjugate""".split()
TWO = """add subtract multiply divide floor_divide remainder fmod maximum minimum less less_equal
    equal not_equal greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or
    bitwise_xor left_shift right_shift gcd lcm""".split()
MIXED = "add multiply left_shift floor_divide gcd maximum".split()
RARE = {"i2", "u1", "u4", "c8"}  # tested by `make test-all`: compiling takes its time
QUIET = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def has(name, *kinds):
    """Whether NumPy's ufunc takes these dtypes."""
    try:
        getattr(np, name)(*[np.ones(1, kind) for kind in kinds])
    except TypeError:
        return False
    return True


def cases(names, count):
    """Every name with every kind that NumPy has it for."""
    for name in names:
        for kind in KINDS:
            if has(name, *[kind] * count) and (name, kind) != ("reciprocal", "b1"):
                yield pytest.param(name, kind, marks=[pytest.mark.slow] if kind in RARE else [])


@functools.cache
def numbers(kind, count=300):
    """Numbers of a dtype: the ends of its range, small ones, powers of two, random bits."""
    random = np.random.default_rng(0)
    dtype = np.dtype(kind)
    if dtype.kind == "b":
        return random.integers(0, 2, count).astype(bool)
    if dtype.kind == "c":
        part = numbers("f4" if dtype.itemsize == 8 else "f8")
        z = np.empty(len(part), dtype)
        z.real, z.imag = random.permutation(part), random.permutation(part)
        return z
    if dtype.kind == "f":
        limits = np.array([2.0**k for k in (7, 8, 15, 16, 31, 32, 63, 64)])
        limits = np.concatenate([limits, -limits])
        near = [limits, limits * (1 + 1e-7), limits * (1 - 1e-7), limits * (1 - 2e-16)]
        near += [limits + 0.5, limits - 0.5, limits + 1, limits - 1]
        sizes = (random.random(count) - 0.5) * 2.0 ** random.integers(0, 66, count)
        points = hard_points("f4" if dtype.itemsize == 2 else dtype, 600)
        with np.errstate(all="ignore"):
            return np.concatenate([points, *near, sizes]).astype(dtype)
    limits = np.iinfo(dtype)
    every = random.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)
    ends = [limits.max, limits.max - 1, limits.min, limits.min + 1]
    some = [0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, -1, -2, -3, -8, -63, -64]
    some = [v for v in ends + some if limits.min <= v <= limits.max]
    return np.concatenate(
        [every, np.array(some, dtype), random.integers(0, 20, count).astype(dtype)]
    )


def check(name, *arrays, width=8):
    right = getattr(np, name)(*arrays)
    found = run_body(ufunc_body(name), right.dtype, *arrays, width=width)
    wrong = np.flatnonzero(~same(found, right))
    shown = [(*[x[i] for x in arrays], found[i], right[i]) for i in wrong[:4]]
    assert not len(wrong), f"{len(wrong)} differ: {shown}"


@pytest.mark.sample(40)
@QUIET
@pytest.mark.parametrize("name, kind", list(cases(ONE, 1)))
def test_of_one(name, kind):
    check(name, numbers(kind))


def pairs(one, two, count=500):
    random = np.random.default_rng(7)
    return random.choice(numbers(one), count), random.choice(numbers(two), count)


@pytest.mark.sample(59)
@QUIET
@pytest.mark.parametrize("name, kind", list(cases(TWO, 2)))
def test_of_two(name, kind):
    check(name, *pairs(kind, kind))


@pytest.mark.sample(8)
@QUIET
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "gcd", "lcm", "right_shift"])
@pytest.mark.parametrize("kind", ["i4", "u8"])
@pytest.mark.parametrize("width", [1, 16])
def test_other_widths(name, kind, width):
    check(name, *pairs(kind, kind), width=width)


@pytest.mark.sample(12)
@QUIET
@pytest.mark.parametrize(
    "name, both",
    [
        (name, both)
        for name in MIXED
        for both in ("b1-i1", "u4-i8", "i2-u8", "i4-u1", "u2-b1")
        if has(name, *both.split("-"))
    ],
)
def test_promotion(name, both):
    check(name, *pairs(*both.split("-")))


@pytest.mark.parametrize("name", "less less_equal equal not_equal greater greater_equal".split())
@pytest.mark.parametrize("both", ["i8-u8", "u8-i8", "i2-u8"])
def test_comparing_with_and_without_sign(name, both):
    x, y = pairs(*both.split("-"))
    y[:100] = x[:100].astype(y.dtype)
    check(name, x, y)


@pytest.mark.parametrize("kind", WHOLE)
def test_powers(kind):
    x, y = pairs(kind, kind)
    y = np.abs(np.where(y == np.iinfo(kind).min, 0, y)).astype(kind)
    check("power", x, y)


def test_divisors_against_python():
    x, y = pairs("i8", "i8")
    x, y = x // 2, y // 2
    found = run_body(ufunc_body("gcd"), "i8", x, y)
    assert found.tolist() == [math.gcd(int(a), int(b)) for a, b in zip(x, y, strict=True)]


@pytest.mark.sample(40)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@QUIET
@pytest.mark.parametrize(
    "old, new",
    [
        pytest.param(a, b, marks=[pytest.mark.slow] if RARE & {a, b} else [])
        for a in ALL
        for b in ALL
    ],
)
def test_casts(old, new):
    x = numbers(old)
    right = x.astype(new)
    known = np.ones(len(x), bool)
    if new == "u4" and np.dtype(old).kind in "fc":
        # Outside its range NumPy gives one thing for an array and another for its elements.
        known = np.abs(x.real) < 2.0**31
    found = run_body(lambda s, v: s.cast(v, np.dtype(new)), new, x, width=8)
    wrong = np.flatnonzero(~same(found, right) & known)
    assert not len(wrong), [(x[i], found[i], right[i]) for i in wrong[:4]]


@pytest.mark.sample(4)
@QUIET
@pytest.mark.parametrize("kind", KINDS)
def test_a_python_number_takes_the_dtype_of_its_partner(kind):
    x = numbers(kind)
    for right, body in (
        (x + 1, lambda s, v: v + 1),
        (np.maximum(x, 3), lambda s, v: s.max(v, 3)),
        (x * 2.5, lambda s, v: v * 2.5),
    ):
        assert np.all(same(run_body(body, right.dtype, x), right))


@QUIET
@pytest.mark.parametrize("n", [0, 1, 2, 7, 63, 200])
def test_powers_of_a_constant_exponent(n):
    x = numbers("i8")
    assert np.all(run_body(lambda s, v: s.power(v, n), "i8", x) == x**n)


def test_a_negative_exponent_ends():
    x, y = np.array([3, 5, -7]), np.array([-1, -(2**62), 2])
    assert run_body(ufunc_body("power"), "i8", x, y).tolist() == [0, 0, 49]
