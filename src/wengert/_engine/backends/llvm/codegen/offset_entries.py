"""Offset entries: constant offsets of reads as part of the addresses in the table of a nest.

An unrolled loop gives nests that differ only in the elements of an array that they read.  With the
offset in the address that the caller passes, they have the same text, and are emitted once.  Other
nests keep offsets in their code, where they cost nothing and need no register.

    OffsetEntries    reads of such nests
"""

from __future__ import annotations

from typing import Any

from ..ir.affine import Index, offset_of
from ..ir.simd_value import Lane
from ..lowering.loop_ir import Expr
from .elements import Elements


class OffsetEntries(Elements):
    """Elements, read through entries `(expression, offset)` of the table.

    Attributes
    ----------
    has_offset_entries : bool
        Whether it has them: a run goes through it once, in a few steps.
    """

    has_offset_entries = False

    def _load(self, expr: Expr, index: Index, mask: Lane | None) -> Any:
        form = offset_of(index, self._strides(expr))
        shift = form.offset
        if (
            not self.has_offset_entries
            or type(shift) is not int
            or shift == 0
            or expr in self._own
            or expr in self.partial
            or expr in self.fused.local
        ):
            return super()._load(expr, index, mask)
        pointer = self._entry((expr, shift))
        return self._load_from(expr, *self._split(form.plus(-shift)), mask, pointer)
