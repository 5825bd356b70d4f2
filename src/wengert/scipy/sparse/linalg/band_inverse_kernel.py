"""Elements of the inverse of a banded matrix in its band, as native code.

For a = L D L^T with a unit lower triangle L and pivots d, the recurrence of Takahashi
(selected_inverse_kernel.py) is, from the last column to the first, for Z = inv(a) and r = 1 ... w,

    Z[j + r, j] = -sum over c of Z[j + r, j + c] L[j + c, j]
    Z[j, j] = 1 / d[j] - sum over r of L[j + r, j] Z[j + r, j]

All elements are in the band, so that nothing is gathered: row j + r of the stored band is read once
for the products of both triangles.

    inverse_in_band   the elements
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from wengert._engine.backends.llvm.runtime import runtime_library

from .structure import Plain

_NAME = "inverse_in_band"
_ARRAYS = ("lower", "pivots", "inverse", "sums")


def inverse_in_band(lower: Plain, pivots: Plain) -> Plain:
    """The elements of the inverse in the band.

    Parameters
    ----------
    lower : array
        L as a band: the element at [j, k] is that in row j + k and column j, zero outside of the
        matrix.
    pivots : array

    Returns
    -------
    array
        Of the shape of `lower`.
    """
    n, width = lower.shape
    lower, pivots = np.ascontiguousarray(lower, float), np.ascontiguousarray(pivots, float)
    inverse, sums = np.zeros((n + width, width)), np.zeros(width)
    addresses = [x.ctypes.data for x in (lower, pivots, inverse, sums)]
    _function()(n, width, *addresses)
    return inverse[:n]


@functools.cache
def _function() -> Any:
    module = ModuleBuilder()
    _emit(module)
    count, address = ctypes.c_int64, ctypes.c_void_p
    kinds = {_NAME: [count] * 2 + [address] * len(_ARRAYS)}
    text = module.text(execution_engine.heading())
    return ctypes.CFUNCTYPE(count, *kinds[_NAME])(runtime_library.loaded(text, {}, kinds)[_NAME])


def _at(s: Section, array: str, index: Name) -> Name:
    return s.value(f"getelementptr double, ptr %{array}, i64 {index}")


def _double(s: Section, array: str, index: Name) -> Name:
    return s.value(f"load double, ptr {_at(s, array, index)}")


def _product_added(s: Section, total: Name, a: Name, b: Name) -> Name:
    term = s.value(f"fmul reassoc contract double {a}, {b}")
    return s.value(f"fadd reassoc contract double {total}, {term}")


def _emit(module: ModuleBuilder) -> None:
    """The function; it returns 0."""
    arguments = [("i64", "n"), ("i64", "width"), *[("ptr", x) for x in _ARRAYS]]
    function = Function(module, _NAME, arguments, "i64", "#1", linkage="")
    body = function.body
    total = function.slot("double")
    with body.loop("0", "%n") as (s, k):
        j = s.minus(s.minus("%n", "1"), k)
        start = s.times(j, "%width")
        with s.loop("0", "%width") as (t, r):
            t.write(f"store double 0.0, ptr {_at(t, 'sums', r)}")
        with s.loop("1", "%width") as (t, r):
            _row(t, j, start, r, total)
        inverse_pivot = s.value(f"fdiv double 1.0, {_double(s, 'pivots', j)}")
        s.write(f"store double {inverse_pivot}, ptr {total}")
        with s.loop("1", "%width") as (t, r):
            element = t.value(f"fneg double {_double(t, 'sums', r)}")
            place = t.plus(start, r)
            t.write(f"store double {element}, ptr {_at(t, 'inverse', place)}")
            so_far = t.value(f"load double, ptr {total}")
            scaled = t.value(f"fneg double {_double(t, 'lower', place)}")
            t.write(f"store double {_product_added(t, so_far, scaled, element)}, ptr {total}")
        diagonal = s.value(f"load double, ptr {total}")
        s.write(f"store double {diagonal}, ptr {_at(s, 'inverse', start)}")
    body.write("ret i64 0")
    module.add(function)


def _row(t: Section, j: Name, start: Name, r: Name, total: Name) -> None:
    """The products with the elements in row j + r of the band, and in its column."""
    row = t.times(t.plus(j, r), "%width")
    factor = _double(t, "lower", t.plus(start, r))
    first = t.value(f"fmul double {_double(t, 'inverse', row)}, {factor}")
    t.write(f"store double {first}, ptr {total}")
    with t.loop("1", t.minus("%width", r)) as (u, m):
        other = u.plus(r, m)
        element = _double(u, "inverse", u.plus(row, m))
        so_far = u.value(f"load double, ptr {total}")
        weight = _double(u, "lower", u.plus(start, other))
        u.write(f"store double {_product_added(u, so_far, weight, element)}, ptr {total}")
        before = _double(u, "sums", other)
        after = _product_added(u, before, factor, element)
        u.write(f"store double {after}, ptr {_at(u, 'sums', other)}")
    before = _double(t, "sums", r)
    found = t.value(f"load double, ptr {total}")
    after = t.value(f"fadd double {before}, {found}")
    t.write(f"store double {after}, ptr {_at(t, 'sums', r)}")
