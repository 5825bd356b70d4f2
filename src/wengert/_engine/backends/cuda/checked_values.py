"""Checks of the values that a program computes, for `wengert.debug(nan=True)`.

A value that is NaN or infinite sets the status of the run, which is read once, at its end; then the
run is repeated by the interpreter, which finds the operation and raises the error. Kernels look at
the elements as they compute them, also at those that they do not store; another kernel looks at the
arrays that calls, loops and reductions have stored (run_status.py). As in the interpreter, a
loop or a branch is one operation, and values of derivatives count only in results.

    Sought         what is looked for
    CheckedValues  the expressions of a program whose values are looked at
    CheckedNest    a loop nest that looks at them
    is_repeatable  whether a graph may be run a second time
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import bodies_of
from wengert._engine.core.node import LeafOp

from ..llvm.codegen.loop_nests import LoopNest
from ..llvm.ir.index_analysis import Index
from ..llvm.ir.ir_builder import Section
from ..llvm.ir.llvm_types import BOOL
from ..llvm.ir.scalar_language import Language
from ..llvm.ir.simd_value import ComplexLane, Lane
from ..llvm.lowering.loop_ir import Expr, Reduce
from ..llvm.schedule.fusion import FusedLoops, roots_of
from ..llvm.schedule.scheduling import Schedule, owner_of


class Sought(NamedTuple):
    """Whether NaN is looked for, and whether infinities are."""

    nan: bool
    inf: bool


class CheckedValues:
    """The expressions of a program whose values are looked at.

    Parameters
    ----------
    graph : Graph
    plan : Schedule
        That of the graph.
    sought : Sought

    Attributes
    ----------
    exprs : set of Expr
    """

    def __init__(self, graph: BaseGraph, plan: Schedule, sought: Sought) -> None:
        self.sought = sought
        self.exprs = {owner_of(x) for x in plan.outputs}
        for node in graph.nodes:
            if not node.level and not isinstance(node.op, LeafOp):
                found = plan.exprs.get(node)
                several = found if isinstance(found, tuple) else (found,)
                self.exprs.update([x for x in several if isinstance(x, Expr)])
        self.exprs = {x for x in self.exprs if x.dtype.kind in "fc"}

    def after(
        self, stage: Any, is_computed: bool, parts: Mapping[Any, Sequence[Expr]]
    ) -> set[Expr]:
        """The arrays to be looked at after a stage, which its kernel has not looked at.

        Parameters
        ----------
        is_computed : bool
            Whether its kernel runs; else it gives an array another name.
        parts : mapping
            The results of each call.
        """
        if not isinstance(stage, FusedLoops):
            return self.exprs.intersection(parts.get(stage, ()))
        made = self.exprs.intersection(roots_of(stage))
        return {x for x in made if isinstance(x.rule, Reduce) or not is_computed}


class CheckedNest(LoopNest):
    """A loop nest that looks at the values which it computes.

    Parameters
    ----------
    checked : CheckedValues, optional
        Those that it looks at.
    """

    def __init__(
        self,
        language: Language,
        fused: FusedLoops,
        stored: set[Any],
        checked: CheckedValues | None = None,
    ) -> None:
        self._checked = checked
        super().__init__(language, fused, stored, 0)

    def read(self, expr: Expr, index: Index, mask: Lane | None) -> Any:
        """The element of an expression at an index."""
        found = super().read(expr, index, mask)
        if self._checked is not None and expr in self._checked.exprs and not self._is_stored(expr):
            self._look_at(found, mask)
        return found

    def _is_stored(self, expr: Expr) -> bool:
        return expr.is_root and (
            expr in self._stored
            or expr in self.fused.local
            or not any(expr in group.roots for group in self.fused.groups)
        )

    def _put(self, section: Section, root: Expr, value: Any, index: Index) -> None:
        super()._put(section, root, value, index)
        # The number that a reduction stores may be that of one part.
        if self._checked is not None and root in self._checked.exprs:
            is_part = isinstance(root.rule, Reduce) and root in self._stored
            if not is_part:
                self._look_at(value, None, section)

    def _look_at(self, value: Any, mask: Lane | None, section: Section | None = None) -> None:
        """Set the status if a value is not finite; by default where it has been computed."""
        if value.section is None:
            return  # a constant
        assert self._checked is not None
        names = (value.real.name, value.imag.name) if type(value) is ComplexLane else value.name
        key = "finite", names, None if mask is None else mask.name
        if key in self._memo:
            return
        s: Any = self.language
        nan, inf = self._checked.sought
        found = [kind(value) for kind, is_sought in ((s.isnan, nan), (s.isinf, inf)) if is_sought]
        flag = found[0]
        for other in (*found[1:],):
            flag = s.emit("or", BOOL, flag, other)
        if mask is not None:
            flag = s.emit("and", BOOL, flag, mask)
        self._memo[key] = flag
        place = flag.section if section is None else section
        with place.when(flag.name) as then:
            self.fail(then)


def is_repeatable(graph: BaseGraph) -> bool:
    """Whether a graph may be run a second time: it has no side effects, and sends no messages."""
    for node in graph.nodes:
        effects = node.op.effects
        if (effects.side_effect and not effects.only_if_true) or node.op.kind == "collective":
            return False
        if not all(map(is_repeatable, bodies_of(node))):
            return False
    return True
