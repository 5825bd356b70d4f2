"""Straight: small arrays in registers: walks one after the other, without loops.

What a step of a loop does with three numbers is no matter of vectors: packing them into memory and
reading them back takes longer than the arithmetic.  So walks over a few elements are written out,
element by element; what one gives and the next one reads stays in a register.

    Straight       the function
    is_straight    whether a walk may be part of one
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from .accumulators import accumulator
from .assembly import Function
from .elements import Elements
from .forms import ZERO, Affine, Flat, Index, is_one, offset_of, strides_of
from .gathers import Gather
from .items import Condition, Held, Item, Map, Number, Part, Position, Reduce, Select, View
from .language import Language
from .lowering.onehot import OneHot
from .spaces import Space
from .walks import Walk, roots_of, space_of

_ELEMENTS = 64  # of what is written out
_TERMS = 512  # of what is combined
_WORK = 3000  # of one walk
_DEAR, _SEVERAL = 30, 8  # so much work on so many elements is better done in vectors
_RULES = (Map, View, Select, Position, Number, Held, Reduce, Part, Gather, OneHot)


def is_straight(walk: Walk) -> bool:
    """Whether a walk is over few elements, and made of what can be written out."""
    work = 0
    for root in roots_of(walk):
        space = space_of(root)
        if any(type(n) is not int for n in (*space, *root.shape)):
            return False
        count = int(np.prod(space))
        if count > (_TERMS if isinstance(root.rule, Reduce) else _ELEMENTS):
            return False
        if root.weight > _DEAR and count >= _SEVERAL:
            return False
        work += count * (1 + root.weight)
        if not _is_plain(root):
            return False
    return work <= _WORK


def _is_plain(root: Item) -> bool:
    seen = {root}
    pending = [root]
    while pending:
        x = pending.pop()
        if type(x.rule) not in _RULES or any(type(n) is not int for n in x.shape):
            return False
        if x is not root and x.is_root:
            continue
        for y in x.operands:
            if y not in seen:
                seen.add(y)
                pending.append(y)
    return True


class Straight(Elements):
    """Walks one after the other, as a function of a table.

    Parameters
    ----------
    language : Language
    walks : sequence of Walk
    stored : container of Item
        What is to be in memory, at once.
    last : collection of Item
        What is to be in memory, when everything has been read.
    """

    def __init__(
        self, language: Language, walks: Sequence[Walk], stored: Any, last: Collection[Item]
    ) -> None:
        function = Function(
            language.module, "nest", [("ptr", "table")], "void", "alwaysinline nounwind #1"
        )
        sweeps = [s for w in walks for s in w.sweeps]
        super().__init__(language, function, Walk(sweeps), stored)
        self.space = Space((), (), None, 1)
        self._last = last
        self._waiting: list[tuple[Item, Any, Index]] = []
        for root in [r for s in sweeps for r in s.roots]:
            if isinstance(root.rule, Reduce):
                self._combine(root)
            else:
                for index in _indices(root.shape):
                    self._keep(root, root.rule.value(self, root, index, None), index)
        for root, value, index in self._waiting:
            self._put(self._head, root, value, index)
        self._give_back()
        self.function.body.write("ret void")

    def _keep(self, root: Item, value: Any, index: Index) -> None:
        value = self.language.cast(value, root.dtype)
        self._memo[root, index, None] = value
        if root in self._last:
            self._waiting.append((root, value, index))
        elif root in self._stored:
            self._put(self._head, root, value, index)

    def _combine(self, root: Item) -> None:
        (x,) = root.operands
        rule: Any = root.rule
        kept = [1 if k in rule.axes else n for k, n in enumerate(x.shape)]
        inner = [n if k in rule.axes else 1 for k, n in enumerate(x.shape)]
        lengths = [x.shape[k] for k in rule.axes]
        for index in _indices(kept):
            one = accumulator(self.language, self._head, rule.monoid, x.dtype, 1, False)
            for moved in _indices(inner):
                place = tuple(
                    a if k not in rule.axes else b
                    for k, (a, b) in enumerate(zip(index, moved, strict=True))
                )
                value = self.read(x, place, None)
                if rule.monoid.startswith("arg"):
                    along = tuple(place[k] for k in rule.axes)
                    value = value, self.lane_of(offset_of(along, strides_of(lengths)))
                one.step(self._head, value, None)
            one.flush(self._head)
            self._keep(root, one.result(self._head, False), index)

    def read(self, item: Item, index: Index, mask: Any) -> Any:
        """The element of an item at an index of numbers."""
        if isinstance(index, Flat):
            place = np.unravel_index(int(index.form.offset), item.shape)
            index = tuple([Affine(int(k), ()) for k in place])
        return super().read(item, index, mask)

    def all_of(self, conditions: Sequence[Condition]) -> Any:
        """Whether all conditions hold: None if they do, and else False."""
        held = all(c.low <= c.form.offset < c.high for c in conditions)
        return None if held else False


def _indices(shape: Sequence[Any]) -> list[tuple[Affine, ...]]:
    ones = [is_one(n) for n in shape]
    return [
        tuple([ZERO if one else Affine(k, ()) for k, one in zip(place, ones, strict=True)])
        for place in np.ndindex(*shape)
    ]
