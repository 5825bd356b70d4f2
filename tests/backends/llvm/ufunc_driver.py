"""Run one vector function on arrays, and measure its error in units in the last place.

    run_leaf       a leaf of the scalar language, compiled once for its dtypes and width
    ulps           errors against mpmath at 60 digits, in units of the last place
    hard_points    where leaves go wrong: special values, powers of two, subnormals, random bits
    nanoseconds    what one element costs, from the first cache
    assembly       the instructions of the machine
    forget         so that leaves are compiled anew, for another processor

An error is measured in the spacing of numbers at the exact value; that of subnormals is constant.
An infinity counts as the power of two after the largest number.  What mpmath has no word for (the
sign of zero, infinities, NaN, poles) is asked of NumPy and has to agree exactly: the error is
infinite if it does not.
"""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder
from wengert._engine.backends.llvm.ir.llvm_types import in_memory, of_width
from wengert._engine.backends.llvm.ir.scalar_language import Language, loop_of
from wengert._engine.backends.llvm.ir.simd_value import Lane
from wengert._engine.backends.llvm.vector_math import call_leaf

MP = mpmath.mp.clone()
MP.dps = 60
_NAMES = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2"}
_NAMES |= {"arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh"}


def run_leaf(name: str, *arrays: Any, width: int = 8) -> Any:
    """What a leaf gives for arrays of one dimension and the same length, `width` at a time."""
    run, out, _ = _compiled(name, tuple(np.asarray(x).dtype for x in arrays), width)
    count = len(arrays[0])
    padding = -count % width
    padded = [np.concatenate([x, np.ones(padding, x.dtype)]) for x in arrays]
    result = np.empty(count + padding, out)
    run(*[x.ctypes.data for x in padded], result.ctypes.data, count + padding)
    return result[:count]


def nanoseconds(name: str, *arrays: Any, width: int = 8) -> float:
    """The time for one element; arrays of about a thousand, whose length the width divides."""
    run, out, _ = _compiled(name, tuple(x.dtype for x in arrays), width)
    result = np.empty(len(arrays[0]), out)
    addresses = [x.ctypes.data for x in arrays] + [result.ctypes.data]
    times = []
    for _ in range(25):
        start = time.perf_counter_ns()
        for _ in range(40):
            run(*addresses, len(result))
        times.append((time.perf_counter_ns() - start) / 40)
    empty = []
    for _ in range(25):
        start = time.perf_counter_ns()
        for _ in range(40):
            run(*addresses, 0)
        empty.append((time.perf_counter_ns() - start) / 40)
    return (min(times) - min(empty)) / len(result)


def assembly(name: str, *dtypes: Any, width: int = 8) -> str:
    """The machine's assembly of a loop that does nothing but this leaf."""
    return execution_engine.assembly_of(_compiled(name, tuple(map(np.dtype, dtypes)), width)[2])


def forget() -> None:
    """Drop what is compiled."""
    _compiled.cache_clear()


@functools.cache
def _compiled(name: str, dtypes: tuple[Any, ...], width: int) -> tuple[Any, Any, str]:
    ufunc = {"max": "maximum", "min": "minimum"}.get(name, name)
    out = loop_of(ufunc, dtypes)[-1] if hasattr(np, ufunc) else dtypes[0]
    module = ModuleBuilder()
    s = Language(module)
    arguments = [("ptr", f"a{i}") for i in range(len(dtypes))] + [("ptr", "out"), ("i64", "n")]
    function = Function(module, "kernel", arguments, linkage="")
    with function.body.loop("0", "%n", str(width)) as (section, i):
        lanes = []
        for k, dtype in enumerate(dtypes):
            kind = of_width(in_memory(dtype), width)
            place = section.value(f"getelementptr {in_memory(dtype)}, ptr %a{k}, i64 {i}")
            value = section.value(f"load {kind}, ptr {place}, align {dtype.itemsize}")
            lanes.append(Lane(s, section, value, dtype, width))
        if hasattr(np, ufunc):
            value: Any = (s.unary if len(lanes) == 1 else s.binary)(name, *lanes)
        else:
            value = call_leaf(s, name, out, lanes)
        found = s.widened(value, width)
        kind, value = of_width(in_memory(out), width), found.name
        if out.kind == "b":
            value = section.value(f"zext {of_width('i1', width)} {value} to {kind}")
        place = section.value(f"getelementptr {in_memory(out)}, ptr %out, i64 {i}")
        section.write(f"store {kind} {value}, ptr {place}, align {out.itemsize}")
    function.body.write("ret void")
    module.add(function)
    text = module.text(execution_engine.heading())
    code = execution_engine.Code(execution_engine.object_of(text), {})
    kinds = [ctypes.c_void_p] * (len(dtypes) + 1)
    run = ctypes.CFUNCTYPE(None, *kinds, ctypes.c_int64)(code.address("kernel"))
    run.code = code  # lives as long as its address
    return run, out, text


