"""Small matrices in loops by rows, and systems with one matrix for all rows of a batch.

    RowMatrices         an operation on matrices, as a stage of a body
    row_matrices        the stage; None if the matrices are not small, or not those of a row
    write_matrices      its function for one row
    with_own_systems    a body in which each row has a system of its own

Batching makes the rows columns of one right-hand side (ops/linalg/linear_solve.py), which is best
for a library. In a loop by rows each column is that of a row, with the matrix repeated by a view.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import rebuilt
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import record

from ...core.symbolic.dim import Length, is_open, names_in
from ..llvm.ir.ir_builder import Function, Name, Section
from ..llvm.ir.scalar_language import Language
from ..llvm.kernels import KERNELS, ArrayPointer, KernelCalls, contiguous, is_served
from ..llvm.lowering.loop_ir import Expr, strided_view
from ..llvm.lowering.registry import specs_of
from ..llvm.schedule.scheduling import owner_of
from .kernel_codegen import UnsupportedKernel
from .matrix_kernels import IN_DOUBT, ThreadCall
from .row_stages import Sharing


@dataclass(frozen=True)
class RowMatrices:
    """An operation on matrices.

    Attributes
    ----------
    stage : Expr
    operands, results : tuple of ArrayPointer
        Of one row; the pointers are names of arguments.
    offsets : tuple of (Length, Length)
        Of each operand: the elements before it, and the elements of a row before its part.
    by_rows : bool
        Whether there are matrices for each row; else they are the same for all rows.
    """

    stage: Expr
    operands: tuple[ArrayPointer, ...]
    results: tuple[ArrayPointer, ...]
    offsets: tuple[tuple[Length, Length], ...]
    by_rows: bool


def row_matrices(stage: Expr, rows: Length, kinds: Sequence[Sharing]) -> RowMatrices | None:
    """The stage of a call.

    Parameters
    ----------
    kinds : sequence of Sharing
        Of the operands.
    """
    node = stage.node
    if node.op.kind == "contraction" or not is_served(node):
        return None  # products of few terms are loop groups
    if not KERNELS[node.op.name].in_lanes:
        return None
    # A matrix is in the last two axes; axes before them are those of the batch.
    ranks = [len(x.shape) for x in stage.operands]
    of_rows = [len(x.shape) > 2 and bool(x.shape[0] == rows) for x in stage.operands]
    by_rows = any(of_rows)
    if any(own and rank < max(ranks) for own, rank in zip(of_rows, ranks, strict=True)):
        return None
    operands, offsets = [], []
    for k, (x, kind) in enumerate(zip(stage.operands, kinds, strict=True)):
        found = _operand(x, kind, rows, f"%x{k}")
        if found is None:
            return None
        operands.append(found[0])
        offsets.append(found[1:])
    results = []
    for k, spec in enumerate(specs_of(node), len(operands)):
        shape = spec.shape
        if any(is_open(n) for n in shape):
            return None
        if by_rows:
            if not shape or shape[0] != rows:
                return None
            shape = shape[1:]
        results.append(contiguous(f"%x{k}", shape, spec.dtype))
    return RowMatrices(stage, tuple(operands), tuple(results), tuple(offsets), by_rows)


def _operand(
    x: Expr, kind: Sharing, rows: Length, pointer: Name
) -> tuple[ArrayPointer, Length, Length] | None:
    """What one row has of an operand, the elements before it, and those of a row."""
    if kind not in (Sharing.SHARED, Sharing.PRIVATE, Sharing.ROWS):
        return None
    view = strided_view(x)
    owner, offset, strides = view or (owner_of(x), 0, contiguous("", x.shape, x.dtype).strides)
    own = len(x.shape) > 2 and bool(x.shape[0] == rows)
    if kind is not Sharing.ROWS:
        if own and (kind is Sharing.SHARED or strides[0] == 0):  # the same matrix for all rows
            return ArrayPointer(pointer, x.shape[1:], strides[1:], x.dtype), offset, strides[0]
        if own or any(n == rows for n in x.shape):
            return None
        return ArrayPointer(pointer, x.shape, strides, x.dtype), offset, 0
    if not own:
        return None
    each = prod(owner.shape[1:])
    extent = [(n, stride) for n, stride in zip(x.shape[1:], strides[1:], strict=True)]
    known = [each, offset, *[y for pair in extent for y in pair]]
    if owner.shape[0] != rows or strides[0] != each or not all(type(y) is int for y in known):
        return None
    low = offset + sum(min((n - 1) * stride, 0) for n, stride in extent)
    high = offset + sum(max((n - 1) * stride, 0) for n, stride in extent)
    if not 0 <= low <= high < each:
        return None
    return ArrayPointer(pointer, x.shape[1:], strides[1:], x.dtype), offset, each


class _RowCall(ThreadCall):
    """The code of a kernel of native code for the matrices of one row."""

    thread = ("0", "1")

    def finish(self) -> None:
        """Write the exit of the function, which returns a status."""
        body = self.function.body
        body.block("leave")
        failed = body.value(f"icmp ne i64 {body.value(f'load i64, ptr {self._status}')}, 0")
        body.write(f"ret i64 {body.value(f'select i1 {failed}, i64 {IN_DOUBT}, i64 0')}")


def write_matrices(language: Language, stage: RowMatrices, name: str) -> tuple[list[str], bool]:
    """Write the function of one row; the sizes that it takes, and whether it can fail.

    Raises
    ------
    UnsupportedKernel
        The matrices are not small.
    """
    arrays = [*stage.operands, *stage.results]
    sizes = sorted(names_in(n for a in arrays for n in (*a.shape, *a.strides)))
    listed = [("ptr", a.pointer[1:]) for a in arrays]
    listed += [("i64", f"n{k}") for k in range(len(sizes))]
    function = Function(language.module, name, listed, "i64", "alwaysinline nounwind")
    named = {n: f"%n{k}" for k, n in enumerate(sizes)}
    node, home = stage.stage.node, language.home
    calls = KernelCalls(language)
    call = _RowCall(
        calls, function, dict(node.params), stage.operands, stage.results, named, {}
    )  # fmt: skip
    try:
        KERNELS[node.op.name].write(call)
    finally:
        language.home = home
    if len(call.batches) != 1:
        raise UnsupportedKernel(name)
    call.close()
    return sizes, call.fails


def address_of(
    s: Section, base: Name, before: Name, row: Name, each: Name, dtype_bytes: int
) -> Name:
    """The address of what a row has of an operand."""
    place = s.plus(before, s.times(row, each))
    return s.value(f"getelementptr i8, ptr {base}, i64 {s.times(place, str(dtype_bytes))}")


_SOLVERS = ("solve", "solve_or_nan", "solve_triangular")
_MOST_ROWS = 8  # of a matrix; larger ones are factored once, by the library


@functools.lru_cache(maxsize=256)
def with_own_systems(body: Body, rows: Length) -> Body:
    """A body in which each row has a system of its own.

    Parameters
    ----------
    rows : Length
        The length of the batch.
    """
    solvers = [lookup(name) for name in _SOLVERS]
    if not any(n.op in solvers and _is_shared(n, rows) for n in body.nodes):
        return body

    apart: dict[Node, Node] = {}  # solutions, with the rows as an axis of their own

    def change(node: Node, args: tuple[Any, ...]) -> Node | None:
        whole = apart.get(args[0]) if args else None
        if whole is not None and _in_order(node) and node.spec.shape == whole.spec.shape:
            return whole
        if node.op not in solvers or not _is_shared(node, rows):
            return None
        a, b = args
        n = a.spec.shape[0]
        columns = 1 if b.spec.shape[1] == rows else b.spec.shape[1] // rows
        matrix = _made("broadcast_to", a, shape=(rows, n, n))
        if _in_order(b) and b.inputs[0].spec.shape == (n, rows, columns):
            sides = b.inputs[0]
        else:
            sides = _made("reshape", b, shape=(n, rows, columns))
        sides = _made("transpose", sides, axes=(1, 0, 2))
        found = record(node.op, [wrap(matrix), wrap(sides)], dict(node.params)).node
        found = _made("transpose", found, axes=(1, 0, 2))
        made = _made("reshape", found, shape=(n, b.spec.shape[1]))
        apart[made] = found
        return made

    with tracing_body():
        new = rebuilt(body.nodes, None, change)
    return Body(*[new[n] for n in body.outputs], inputs=body.inputs, name=body.name)


def _in_order(node: Node) -> bool:
    """Whether a node is a view of all elements in the same order."""
    return node.op is lookup("reshape") and node.params.get("order", "C") == "C"


def _made(name: str, x: Node, **params: Any) -> Node:
    made: Node = record(lookup(name), [wrap(x)], params).node
    return made


def _is_shared(node: Node, rows: Length) -> bool:
    """Whether one small matrix is that of all rows, which are columns of the right-hand side."""
    specs = [x.spec for x in node.inputs]
    if len(specs) != 2 or any(type(s) is not Spec or len(s.shape) != 2 for s in specs):
        return False
    (n, m), columns = specs[0].shape, specs[1].shape[1]
    if type(n) is not int or n != m or n > _MOST_ROWS:
        return False
    if columns == rows:
        return True
    both = type(columns) is int and type(rows) is int
    return both and columns > 0 and columns % rows == 0
