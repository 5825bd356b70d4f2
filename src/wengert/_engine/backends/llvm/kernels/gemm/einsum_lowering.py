"""Einsum lowering: from the subscripts of a contraction of two operands to matrix products.

Subscripts that both operands and the result have become loops over a batch.  The others are merged
into three axes: rows (of the first operand and the result), columns (of the second operand and the
result), and the contracted axis.  An operand or a result is copied if its strides do not allow the
merge, or not in an order that BLAS reads.

    contract_pair    the product of two operands
    sum_over         one operand: a sum over subscripts, and a transposition
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from wengert._engine.core.symbolic.dim import Length

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F16, F32, Dtype
from .. import fortran_calls
from ..kernel_call import ArrayPointer, KernelCall, contiguous
from ..loop_helpers import address, copy, nest, read, size_of, stack_slot, write
from .choose import choose, parallel_grain
from .operands import PLAIN, Epilogue, Matrix, Product, Subscripts, arranged, is_readable
from .write_product import write_product


def scratch_array(call: KernelCall, lengths: Sequence[Length], dtype: Dtype) -> ArrayPointer:
    """An array in scratch memory."""
    array = contiguous("", lengths, dtype)
    return array._replace(pointer=call.scratch(size_of(array) * dtype.itemsize))


# ---- one operand -------------------------------------------------------------------------------


def sum_over(call: KernelCall, s: Section, operand: Subscripts, result: Subscripts) -> None:
    """Sum over the labels that the result does not have."""
    summed = [c for c in operand.labels if c not in result.labels]
    if not summed:
        copy(call, s, result.array, arranged(operand, result.labels))
        return
    dtype = operand.array.dtype
    sum_dtype = F32 if dtype == F16 else dtype
    cell = stack_slot(call, sum_dtype)
    source = arranged(operand, [*result.labels, *summed])
    language = call.language
    with nest(s, [call.number(n) for n in result.array.shape]) as (t, outer):
        write(t, cell, language.constant(0, sum_dtype))
        with nest(t, [call.number(operand.axis(c).length) for c in summed]) as (u, summed_indices):
            value = read(language, u, address(call, u, source, [*outer, *summed_indices]), dtype)
            value = language.cast(value, sum_dtype)
            total = read(language, u, cell, sum_dtype) + value
            write(u, cell, total)
        value = language.cast(read(language, t, cell, sum_dtype), result.array.dtype)
        write(t, address(call, t, result.array, outer), value)


def _reduced(call: KernelCall, s: Section, w: Subscripts, other_labels: str) -> Subscripts:
    """An operand, summed over the labels that occur neither in the other operand nor the result."""
    labels = [c for c in w.labels if c in other_labels]
    if len(labels) == len(w.labels):
        return w
    lengths = [w.axis(c).length for c in labels]
    target = Subscripts(scratch_array(call, lengths, w.array.dtype), "".join(labels))
    sum_over(call, s, w, target)
    return target


# ---- two operands ------------------------------------------------------------------------------


class Roles(NamedTuple):
    """The subscripts of a product by their role."""

    batch: str
    rows: str
    columns: str
    contracted: str


def _roles(a: Subscripts, b: Subscripts, c: Subscripts) -> Roles:
    """The roles of labels; the contracted ones in an order in which an operand has them."""
    roles = Roles(
        "".join(x for x in c.labels if x in a.labels and x in b.labels),
        "".join(x for x in c.labels if x in a.labels and x not in b.labels),
        "".join(x for x in c.labels if x in b.labels and x not in a.labels),
        "".join(x for x in a.labels if x in b.labels and x not in c.labels),
    )
    contracted = roles.contracted
    if a.merged(contracted) is None or b.merged(contracted) is None:
        order = "".join(x for x in b.labels if x in contracted)
        if b.merged(order) is not None:
            return roles._replace(contracted=order)
    return roles


def _record_work(
    call: KernelCall, arrays: Sequence[Subscripts], roles: Roles, dtype: Dtype
) -> None:
    """Record the work of BLAS, and check that the lengths fit into its integers."""
    rows, columns, terms = _lengths(arrays, roles)
    fortran_calls.check_lengths(call, rows, columns, terms)
    call.record_flops((2 if dtype.kind == "f" else 8) * rows * columns * terms)


def _lengths(arrays: Sequence[Subscripts], roles: Roles) -> list[Length]:
    """The numbers of rows, columns and contracted terms of one product."""
    left, right, _ = arrays
    axes = [array.merged(g) for array, g in zip((left, right, left), roles[1:], strict=True)]
    return [1 if axis is None else axis.length for axis in axes]


def contract_pair(
    call: KernelCall,
    s: Section,
    a: Subscripts,
    b: Subscripts,
    c: Subscripts,
    epilogue: Epilogue = PLAIN,
) -> None:
    """Write the product of two operands."""
    alpha, beta, addend = epilogue
    dtype = c.array.dtype
    a = _reduced(call, s, a, b.labels + c.labels)
    b = _reduced(call, s, b, a.labels + c.labels)
    roles = _roles(a, b, c)
    left = _as_matrices(call, s, a, roles.batch, roles.rows, roles.contracted, dtype)
    right = _as_matrices(call, s, b, roles.batch, roles.contracted, roles.columns, dtype)
    result = c
    if not _is_matrix(c, roles.rows, roles.columns, dtype):
        order = roles.batch + roles.rows + roles.columns
        result = Subscripts(scratch_array(call, [c.axis(x).length for x in order], dtype), order)
        if beta != 0:
            copy(call, s, result.array, arranged(c if addend is None else addend, order))
            addend = None
    arrays = (left, right, result)
    uses_blas = choose(Product(*_matrices(call, s, arrays, roles), dtype)).calls_blas
    layout = None if addend is None else (addend.labels, addend.array.strides)
    if addend is not None and layout != (c.labels, c.array.strides):
        copy(call, s, c.array, arranged(addend, c.labels))
        addend = None
    if uses_blas:
        _record_work(call, arrays, roles, dtype)

    def write_one(on: KernelCall, t: Section, indices: Sequence[Name]) -> None:
        matrices = _matrices(on, t, arrays, roles, roles.batch, indices)
        addend_address = None
        if addend is not None:
            addend_address = address(on, t, arranged(addend, roles.batch), indices)
        write_product(on, t, Product(*matrices, dtype, alpha, beta, addend_address))

    arguments = {x.pointer for x in (*call.operands, *call.results)}
    used = {w.array.pointer for w in (*arrays, addend) if w is not None}
    can_share = s is call.section and not uses_blas and used <= arguments
    batch = [c.axis(x).length for x in roles.batch]
    rows, columns, terms = _lengths(arrays, roles)
    _loop_over_batch(call, s, batch, 2 * rows * columns * terms, can_share, write_one)
    if result is not c:
        copy(call, s, arranged(c, result.labels), result.array)


def _loop_over_batch(
    call: KernelCall,
    s: Section,
    lengths: Sequence[Length],
    flops_of_product: Length,
    can_share: bool,
    write: Callable[[KernelCall, Section, Sequence[Name]], None],
) -> None:
    """Loops over a batch of products; the first axis is divided among threads if that is faster.

    Parameters
    ----------
    flops_of_product : Length
        The floating-point operations of one product.
    can_share : bool
        Whether they may be divided among threads: BLAS has its own threads, and other threads
        cannot access the scratch memory of this call.
    write : callable
        ``write(call, section, indices)`` writes one product.
    """
    grain = parallel_grain(lengths, flops_of_product) if can_share else 0
    if not grain:
        with nest(s, [call.number(n) for n in lengths]) as (inner, indices):
            write(call, inner, indices)
        return

    def write_part(on: KernelCall, start: Name, stop: Name) -> None:
        inner_lengths = [on.number(n) for n in lengths[1:]]
        with on.section.loop(start, stop) as (t, i), nest(t, inner_lengths) as (u, inner_indices):
            write(on, u, [i, *inner_indices])

    call.in_parts(lengths[0], grain, write_part)


def _matrices(
    call: KernelCall,
    s: Section,
    arrays: tuple[Subscripts, Subscripts, Subscripts],
    roles: Roles,
    batch: str = "",
    indices: Sequence[Name] = (),
) -> tuple[Matrix, Matrix, Matrix]:
    """The matrices of two operands and their product, at indices of the batch."""
    sides = (
        (roles.rows, roles.contracted),
        (roles.contracted, roles.columns),
        (roles.rows, roles.columns),
    )
    matrices = []
    for array, (rows, columns) in zip(arrays, sides, strict=True):
        pointer = (
            address(call, s, arranged(array, batch), indices) if batch else array.array.pointer
        )
        row_axis, column_axis = array.merged(rows), array.merged(columns)
        assert row_axis is not None and column_axis is not None
        matrices.append(Matrix(pointer, row_axis, column_axis))
    return matrices[0], matrices[1], matrices[2]


def _is_matrix(w: Subscripts, rows: str, columns: str, dtype: Dtype) -> bool:
    """Whether an operand is a matrix that BLAS can read, of this dtype."""
    row_axis, column_axis = w.merged(rows), w.merged(columns)
    if w.array.dtype != dtype or row_axis is None or column_axis is None:
        return False
    return not fortran_calls.is_of_blas(dtype) or is_readable(Matrix("", row_axis, column_axis))


def _as_matrices(
    call: KernelCall, s: Section, w: Subscripts, batch: str, rows: str, columns: str, dtype: Dtype
) -> Subscripts:
    """An operand whose axes form matrices; copied if necessary."""
    if _is_matrix(w, rows, columns, dtype):
        return w
    batch_order = [x for x in batch if w.axis(x).stride != 0]
    order = "".join(batch_order) + rows + columns
    target = Subscripts(scratch_array(call, [w.axis(x).length for x in order], dtype), order)
    copy(call, s, target.array, arranged(w, order))
    return target