def ulps(
    found: Any,
    oracle: str | Callable[..., Any],
    *args: Any,
    special: Callable[..., Any] | None = None,
) -> Any:
    """How far a leaf is off at each point, in units of the last place of its dtype.

    Parameters
    ----------
    found : numpy.ndarray
        What the leaf gave, float32 or float64.
    oracle : str or callable
        A function by NumPy's name, or a function of mpmath's numbers (use `MP`).
    *args : numpy.ndarray
    special : callable, optional
        Says, for arrays, what is right where mpmath cannot; NumPy's function of the same name.
    """
    function = getattr(MP, _NAMES.get(oracle, oracle)) if isinstance(oracle, str) else oracle
    special = special or getattr(np, str(oracle))
    with np.errstate(all="ignore"):
        expected = np.asarray(special(*args)).astype(found.dtype)
    finite = np.all([np.isfinite(x) for x in args], axis=0)
    errors = np.empty(len(found))
    for i, (got, right) in enumerate(zip(found, expected, strict=True)):
        exact = _exact(function, [x[i] for x in args]) if finite[i] else None
        errors[i] = _same(got, right) if exact is None else _error(got, exact)
    return errors


def _exact(function: Callable[..., Any], args: list[Any]) -> Any:
    """mpmath's value; None where it has none, none that is real, or zero."""
    try:
        exact = function(*[MP.mpf(float(x)) for x in args])
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    if isinstance(exact, MP.mpc):
        return None if exact.imag else exact.real or None
    return exact if MP.isfinite(exact) and exact else None


def _same(got: Any, right: Any) -> float:
    if np.isnan(got) or np.isnan(right):
        return 0.0 if np.isnan(got) and np.isnan(right) else np.inf
    return 0.0 if got == right and np.signbit(got) == np.signbit(right) else np.inf


def _error(got: Any, exact: Any) -> float:
    limits = np.finfo(got.dtype)
    if np.isnan(got) or np.signbit(got) != (exact < 0):
        return np.inf
    largest = limits.maxexp
    exponent = MP.frexp(exact)[1]
    if exponent > largest:
        exact, exponent = MP.ldexp(MP.sign(exact), largest), largest
    value = MP.mpf(float(got)) if np.isfinite(got) else MP.ldexp(MP.sign(exact), largest)
    last = max(exponent - 1, limits.minexp) - limits.nmant
    return float(MP.ldexp(abs(value - exact), -last))


def hard_points(dtype: Any, count: int = 2000, seed: int = 0) -> Any:
    """About so many points of a dtype, the special values first."""
    dtype = np.dtype(dtype)
    random = np.random.default_rng(seed)
    limits = np.finfo(dtype)
    special = [0.0, np.inf, np.nan, 1.0, limits.max, limits.tiny, limits.smallest_subnormal]
    special += [limits.eps, limits.eps / 2, limits.eps / 4, 0.5, 2.0, 3.0, 10.0, np.e, np.pi]
    part = max(1, count // 16)
    exponents = random.integers(limits.minexp - limits.nmant, limits.maxexp, part)
    powers = np.ldexp(np.ones(part, dtype), exponents.astype(np.int32))
    subnormal = np.ldexp(random.random(part).astype(dtype), limits.minexp)
    close = 1 + np.ldexp(random.random(part), -random.integers(0, limits.nmant, part)) * 0.5
    ordinary = random.random(2 * part) * 4.0 ** random.integers(-8, 8, 2 * part)
    bits = random.integers(0, 2 ** (8 * dtype.itemsize - 1), count // 4, np.int64)
    bits = bits.astype(f"i{dtype.itemsize}").view(dtype)
    near = np.array(special, dtype)
    with np.errstate(all="ignore"):
        below, above = np.nextafter(powers, dtype.type(0)), np.nextafter(powers, dtype.type(np.inf))
        near = np.concatenate(
            [near, np.nextafter(near, dtype.type(0)), np.nextafter(near, dtype.type(np.inf))]
        )
    parts = [near, powers, below, above, subnormal, close, 2 - close, ordinary, bits]
    points = np.concatenate([p.astype(dtype) for p in parts])
    return np.concatenate([points, -points])
