"""Einsum lowering: from the subscripts of a contraction of two operands to matrix products.

Subscripts that both operands and the result have are loops over a batch; the others are merged into
three axes: rows (of the first operand and the result), columns (of the second and the result) and
contracted.  An operand or a result is copied where its strides do not allow the merge, or not in an
order that BLAS reads.

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
from ..loop_helpers import copy, held, nest, place, read, size_of, write
from .choose import choose, parallel_grain
from .operands import PLAIN, Epilogue, Matrix, Product, Subscripts, arranged, is_readable
from .write_product import write_product


def new(call: KernelCall, lengths: Sequence[Length], dtype: Dtype) -> ArrayPointer:
    """Scratch memory for an array."""
    array = contiguous("", lengths, dtype)
    return array._replace(pointer=call.scratch(size_of(array) * dtype.itemsize))


# ---- one operand -------------------------------------------------------------------------------


def sum_over(call: KernelCall, s: Section, of: Subscripts, to: Subscripts) -> None:
    """Sums over the labels that the target does not have."""
    gone = [c for c in of.labels if c not in to.labels]
    if not gone:
        copy(call, s, to.array, arranged(of, to.labels))
        return
    dtype = of.array.dtype
    inner = F32 if dtype == F16 else dtype
    cell = held(call, inner)
    source = arranged(of, [*to.labels, *gone])
    language = call.language
    with nest(s, [call.number(n) for n in to.array.shape]) as (t, outer):
        write(t, cell, language.constant(0, inner))
        with nest(t, [call.number(of.axis(c).length) for c in gone]) as (u, more):
            value = read(language, u, place(call, u, source, [*outer, *more]), dtype)
            value = language.cast(value, inner)
            total = read(language, u, cell, inner) + value
            write(u, cell, total)
        value = language.cast(read(language, t, cell, inner), to.array.dtype)
        write(t, place(call, t, to.array, outer), value)


def _without(call: KernelCall, s: Section, w: Subscripts, others: str) -> Subscripts:
    """An operand without the labels that occur in no other."""
    kept = [c for c in w.labels if c in others]
    if len(kept) == len(w.labels):
        return w
    lengths = [w.axis(c).length for c in kept]
    target = Subscripts(new(call, lengths, w.array.dtype), "".join(kept))
    sum_over(call, s, w, target)
    return target


# ---- two operands ------------------------------------------------------------------------------


class Roles(NamedTuple):
    """The subscripts of a pair by their role."""

    batch: str
    rows: str
    columns: str
    shared: str


def _roles(a: Subscripts, b: Subscripts, c: Subscripts) -> Roles:
    """The roles of labels; contracted labels in the order of an operand."""
    roles = Roles(
        "".join(x for x in c.labels if x in a.labels and x in b.labels),
        "".join(x for x in c.labels if x in a.labels and x not in b.labels),
        "".join(x for x in c.labels if x in b.labels and x not in a.labels),
        "".join(x for x in a.labels if x in b.labels and x not in c.labels),
    )
    shared = roles.shared
    if a.merged(shared) is None or b.merged(shared) is None:
        other = "".join(x for x in b.labels if x in shared)
        if b.merged(other) is not None:
            return roles._replace(shared=other)
    return roles


def _announce(call: KernelCall, words: Sequence[Subscripts], roles: Roles, dtype: Dtype) -> None:
    """Record the work of BLAS, and check that the lengths fit into its integers."""
    rows, columns, shared = _lengths(words, roles)
    fortran_calls.check_lengths(call, *[call.number(n) for n in (rows, columns, shared)])
    call.works((2 if dtype.kind == "f" else 8) * rows * columns * shared)


def _lengths(words: Sequence[Subscripts], roles: Roles) -> list[Length]:
    """The rows, columns and terms of one product."""
    left, right, _ = words
    axes = [w.merged(g) for w, g in zip((left, right, left), roles[1:], strict=True)]
    return [1 if x is None else x.length for x in axes]


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
    a = _without(call, s, a, b.labels + c.labels)
    b = _without(call, s, b, a.labels + c.labels)
    roles = _roles(a, b, c)
    left = _ready(call, s, a, roles.batch, roles.rows, roles.shared, dtype)
    right = _ready(call, s, b, roles.batch, roles.shared, roles.columns, dtype)
    result = c
    if not _fits(c, roles.rows, roles.columns, dtype):
        order = roles.batch + roles.rows + roles.columns
        result = Subscripts(new(call, [c.axis(x).length for x in order], dtype), order)
        if beta != 0:
            copy(call, s, result.array, arranged(c if addend is None else addend, order))
            addend = None
    words = (left, right, result)
    by_blas = choose(Product(*_matrices(call, s, words, roles), dtype)).calls_blas
    layout = None if addend is None else (addend.labels, addend.array.strides)
    if addend is not None and (by_blas or layout != (c.labels, c.array.strides)):
        copy(call, s, c.array, arranged(addend, c.labels))
        addend = None
    if by_blas:
        _announce(call, words, roles, dtype)

    def one(on: KernelCall, t: Section, indices: Sequence[Name]) -> None:
        each = _matrices(on, t, words, roles, roles.batch, indices)
        before = None
        if addend is not None:
            before = place(on, t, arranged(addend, roles.batch), indices)
        write_product(on, t, Product(*each, dtype, alpha, beta, before))

    given = {x.pointer for x in (*call.operands, *call.results)}
    used = {w.array.pointer for w in (*words, addend) if w is not None}
    is_ours = s is call.section and not by_blas and used <= given
    batch = [c.axis(x).length for x in roles.batch]
    rows, columns, shared = _lengths(words, roles)
    _for_all(call, s, batch, 2 * rows * columns * shared, is_ours, one)
    if result is not c:
        copy(call, s, arranged(c, result.labels), result.array)


def _for_all(
    call: KernelCall,
    s: Section,
    lengths: Sequence[Length],
    each: Length,
    is_ours: bool,
    write: Callable[[KernelCall, Section, Sequence[Name]], None],
) -> None:
    """Loops over a batch of products, its first axis in roles on several threads if that pays.

    Parameters
    ----------
    each : Length
        The operations of a product.
    is_ours : bool
        Whether they may be shared: those of BLAS it shares itself, and memory that the call has
        for itself is not handed on.
    write : callable
        ``write(call, section, indices)`` writes one product.
    """
    grain = parallel_grain(lengths, each) if is_ours else 0
    if not grain:
        with nest(s, [call.number(n) for n in lengths]) as (inner, indices):
            write(call, inner, indices)
        return

    def part(on: KernelCall, start: Name, stop: Name) -> None:
        rest = [on.number(n) for n in lengths[1:]]
        with on.section.loop(start, stop) as (t, i), nest(t, rest) as (u, more):
            write(on, u, [i, *more])

    call.in_parts(lengths[0], grain, part)


def _matrices(
    call: KernelCall,
    s: Section,
    words: tuple[Subscripts, Subscripts, Subscripts],
    roles: Roles,
    batch: str = "",
    indices: Sequence[Name] = (),
) -> tuple[Matrix, Matrix, Matrix]:
    """The matrices of two operands and their product, at indices of the batch."""
    sides = ((roles.rows, roles.shared), (roles.shared, roles.columns), (roles.rows, roles.columns))
    found = []
    for w, (rows, columns) in zip(words, sides, strict=True):
        pointer = place(call, s, arranged(w, batch), indices) if batch else w.array.pointer
        across, down = w.merged(rows), w.merged(columns)
        assert across is not None and down is not None
        found.append(Matrix(pointer, across, down))
    return found[0], found[1], found[2]


def _fits(w: Subscripts, rows: str, columns: str, dtype: Dtype) -> bool:
    """Whether an operand is a matrix that BLAS reads, in this dtype."""
    across, down = w.merged(rows), w.merged(columns)
    if w.array.dtype != dtype or across is None or down is None:
        return False
    return not fortran_calls.is_of_blas(dtype) or is_readable(Matrix("", across, down))


def _ready(
    call: KernelCall, s: Section, w: Subscripts, batch: str, rows: str, columns: str, dtype: Dtype
) -> Subscripts:
    """An operand whose matrices can be multiplied, copied if necessary."""
    if _fits(w, rows, columns, dtype):
        return w
    moving = [x for x in batch if w.axis(x).stride != 0]
    order = "".join(moving) + rows + columns
    target = Subscripts(new(call, [w.axis(x).length for x in order], dtype), order)
    copy(call, s, target.array, arranged(w, order))
    return target
