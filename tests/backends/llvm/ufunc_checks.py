"""Checks of vector functions of one and of two operands.

    check_errors       against mpmath, in units of the last place
    check_specials     zeros, infinities, NaN and exact values: as NumPy's, signs included
    check_widths       the same bits for every number of lanes
    check_processors   the same bits on a processor without wide registers or fused products
    dense_error        against NumPy in a wider float, for many points

Wider than float64 is the processor's own float of 80 bits, where NumPy has it.
"""

from __future__ import annotations

import platform
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from wengert._engine.backends.llvm.ir import execution_engine

from .ufunc_driver import assembly, forget, run_leaf, ulps

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
DTYPES = pytest.mark.parametrize("dtype", [F64, F32], ids=str)
X86 = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="names x86's processors"
)


def natural_width(dtype: Any) -> int:
    """As many as fill 64 bytes."""
    return 64 // int(np.dtype(dtype).itemsize)


def check_errors(name: str, limit: float, *args: Any) -> Any:
    """No point is further off than the limit."""
    found = run_leaf(name, *args, width=natural_width(args[0].dtype))
    errors = ulps(found, name, *args)
    worst = int(np.argmax(errors))
    shown = [float(x[worst]).hex() for x in args]
    assert errors[worst] <= limit, (name, errors[worst], shown, float(found[worst]))
    return found


def check_specials(name: str, *args: Any) -> None:
    """NumPy's result where an argument or the result is zero or not finite."""
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(*args)
    edges = [~np.isfinite(x) | (x == 0) for x in (*args, expected)]
    edge = np.any(edges, axis=0)
    for width in (1, natural_width(args[0].dtype)):
        found = run_leaf(name, *args, width=width)
        np.testing.assert_array_equal(found[edge], expected[edge])
        number = edge & ~np.isnan(expected)
        assert np.array_equal(np.signbit(found[number]), np.signbit(expected[number]))


def check_widths(name: str, *args: Any) -> None:
    """What stands beside a value does not change it."""
    one = run_leaf(name, *args, width=1)
    for width in (2, 3, 8, 16, 32):
        assert np.array_equal(run_leaf(name, *args, width=width), one, equal_nan=True), width


def check_processors(names: list[str], points: Any, monkeypatch: Any, cpu: str) -> None:
    """An older processor gives the same bits; `points` makes the operands of a leaf."""
    if cpu == "haswell" and not execution_engine.has("avx2"):
        pytest.skip("this processor cannot run it")
    here = {name: run_leaf(name, *points(name)) for name in names}
    execution_engine.machine()
    target = llvm.Target.from_default_triple()
    older = target.create_target_machine(cpu=cpu, opt=2, reloc="pic", jit=True)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(execution_engine, "machine", lambda quick=False: older)
            patch.setattr(execution_engine, "features", lambda: "")
            forget()
            assert "zmm" not in assembly(names[0], F64)  # a register of newer ones
            for name in names:
                there = run_leaf(name, *points(name))
                assert np.array_equal(here[name], there, equal_nan=True), name
    finally:
        forget()


def dense_error(name: str, *args: Any) -> float:
    """The largest error against NumPy's function of the next wider float."""
    dtype = args[0].dtype
    wider = np.float64 if dtype == F32 else np.longdouble
    if np.finfo(wider).nmant < 63 and dtype == F64:
        pytest.skip("NumPy's longdouble is no wider than float64 here")
    found = run_leaf(name, *args, width=natural_width(dtype))
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(*[x.astype(wider) for x in args])
        nearest = np.abs(exact.astype(dtype))
        # The spacing at the exact value: below a power of two it is half that at the power.
        below = np.spacing(np.nextafter(nearest, dtype.type(0)))
        unit = np.where(np.abs(exact) < nearest, below, np.spacing(nearest))
        finite = np.isfinite(nearest) & (nearest > 0)
        assert np.array_equal(np.isnan(found), np.isnan(exact))
        errors = np.abs(found.astype(wider) - exact) / unit
    return float(np.max(errors[finite], initial=0.0))
