"""Code of one row: the stages of a body, and the branches inside it.

A thread calls it for each of its rows. row_loops.py has the code of loops.

    RowCode      the code of bodies, as sections of one function
"""

from __future__ import annotations

from collections.abc import Sequence

from ..llvm.codegen.loop_nests import LoopNest, extent_of
from ..llvm.ir.index_analysis import Length, size_of
from ..llvm.ir.ir_builder import Name, Section
from ..llvm.lowering.loop_ir import Expr, Stored
from ..llvm.schedule.fusion import FusedLoops
from ..llvm.schedule.scheduling import owner_of
from .kernel_codegen import UnsupportedKernel
from .row_loops import RowLoopCode
from .row_matrices import RowMatrices, address_of, write_matrices
from .row_memory import ADDED, Argument, RowStore
from .row_random import RowDraw, write_draw
from .row_stages import OWN, RowBody, RowBranch, RowGroup, RowLoop, Sharing


class RowCode(RowLoopCode):
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
                self.inner_loop(s, stage, body, at, wanted, row)
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

    def operand(self, s: Section, x: Expr, body: RowBody, at: dict[Expr, Name], row: Name) -> Name:
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

    # ---- matrices ------------------------------------------------------------------------------

    def _matrices(
        self, s: Section, stage: RowMatrices, body: RowBody, at: dict[Expr, Name], row: Name
    ) -> None:
        name = f"{self.name}_matrices{self._groups}"
        self._groups += 1
        sizes, fails = write_matrices(self.language, stage, name)
        given = []
        for x, (before, each) in zip(stage.stage.operands, stage.offsets, strict=True):
            base = self.operand(s, x, body, at, row)
            place = self.number(before), row, self.number(each)
            given.append(address_of(s, base, *place, x.dtype.itemsize))
        targets, bases = [], []
        for k, y in enumerate(stage.results):
            shape = (self.rows, *y.shape) if stage.by_rows else y.shape
            work = Argument("work", len(self.arguments), shape, y.dtype, not stage.by_rows)
            base = self.argument(work)
            targets.append(self.offset(s, base, row, y.shape, y.dtype))
            bases.append(base if stage.by_rows else targets[k])
        self.results(body, stage.stage, bases, at)
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
            base = self.operand(s, x, body, at, row)
            given.append(self.offset(s, base, row, x.shape[1:], x.dtype) if is_own else base)
        work = Argument("work", len(self.arguments), draw.shape, draw.dtype, not draw.by_rows)
        base = self.argument(work)
        inner = draw.shape[1:] if draw.by_rows else draw.shape
        target = self.offset(s, base, row, inner, draw.dtype)
        write_draw(s, draw, given, target, row)
        self.results(body, draw.stage, [base if draw.by_rows else target], at)

    # ---- branches and stores -------------------------------------------------------------------

    def _branch(
        self, s: Section, branch: RowBranch, body: RowBody, at: dict[Expr, Name], row: Name
    ) -> None:
        which, *operands = [(x, self.operand(s, x, body, at, row)) for x in branch.stage.operands]
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
        self.results(body, branch.stage, targets, at)

    def _store(
        self, s: Section, store: RowStore, body: RowBody, at: dict[Expr, Name], row: Name
    ) -> None:
        stage = store.stage
        x = stage.operands[0]
        base, values, *_ = [self.operand(s, y, body, at, row) for y in stage.operands]
        out = self.work(x, Sharing.ROWS)
        self.results(body, stage, [out], at)
        self.copy(s, out, base, x, Sharing.ROWS, row)
        place, inside = row, s.value("add i1 true, false")
        for indices, length in zip(store.positions, x.shape[1:], strict=False):
            address = self.operand(s, indices, body, at, row)
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
