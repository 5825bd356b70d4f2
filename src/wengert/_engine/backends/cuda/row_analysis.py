"""Loops by rows: which loops of a batch are independent for each row of the batch.

A loop over a batch (`vmap` of a loop) has a carry whose first axis is the batch. Where each row of
a step depends only on the same row of the step before, rows need not wait for each other, and a
thread runs all steps of a row. Which elements are read is known from the index of each access, so
nothing is assumed of the program. row_stages.py has the kinds of arrays.

    row_loop    the analysis of a loop; NotByRows if its rows depend on each other
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from wengert._engine.core.graph_classes import Body
from wengert._engine.core.node import Node
from wengert._engine.core.op_facts import BRANCH, LOOP
from wengert._engine.core.symbolic.dim import is_open

from ..llvm.ir.index_analysis import FlatIndex, Index, Length, counter, counters, is_one, size_of
from ..llvm.lowering.gathers import Gather
from ..llvm.lowering.loop_ir import CallResult, Expr, Reduce, Stored
from ..llvm.lowering.scatter_chains import SliceUpdate
from ..llvm.schedule.fusion import FusedLoops, LoopGroup, role_of, space_of
from ..llvm.schedule.scheduling import Schedule, owner_of
from .row_conditions import OwnSteps, ends_by_rows, row_bodies, steps_of_rows
from .row_linearity import is_linear
from .row_matrices import row_matrices, with_own_systems
from .row_memory import row_store
from .row_random import row_draw
from .row_stages import OWN, NotByRows, RowBody, RowBranch, RowGroup, RowLoop, Sharing, has_rows

Options = tuple[Length, Container[str]]  # the batch, and operations without code of elements
_MOST_PARTIAL = 1024  # numbers of a partial array, of which each row has a copy


class _SumOverRows(Exception):
    """A carry is a sum over rows as well; the argument is the number of the input."""


def row_loop(
    params: Mapping[str, Any],
    rows: Length,
    opaque: Container[str],
    stage: Expr | None = None,
    given: Sequence[Sharing] | None = None,
) -> RowLoop:
    """The analysis of a loop.

    Parameters
    ----------
    params : mapping
        Of the operation.
    rows : Length
        The length of the batch.
    opaque : container of str
        Operations without code of elements.
    stage, given
        Of a loop inside another one: its call, and the kinds of its operands without the count.

    Raises
    ------
    NotByRows
    """
    found = row_bodies(params, rows, with_results=stage is not None)
    if found is None:
        raise NotByRows("the condition of a loop")
    body, condition = found
    carried, stacked = params["carried"], params.get("stacked", 0)
    fixed = len(body.inputs) - carried - stacked
    kinds = list(given) if given is not None else [Sharing.SHARED] * len(body.inputs)
    before = kinds[:fixed]
    xs = [_kind_of_row(k) for k in kinds[fixed + carried :]]
    starts = kinds[fixed : fixed + carried]
    made = _settled(body, (rows, opaque), before, starts, xs)
    after = made.outputs()[:carried]
    for kind, start in zip(after, starts, strict=True):
        begins = start is Sharing.PRIVATE and kind is Sharing.PARTIAL
        if start not in (kind, Sharing.SHARED) and not begins:
            raise NotByRows("the start of a carry")
    if given is not None and {*made.outputs()[carried:]} & {Sharing.PARTIAL, Sharing.LONGEST}:
        raise NotByRows("a sum over rows in each step of a loop inside")
    test = None
    if condition is not None:
        test = _body(condition, (rows, opaque), [*before, *after])
        if test.outputs()[0] in (Sharing.PARTIAL, Sharing.LONGEST):
            raise NotByRows("a condition of a sum over rows")
    return RowLoop(stage, params, made, test)


def _settled(
    body: Body,
    options: Options,
    before: Sequence[Sharing],
    starts: Sequence[Sharing],
    xs: Sequence[Sharing],
) -> RowBody:
    """The body of a loop, whose carry is of the same kinds before and after a step."""
    carry = [Sharing.PARTIAL if k is Sharing.PARTIAL else None for k in starts]
    first = len(before)
    while True:
        try:
            made = _body(body, options, [*before, *carry, *xs], range(first, first + len(carry)))
        except _SumOverRows as found:
            carry[found.args[0] - first] = Sharing.PARTIAL
            continue
        inside = [made.kinds[x] for x in made.plan.inputs[first : first + len(carry)]]
        changed = False
        for k, (kind, old) in enumerate(zip(made.outputs(), inside, strict=False)):
            if kind is not old:
                if kind is not Sharing.PARTIAL or old is Sharing.ROWS:
                    raise NotByRows("a carry changes from step to step")
                carry[k], changed = Sharing.PARTIAL, True
        if not changed:
            return made


def _kind_of_row(kind: Sharing) -> Sharing:
    """The kind of a row along the first axis."""
    if kind is Sharing.STACK:
        return Sharing.ROWS
    if kind in (Sharing.SHARED, Sharing.PRIVATE):
        return kind
    raise NotByRows("a loop over the batch")


def _stacked(kind: Sharing) -> Sharing:
    """The kind of the results of all steps."""
    if kind is Sharing.STACK:
        raise NotByRows("loops of loops of loops")
    return Sharing.STACK if kind is Sharing.ROWS else kind


def _body(
    body: Body, options: Options, given: Sequence[Sharing | None], carry: range = range(0)
) -> RowBody:
    """The analysis of a body; inputs of no kind are written: by rows, or private."""
    return _BodyAnalysis(body, options, given, carry).made()


class _BodyAnalysis:
    """The analysis of one body."""

    def __init__(
        self, body: Body, options: Options, given: Sequence[Sharing | None], carry: range
    ) -> None:
        self.rows, self.opaque = self.options = options
        self.body = body = with_own_systems(body, self.rows)
        self.given, self.carry = given, carry
        self.plan = Schedule(body, separate=True, opaque=self.opaque)
        self.kinds: dict[Expr, Sharing] = {}
        self.ended: set[Expr] = set()  # loops whose rows end by themselves
        for x, kind in zip(self.plan.inputs, given, strict=True):
            self.kinds[x] = self._written(x) if kind is None else kind
            if kind is Sharing.PRIVATE and has_rows(x, self.rows):
                raise NotByRows("rows of a private array")

    def made(self) -> RowBody:
        """The analysis.

        Raises
        ------
        NotByRows
        """
        stages = []
        for stage in self.plan.stages:
            if isinstance(stage, FusedLoops):
                stages.append(self._group(stage.groups[0]))
            else:
                stages.append(self._call(stage))
        for x in self.plan.outputs:
            if x not in self.kinds:
                raise NotByRows("a result that is an operand")
            if self.kinds[x] is Sharing.LONGEST and not isinstance(x.rule, Reduce):
                raise NotByRows("the number of steps of all rows")
        return RowBody(self.plan, tuple(stages), self.kinds, self.body)

    def _written(self, x: Expr) -> Sharing:
        """The kind of an array that is written in each step."""
        if has_rows(x, self.rows):
            return Sharing.ROWS
        if any(n == self.rows for n in x.shape):
            raise NotByRows("the batch is another axis")
        return Sharing.PRIVATE

    # ---- loop groups ---------------------------------------------------------------------------

    def _group(self, group: LoopGroup) -> RowGroup:
        by_rows = bool(group.space) and bool(group.space[0] == self.rows)
        sums = by_rows and group.reduced is not None and 0 in group.reduced
        if sums and role_of(group, 1) not in ("all", "columns"):
            raise NotByRows("a sum over rows and other axes")
        if any(is_open(n) for n in group.space):
            raise NotByRows("an array of an unknown number of steps")
        for root in group.roots:
            if isinstance(root.rule, SliceUpdate):
                raise NotByRows("a slice that is overwritten")
            read = set(self._read(root, by_rows))
            if any(self.kinds[x] is Sharing.LONGEST for x in read):
                if by_rows or root.shape or root.dtype.kind not in "iu":
                    raise NotByRows("the number of steps of all rows")
                self.kinds[root] = Sharing.LONGEST
                continue
            partial = {x for x in read if self.kinds[x] is Sharing.PARTIAL}
            if partial and (by_rows or not is_linear(root, partial)):
                self._become_sums(root, read - partial)
                raise NotByRows("a function of a sum over rows")
            if sums and isinstance(root.rule, Reduce):
                self.kinds[root] = self._summed(root)
            elif by_rows and not has_rows(root, self.rows):
                raise NotByRows("a result without rows")
            else:
                self.kinds[root] = Sharing.PARTIAL if partial else self._written(root)
        return RowGroup(group, by_rows)

    def _become_sums(self, root: Expr, numbers: set[Expr]) -> None:
        """Start again, if a sum over rows is added to the carry that it is the next value of."""
        places = self.plan.outputs[: len(self.carry)]
        if root not in places:
            return
        k = self.carry[places.index(root)]
        x = self.plan.inputs[k]
        if x in numbers and self.given[k] is None and self.kinds[x] is Sharing.PRIVATE:
            raise _SumOverRows(k)

    def _summed(self, root: Expr) -> Sharing:
        rule: Any = root.rule
        if rule.monoid == "max" and root.dtype.kind in "iu" and size_of(root.shape) == 1:
            return Sharing.LONGEST
        if rule.monoid != "sum" or root.dtype.kind not in "fc":
            raise NotByRows("a reduction over rows")
        count = 1
        for n in root.shape:
            if type(n) is not int:
                raise NotByRows("a sum over rows of any size")
            count *= n
        if count > _MOST_PARTIAL:
            raise NotByRows("a large sum over rows")
        return Sharing.PARTIAL

    def _read(self, root: Expr, by_rows: bool) -> Iterator[Expr]:
        """What a root reads from memory, if it is of this row."""
        row = counter(0)
        for x, index, is_own in _accesses(root):
            kind = self.kinds.get(x)
            if kind is None:
                if not isinstance(x.rule, Stored) or x.rule.array is None:
                    raise NotByRows("an array that is read before it is written")
                kind = self.kinds[x] = Sharing.SHARED
            yield x
            if kind in (Sharing.SHARED, *OWN):
                continue
            place = 1 if kind is Sharing.STACK else 0
            if by_rows and is_own and kind is Sharing.ROWS:
                continue
            if not by_rows or index is None or isinstance(index, FlatIndex):
                raise NotByRows("an access to other rows")
            if index[place] != row:
                raise NotByRows("an access to other rows")

    # ---- calls ---------------------------------------------------------------------------------

    def _call(self, stage: Expr) -> Any:
        node = stage.node
        control = getattr(node.op, "control_flow", "")
        if control == LOOP:
            return self._loop(stage)
        if control == BRANCH and "branches" in node.params:
            return self._branch(stage)
        kinds = self._operand_kinds(stage)
        matrices = row_matrices(stage, self.rows, kinds)
        if matrices is not None:
            kind = Sharing.ROWS if matrices.by_rows else Sharing.PRIVATE
            self._results(stage, [kind] * len(matrices.results))
            return matrices
        draw = row_draw(stage, self.rows, kinds)
        if draw is not None:
            self._results(stage, [Sharing.ROWS if draw.by_rows else Sharing.PRIVATE])
            return draw
        store = row_store(stage, self.rows, kinds)
        if store is None:
            raise NotByRows(node.op.name)
        self._results(stage, [Sharing.ROWS])
        return store

    def _operand_kinds(self, stage: Expr) -> list[Any]:
        kinds = [self._kind(x) for x in stage.operands]
        if Sharing.LONGEST in kinds or any(is_open(n) for x in stage.operands for n in x.shape):
            raise NotByRows("an array of an unknown number of steps")
        return kinds

    def _kind(self, x: Expr) -> Sharing:
        """The kind of an operand of a call."""
        owner = owner_of(x)
        kind = self.kinds.get(owner)
        if kind is None:
            if not isinstance(owner.rule, Stored) or owner.rule.array is None:
                raise NotByRows("an operand that is not in memory")
            kind = self.kinds[owner] = Sharing.SHARED
        if kind is Sharing.ROWS and not has_rows(x, self.rows):
            raise NotByRows("a reshaped operand")
        if kind is Sharing.STACK and not (len(x.shape) > 1 and x.shape[1] == self.rows):
            raise NotByRows("a reshaped operand")
        return kind

    def _loop(self, stage: Expr) -> RowLoop:
        node, params = stage.node, stage.node.params
        kinds = [self._kind(x) for x in stage.operands]
        carried, stacked = params["carried"], params.get("stacked", 0)
        first = len(kinds) - stacked
        own = self._own_steps(node, kinds) if params.get("counted") else None
        ends = own is not None or ends_by_rows(params, self.rows)
        for k, x in enumerate(stage.operands):
            if kinds[k] is Sharing.LONGEST:
                raise NotByRows("the number of steps of all rows")
            if any(is_open(n) for n in x.shape):
                writer = _writer(owner_of(x))
                if k < first or writer is None or (writer in self.ended and own is None):
                    raise NotByRows("an array of an unknown number of steps")
        given = kinds[bool(params.get("counted")) :]
        found = row_loop(params, self.rows, self.opaque, stage, given)
        of_steps = [_stacked(k) for k in found.body.outputs()[carried:]]
        after = found.body.outputs()[:carried]
        if found.condition is not None:
            after.append(Sharing.LONGEST if ends else Sharing.PRIVATE)
        elif own is not None and own.number is not None:
            after[own.number - (first - carried)] = Sharing.LONGEST
        if ends:
            self.ended.add(stage)
        self._results(stage, [*after, *of_steps])
        return found

    def _own_steps(self, node: Node, kinds: list[Sharing]) -> OwnSteps | None:
        """What of a loop depends on the number of steps of all rows, which each row has its own of.

        The kinds of these operands become private.
        """
        if kinds[0] is not Sharing.LONGEST:
            if kinds[0] not in (Sharing.SHARED, Sharing.PRIVATE):
                raise NotByRows("a number of steps")
            return None
        found = steps_of_rows(node, self.rows)
        if found is None:
            raise NotByRows("the number of steps of all rows")
        kinds[0] = Sharing.PRIVATE
        if found.number is not None:
            kinds[found.number] = Sharing.PRIVATE
        return found

    def _results(self, stage: Expr, kinds: Sequence[Sharing]) -> None:
        for x in self.plan.reachable:
            k = self._position(x, stage)
            if k is not None:
                self.kinds[x] = kinds[k]

    def _position(self, x: Expr, stage: Expr) -> int | None:
        """The position of a result of a call."""
        if isinstance(x.rule, CallResult) and x.operands[0] is stage:
            return x.rule.position
        return None

    def _branch(self, stage: Expr) -> RowBranch:
        which, *kinds = self._operand_kinds(stage)
        if which not in (Sharing.SHARED, Sharing.PRIVATE):
            raise NotByRows("a selector")
        bodies = [_body(b, self.options, kinds) for b in stage.node.params["branches"]]
        outputs = bodies[0].outputs()
        if Sharing.LONGEST in outputs or any(b.outputs() != outputs for b in bodies):
            raise NotByRows("results of branches")
        self._results(stage, outputs)
        return RowBranch(stage, tuple(bodies))


def _writer(x: Expr) -> Expr | None:
    """The call that an expression is a result of."""
    return x.operands[0] if isinstance(x.rule, CallResult) else None


def _accesses(root: Expr) -> Iterator[tuple[Expr, Index | None, bool]]:
    """What a root reads: an expression, the index, whether a gather is of the same row."""
    start: Any = counters(space_of(root))
    first = root.operands[0] if isinstance(root.rule, Reduce) else root
    if first.is_root and first is not root:
        yield first, start, False
        return
    seen: set[Any] = {(first, start)}
    pending: list[tuple[Expr, Any]] = [(first, start)]
    while pending:
        expr, index = pending.pop()
        own = isinstance(expr.rule, Gather) and _is_of_row(expr, index)
        for read in expr.reads(index):
            x = read.operand
            if x.is_root or read.index is None:
                yield x, read.index, own and read.index is None
            elif (x, read.index) not in seen:
                seen.add((x, read.index))
                pending.append((x, read.index))


def _is_of_row(expr: Expr, index: Any) -> bool:
    """Whether a gather reads the row whose number is the first counter."""
    x = expr.operands[0]
    if isinstance(index, FlatIndex) or not x.is_root or is_one(x.shape[0]):
        return False
    rule: Any = expr.rule
    return bool(rule.places(index)[0] == counter(0))
