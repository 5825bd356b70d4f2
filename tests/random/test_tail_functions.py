"""Distributions as functions of tail probabilities: errors, monotony, and what they consist of."""

import re
from pathlib import Path

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.cuda import EmulatedDevice
from wengert._engine.backends.cuda.program import DeviceProgram
from wengert._engine.backends.cuda.ptx import ptx_of
from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder
from wengert._engine.backends.llvm.ir.scalar_language import Language
from wengert._engine.backends.llvm.ir.simd_value import Lane
from wengert._engine.backends.llvm.vector_math import call_leaf
from wengert._engine.cache import disk_cache
from wengert._engine.ops.random import tail_functions

mpmath = pytest.importorskip("mpmath")
mp = mpmath.mp

# dtype: the exponent of the least tail probability, and the digits of a number.
FORMATS = {np.float64: (-64, 53), np.float32: (-32, 24)}
NAMES = tail_functions.__all__


def normal(v):
    """The quantile, by Newton's method."""
    a = abs(v)
    x = mp.sqrt(-2 * mp.log(2 * a)) * 0.9
    for _ in range(60):
        step = (mp.erfc(x / mp.sqrt(2)) / 2 - a) * mp.sqrt(2 * mp.pi) * mp.exp(x * x / 2)
        x += step / (1 + x * step / 2)
        if abs(step) < mp.mpf(10) ** -28 * x:
            break
    return mp.sign(v) * x


EXACT = {
    "normal_of_tail": (normal, 2.0),
    "exponential_of_tail": (lambda v: -mp.log(-v) if v < 0 else -mp.log1p(-v), 0.9),
    "laplace_of_tail": (lambda v: -mp.sign(v) * mp.log(2 * abs(v)), 0.9),
    "logistic_of_tail": (lambda v: mp.sign(v) * mp.log((1 - abs(v)) / abs(v)), 1.5),
    "cauchy_of_tail": (lambda v: mp.cot(mp.pi * v), 2.7),
}


def points(dtype, count, seed=0):
    """Tail probabilities of all sizes, with signs."""
    rng, (least, digits) = np.random.default_rng(seed), FORMATS[dtype]
    v = np.concatenate(
        [
            2.0 ** rng.uniform(least, -1.0, 2 * count),
            rng.uniform(0.2, 0.5, count),
            0.5 - 2.0 ** -rng.uniform(2.0, digits, count),
        ]
    ).astype(dtype)
    v = v[(v >= 2.0**least) & (v < 0.5)]
    return v * rng.choice(np.array([-1, 1], dtype), v.size)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("name", EXACT)
def test_errors(name, dtype):
    exact, limit = EXACT[name]
    v = points(dtype, 90)
    with mp.workdps(40):
        for x, y in zip(v, getattr(tail_functions, name)(v), strict=True):
            right = exact(mp.mpf(float(x)))
            error = abs(mp.mpf(float(y)) - right) / mp.mpf(float(np.spacing(abs(dtype(right)))))
            assert error <= limit, (x, y, float(error))


@pytest.mark.parametrize("dtype", FORMATS)
def test_gumbel_numbers_are_logarithms_of_exponential_numbers(dtype):
    v = points(dtype, 300)
    wanted = -np.log(tail_functions.exponential_of_tail(v).astype(np.longdouble))
    found = tail_functions.gumbel_of_tail(v)
    assert np.all(np.abs(found - wanted) <= np.spacing(np.abs(found)))


@pytest.mark.parametrize("dtype", FORMATS)
def test_the_normal_quantile_is_monotone(dtype):
    """At all ends of rows of the table, and at random numbers: neighbors are in order."""
    least, _ = FORMATS[dtype]
    ends = np.ldexp(1.0 + np.arange(16) / 16, np.arange(least, -1)[:, None]).ravel()
    v = np.concatenate([ends.astype(dtype), np.abs(points(dtype, 2000))])
    v = np.sort(np.concatenate([v, np.nextafter(v, dtype(1)), np.nextafter(v, dtype(0))]))
    v = v[(v >= 2.0**least) & (v <= 0.5)]
    found = tail_functions.normal_of_tail(v)
    assert np.all(np.diff(found) <= 0.0)
    assert np.array_equal(tail_functions.normal_of_tail(-v), -found)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_the_ends_of_the_domain(name, dtype):
    """The largest and the least number that a key gives; no warning, nothing infinite."""
    op, (least, _) = getattr(tail_functions, name), FORMATS[dtype]
    ends = np.array([-0.5, -(2.0**least), 2.0**least, 0.5], dtype)
    found = op(ends)
    assert found.dtype == dtype
    assert np.all(np.isfinite(found))
    assert np.array_equal(found, [op(x) for x in ends])
    if name not in ("exponential_of_tail", "gumbel_of_tail"):
        assert np.array_equal(found == 0.0, [True, False, False, True])
        assert np.array_equal(np.signbit(found), [True, True, False, False])


