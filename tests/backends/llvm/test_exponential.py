"""Exponentials, logarithms and powers against mpmath; special values against NumPy."""

from __future__ import annotations

import platform

import llvmlite.binding as llvm
import numpy as np
import pytest

from wengert._engine.backends.llvm.ir import execution_engine

from .ufunc_driver import MP, assembly, forget, hard_points, run_leaf, ulps

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
DTYPES = pytest.mark.parametrize("dtype", [F64, F32], ids=str)

# The largest error that is allowed; the issue allows 1 for exp and log, 4 for power, else 2.
LIMITS = {
    "exp": (0.90, 0.90),
    "exp2": (1.05, 1.05),
    "expm1": (1.45, 1.40),
    "log": (0.80, 0.80),
    "log2": (1.05, 1.05),
    "log10": (0.90, 0.90),
    "log1p": (1.45, 1.45),
    "cbrt": (0.505, 0.505),
    "power": (1.20, 0.53),
}
UNARY = [name for name in LIMITS if name != "power"]
# Where a leaf is used, and where it is hardest: in float64, and in float32 if that differs.
RANGES = {
    "exp": [(-745.2, 709.8), (-1, 1), (-0.36, -0.34), (709.7, 709.8), (-745.2, -708)],
    "exp2": [(-1075, 1024), (-1, 1), (1023.9, 1024), (-1075, -1021)],
    "expm1": [(-40, 709.8), (-2, 2), (-0.4, 0.4), (709.7, 709.8)],
    "log": [(0.5, 2), (0.69, 0.72), (1.38, 1.43), (0, 1000)],
    "log2": [(0.5, 2), (0.69, 0.72), (1.38, 1.43), (0, 1000)],
    "log10": [(0.5, 2), (0.69, 0.72), (1.38, 1.43), (0, 1000)],
    "log1p": [(-1, 1), (-0.35, -0.25), (0.38, 0.45), (0, 1000)],
    "cbrt": [(1, 8), (-1000, 1000)],
}


def exactly(name):
    """What mpmath is asked; its cube root of a negative number is another one."""
    if name == "cbrt":
        return lambda x: MP.sign(x) * MP.cbrt(abs(x))
    return name


def points(name, dtype, count, seed=0):
    random = np.random.default_rng(seed)
    scale = 1.0 if dtype == F64 else 0.1255 if name in ("exp", "expm1", "exp2") else 1.0
    parts = [hard_points(dtype, count, seed)]
    for low, high in RANGES[name]:
        if abs(low) > 100 or abs(high) > 100:
            low, high = low * scale, high * scale
        parts.append(random.uniform(low, high, count // 4).astype(dtype))
    return np.concatenate(parts)


def pairs(dtype, count, seed=0):
    """Bases and exponents: special ones with each other, and powers of every size."""
    random = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        hard = hard_points(dtype, count, seed)
        smallest, largest = (-1076.0, 1024.5) if dtype == F64 else (-151.0, 128.5)
        digits = np.finfo(dtype).nmant
        near = 1 + random.uniform(-1, 1, count) * 2.0 ** -random.integers(1, digits - 1, count)
        bases = [
            np.exp2(random.uniform(smallest, largest, count)),
            random.uniform(0.5, 2, count),
            near,
        ]
        found = [(random.choice(hard, count), random.choice(hard, count))]
        for base in bases:
            base = base.astype(dtype)
            exponent = random.uniform(smallest, largest, count)
            found.append((base, exponent / np.log2(base.astype(F64))))
        found.append((-random.uniform(0, 20, count), random.integers(-40, 40, count)))
        found.append((random.integers(1, 100, count), random.integers(0, 8, count)))
        joined = [np.concatenate([p[k].astype(dtype) for p in found]) for k in (0, 1)]
    return joined[0], joined[1]


def specials(dtype):
    limits = np.finfo(dtype)
    values = [0.0, 1.0, np.inf, np.nan, 0.5, 1.5, 2.0, 3.0, 4.0, 2.5, 1 / 3, 1 - limits.epsneg]
    values += [1 + limits.eps, limits.max, limits.tiny, limits.smallest_subnormal]
    values += [2.0 ** (limits.nmant + k) - j for k in (-1, 0, 1, 2) for j in (0, 1)]
    values += [2.0**20, 1e5, 2.0**66, 2.0**40] if dtype == F64 else [2.0**20, 1e5, 2.0**66]
    array = np.array(values, dtype)
    return np.concatenate([array, -array])


def check(name, dtype, *args):
    found = run_leaf(name, *args, width=16 if dtype == F32 else 8)
    special = np.cbrt if name == "cbrt" else None
    errors = ulps(found, exactly(name), *args, special=special)
    worst = int(np.argmax(errors))
    limit = LIMITS[name][dtype == F32]
    assert errors[worst] <= limit, (errors[worst], [x[worst] for x in args], found[worst])
    return found


@pytest.mark.sample(2)
@DTYPES
@pytest.mark.parametrize("name", UNARY)
def test_errors_are_small_over_the_whole_range(name, dtype):
    check(name, dtype, points(name, dtype, 1500))


@pytest.mark.sample(1)
@DTYPES
def test_errors_of_powers_are_small(dtype):
    check("power", dtype, *pairs(dtype, 250))


@pytest.mark.sample(1)
@DTYPES
def test_powers_of_special_values_are_those_of_c99(dtype):
    values = specials(dtype)
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    found = check("power", dtype, x, y)
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    for same in (np.isnan, np.isposinf, np.isneginf, lambda a: (a == 0) & np.signbit(a)):
        assert np.array_equal(same(found), same(expected))
    assert np.all(found[(x == 1) | (y == 0)] == 1)


@DTYPES
@pytest.mark.parametrize("name", UNARY)
def test_special_values_are_numpys(name, dtype):
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1, -1, -2, -1.5], dtype)
    found = run_leaf(name, values)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(values)
    edge = ~np.isfinite(expected) | (expected == 0) | (expected == 1)
    np.testing.assert_array_equal(found[edge], expected[edge])
    numbers = edge & ~np.isnan(expected)
    assert np.array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


