"""Code of one row: the stages of a body, and the loops and branches inside it.

A thread calls it for each of its rows. The carry of a loop has two buffers, which are read and
written in turn.

    RowCode      the code of bodies, as sections of one function
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..llvm.codegen.loop_nests import LoopNest, extent_of
from ..llvm.ir.affine import Length, size_of
from ..llvm.ir.ir_builder import Name, Section
from ..llvm.lowering.loop_ir import CallResult, Expr, Stored
from ..llvm.schedule.fusion import FusedLoops
from ..llvm.schedule.scheduling import owner_of
from .kernel_codegen import UnsupportedKernel
from .row_matrices import RowMatrices, address_of, write_matrices
from .row_memory import OWN, Argument, RowMemory
from .row_random import RowDraw, write_draw
from .row_stages import RowBody, RowBranch, RowGroup, RowLoop, Sharing
from .row_stores import ADDED, RowStore


class RowCode(RowMemory):
    """The code of bodies; see `RowMemory` for parameters."""

    _groups = 0

    # ---- bodies --------------------------------------------------------------------------------

    def body(
        self, s: Section, body: RowBody, given: Sequence[Name], targets: Sequence[Name], row: Name
    ) -> None:
        """All stages of a body, for one row.

        Parameters
        ----------
        given : sequence of Name
            The addresses of its inputs; of those of each row, the row's own.
        targets : sequence of Name
            Where its results go.
        """
        at: dict[Expr, Name] = dict(zip(body.plan.inputs, given, strict=True))
        wanted = dict(zip(body.plan.outputs, targets, strict=True))
        stored = set(body.plan.stored)
        for stage in body.stages:
            if isinstance(stage, RowGroup):
                self._group(s, stage, body, at, wanted, stored, row)
            elif isinstance(stage, RowLoop):
                self._inner_loop(s, stage, body, at, wanted, row)
            elif isinstance(stage, RowBranch):
                self._branch(s, stage, body, at, row)
            elif isinstance(stage, RowMatrices):
                self._matrices(s, stage, body, at, row)
            elif isinstance(stage, RowDraw):
                self._draw(s, stage, body, at, row)
            else:
                self._store(s, stage, body, at, row)
        for x, target in wanted.items():
            if at[x] != target:
                self.copy(s, target, at[x], x, body.kinds[x], row)

    def _address(self, s: Section, x: Expr, body: RowBody, at: dict[Expr, Name], row: Name) -> Name:
        """The address of an expression in memory."""
        found = at.get(x)
        if found is None:
            if isinstance(x.rule, Stored):
                found = self.argument(Argument("constant", x, x.shape, x.dtype))
            else:
                found = self.work(x, body.kinds[x])
                if body.kinds[x] in OWN:
                    found = self.own(s, found, row, x)
            at[x] = found
        return found

    def _operand(self, s: Section, x: Expr, body: RowBody, at: dict[Expr, Name], row: Name) -> Name:
        return self._address(s, owner_of(x), body, at, row)

    def _group(
        self,
        s: Section,
        stage: RowGroup,
        body: RowBody,
        at: dict[Expr, Name],
        wanted: dict[Expr, Name],
        stored: set[Expr],
        row: Name,
    ) -> None:
        fused = FusedLoops([stage.group], int(stage.by_rows))
        nest = LoopNest(self.language, fused, stored, 0)
        if nest.needs_runtime:
            raise UnsupportedKernel(self.name)
        function = f"{self.name}_elements{self._groups}"
        self._groups += 1
        text = nest.function.text().replace("@nest(", f"@{function}(", 1)
        self.function.module.parts[function] = text
        for root in stage.group.roots:
            if root in wanted:
                at[root] = wanted[root]
        table = self.function.slot(f"[{len(nest.table) + 1} x i64]", 8)
        s.write(f"store i64 0, ptr {table}")
        for k, entry in enumerate(nest.table, 1):
            target = s.value(f"getelementptr i64, ptr {table}, i64 {k}")
            if isinstance(entry, str):
                s.write(f"store i64 {self.size(entry)}, ptr {target}")
            else:
                address = self._address(s, entry, body, at, row)
                s.write(f"store ptr {address}, ptr {target}")
        span = f"i64 {row}, i64 {s.plus(row, '1')}"
        if not stage.by_rows:
            span = f"i64 0, i64 {self.number(extent_of(nest))}"
        s.write(f"call void @{function}(ptr {table}, {span}, i64 0)")
        if nest.may_fail:
            self.fail_if(s, s.value(f"load i64, ptr {table}"))

    # ---- loops ---------------------------------------------------------------------------------

    def loop(
        self,
        s: Section,
        loop: RowLoop,
        given: Sequence[Name],
        kinds: Sequence[Sharing],
        steps: Name,
        stacks: Sequence[Name],
        row: Name,
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
        step: Any,
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

    def _inner_loop(
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
        given = [self._operand(s, x, body, at, row) for x in operands]
        steps: Name = "0"
        length = params.get("length")
        if params.get("counted"):
            count, *operands = operands
            steps = s.larger(self.loaded(s, given.pop(0), count.dtype), "0")
        elif loop.condition is None:
            steps = self.number(length)
        carried = params["carried"]
        stacks = []
        inside = loop.body
        targets = {x.rule.position: a for x, a in wanted.items() if _is_result(x, stage)}  # type: ignore[attr-defined]
        for k, x in enumerate(inside.plan.outputs[carried:], carried):
            if k in targets:
                stacks.append(targets[k])
                continue
            base = self.work(x, inside.kinds[x], length)
            is_own = inside.kinds[x] in OWN
            stacks.append(self.own(s, base, row, x, length) if is_own else base)
        kinds = [body.kinds[owner_of(x)] for x in operands]
        carry, _ = self.loop(s, loop, given, kinds, steps, stacks, row)
        is_while = loop.condition is not None
        self._results(body, stage, [*carry, *[""] * is_while, *stacks], at)

    def _results(
        self, body: RowBody, stage: Expr, addresses: Sequence[Name], at: dict[Expr, Name]
    ) -> None:
        for x in body.plan.reachable:
            if _is_result(x, stage):
                at[x] = addresses[x.rule.position]  # type: ignore[attr-defined]

    # ---- matrices ------------------------------------------------------------------------------

    def _matrices(
        self, s: Section, stage: RowMatrices, body: RowBody, at: dict[Expr, Name], row: Name
    ) -> None:
        name = f"{self.name}_matrices{self._groups}"
        self._groups += 1
        sizes, fails = write_matrices(self.language, stage, name)
        given = []
        for x, (before, each) in zip(stage.stage.operands, stage.offsets, strict=True):
            base = self._operand(s, x, body, at, row)
            place = self.number(before), row, self.number(each)
            given.append(address_of(s, base, *place, x.dtype.itemsize))
        targets, bases = [], []
        for k, y in enumerate(stage.results):
            shape = (self.rows, *y.shape) if stage.by_rows else y.shape
            work = Argument("work", len(self.arguments), shape, y.dtype, not stage.by_rows)
            base = self.argument(work)
            targets.append(self.offset(s, base, row, y.shape, y.dtype))
            bases.append(base if stage.by_rows else targets[k])
        self._results(body, stage.stage, bases, at)
        listed = [f"ptr {a}" for a in (*given, *targets)] + [f"i64 {self.size(n)}" for n in sizes]
        status = s.value(f"call i64 @{name}({', '.join(listed)})")
        if fails:
            self.fail_if(s, status)

    def _draw(
        self, s: Section, draw: RowDraw, body: RowBody, at: dict[Expr, Name], row: Name
    ) -> None:
        """Random numbers or keys."""
        given = []
        for x, is_own in zip(draw.stage.operands, draw.own, strict=True):
            base = self._operand(s, x, body, at, row)
            given.append(self.offset(s, base, row, x.shape[1:], x.dtype) if is_own else base)
        work = Argument("work", len(self.arguments), draw.shape, draw.dtype, not draw.by_rows)
        base = self.argument(work)
        inner = draw.shape[1:] if draw.by_rows else draw.shape
        target = self.offset(s, base, row, inner, draw.dtype)
        write_draw(s, draw, given, target, row)
        self._results(body, draw.stage, [base if draw.by_rows else target], at)

    # ---- branches and stores -------------------------------------------------------------------

    def _branch(
        self, s: Section, branch: RowBranch, body: RowBody, at: dict[Expr, Name], row: Name
    ) -> None:
        which, *operands = [(x, self._operand(s, x, body, at, row)) for x in branch.stage.operands]
        last = len(branch.branches) - 1
        number = self.loaded(s, which[1], which[0].dtype)
        number = s.smaller(s.larger(number, "0"), str(last))
        first = branch.branches[0]
        targets = []
        for x in first.plan.outputs:
            base = self.work(x, first.kinds[x])
            targets.append(self.own(s, base, row, x) if first.kinds[x] in OWN else base)
        for k, inside in enumerate(branch.branches):
            with s.when(s.value(f"icmp eq i64 {number}, {k}")) as chosen:
                self.body(chosen, inside, [a for _, a in operands], targets, row)
        self._results(body, branch.stage, targets, at)

    def _store(
        self, s: Section, store: RowStore, body: RowBody, at: dict[Expr, Name], row: Name
    ) -> None:
        stage = store.stage
        x = stage.operands[0]
        base, values, *_ = [self._operand(s, y, body, at, row) for y in stage.operands]
        out = self.work(x, Sharing.ROWS)
        self._results(body, stage, [out], at)
        self.copy(s, out, base, x, Sharing.ROWS, row)
        place, inside = row, s.value("add i1 true, false")
        for indices, length in zip(store.positions, x.shape[1:], strict=False):
            address = self._operand(s, indices, body, at, row)
            address = self.offset(s, address, row, (), indices.dtype)
            k, size = self.loaded(s, address, indices.dtype), self.number(length)
            is_negative = s.value(f"icmp slt i64 {k}, 0")
            k = s.value(f"select i1 {is_negative}, i64 {s.plus(k, size)}, i64 {k}")
            inside = s.value(f"and i1 {inside}, {s.value(f'icmp ult i64 {k}, {size}')}")
            place = s.plus(s.times(place, size), k)
        self.fail_if(s, s.value(f"zext i1 {s.value(f'xor i1 {inside}, true')} to i64"))
        rest = x.shape[1 + len(store.positions) :]
        with s.when(inside) as t:
            target = self.offset(t, out, place, rest, x.dtype)
            source = values
            if not store.is_number:
                source = self.offset(t, values, row, rest, x.dtype)
            if store.adds:
                self._add_elements(t, target, source, rest, store)
            else:
                self.copy_elements(t, target, source, rest, x.dtype, repeated=store.is_number)

    def _add_elements(
        self, s: Section, target: Name, source: Name, shape: Sequence[Length], store: RowStore
    ) -> None:
        kind = ADDED[store.stage.operands[0].dtype.str[1:]]
        with s.loop("0", self.number(size_of(shape))) as (t, k):
            own = "0" if store.is_number else k
            place = t.value(f"getelementptr {kind}, ptr {source}, i64 {own}")
            value = t.value(f"load {kind}, ptr {place}")
            place = t.value(f"getelementptr {kind}, ptr {target}, i64 {k}")
            old = t.value(f"load {kind}, ptr {place}")
            total = t.value(f"{'add' if kind[0] == 'i' else 'fadd'} {kind} {old}, {value}")
            t.write(f"store {kind} {total}, ptr {place}")


def _is_result(x: Expr, stage: Expr) -> bool:
    """Whether an expression is a result of a call."""
    return isinstance(x.rule, CallResult) and x.operands[0] is stage