def texts(name, dtype, width):
    """The LLVM IR of a function, for some lanes."""
    module = ModuleBuilder()
    s = Language(module)
    kind = {np.float64: "double", np.float32: "float"}[dtype]
    kind = kind if width == 1 else f"<{width} x {kind}>"
    function = Function(module, "f", [(kind, "x")], kind)
    s.home = function.body
    lane = call_leaf(s, name, np.dtype(dtype), [Lane(s, s.home, "%x", np.dtype(dtype), width)])
    function.body.write(f"ret {kind} {lane.name}")
    module.add(function)
    return module.text()


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_llvm_does_not_contract(name, dtype, width):
    """Each multiplication and addition is an instruction without flags that permit it."""
    text = texts(name, dtype, width)
    arithmetic = re.findall(r"= (f(?:mul|add|sub|div)) (.*)", text)
    assert len(arithmetic) > 6
    assert all(re.match(r"(<8 x )?(double|float)>? ", rest) for _, rest in arithmetic)
    assert not re.search(r"fma|fmuladd|contract|reassoc|fast", text)
    assert set(re.findall(r"@llvm\.(\w+)\.", text)) <= {"fabs", "copysign", "masked"}


@pytest.mark.parametrize("name", NAMES)
def test_ptx_does_not_contract(name):
    """ptxas contracts `mul` and `add`, but not `mul.rn` and `add.rn` (PTX ISA, sect. 9.7.3)."""
    op = getattr(tail_functions, name)
    graph = wg.trace(lambda v, w: (op(v), op(w)))(np.ones(4), np.ones(4, np.float32))
    text = ptx_of(DeviceProgram(graph, EmulatedDevice()).kernels)
    found = re.findall(r"\b((?:mul|add|sub|div|mad|fma)\.(?:\w+\.)*f(?:32|64))", text)
    assert {x.rpartition(".")[2] for x in found} == {"f32", "f64"}
    assert all(re.fullmatch(r"(mul|add|sub|div)\.rn\.f(32|64)", x) for x in found), set(found)


def test_files_of_tables():
    """The constants of rows are quantiles (docs/generate/random_coefficients.py)."""
    for dtype, (least, _) in FORMATS.items():
        table = tail_functions._FORMATS[np.dtype(dtype).itemsize].quantile
        rows = table.columns.T
        assert rows.dtype == dtype
        assert len(rows) == table.count == -16 * least
        with mp.workdps(40):
            for k in (2, 3, 17, -least):
                row = rows[(-1 - k) % -least * 16 + 4]
                right = mp.mpf(2) ** -k * (1 + mp.mpf(5) / 16)
                assert abs(row[-1] / float(normal(right)) - 1.0) < 4 * np.finfo(dtype).eps


def test_cached_programs_depend_on_the_tables(monkeypatch, tmp_path):
    names = [f"normal_quantile_{d}.npy" for d in ("float64", "float32")]
    assert all(any(Path(disk_cache.FOLDER).rglob(name)) for name in names)  # read by that name
    monkeypatch.setattr(disk_cache, "FOLDER", str(tmp_path))
    monkeypatch.setattr(disk_cache, "STARTED", 1 << 62)  # sources may be new
    disk_cache.library_sources.cache_clear()
    try:
        (tmp_path / names[0]).write_bytes(b"1")
        before = disk_cache.library_sources()
        (tmp_path / names[0]).write_bytes(b"12")
        disk_cache.library_sources.cache_clear()
        assert None not in (before, disk_cache.library_sources())
        assert before != disk_cache.library_sources()
    finally:
        disk_cache.library_sources.cache_clear()
