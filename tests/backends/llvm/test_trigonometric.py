"""Trigonometric functions and their inverses against mpmath; special values against NumPy."""

from __future__ import annotations

import functools

import mpmath
import numpy as np
import pytest

from .ufunc_checks import (
    DTYPES,
    F32,
    F64,
    X86,
    check_errors,
    check_processors,
    check_specials,
    check_widths,
    dense_error,
    natural_width,
)
from .ufunc_driver import hard_points, run_leaf

# The largest error that is allowed, for both dtypes; the issue allows 2.
LIMITS = {"sin": 1.8, "cos": 1.8, "tan": 1.6, "arcsin": 1.65, "arccos": 1.25, "arctan": 1.3}
UNARY = [*LIMITS]
PERIODIC = ["sin", "cos", "tan"]
LIMIT_OF_ANGLE = 1.5
# Where a leaf is used, and where it is hardest.
RANGES = {
    "sin": [(-7, 7), (1.5, 1.65), (-1e5, 1e5)],
    "cos": [(-7, 7), (-0.1, 0.1), (-1e5, 1e5)],
    "tan": [(-7, 7), (0.7, 0.8), (-1e5, 1e5)],
    "arcsin": [(-1, 1), (0.48, 0.56), (0.7, 0.9)],
    "arccos": [(-1, 1), (0.45, 0.56), (-0.6, -0.45)],
    "arctan": [(-4, 4), (0.9, 1.1), (-100, 100)],
}


