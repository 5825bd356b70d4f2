"""Condition numbers from packed factors, and the refusal of nearly singular matrices.

reciprocal_condition   gecon
refuse_singular        a copy

The kernels fail if a reciprocal condition number is too small.  The interpreter then considers the
equilibrated matrix, and raises the error.
"""

from __future__ import annotations

import numpy as np

from wengert._engine.core.node import DiscreteLeaf
from wengert._engine.ops.linalg.condition import smallest_reciprocal

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F32, F64, I32, Dtype, in_register, literal, part_of
from .. import fortran_calls
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import address, copy, is_c_contiguous, nest, read, stack_slot, write
from .lapack import (
    batch_item,
    batches,
    is_for_lapack,
    leading_dimension,
    length,
    memory,
)
from .lu_solve import one_norm


def _fail_if_small(call: KernelCall, s: Section, value: Name, dtype: Dtype) -> None:
    """Fail if a reciprocal condition number is too small; NaN is not."""
    limit = literal(smallest_reciprocal(dtype), dtype)
    call.fail_if(s.value(f"fcmp olt {in_register(dtype)} {value}, {limit}"), 1, s)


@kernel("reciprocal_condition", strided=True, serves=is_for_lapack)
def reciprocal_condition(call: KernelCall) -> None:
    """The estimate for each matrix, in the infinity norm."""
    (a, packed), (result,) = call.operands, call.results
    n, dtype = a.shape[-1], packed.dtype
    real = part_of(dtype)
    fortran_calls.check_lengths(call, call.number(n))
    call.record_flops(n * n * 20)
    in_place = is_c_contiguous(
        packed._replace(shape=packed.shape[-2:], strides=packed.strides[-2:])
    )
    factor_memory = "" if in_place else memory(call, n * n, dtype)
    norm, info = stack_slot(call, real), fortran_calls.integer_slot(call)
    is_complex = dtype.kind == "c"
    work = memory(call, n * (2 if is_complex else 4), dtype)
    second = memory(call, n * 2, real) if is_complex else memory(call, n, I32)
    with batches(call, result, 0) as (s, index):
        matrix = batch_item(call, s, a, index, 2)
        rows = matrix._replace(shape=matrix.shape[::-1], strides=matrix.strides[::-1])
        size = one_norm(call, s, rows)
        write(s, norm, size)
        target = address(call, s, result, index)
        write(s, target, call.language.constant(float(np.nan), real))
        # LAPACK rejects a norm that is not finite.
        kind = in_register(real)
        difference = s.value(f"fsub {kind} {size.name}, {size.name}")
        with s.when(s.value(f"fcmp oeq {kind} {difference}, 0.0")) as t:
            factors = batch_item(call, t, packed, index, 2)
            if factor_memory:
                ordered = ArrayPointer(factor_memory, (n, n), (n, 1), dtype)
                copy(call, t, ordered, factors)
                factors = ordered
            lda = leading_dimension(call, t, n)
            arguments = (length(call, n), factors.pointer, lda, norm, target, work, second, info)
            fortran_calls.run(call, t, "gecon", dtype, "I", *arguments)
            found = read(call.language, t, target, real)
            _fail_if_small(call, t, found.name, real)


def _is_real(node: DiscreteLeaf) -> bool:
    return node.inputs[1].spec.dtype in (F32, F64)


@kernel("refuse_singular", strided=True, serves=_is_real)
def refuse_singular(call: KernelCall) -> None:
    """The first operand."""
    (b, reciprocal), (x,) = call.operands, call.results
    s = call.section
    with nest(s, [call.number(n) for n in reciprocal.shape]) as (t, index):
        value = read(call.language, t, address(call, t, reciprocal, index), reciprocal.dtype)
        _fail_if_small(call, t, value.name, reciprocal.dtype)
    copy(call, s, x, b)
