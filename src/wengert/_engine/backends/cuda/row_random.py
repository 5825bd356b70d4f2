"""Random numbers and keys in loops by rows: stochastic simulations of a batch.

A number is a function of a key and a position, so each row computes its own: with a key for each
row, or, of numbers for all rows from one key, those of its part.

    RowDraw     a draw, or keys from a key
    row_draw    the draw that a call is, or None
    write_draw  its code for one row
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert._engine.backends.llvm.kernels.philox import block, schedule
from wengert._engine.ops.random.bits import FOLD, SPLIT

from ..llvm.ir.index_analysis import Length
from ..llvm.ir.ir_builder import Name, Section
from ..llvm.lowering.loop_ir import Expr
from ..llvm.lowering.registry import specs_of
from .draw_chains import at, loaded
from .random_kernels import BLOCK_BYTES, SCALES, store_number
from .row_stages import Sharing

_SPLIT, _FOLD = "random_split", "random_fold"
_MOST_NUMBERS = 4096  # numbers of a row in a step


@dataclass(frozen=True)
class RowDraw:
    """A draw.

    Attributes
    ----------
    stage : Expr
        The call: a state or a key, and of `random_fold` an integer.
    name : str
        Of the operation.
    own : tuple of bool
        Of each operand: whether there is one for each row.
    by_rows : bool
        Whether the result has rows.
    each : int
        The number of numbers (or keys) of a row.
    shape : tuple of Length
    dtype : numpy.dtype
        Of the result.
    """

    stage: Expr
    name: str
    own: tuple[bool, ...]
    by_rows: bool
    each: int
    shape: tuple[Length, ...]
    dtype: np.dtype[Any]


def row_draw(stage: Expr, rows: Length, kinds: Sequence[Sharing]) -> RowDraw | None:
    """The draw that a call is, or None."""
    node = stage.node
    (spec, *_) = specs_of(node)
    name, shape, dtype = node.op.name, tuple(spec.shape), spec.dtype
    of_keys = name in {_SPLIT, _FOLD}
    if not of_keys and (name, dtype.str[1:]) not in SCALES:
        return None
    if not {*kinds} <= {Sharing.SHARED, Sharing.PRIVATE, Sharing.ROWS}:
        return None
    key = stage.operands[0]
    own = tuple([bool(x.shape[: len(x.shape) - (x is key)] == (rows,)) for x in stage.operands])
    expected = [(rows,) if o else () for o in own]
    given = [x.shape[: len(x.shape) - (x is key)] for x in stage.operands]
    if given != expected or any(
        k is Sharing.ROWS and not o for k, o in zip(kinds, own, strict=True)
    ):
        return None
    by_rows = bool(shape[:1] == (rows,))
    inner = shape[by_rows:]
    if any(type(n) is not int for n in inner) or (any(own) and not by_rows):
        return None
    each = math.prod(inner) // (2 if of_keys else 1)
    return None if each > _MOST_NUMBERS else RowDraw(stage, name, own, by_rows, each, shape, dtype)


def write_draw(
    s: Section, draw: RowDraw, operands: Sequence[Name], target: Name, row: Name
) -> None:
    """The numbers of one row.

    Parameters
    ----------
    operands : sequence of Name
        The addresses of the operands; of those of each row, the row's own.
    target : Name
        The address of the row's numbers.
    """
    params, (state, *others) = draw.stage.node.params, draw.stage.operands
    words = [loaded(s, operands[0], str(k)) for k in range(int(state.shape[-1]))]
    keys = schedule(s, words[:2])
    # Numbers of all rows from one key: those of the row begin at its number times theirs.
    is_part = draw.by_rows and not any(draw.own)
    first = s.times(row, str(draw.each)) if is_part else "0"
    if draw.name == _FOLD:
        number = _integer(s, operands[1], others[0].dtype)
        _store_key(s, block(s, "1", number, keys, space=FOLD), target, "0")
        return
    if draw.name == _SPLIT:
        with s.loop("0", str(draw.each)) as (t, k):
            counter = t.value(f"add i64 {t.plus(first, k)}, 1")
            _store_key(t, block(t, counter, "0", keys, space=SPLIT), target, k)
        return
    position = words[2] if len(words) == 3 else "0"
    shift = np.uint64(params["number"] % (1 << 64)).astype(np.int64)
    position = s.value(f"add i64 {position}, {shift}")
    _write_numbers(s, draw, keys, position, (first, target))


def _write_numbers(
    s: Section, draw: RowDraw, keys: Any, position: Name, where: tuple[Name, Name]
) -> None:
    """The numbers from the first on, block by block."""
    first, target = where
    per_block = BLOCK_BYTES // draw.dtype.itemsize
    stop = s.plus(first, str(draw.each))
    begin = s.value(f"udiv i64 {first}, {per_block}")
    end = s.value(f"udiv i64 {s.value(f'add i64 {stop}, {per_block - 1}')}, {per_block}")
    with s.loop(begin, end) as (t, b):
        made = block(t, t.value(f"add i64 {b}, 1"), position, keys)
        start = t.value(f"mul i64 {b}, {per_block}")
        for k in range(per_block):
            word = made[k * 4 // per_block]
            if per_block == 8:  # two numbers of each word, the lower half first
                half = word if k % 2 == 0 else t.value(f"lshr i64 {word}, 32")
                word = t.value(f"trunc i64 {half} to i32")
            place = t.value(f"add i64 {start}, {k}")
            after = t.value(f"icmp sge i64 {place}, {first}")
            before = t.value(f"icmp slt i64 {place}, {stop}")
            with t.when(t.value(f"and i1 {after}, {before}")) as u:
                index = u.minus(place, first)
                store_number(u, draw.name, draw.dtype, word, index, target)


def _integer(s: Section, address: Name, dtype: np.dtype[Any]) -> Name:
    kind = f"i{8 * dtype.itemsize}"
    value = s.value(f"load {kind}, ptr {address}")
    if kind == "i64":
        return value
    return s.value(f"{'sext' if dtype.kind == 'i' else 'zext'} {kind} {value} to i64")


def _store_key(s: Section, words: Sequence[Name], target: Name, number: Name) -> None:
    for k, word in enumerate(words[:2]):
        place = s.plus(s.times(number, "2"), str(k))
        s.write(f"store i64 {word}, ptr {at(s, target, place)}")