def points(name, dtype, count, seed=0):
    random = np.random.default_rng(seed)
    parts = [hard_points(dtype, count, seed)]
    parts += [random.uniform(*r, count // 4).astype(dtype) for r in RANGES[name]]
    return np.concatenate(parts)


def planes(dtype, count, seed=0):
    """Pairs: of every size, and with a quotient near 1."""
    random = np.random.default_rng(seed)
    hard = hard_points(dtype, count, seed)
    hard = hard[np.isfinite(hard) & (hard != 0)]
    y = [random.choice(hard, count), random.standard_normal(count), random.standard_normal(count)]
    near = y[2] * (1 + random.standard_normal(count) * 1e-3)
    x = [random.choice(hard, count), random.standard_normal(count), near]
    return tuple(np.concatenate(parts).astype(dtype) for parts in (y, x))


def multiples(dtype, count, seed=0):
    """The numbers nearest to multiples of pi/2 below 1e6 or so, and their neighbors."""
    random = np.random.default_rng(seed)
    quarters = random.integers(1, 600_000, count)
    with mpmath.workdps(40):
        near = np.array([float(int(k) * mpmath.pi / 2) for k in quarters]).astype(dtype)
    infinite = dtype.type(np.inf)
    return np.concatenate([near, np.nextafter(near, infinite), np.nextafter(near, -infinite)])


@functools.cache
def closest(dtype):
    """For each exponent the numbers that are closest to multiples of pi/2.

    m * 2**e is close to one where m is the denominator of a convergent of 2**e * 2/pi (Muller,
    "Elementary Functions", 3rd edition, 11.3.2).
    """
    limits = np.finfo(dtype)
    digits = limits.nmant + 1
    found = []
    with mpmath.workdps(700):
        unit = 2 / mpmath.pi
        for exponent in range(1 - digits, limits.maxexp - digits + 1):
            rest, last, now = mpmath.ldexp(unit, exponent), 0, 1
            rest -= mpmath.floor(rest)
            while True:
                rest = 1 / rest
                whole = int(mpmath.floor(rest))
                last, now = now, whole * now + last
                rest -= whole
                if now >= 2**digits:
                    break
                if now >= 2 ** (digits - 2):
                    found.append(float(mpmath.ldexp(now, exponent)))
    return np.array(found).astype(dtype)


@pytest.mark.sample(2)
@DTYPES
@pytest.mark.parametrize("name", UNARY)
def test_errors_are_small_over_the_whole_range(name, dtype):
    check_errors(name, LIMITS[name], points(name, dtype, 1000))


@DTYPES
def test_errors_of_angles_are_small(dtype):
    check_errors("arctan2", LIMIT_OF_ANGLE, *planes(dtype, 500))


@pytest.mark.sample(3)
@DTYPES
@pytest.mark.parametrize("name", PERIODIC)
def test_near_multiples_of_a_right_angle(name, dtype):
    check_errors(name, LIMITS[name], multiples(dtype, 400))


@pytest.mark.sample(1)
@DTYPES
@pytest.mark.parametrize("name", PERIODIC)
def test_numbers_closest_to_multiples_of_a_right_angle(name, dtype):
    worst = closest(dtype)
    some = worst if dtype == F32 else worst[::8]
    check_errors(name, LIMITS[name], some)


def test_the_worst_case_of_all():
    x = np.array([6381956970095103 * 2.0**797, np.finfo(float).max])
    cos, sin = run_leaf("cos", x), run_leaf("sin", x)
    assert cos[0] == -4.68716592425462761112e-19
    assert np.allclose([sin[1], cos[1]], [0.004961954789184062, -0.9999876894265599], rtol=4e-16)


@DTYPES
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_never_above_one(name, dtype):
    x = np.concatenate([multiples(dtype, 4000), closest(dtype)])
    assert np.all(np.abs(run_leaf(name, x, width=natural_width(dtype))) <= 1)


@DTYPES
@pytest.mark.parametrize("name", PERIODIC)
def test_a_huge_neighbor_changes_no_bit(name, dtype):
    random = np.random.default_rng(5)
    x = random.uniform(-1e4, 1e4, 640).astype(dtype)
    mixed = x.copy()
    mixed[::3] = random.choice(np.array([1e30, -3e37, np.inf, np.nan, 2.0**31], dtype), 214)
    kept = np.arange(640) % 3 != 0
    width = natural_width(dtype)
    alone, beside = run_leaf(name, x, width=width), run_leaf(name, mixed, width=width)
    assert np.array_equal(alone[kept], beside[kept])
    assert np.all(np.isnan(beside[~np.isfinite(mixed)]))


@DTYPES
@pytest.mark.parametrize("name", PERIODIC)
def test_both_ways_meet_at_the_limit(name, dtype):
    limit = 2.0**30 if dtype == F64 else 2.0**17
    steps = np.arange(-300, 300) * np.spacing(dtype.type(limit))
    check_errors(name, LIMITS[name], (limit + steps).astype(dtype))


@DTYPES
@pytest.mark.parametrize("name", UNARY)
def test_special_values_are_numpys(name, dtype):
    values = [0.0, np.inf, np.nan, 1.0, 2.0, np.finfo(dtype).max, np.finfo(dtype).tiny]
    check_specials(name, np.array(values + [-v for v in values], dtype))


@DTYPES
def test_special_angles_are_numpys(dtype):
    limits = np.finfo(dtype)
    values = [0.0, 1.0, np.inf, np.nan, limits.max, limits.tiny, limits.smallest_subnormal]
    values = np.array(values + [-v for v in values], dtype)
    y, x = [a.ravel() for a in np.meshgrid(values, values)]
    check_specials("arctan2", y, x)


@DTYPES
def test_right_angles_are_exact(dtype):
    one, half_pi = np.array([1, -1, 0], dtype), dtype.type(np.pi / 2)
    assert np.array_equal(run_leaf("arcsin", one), [half_pi, -half_pi, 0])
    assert np.array_equal(run_leaf("arccos", one), [0, dtype.type(np.pi), half_pi])
    assert np.array_equal(run_leaf("arctan", one), [dtype.type(np.pi / 4), -half_pi / 2, 0])
    assert np.array_equal(run_leaf("cos", np.zeros(3, dtype)), [1, 1, 1])


@DTYPES
@pytest.mark.parametrize("name", ["sin", "tan", "arcsin", "arctan"])
def test_tiny_arguments_come_back(name, dtype):
    limits = np.finfo(dtype)
    tiny = np.ldexp(dtype.type(1.25), np.arange(limits.minexp - 10, -limits.nmant))
    tiny = np.concatenate([tiny, -tiny]).astype(dtype)
    assert np.array_equal(run_leaf(name, tiny), tiny)


@pytest.mark.sample(6)
@DTYPES
@pytest.mark.parametrize("name", [*UNARY, "arctan2"])
def test_width_changes_no_bit(name, dtype):
    check_widths(name, *(planes(dtype, 200) if name == "arctan2" else [points(name, dtype, 800)]))


@pytest.mark.sample(1)
@X86
@DTYPES
@pytest.mark.parametrize("cpu", ["x86-64", "haswell"])
def test_an_older_processor_gives_the_same_bits(cpu, dtype, monkeypatch):
    def operands(name):
        return planes(dtype, 60) if name == "arctan2" else (points(name, dtype, 200),)

    check_processors([*UNARY, "arctan2"], operands, monkeypatch, cpu)


@pytest.mark.slow
@DTYPES
@pytest.mark.parametrize("name", UNARY)
def test_errors_are_small_at_many_points(name, dtype):
    check_errors(name, LIMITS[name], points(name, dtype, 20_000, 1))


@pytest.mark.slow
@DTYPES
def test_errors_of_many_angles_are_small(dtype):
    check_errors("arctan2", LIMIT_OF_ANGLE, *planes(dtype, 10_000, 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", PERIODIC)
def test_all_numbers_closest_to_multiples_of_a_right_angle(name):
    worst = closest(F64)
    check_errors(name, LIMITS[name], np.concatenate([worst, -worst]))


@pytest.mark.slow
@DTYPES
@pytest.mark.parametrize("name", UNARY)
def test_errors_are_small_at_millions_of_points(name, dtype):
    random = np.random.default_rng(2)
    for low, high in RANGES[name]:
        x = random.uniform(low, high, 2_000_000).astype(dtype)
        assert dense_error(name, x) <= LIMITS[name], (low, high)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNARY)
def test_float32_all_over(name):
    for start in range(0, 2**31, 2**27):
        x = np.arange(start, start + 2**27, 61, dtype=np.int64).astype(np.int32).view(np.float32)
        x = x[np.isfinite(x)]
        if len(x):
            error = dense_error(name, x)
            assert error <= LIMITS[name], (start, error)
