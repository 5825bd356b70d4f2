"""Guards: where a derivative written into a graph is protected against 0 * inf.

A branch that is not taken has the cotangent zero, and whatever that zero is multiplied with, zero
it has to stay (docs/conventions.md, 4).  Where values are known, a sweep that ends in NaN is run
again with all zeros strong; here lines have no values, so the sweep decides from the lines.

    Traced     which rules of a sweep are called guarded, and which zeros later ones are told of
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.apply import Parts
from ..core.handle import Handle, value_of
from ..core.node import Node
from ..core.op import Sweep, linear_in
from .tape import Tape

_PRODUCTS = ("elementwise", "contraction")


class Traced:
    """What a sweep has to decide where values are not known: where to guard against 0 * inf.

    Strong zeros cost time in a graph that runs often, so they are written only where a partial can
    be singular, or where the (co)tangent can be exactly zero because something was not chosen: by
    an operation on the way, or by a seed that is known and has zeros (a row of a Jacobian).

    What is made of a (co)tangent that can be zero because something was not chosen is noted at its
    lines (`Derivation.linear`).  The next derivative is then zero there too, in whatever order its
    factors come: t * p gives p the cotangent s * t, which is zero with t though s be infinite.
    """

    __slots__ = ("guarded", "masked", "open")

    def __init__(self, tape: Tape, sweep: Sweep, seeds: Mapping[Node, Any]) -> None:
        self.masked: set[Node] = {n for n, t in seeds.items() if _has_zeros(t)}
        self.open = replace(sweep, masked=self.masked)
        self.guarded = replace(self.open, guarded=True)

    def backwards(self, node: Node, t: Any, stem: Any) -> Sweep:
        """How to call the reverse rule of a line whose cotangent is `t`."""
        op: Any = node.op
        chosen, strong = node in self.masked, linear_in(node)
        if chosen or op.masks or (strong and op.name == "strong_zero"):
            self.masked.update(node.args_as_nodes())
        elif strong and op.kind in _PRODUCTS and not getattr(op, "bounded", False):
            others = [a for k, a in enumerate(node.args) if any(j != k for j in strong)]
            self.masked.update(a for a in others if isinstance(a, Node))
        return self._sweep_at(node, _lines_of(t) if chosen else (), strong, stem)

    def forwards(self, node: Node, dots: Sequence[Any], stem: Any) -> Sweep:
        """How to call the forward rule of a line whose operands have the tangents `dots`."""
        op: Any = node.op
        strong = linear_in(node)
        pairs = zip(node.args, dots, strict=True)
        chosen = [d for a, d in pairs if d is not None and a in self.masked]
        # Beside the tangents of an operand that is put together with a constant stand zeros.
        joined = op.kind == "indexing" and any(d is None for d in dots)
        if chosen or strong or op.masks or joined:
            self.masked.add(node)
        return self._sweep_at(node, [n for d in chosen for n in _lines_of(d)], strong, stem)

    def _sweep_at(
        self, node: Node, chosen: Sequence[Node], strong: Sequence[int], stem: Any
    ) -> Sweep:
        op: Any = node.op
        stem.linear.update(chosen)
        if strong:
            stem.linear.add(node)
            stem.linear.update([node.args[j] for j in strong])
        singular = op.singular if type(op.singular) is bool else op.singular(node)
        return self.guarded if chosen or strong or singular else self.open


def _lines_of(t: Any) -> list[Node]:
    """The lines of a (co)tangent, of several results if it is of several."""
    many = t.values() if type(t) is Parts else t if type(t) is tuple else (t,)
    return [x.node for x in many if isinstance(x, Handle)]


def _has_zeros(t: Any) -> bool:
    t = value_of(t)
    return isinstance(t, np.ndarray | np.generic) and bool(np.any(t == 0))
