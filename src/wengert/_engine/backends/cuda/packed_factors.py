"""Linear algebra of larger matrices on a device: the library's, and LU factors and their solutions.

    factorized           the packed factors and the pivots
    factorized_or_nan    the same with NaN for pivots that are zero
    solved_packed        solutions by them
    ordered              the order of rows
    solved               systems
    solved_triangular    triangular systems: one call of trsm for all matrices of a batch

One matrix is factorized by cuSOLVER; of a batch a thread has each, with the pivots of LAPACK.
Solutions are two calls of cuBLAS, with rows in the order of the pivots, which a thread follows for
each matrix.  A zero pivot sets the status, so a solve in a loop waits for nothing.

CuPy does not broadcast the operands of `solve`, and takes a stack of right-hand sides for vectors
where NumPy takes it for a matrix; so operands get equal leading axes.  One matrix is factorized
once for all right-hand sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from wengert._engine.ops.linalg.factorizations import TRANS
from wengert._engine.ops.linalg.linear_solve import solve
from wengert._engine.ops.linalg.packed_factors import nan_of

from ..llvm.codegen.reductions import MutableValue
from ..llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..llvm.ir.llvm_types import Dtype, in_memory, part_of
from ..llvm.ir.memory_access import load, store
from ..llvm.ir.scalar_language import Language
from .device import Device
from .kernel_codegen import DeviceKernel
from .loaded_kernels import element_kernel, launch_of

_FLOATS = "fdFD"
_MOST_ROWS = 128  # of matrices of a batch that threads factorize

Write = Callable[[ModuleBuilder, Function, Section, Name], None]


def factorized(name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """The factors, transposed, and the pivots, counted from 1."""
    a = device.contiguous(device.put(operands[0]))
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or a.dtype.char not in _FLOATS:
        return NotImplemented
    *batch, n, _ = a.shape
    count = math.prod(batch)
    packed = device.empty(a.shape, a.dtype)
    pivots = device.empty((*batch, n), np.dtype(np.int32))
    if not packed.size:
        return packed, pivots
    if count == 1 or n > _MOST_ROWS:
        for i in np.ndindex(*batch):
            packed[i], pivots[i] = device.packed_factors(a[i])
        return packed, pivots
    packed[...] = np.swapaxes(a, -1, -2)
    arguments = [("ptr", "packed"), ("ptr", "pivots"), ("i64", "n")]
    given = [packed, pivots, np.int64(n)]
    _run(device, f"lu_{a.dtype.str[1:]}", arguments, partial(_factor, a.dtype), given, count)
    return packed, pivots


def factorized_or_nan(
    name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]
) -> Any:
    """The same, with NaN for pivots that are zero."""
    found = factorized(name, device, operands, params)
    if found is NotImplemented:
        return found
    packed, pivots = found
    is_zero = (packed == 0) & device.put(np.eye(packed.shape[-1], dtype=bool))
    packed[...] = np.where(is_zero, nan_of(packed.dtype), packed)
    return packed, pivots


def solved_packed(
    name: str, device: Device, status: Any, operands: Sequence[Any], params: Mapping[str, Any]
) -> Any:
    """x with op(a) @ x = b; the status is set if a pivot is zero."""
    packed, pivots, b = map(device.put, operands)
    dtype = np.result_type(packed.dtype, b.dtype)
    if dtype.char not in _FLOATS or packed.dtype.char not in _FLOATS:
        return NotImplemented
    *batch, n, columns = np.broadcast_shapes((*packed.shape[:-2], 1, 1), b.shape)
    flag = TRANS[params.get("trans", 0)]
    diagonal = device.contiguous(np.diagonal(packed, axis1=-2, axis2=-1))
    kind = diagonal.dtype.str[1:]
    arguments = [("ptr", "x"), ("ptr", "status")]
    look = partial(_zero_pivot, diagonal.dtype)
    _run(device, f"zero_{kind}", arguments, look, [diagonal, status], diagonal.size)
    if not math.prod((*batch, n, columns)):
        return device.empty((*batch, n, columns), dtype)
    a = np.swapaxes(packed.astype(dtype, copy=False), -1, -2)
    order = ordered("", device, [pivots], {})
    if packed.ndim > 2:
        a = device.contiguous(np.broadcast_to(a, (*batch, n, n)))
    if flag:
        order = np.argsort(order, axis=-1)
    b = np.broadcast_to(b.astype(dtype, copy=False), (*batch, n, columns))
    order = np.broadcast_to(order, (*batch, n))[..., None]
    steps = [(True, flag, True), (False, flag, False)]
    if not flag:
        b = np.take_along_axis(b, order, axis=-2)
    for lower, *rest in steps[:: -1 if flag else 1]:
        b = _triangle(device, a, b, lower, *rest)
    return np.take_along_axis(b, order, axis=-2) if flag else b


def _triangle(device: Device, a: Any, b: Any, *flags: Any) -> Any:
    """A triangular system; one matrix solves for the columns of all right-hand sides."""
    if a.ndim > 2:
        return device.triangular_solution(a, device.contiguous(b), *flags)
    *batch, n, columns = b.shape
    whole = np.moveaxis(b, -2, 0).reshape(n, -1)
    found = device.triangular_solution(a, whole, *flags)
    return np.moveaxis(found.reshape(n, *batch, columns), 0, -2)


def ordered(name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """The order of rows after the exchanges of the pivots."""
    pivots = device.contiguous(device.put(operands[0]))
    if pivots.dtype.char != "i":
        return NotImplemented
    order = device.empty(pivots.shape, np.dtype(np.int64))
    n = pivots.shape[-1]
    if order.size:
        arguments = [("ptr", "pivots"), ("ptr", "order"), ("i64", "n")]
        given = [pivots, order, np.int64(n)]
        _run(device, "order_of_rows", arguments, _order, given, order.size // n)
    return order


def _run(
    device: Device,
    name: str,
    arguments: Sequence[tuple[str, str]],
    write: Write,
    given: Sequence[Any],
    count: int,
) -> None:
    def make() -> DeviceKernel:
        return element_kernel(name, arguments, write)

    if count:
        launch_of(device, name, make)([*given, np.int64(count)], count)


# ---- code ----------------------------------------------------------------------------------------


def _zero_pivot(
    dtype: Dtype, module: ModuleBuilder, function: Function, s: Section, element: Name
) -> None:
    """Look whether one pivot is zero."""
    language = Language(module)
    x = load(language, s, _address(s, "%x", element, dtype), dtype, 1, None)
    parts = [x.real, x.imag] if dtype.kind == "c" else [x]
    flags = [language.binary("equal", part, 0).name for part in parts]
    flag = flags[0] if len(flags) == 1 else s.value(f"and i1 {flags[0]}, {flags[1]}")
    with s.when(flag) as found:
        found.write("store i64 1, ptr %status")


def _order(module: ModuleBuilder, function: Function, s: Section, element: Name) -> None:
    """Follow the exchanges of one matrix."""
    first = s.value(f"mul i64 {element}, %n")
    with s.loop("0", "%n") as (t, k):
        place = t.value(f"add i64 {first}, {k}")
        t.write(f"store i64 {k}, ptr {t.value(f'getelementptr i64, ptr %order, i64 {place}')}")
    with s.loop("0", "%n") as (t, k):
        place = t.value(f"add i64 {first}, {k}")
        other = t.value(f"load i32, ptr {t.value(f'getelementptr i32, ptr %pivots, i64 {place}')}")
        moved = t.value(f"add i64 {first}, {t.value(f'sext i32 {other} to i64')}")
        moved = t.value(f"sub i64 {moved}, 1")
        ends = [t.value(f"getelementptr i64, ptr %order, i64 {p}") for p in (place, moved)]
        rows = [t.value(f"load i64, ptr {end}") for end in ends]
        for row, end in zip(rows[::-1], ends, strict=True):
            t.write(f"store i64 {row}, ptr {end}")


def _address(s: Section, array: Name, place: Name, dtype: Dtype) -> Name:
    kind = in_memory(part_of(dtype))
    whole = f"[2 x {kind}]" if dtype.kind == "c" else kind
    return s.value(f"getelementptr {whole}, ptr {array}, i64 {place}")


def _factor(
    dtype: Dtype, module: ModuleBuilder, function: Function, s: Section, element: Name
) -> None:
    """Factorize one matrix, whose columns are contiguous."""
    language = Language(module)
    whole = s.value("mul i64 %n, %n")
    matrix = _ColumnsInMemory(language, dtype, s.value(f"mul i64 {element}, {whole}"))
    first = s.value(f"mul i64 {element}, %n")
    with s.loop("0", "%n") as (t, k):
        pivot = matrix.pivot(t, k)
        place = t.value(f"add i64 {first}, {k}")
        one = t.value(f"trunc i64 {t.value(f'add i64 {pivot}, 1')} to i32")
        t.write(f"store i32 {one}, ptr {t.value(f'getelementptr i32, ptr %pivots, i64 {place}')}")
        with t.loop("0", "%n") as (u, j):
            x, y = matrix.get(u, k, j), matrix.get(u, pivot, j)
            matrix.put(u, k, j, y)
            matrix.put(u, pivot, j, x)
        body = t.inside()
        following = body.value(f"add i64 {k}, 1")
        with body.when(matrix.is_not_zero(body, k)) as inside:
            with inside.loop(following, "%n") as (u, i):
                factor = language.binary("divide", matrix.get(u, i, k), matrix.get(u, k, k))
                matrix.put(u, i, k, factor)
            with inside.loop(following, "%n") as (v, j), v.loop(following, "%n") as (u, i):
                product = language.binary("multiply", matrix.get(u, i, k), matrix.get(u, k, j))
                matrix.put(u, i, j, language.binary("subtract", matrix.get(u, i, j), product))


class _ColumnsInMemory:
    """The elements of a matrix in a kernel; `first` is the number of the first one."""

    def __init__(self, language: Language, dtype: Dtype, first: Name) -> None:
        self.language, self.dtype, self.first = language, dtype, first

    def _at(self, s: Section, i: Name, j: Name) -> Name:
        column = s.value(f"add i64 {self.first}, {s.value(f'mul i64 {j}, %n')}")
        return _address(s, "%packed", s.value(f"add i64 {column}, {i}"), self.dtype)

    def get(self, s: Section, i: Name, j: Name) -> Any:
        """An element."""
        return load(self.language, s, self._at(s, i, j), self.dtype, 1, None)

    def put(self, s: Section, i: Name, j: Name, value: Any) -> None:
        """Store an element."""
        given = self.language.cast(value, self.dtype)
        store(self.language, s, self._at(s, i, j), given, 1, None)

    def size(self, s: Section, i: Name, j: Name) -> Any:
        """The size of an element, by which LAPACK chooses pivots."""
        x = self.get(s, i, j)
        parts = [x.real, x.imag] if self.dtype.kind == "c" else [x]
        sizes = [self.language.unary("absolute", part) for part in parts]
        return sizes[0] if len(sizes) == 1 else self.language.binary("add", *sizes)

    def is_not_zero(self, s: Section, k: Name) -> Name:
        """Whether a diagonal element is not zero."""
        flag: Name = self.language.binary("not_equal", self.size(s, k, k), 0).name
        return flag

    def pivot(self, s: Section, k: Name) -> Name:
        """The row of the largest element of a column, from the diagonal on."""
        best = MutableValue(self.language, s, part_of(self.dtype), 1)
        row = s.function.slot("i64")
        best.put(s, self.size(s, k, k))
        s.write(f"store i64 {k}, ptr {row}")
        with s.loop(s.value(f"add i64 {k}, 1"), "%n") as (t, i):
            found = self.size(t, i, k)
            larger = self.language.binary("greater", found, best.get(t))
            with t.when(larger.name) as inside:
                best.put(inside, found)
                inside.write(f"store i64 {i}, ptr {row}")
        return s.inside().value(f"load i64, ptr {row}")


def solved(name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """x with a @ x = b."""
    a, b = map(device.put, operands)
    columns = b[:, None] if b.ndim == 1 else b
    batch, is_one = _batch(a, columns)
    n, k = columns.shape[-2:]
    with device.calling():
        if is_one:
            whole = np.moveaxis(columns, -2, 0).reshape(n, -1)
            x = solve.run(a, whole) if whole.size else whole
            x = np.moveaxis(x.reshape(n, *batch, k), 0, -2)
        else:
            x = solve.run(_spread(a, batch), _spread(columns, batch))
    return x[..., 0] if b.ndim == 1 else x


def solved_triangular(
    name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]
) -> Any:
    """x with op(a) @ x = b, a triangular."""
    a, b = map(device.put, operands)
    columns = b[:, None] if b.ndim == 1 else b
    dtype = np.result_type(a.dtype, b.dtype, np.float32)
    if dtype.char not in "fdFD":
        return NotImplemented
    batch, is_one = _batch(a, columns)
    a, columns = a.astype(dtype, copy=False), columns.astype(dtype, copy=False)
    n, k = columns.shape[-2:]
    lower, unit = bool(params.get("lower", False)), bool(params.get("unit_diagonal", False))
    if not unit and bool(np.any(np.diagonal(a, axis1=-2, axis2=-1) == 0)):
        return NotImplemented  # the host raises the error
    flags = (lower, TRANS[params.get("trans", 0)], unit)
    x = device.empty((*batch, n, k), dtype)
    if is_one and x.size:
        whole = np.moveaxis(columns, -2, 0).reshape(n, -1)
        found = device.triangular_solution(a, whole, *flags)
        x[...] = np.moveaxis(found.reshape(n, *batch, k), 0, -2)
    elif x.size:
        left, right = [device.contiguous(_spread(y, batch)) for y in (a, columns)]
        x[...] = device.triangular_solution(left, right, *flags)
    return x[..., 0] if b.ndim == 1 else x


def _batch(a: Any, columns: Any) -> tuple[tuple[int, ...], bool]:
    """The leading axes of a solution, and whether there is one matrix."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or a.shape[-1] != columns.shape[-2]:
        raise LinAlgError("the sizes of the matrix and of the right-hand side differ")
    return np.broadcast_shapes(a.shape[:-2], columns.shape[:-2]), a.ndim == 2


def _spread(x: Any, batch: tuple[int, ...]) -> Any:
    return np.broadcast_to(x, (*batch, *x.shape[-2:]))
