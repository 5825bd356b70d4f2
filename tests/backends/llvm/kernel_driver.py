"""Run one kernel on arrays, for the tests of kernels.

A function `kernel(frame)` is made that takes one step; the frame holds the addresses of operands
and results, then the sizes.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from tests.machine_code import kernel_object

from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder
from wengert._engine.backends.llvm.ir.scalar_language import Language
from wengert._engine.backends.llvm.kernels import ArrayPointer, KernelCalls
from wengert._engine.core.symbolic.constraints import dim
from wengert._engine.core.symbolic.dim import names_in

GUARD = 64  # elements before and behind a result, which must stay as they are


class Compiled:
    """A kernel for operands and results of some shapes and dtypes.

    Parameters
    ----------
    name : str
    operands, results : list of (shape, strides, dtype)
        Shapes and strides may hold names of sizes as text; strides count elements.
    """

    def __init__(self, name: str, params: Any, operands: Any, results: Any, **options: Any) -> None:
        module = ModuleBuilder()
        steps = KernelCalls(Language(module))
        function = Function(module, "kernel", [("ptr", "frame")], "i64", linkage="")
        body = function.body
        arrays, slot = [], 0
        for shape, strides, dtype in [*operands, *results]:
            where = body.value(f"getelementptr i64, ptr %frame, i64 {slot}")
            pointer = body.value(f"load ptr, ptr {where}")
            sizes = [
                tuple(dim(n) if isinstance(n, str) else n for n in x) for x in (shape, strides)
            ]
            arrays.append(ArrayPointer(pointer, *sizes, np.dtype(dtype)))
            slot += 1
        self.names = sorted(names_in(n for a in arrays for n in a.shape + a.strides))
        numbers = {}
        for i, size in enumerate(self.names):
            where = body.value(f"getelementptr i64, ptr %frame, i64 {slot + i}")
            numbers[dim(size)] = body.value(f"load i64, ptr {where}")
        count = len(operands)
        status = steps.write(
            body, name, params, arrays[:count], arrays[count:], numbers.__getitem__, **options
        )
        body.write(f"ret i64 {status}")
        module.add(function)
        self.text = module.text(execution_engine.heading())
        self.code = execution_engine.Code(kernel_object(self.text), steps.symbols)
        self.run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self.code.address("kernel"))

    def __call__(self, pointers: list[int], sizes: dict[str, int]) -> int:
        """The status."""
        frame = [*pointers, *(sizes[n] for n in self.names)]
        return int(self.run((ctypes.c_int64 * max(len(frame), 1))(*frame)))


LAST: dict[str, Compiled] = {}  # the kernels of the last runs: other numbers need no other code


def kernel_of(name: str, params: Any, operands: Any, results: Any, options: Any) -> Compiled:
    key = repr((name, params, operands, results, options))
    if key not in LAST:
        while len(LAST) >= 8:
            del LAST[next(iter(LAST))]
        LAST[key] = Compiled(name, params, operands, results, **options)
    return LAST[key]


def strides_of(x: np.ndarray) -> tuple[int, ...]:
    """Strides in elements, as the plan gives them."""
    return tuple(s // x.itemsize for s in x.strides)


def run(
    name: str,
    *operands: Any,
    outputs: Any,
    strided: bool = False,
    begin: Any = None,
    options: Any = None,
    **params: Any,
) -> Any:
    """The status, and the results of a kernel for arrays.

    Parameters
    ----------
    outputs : list of numpy.ndarray
        What has their shapes and dtypes.
    begin : numpy.ndarray, optional
        What is in the first result before.
    """
    operands = [
        np.asarray(x) if strided else np.ascontiguousarray(x).reshape(np.shape(x)) for x in operands
    ]
    shapes = [(x.shape, strides_of(x), x.dtype) for x in operands]
    made = [np.asarray(y) for y in outputs]
    plain = [np.empty(y.shape, y.dtype) for y in made]
    results = [(y.shape, strides_of(y), y.dtype) for y in plain]
    kernel = kernel_of(name, params, shapes, results, options or {})
    memory = [np.full(y.nbytes + 2 * GUARD, 77, np.uint8) for y in made]
    if begin is not None:
        memory[0][GUARD:-GUARD] = np.frombuffer(np.ascontiguousarray(begin).tobytes(), np.uint8)
    pointers = [x.ctypes.data for x in operands] + [m.ctypes.data + GUARD for m in memory]
    status = kernel(pointers, {})
    found = []
    for m, y in zip(memory, made, strict=True):
        assert (m[:GUARD] == 77).all() and (m[-GUARD:] == 77).all(), "written outside"
        found.append(m[GUARD : GUARD + y.nbytes].view(y.dtype).reshape(y.shape))
    return status, found


def agree(found: Any, wanted: Any, tolerance: float | None = None) -> None:
    """Whether two arrays agree, NaN and infinity included; errors against the largest element."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    if wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, wanted)
        return
    if tolerance is None:
        tolerance = {2: 2e-3, 4: 2e-5, 8: 1e-12}[np.finfo(wanted.dtype).dtype.itemsize]
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(
        found[~finite & ~np.isnan(wanted)], wanted[~finite & ~np.isnan(wanted)]
    )
    scale = max(float(np.abs(wanted[finite]).max(initial=0.0)), 1e-300)
    np.testing.assert_allclose(
        found[finite], wanted[finite], rtol=tolerance, atol=tolerance * scale
    )
