"""Diagonal structure: entries that are computed directly, without seeds.

Most sparse derivatives are of functions that read neighbors and compute elementwise.  Then the
derivatives of a node are a few arrays of the node's shape: a *diagonal* is an array of derivatives
and, known at trace time, the input element that each is taken with respect to (-1 for none).  There
are no products with the ones and zeros of seeds, nor zeros times an infinite partial derivative.

Elementwise operations use their forward rules, one diagonal at a time, those with equal numbers
together; operations that move elements move a diagonal with its numbers.  Where elements are summed
or added at index arrays, the derivatives are kept one by one (scattered_entries.py).  If the graph
has any other operation, or more diagonals than there would be passes, the result is None, and the
entries are computed by passes (compression.py).

    diagonals        of the outputs of a function
    PushedDiagonals  those of one node, from those of its operands
    middle           the mean of the numbers of a diagonal, by which diagonals are ordered
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.forward import settle
from wengert._engine.autodiff.infinities import TracedGuards
from wengert._engine.autodiff.pullback import Result
from wengert._engine.autodiff.reverse import handles_of
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.op import RuleContext, lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import derivation
from wengert._engine.core.uniform_arrays import uniform

from . import array_rules
from .propagation import rule_of
from .rule_context import NodeContext, Numbers, size_of
from .scattered_entries import Diagonal, Scattered, added_entries, pushed_entries

Side = list[Diagonal | Scattered] | None


class Piece(NamedTuple):
    """Some concatenated outputs, and their diagonals."""

    size: int
    diagonals: list[Diagonal | Scattered]


def diagonals(result: Result, sizes: Sequence[int], limit: int, entries: int) -> list[Piece] | None:
    """The diagonals of the outputs; None if some cannot be computed, or a node has too many.

    Parameters
    ----------
    result : Result
        The result of the function.
    sizes : sequence of int
        Sizes of its outputs.
    limit : int
        Maximum number of diagonals of a node.
    entries : int
        Maximum number of derivatives of a node that are kept one by one.

    Notes
    -----
    Outputs that are concatenations are kept as separate pieces, so that the origin of each element
    need not be searched for.
    """
    tape = result.tape
    known: dict[Node, list[Diagonal | Scattered]] = {}
    first = 0
    for node in result.targets:
        spec = node.spec
        by = np.arange(first, first + spec.size).reshape(spec.shape)
        known[node] = [Diagonal(by, uniform(Spec(spec.shape, spec.dtype), 1))]
        first += spec.size
    live = [n for n in result.out_nodes if type(n) is Node]
    plan = TracedGuards(tape, RuleContext(tape.wanted, True), {})
    level = 1 + max((n.level for n in live), default=0)
    with derivation(level) as stem, np.errstate(all="ignore"):
        for node in tape.nodes:
            sides: list[Side] = [known.get(a) if type(a) is Node else None for a in node.args]
            if node in known or not any(sides):
                continue
            stem.enter(node)
            made = PushedDiagonals(node, sides, plan, stem).derivatives(limit, entries)
            if made is None:
                return None
            known[node] = made
    pieces: list[Piece] = []
    for out, size in zip(result.out_nodes, sizes, strict=True):
        if type(out) is Node:
            pieces += [_cast(p, known.get(p, []), out.spec.dtype) for p in _pieces(out)]
        else:  # the same in every run, or an integer
            pieces.append(Piece(size, []))
    return pieces


def _cast(node: Node, found: list[Diagonal | Scattered], dtype: Any) -> Piece:
    """A piece in the dtype of its output."""
    if node.spec.dtype != dtype:
        found = [d._replace(dot=lookup("cast")(d.dot, dtype=dtype)) for d in found]
    return Piece(size_of(node.spec), found)


def _pieces(node: Node) -> list[Node]:
    """The nodes whose concatenation is a node."""
    is_joined = not isinstance(node.op, LeafOp) and node.op.name == "concatenate"
    axis = node.params.get("axis") if is_joined else None
    if axis is None or axis % len(node.spec.shape) != 0:
        return [node]
    return [piece for a in node.inputs for piece in _pieces(a)]


class PushedDiagonals:
    """One node, and the diagonals of its operands."""

    def __init__(self, node: Node, sides: list[Side], plan: TracedGuards, stem: Any) -> None:
        self._node, self._plan, self._stem = node, plan, stem
        self._ctx = NodeContext(node, [side or None for side in sides], 0)
        self._sides = [[d for d in side or () if isinstance(d, Diagonal)] for side in sides]
        self._one_by_one = [[d for d in side or () if isinstance(d, Scattered)] for side in sides]

    def derivatives(self, limit: int, entries: int) -> list[Diagonal | Scattered] | None:
        """The diagonals of the result, and derivatives one by one; None if there are too many."""
        made: list[Diagonal | Scattered] = []
        if any(self._sides):
            found = self.diagonals(limit)
            if found is None or len(found) > limit:
                scattered = added_entries(self._ctx, self._sides)
                if scattered is None:
                    return None
                made += scattered
            else:
                made += found
        if any(self._one_by_one):
            pushed = pushed_entries(self._ctx, self._one_by_one, self._plan, self._stem, entries)
            if pushed is None:
                return None
            made += pushed
        count = sum(d.by.size for d in made if isinstance(d, Scattered))
        return made if count <= entries else None

    def diagonals(self, limit: int) -> list[Diagonal] | None:
        """The diagonals of the result, by the rule of the operation."""
        op: Any = self._node.op
        if type(self._node.spec) is not Spec or not op.has_jvp:
            return None
        rule = rule_of(op)
        if rule is array_rules.elementwise:
            return self._elementwise()
        if rule in (array_rules.choosing, array_rules.placed):
            numbers = array_rules.numbers_of(self._ctx)
            return None if numbers is None else self._moved(numbers)
        if rule is array_rules.identity:
            return self._moved(self._ctx.numbers(0))
        if rule is array_rules.adding:
            return self._added()
        if op.name in ("sum", "mean"):
            return self._summed(limit)
        if rule is array_rules.contraction:
            return self._contracted(limit)
        return None

    def _push(self, dots: list[Any], moved: bool = False) -> Any:
        """The tangent of the node."""
        node, op = self._node, self._ctx.op
        masked = self._plan.masked
        context = self._plan.forwards(node, dots, self._stem)
        if moved and not any(a in masked for a in node.args_as_nodes()):
            masked.discard(node)  # zeros next to moved elements belong to no entry
        out, inputs = handles_of(node)
        dot = op.jvp(node, dots, out, inputs, context)
        return None if dot is None else settle(dot, node, True)

    def groups(self) -> list[DiagonalGroup]:
        """The diagonals of the operands of an elementwise operation, by equal numbers."""
        together: list[DiagonalGroup] = []
        for k, side in enumerate(self._sides):
            for diagonal in side or ():
                by = np.broadcast_to(diagonal.by, self._ctx.shape)
                _group(together, by, diagonal.clean, len(self._sides)).add(k, diagonal.dot)
        return together

    def _elementwise(self) -> list[Diagonal]:
        made = []
        for group in self.groups():
            dot = self._push(group.dots)
            if dot is not None:
                clean = group.clean and (self._ctx.op.bounded or bool(np.all(group.by >= 0)))
                made.append(Diagonal(group.by, dot, clean))
        return made

    def _moved(self, numbers: Numbers) -> list[Diagonal]:
        """Pair the diagonals of joined operands in the order of their numbers."""
        ctx = self._ctx
        sides = [sorted(self._sides[k] or (), key=middle) for k in ctx.moving]
        made = []
        for p in range(max(map(len, sides))):
            dots: list[Any] = [None] * len(ctx.sets)
            by = [np.zeros(1, np.int64) - 1]
            for k, side in zip(ctx.moving, sides, strict=True):
                if p < len(side):
                    dots[k] = side[p].dot
                    by.append(side[p].by.ravel())
                else:
                    by.append(np.full(ctx.numbers(k).size, -1))
            moved = np.concatenate(by)[numbers]
            if np.any(moved >= 0):
                clean = all(side[p].clean for side in sides if p < len(side))
                made.append(Diagonal(moved, self._push(dots, moved=True), clean))
        return made

    def _added(self) -> list[Diagonal] | None:
        """Move elements to distinct positions."""
        groups = array_rules.groups_of(self._ctx)
        if groups is None or len(np.unique(groups)) < groups.size:
            return None
        made = []
        for diagonal in self._sides[0] or ():
            by = np.full(self._ctx.size, -1)
            by[groups.ravel()] = diagonal.by.ravel()
            dots = [diagonal.dot, *([None] * (len(self._sides) - 1))]
            made.append(
                Diagonal(by.reshape(self._ctx.shape), self._push(dots, moved=True), diagonal.clean)
            )
        return made

    def _summed(self, limit: int) -> list[Diagonal] | None:
        """A sum of a few elements along one axis: each gives a diagonal."""
        ctx = self._ctx
        axis, shape = ctx.params.get("axis"), ctx.specs[0].shape
        side = self._sides[0] or ()
        if not isinstance(axis, int) or not shape or shape[axis] * len(side) > limit:
            return None
        together: list[DiagonalGroup] = []
        for diagonal in side:
            for k in range(shape[axis]):
                index = tuple(
                    [k if a == axis % len(shape) else slice(None) for a in range(len(shape))]
                )
                dot = lookup("getitem")(diagonal.dot, index=index)
                if ctx.op.name == "mean":
                    dot = dot / shape[axis]
                if dot.shape != ctx.shape:  # keepdims
                    dot = lookup("reshape")(dot, shape=ctx.shape)
                by = diagonal.by[index].reshape(ctx.shape)
                group = _group(together, by, diagonal.clean, 1)
                group.add(0, settle(dot, self._node, True))
        return [Diagonal(g.by, g.dots[0], g.clean) for g in together]

    def _contracted(self, limit: int) -> list[Diagonal] | None:
        """A sum of a few products: each gives a diagonal."""
        ctx = self._ctx
        *words, result = ctx.op.subscripts(*[len(s.shape) for s in ctx.specs], **ctx.params)
        _, inputs = handles_of(self._node)
        together: list[DiagonalGroup] = []
        for k, side in enumerate(self._sides):
            gone = [c for c in words[k] if c not in result]
            lengths = [ctx.specs[k].shape[words[k].index(c)] for c in gone]
            if math.prod(lengths) * len(side or ()) > limit or self._stretches(words, gone):
                return None
            for diagonal in side or ():
                dots = [diagonal.dot if i == k else None for i in range(len(words))]
                if self._plan.forwards(self._node, dots, self._stem).guarded:
                    return None  # guarded products (0 * inf is 0): computed by passes
                for at_ in product(*map(range, lengths)):
                    fixed = dict(zip(gone, at_, strict=True))
                    given = [diagonal.dot if i == k else x for i, x in enumerate(inputs)]
                    parts = [_slice(x, w, fixed) for x, w in zip(given, words, strict=True)]
                    left = ["".join(c for c in w if c not in fixed) for w in words]
                    dot = lookup("einsum")(*parts, subscripts=(*left, result))
                    by = _slice(diagonal.by, words[k], fixed)
                    axes = [left[k].index(c) if c in left[k] else None for c in result]
                    by = np.broadcast_to(array_rules.placed_axes(by, axes), ctx.shape)
                    group = _group(together, by, bool(np.all(by >= 0)), 1)
                    group.add(0, settle(dot, self._node, True))
        return [Diagonal(g.by, g.dots[0], g.clean) for g in together]

    def _stretches(self, words: list[str], subscripts: list[str]) -> bool:
        """Whether a subscript has length one in one operand and more in another."""
        lengths: dict[str, set[int]] = {}
        for word, spec in zip(words, self._ctx.specs, strict=True):
            for c, n in zip(word, spec.shape, strict=True):
                lengths.setdefault(c, set()).add(n)
        return any(len(lengths[c]) > 1 for c in subscripts)


def _slice(x: Any, word: str, fixed: dict[str, int]) -> Any:
    """An operand at given values of some subscripts."""
    index = tuple([fixed.get(c, slice(None)) for c in word])
    return x[index] if fixed and any(c in fixed for c in word) else x


class DiagonalGroup:
    """Diagonals of the operands of a node with equal numbers, where both have one."""

    def __init__(self, by: Numbers, clean: bool, count: int) -> None:
        self.by, self.clean = by, clean
        self.dots: list[Any] = [None] * count

    def takes(self, by: Numbers, clean: bool) -> bool:
        """Whether a diagonal may be added: where both have a number, it is the same."""
        if np.array_equal(self.by, by):
            return True
        fits = clean and self.clean
        return fits and bool(np.all((self.by == by) | (self.by < 0) | (by < 0)))

    def add(self, k: int, dot: Any) -> None:
        """Add the contribution of operand k."""
        before = self.dots[k]
        self.dots[k] = dot if before is None else before + dot


def _group(together: list[DiagonalGroup], by: Numbers, clean: bool, count: int) -> DiagonalGroup:
    """The group that a diagonal belongs to, an existing one or a new one."""
    for group in together:
        if group.takes(by, clean):
            group.by = np.maximum(group.by, by)
            group.clean = group.clean and clean
            return group
    together.append(DiagonalGroup(by, clean, count))
    return together[-1]


def middle(diagonal: Diagonal) -> float:
    """The mean of the numbers of a diagonal."""
    inside = diagonal.by[diagonal.by >= 0]
    return float(inside.mean()) if inside.size else 0.0