@pytest.mark.sample(8)
@DTYPES
@pytest.mark.parametrize("name", [*LIMITS])
def test_width_changes_no_bit(name, dtype):
    args = pairs(dtype, 100) if name == "power" else (points(name, dtype, 800),)
    one = run_leaf(name, *args, width=1)
    for width in (2, 8, 16):
        assert np.array_equal(run_leaf(name, *args, width=width), one, equal_nan=True)


def processor(name):
    """The code generator for another processor than this."""
    execution_engine.machine()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=name, opt=2, reloc="pic", jit=True)


@pytest.mark.sample(1)
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names x86's processors")
@DTYPES
@pytest.mark.parametrize("cpu", ["x86-64", "haswell"])
def test_an_older_processor_gives_the_same_bits(cpu, dtype, monkeypatch):
    if cpu == "haswell" and not execution_engine.has("avx2"):
        pytest.skip("this processor cannot run it")
    arguments = {name: (points(name, dtype, 200),) for name in UNARY} | {"power": pairs(dtype, 40)}
    here = {name: run_leaf(name, *args) for name, args in arguments.items()}
    older = processor(cpu)
    with monkeypatch.context() as patch:
        patch.setattr(execution_engine, "machine", lambda quick=False: older)
        patch.setattr(execution_engine, "features", lambda: "")
        forget()
        assert "zmm" not in assembly("exp", dtype)  # a register of newer ones
        there = {name: run_leaf(name, *args) for name, args in arguments.items()}
    forget()
    for name, found in here.items():
        assert np.array_equal(found, there[name], equal_nan=True), name


@DTYPES
def test_results_below_the_normal_numbers_come_gradually(dtype):
    limits = np.finfo(dtype)
    low, high = limits.minexp - limits.nmant, limits.minexp
    powers = np.arange(low - 3, high + 2).astype(dtype)
    expected = np.ldexp(dtype.type(1), powers.astype(np.int32))
    assert np.array_equal(run_leaf("exp2", powers), expected)
    assert np.array_equal(run_leaf("power", np.full_like(powers, 2), powers), expected)
    x = (np.linspace(low - 1.0, high + 1.0, 800) * np.log(2)).astype(dtype)
    check("exp", dtype, x)
    assert np.any((run_leaf("exp", x) > 0) & (run_leaf("exp", x) < limits.tiny))


@DTYPES
def test_overflow_begins_where_the_largest_number_ends(dtype):
    limits = np.finfo(dtype)
    edge = dtype.type(np.log(limits.max.astype(np.float64)))
    while MP.exp(float(edge)) >= MP.mpf(2) ** limits.maxexp:
        edge = np.nextafter(edge, dtype.type(0))
    x = np.array([edge, np.nextafter(np.nextafter(edge, dtype.type(np.inf)), dtype.type(np.inf))])
    for name in ("exp", "expm1"):
        assert np.isfinite(run_leaf(name, x[:1])[0])
        assert np.isposinf(run_leaf(name, x[1:])[0])


@DTYPES
def test_exact_results_are_exact(dtype):
    limits = np.finfo(dtype)
    exponents = np.arange(limits.minexp - limits.nmant, limits.maxexp)
    powers = np.ldexp(dtype.type(1), exponents.astype(np.int32))
    assert np.array_equal(run_leaf("log2", powers), exponents)
    tens = np.arange(0, 22 if dtype == F64 else 10)
    assert np.array_equal(run_leaf("log10", np.array([10.0**k for k in tens], dtype)), tens)
    cubes = np.arange(-200, 200).astype(dtype)
    assert np.array_equal(run_leaf("cbrt", cubes**3), cubes)
    base = np.arange(-15, 16).astype(dtype)
    for k in range(6):
        assert np.array_equal(run_leaf("power", base, np.full_like(base, k)), base**k)


@DTYPES
@pytest.mark.parametrize("name", ["expm1", "log1p"])
def test_tiny_arguments_come_back(name, dtype):
    limits = np.finfo(dtype)
    tiny = np.ldexp(dtype.type(1.25), np.arange(limits.minexp - 10, -limits.nmant - 3))
    tiny = np.concatenate([tiny, -tiny]).astype(dtype)
    assert np.array_equal(run_leaf(name, tiny), tiny)


@pytest.mark.slow
@DTYPES
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", UNARY)
def test_errors_are_small_at_many_points(name, seed, dtype):
    check(name, dtype, points(name, dtype, 20000, seed))


@pytest.mark.slow
@DTYPES
@pytest.mark.parametrize("seed", [1, 2])
def test_errors_of_many_powers_are_small(seed, dtype):
    check("power", dtype, *pairs(dtype, 5000, seed))
