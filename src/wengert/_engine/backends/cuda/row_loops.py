"""Loops of one row: their carry, conditions, and the results of their steps.

The carry of a loop has two buffers, which are read and written in turn. The number of results of a
loop inside of another one may be known only when it has ended. There is memory for `%capacity` of
them for each row; a row that needs more says how many, and ends; then the kernel is run again with
as many (loop_kernels.py).

    RowLoopCode    the code of loops
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wengert._engine.core.symbolic.dim import is_open

from ..llvm.ir.index_analysis import Length
from ..llvm.ir.ir_builder import Function, Name, Section
from ..llvm.ir.llvm_types import I64
from ..llvm.ir.scalar_language import Language
from ..llvm.lowering.loop_ir import CallResult, Expr
from ..llvm.schedule.scheduling import owner_of
from .matrix_kernels import IN_DOUBT
from .row_memory import Argument, RowMemory
from .row_stages import OWN, RowBody, RowLoop, Sharing

ROW_END = "row_end"  # the label at which a row ends
Step = Callable[[Section, Name, Name], None]


class RowLoopCode(RowMemory):
    """The code of loops; see `RowMemory` for parameters.

    Attributes
    ----------
    grows : bool
        Whether the kernel takes the capacity, the number of results of steps that it has memory
        for.
    """

    def __init__(self, function: Function, language: Language, rows: Length, name: str) -> None:
        super().__init__(function, language, rows, name)
        self.grows = False
        self._lengths_of_stacks: dict[Name, Name] = {}  # of results of steps, by their address

    def begin(self, s: Section, row: Name) -> None:
        """Begin a row, once its code is known: it needs no memory yet."""
        if self.grows:
            place = s.value(f"getelementptr i64, ptr {self._needed()}, i64 {row}")
            s.write(f"store i64 0, ptr {place}")

    def body(
        self, s: Section, body: RowBody, given: Sequence[Name], targets: Sequence[Name], row: Name
    ) -> None:
        """All stages of a body, for one row."""
        raise NotImplementedError

    def operand(self, s: Section, x: Expr, body: RowBody, at: dict[Expr, Name], row: Name) -> Name:
        """The address of an operand of a call."""
        raise NotImplementedError

    def loop(
        self,
        s: Section,
        loop: RowLoop,
        given: Sequence[Name],
        kinds: Sequence[Sharing],
        steps: Name,
        stacks: Sequence[Name],
        row: Name,
        capacity: Name = "",
    ) -> tuple[list[Name], Name]:
        """A loop: the addresses of its carry at the end, and the number of steps.

        Parameters
        ----------
        given, kinds
            The addresses and kinds of its operands, without the number of steps.
        steps : Name
            The number of steps; not used by a loop with a condition.
        stacks : sequence of Name
            Where the results of all steps go.
        capacity : Name
            The number of results that there is memory for, if it may be too small.
        """
        body, carried = loop.body, loop.params["carried"]
        fixed = len(given) - carried - loop.params.get("stacked", 0)
        inputs = body.plan.inputs
        pairs = []
        for k in range(fixed, fixed + carried):
            pairs.append(self._buffers(s, inputs[k], body.kinds[inputs[k]], row))
            self._begin(
                s, pairs[-1][0], given[k], inputs[k], (body.kinds[inputs[k]], kinds[k]), row
            )
        xs = given[fixed + carried :]

        def step(inner: Section, number: Name, odd: Name) -> None:
            place = number
            if loop.params.get("reverse"):
                place = inner.minus(inner.minus(steps, "1"), number)
            now = [self._chosen(inner, odd, *pair) for pair in pairs]
            then = [self._chosen(inner, odd, *pair[::-1]) for pair in pairs]
            rows = [
                self.offset(inner, a, place, x.shape, x.dtype)
                for a, x in zip(xs, inputs[fixed + carried :], strict=True)
            ]
            if capacity:
                place = inner.smaller(place, inner.minus(capacity, "1"))
            out = [
                self.offset(inner, a, place, x.shape, x.dtype)
                for a, x in zip(stacks, body.plan.outputs[carried:], strict=True)
            ]
            self.body(inner, body, [*given[:fixed], *now, *rows], [*then, *out], row)

        if loop.condition is None:
            with s.loop("0", steps) as (inner, number):
                step(inner, number, inner.value(f"trunc i64 {number} to i1"))
            count = s.larger(steps, "0")
        else:
            count = self._while(s, loop, given[:fixed], pairs, step, row)
        odd = s.value(f"trunc i64 {count} to i1")
        return [self._chosen(s, odd, *pair) for pair in pairs], count

    def _chosen(self, s: Section, odd: Name, even: Name, other: Name) -> Name:
        return s.value(f"select i1 {odd}, ptr {other}, ptr {even}")

    def _buffers(self, s: Section, x: Expr, kind: Sharing, row: Name) -> tuple[Name, Name]:
        both = [self.work(x, kind) for _ in range(2)]
        if kind in OWN:
            both = [self.own(s, base, row, x) for base in both]
        return both[0], both[1]

    def _begin(
        self,
        s: Section,
        target: Name,
        start: Name,
        x: Expr,
        kinds: tuple[Sharing, Sharing],
        row: Name,
    ) -> None:
        """Copy the start of a carry; a sum over rows begins in the first row."""
        kind, before = kinds
        if kind is Sharing.PARTIAL and before is not Sharing.PARTIAL:
            self.copy_elements(s, target, "", x.shape, x.dtype)
            with s.when(s.value(f"icmp eq i64 {row}, 0")) as first:
                self.copy_elements(first, target, start, x.shape, x.dtype)
            return
        self.copy(s, target, start, x, kind, row)

    def _while(
        self,
        s: Section,
        loop: RowLoop,
        consts: Sequence[Name],
        pairs: Sequence[tuple[Name, Name]],
        step: Step,
        row: Name,
    ) -> Name:
        """The steps of a loop that ends when the condition of the row is false."""
        condition = loop.condition
        assert condition is not None
        (output,) = condition.plan.outputs
        counter, n = self.function.slot("i64"), self.function.number()
        s.write(f"store i64 0, ptr {counter}")
        s.block(f"test{n}")
        count = s.value(f"load i64, ptr {counter}")
        odd = s.value(f"trunc i64 {count} to i1")
        carry = [self._chosen(s, odd, *pair) for pair in pairs]
        kind = condition.kinds[output]
        flag = self.work(output, kind)
        if kind in OWN:
            flag = self.own(s, flag, row, output)
        self.body(s, condition, [*consts, *carry], [flag], row)
        if kind is Sharing.ROWS:
            flag = s.value(f"getelementptr i8, ptr {flag}, i64 {row}")
        goes_on = s.value(f"icmp ne i8 {s.value(f'load i8, ptr {flag}')}, 0")
        limit = loop.params["limit"]
        if limit is not None:
            is_over = s.value(f"icmp sge i64 {count}, {limit}")
            self.fail_if(s, s.value(f"zext i1 {s.value(f'and i1 {goes_on}, {is_over}')} to i64"))
            inside = s.value(f"xor i1 {is_over}, true")
            goes_on = s.value(f"and i1 {goes_on}, {inside}")
        s.write(f"br i1 {goes_on}, label %step{n}, label %end{n}")
        s.label(f"step{n}")
        step(s, count, odd)
        s.write(f"store i64 {s.value(f'add i64 {count}, 1')}, ptr {counter}")
        s.write(f"br label %test{n}")
        s.label(f"end{n}")
        return count

    # ---- loops inside --------------------------------------------------------------------------

    def inner_loop(
        self,
        s: Section,
        loop: RowLoop,
        body: RowBody,
        at: dict[Expr, Name],
        wanted: dict[Expr, Name],
        row: Name,
    ) -> None:
        """A loop inside a body."""
        stage = loop.stage
        assert stage is not None
        params, operands = loop.params, list(stage.operands)
        given = [self.operand(s, x, body, at, row) for x in operands]
        steps: Name = "0"
        length = params.get("length")
        if params.get("counted"):
            steps = s.larger(self.loaded(s, given.pop(0), operands.pop(0).dtype), "0")
            self._check_lengths(s, steps, given)
        elif loop.condition is None:
            steps = self.number(length)
        stacks, capacity = self._stacks(s, loop, wanted, row)
        if capacity and loop.condition is None:
            self._need(s, steps, row)
        kinds = [body.kinds[owner_of(x)] for x in operands]
        carry, count = self.loop(s, loop, given, kinds, steps, stacks, row, capacity)
        if capacity:
            if loop.condition is not None:
                self._need(s, count, row)
            self._lengths_of_stacks.update(dict.fromkeys(stacks, count))
        numbers = [] if loop.condition is None else [self._number(s, stage, body, count, row)]
        self.results(body, stage, [*carry, *numbers, *stacks], at)

    def _stacks(
        self, s: Section, loop: RowLoop, wanted: dict[Expr, Name], row: Name
    ) -> tuple[list[Name], Name]:
        """Where the results of all steps go, and the capacity of this memory if it grows."""
        stage, inside, carried = loop.stage, loop.body, loop.params["carried"]
        assert stage is not None
        results = inside.plan.outputs[carried:]
        if not results:
            return [], ""
        first = carried + (loop.condition is not None)
        targets = {position(x): a for x, a in wanted.items() if is_result(x, stage)}
        length: Length = loop.params["length"]
        capacity = "%capacity" if is_open(length) else ""
        self.grows |= bool(capacity)
        stacks = []
        for k, x in enumerate(results):
            kind = inside.kinds[x]
            if first + k in targets:
                stacks.append(targets[first + k])
            elif capacity:
                made = Argument("grown", len(self.arguments), x.shape, x.dtype, kind in OWN)
                base = self.argument(made)
                if kind in OWN:
                    base = self.offset(s, base, s.times(row, capacity), x.shape, x.dtype)
                stacks.append(base)
            else:
                base = self.work(x, kind, length)
                stacks.append(self.own(s, base, row, x, length) if kind in OWN else base)
        return stacks, capacity

    def _number(self, s: Section, stage: Expr, body: RowBody, count: Name, row: Name) -> Name:
        """The address of the number of steps of a loop with a condition, if it is read."""
        carried = stage.node.params["carried"]
        for x in body.plan.reachable:
            if is_result(x, stage) and position(x) == carried:
                address = self.own(s, self.work(x, Sharing.PRIVATE), row, x)
                s.write(f"store i64 {count}, ptr {address}")
                return address
        return ""

    def _need(self, s: Section, count: Name, row: Name) -> None:
        """End the row if it needs memory for more results."""
        with s.when(s.value(f"icmp sgt i64 {count}, %capacity")) as more:
            place = more.value(f"getelementptr i64, ptr {self._needed()}, i64 {row}")
            more.write(f"store i64 {count}, ptr {place}")
            self._leave(more)

    def _needed(self) -> Name:
        """The address of how many results each row needs memory for."""
        return self.argument(Argument("needed", None, (self.rows,), I64))

    def _check_lengths(self, s: Section, steps: Name, given: Sequence[Name]) -> None:
        """End the row if a loop reads another number of results than there are."""
        found = [self._lengths_of_stacks[a] for a in given if a in self._lengths_of_stacks]
        for count in dict.fromkeys(found):
            with s.when(s.value(f"icmp ne i64 {steps}, {count}")) as other:
                self.fail_if(other, str(IN_DOUBT))
                self._leave(other)

    def _leave(self, s: Section) -> None:
        s.write(f"br label %{ROW_END}")
        s.label(f"left{self.function.number()}")

    def results(
        self, body: RowBody, stage: Expr, addresses: Sequence[Name], at: dict[Expr, Name]
    ) -> None:
        """Enter the addresses of the results of a call."""
        for x in body.plan.reachable:
            if is_result(x, stage):
                at[x] = addresses[position(x)]


def is_result(x: Expr, stage: Expr) -> bool:
    """Whether an expression is a result of a call."""
    return isinstance(x.rule, CallResult) and x.operands[0] is stage


def position(x: Expr) -> int:
    """The position of a result."""
    rule = x.rule
    assert isinstance(rule, CallResult)
    return rule.position
