"""Elements of an expression (lowering/loop_ir.py) at an index, as SIMD values.

    Elements    reads and writes elements; the rules of expressions call it
    hidden      the lane of a vector constant, loaded from a variable
    both_of     the conjunction of two masks

A value is computed in the outermost loop in which all its operands are known, and reused until that
loop ends.  Addresses and sizes are loaded before the first loop.

LLVM 22 splits a vector that is larger than a register.  A masked load of such a vector, of which
one half is masked by constants, reads that half without a mask, or ends the process: where masks
are vectors of integers, as they are with AVX2, and not flags as with AVX-512.  So without AVX-512
the constants of a mask that is combined of constants and other values are loaded from a variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wengert._engine.core.symbolic.dim import Dim, names_in

from ..ir import execution_engine, index_analysis
from ..ir.index_analysis import Affine, Index, Length, offset_of, size_of
from ..ir.ir_builder import Function, Section
from ..ir.llvm_types import I64, Dtype, in_memory, in_register, of_width, part_of
from ..ir.memory_access import gather, load, scatter, store
from ..ir.scalar_language import Language
from ..ir.simd_value import Lane
from ..lowering.loop_ir import Condition, Expr, memory_strides
from ..schedule.fusion import FusedLoops
from ..schedule.iteration_space import Axis, Space, always, is_at_least
from .element_access import PositionChecks

if TYPE_CHECKING:
    from ..ir.scalar_language import Language


def hidden(language: Language, section: Section, lane: Lane) -> Lane:
    """A vector constant of different numbers, loaded in a section; any other lane unchanged."""
    if not _is_listed(lane) or execution_engine.vector_bytes() >= 64:
        return lane
    known = section.function.hidden.get(lane.name)
    if known is not None:
        return Lane(language, section, known, lane.dtype, lane.width)
    stored, used = in_memory(lane.dtype), in_register(lane.dtype)
    values = [x.split()[1] for x in lane.name.strip("<>").split(",")]
    if lane.dtype.kind == "b":
        values = [str(int(x == "true")) for x in values]
    kind = f"[{lane.width} x {stored}]"
    listed = ", ".join(f"{stored} {x}" for x in values)
    name = f"hidden.{stored}.{'.'.join(values)}"
    place = language.module.variable(name, kind, f"[{listed}]")
    whole = of_width(stored, lane.width)
    found = section.value(f"load {whole}, ptr {place}, align 64")
    if stored != used:
        found = section.value(f"trunc {whole} {found} to {of_width(used, lane.width)}")
    section.function.hidden[lane.name] = found
    return Lane(language, section, found, lane.dtype, lane.width)


def both_of(language: Language, section: Section, one: Lane, two: Lane) -> Lane:
    """The conjunction of two masks; what is loaded for it is loaded in a section."""
    if _is_listed(one) != _is_listed(two):
        one, two = hidden(language, section, one), hidden(language, section, two)
    found: Lane = language.binary("logical_and", one, two)
    return found


def _is_listed(lane: Lane) -> bool:
    return lane.name.startswith("<")


class Elements(PositionChecks):
    """SIMD values of expressions at an index, inside the current loops.

    Attributes
    ----------
    language : Language
    function : Function
    fused : FusedLoops
    space : Space
    table : list of Expr, (Expr, int) or str
        The table after its status: expressions whose addresses it has, also with an offset in
        elements (slices.py), or names of sizes.
    partial : set of Expr
        The reductions over the outermost loop.
    """

    space: Space

    def __init__(
        self, language: Language, function: Function, fused: FusedLoops, stored: set[Any]
    ) -> None:
        super().__init__()
        self.language, self.function, self.fused = language, function, fused
        self.table: list[Any] = []
        self.partial: set[Expr] = set()
        self._stored = stored
        self._head = language.home = function.body.inside()
        self._entries: dict[Any, Any] = {}
        self._memo: dict[Any, Any] = {}
        self._numbers: dict[Any, Any] = {}
        self._counters: dict[int, Any] = {}
        self._bounds: dict[int, tuple[int, int]] = {}  # of counters, where they are known
        self._mask: Lane | None = None
        self._floor = self._head  # loads of this fused loop's own results come after it
        self._scratch: list[str] = []
        self._safe_bytes: dict[int, str] = {}
        self._columns: set[Expr] = set()
        self._own = {r for s in fused.groups for r in s.roots} if fused.rows else set()

    @property
    def needs_runtime(self) -> bool:
        """Whether it allocates memory."""
        return bool(self._scratch)

    def _vector_axis(self) -> Axis | None:
        return None if self.space.vector is None else self.space.axes[self.space.vector]

    # ---- called by rules -------------------------------------------------------------------------

    def read(self, expr: Expr, index: Index, mask: Lane | None) -> Any:
        """The element of an expression at an index, in lanes where the mask is true."""
        found = self._memo.get((expr, index, None))  # a value for all lanes also serves a mask
        if found is not None:
            return found
        key = expr, index, None if mask is None else mask.name
        found = self._memo.get(key)
        if found is None:
            if expr.is_root:
                found = self._load(expr, index, mask)
            else:
                found = expr.rule.value(self, expr, index, mask)
            self._memo[key] = found
        return found

    def lane_of(self, form: Affine) -> Any:
        """The values of an affine expression, as integers."""
        base, factor = self._split(form)
        base = self.language.cast(base, I64)
        if type(factor) is int and factor == 0:
            return base
        return base + hidden(self.language, self._head, self._iota()) * self._number(factor)

    def all_of(self, conditions: Sequence[Condition]) -> Any:
        """Whether all conditions hold; None if they always do, False if one never does."""
        found: Any = None
        for condition in conditions:
            holds = self._condition(condition)
            if holds is False:
                return False
            found = self.both(found, holds)
        return found

    def both(self, one: Lane | None, two: Lane | None) -> Lane | None:
        """The conjunction of two masks."""
        if one is None or two is None:
            return one if two is None else two
        return both_of(self.language, self._head, one, two)

    def existing(self, mask: Lane | None) -> Lane | None:
        """The lanes of a mask that exist; None if all do."""
        return self.both(mask, self._mask)

    def _condition(self, condition: Condition) -> Any:
        if self._bounds:
            known = always(condition, self._bounds)
            if known is not None:
                return known and None
        key = condition
        if key in self._memo:
            return self._memo[key]
        form, low, high = condition
        lane = self.lane_of(form)
        found: Any = None
        if not is_at_least(form, low):
            found = self.language.compare(
                "less_equal", self.language.cast(self._number(low), I64), lane
            )
        if not self._is_below(form, high):
            below = self.language.compare("less", lane, self.language.cast(self._number(high), I64))
            found = self.both(found, below)
        if found is not None:
            self._memo[key] = found
        return found

    def _is_below(self, form: Affine, high: Length) -> bool:
        """Whether an affine expression is provably always below a bound."""
        if not form.terms:
            return type(form.offset) is int and type(high) is int and form.offset < high
        if len(form.terms) > 1 or not index_analysis.is_one(form.terms[0][1]):
            return False
        length = next((a.length for a in self.space.axes if a.counter == form.terms[0][0]), None)
        return length is not None and form.offset == 0 and bool(length == high)

    def _free_rows(self) -> None:
        """Free row buffers, at the end and at early returns."""
        free = (
            self.language.module.declare("wengert_free", "void", ["ptr"]) if self._scratch else ""
        )
        for section, known in [*self._exits, (self.function.body, None)]:
            for name in self._scratch[:known]:
                section.write(f"call void {free}(ptr {name})")

    # ---- memory ----------------------------------------------------------------------------------

    def _strides(self, expr: Expr) -> tuple[Length, ...]:
        """Strides of an expression in memory; 0 between rows if only one row is stored."""
        strides = memory_strides(expr)
        if expr in self._stored or expr not in self.fused.local:
            return strides
        outer = self.fused.rows - (self.fused.block > 1)
        return tuple(0 if k < outer else n for k, n in enumerate(strides))

    def _load(self, expr: Expr, index: Index, mask: Lane | None) -> Any:
        return self._load_from(expr, *self._split(offset_of(index, self._strides(expr))), mask)

    def read_from(self, expr: Expr, form: Affine, extra: Any, mask: Lane | None) -> Any:
        """The element at an offset in memory, plus `extra` elements."""
        offset, factor = self._split(form)
        if extra is None:
            return self._load_from(expr, offset, factor, mask)
        offset = extra + offset
        if offset.width <= 1:
            return self._load_from(expr, offset, factor, mask)
        if not (type(factor) is int and factor == 0):
            offset = offset + self._iota() * self._number(factor)
        pointer, exists = self._entry(expr), self.both(mask, self._mask)
        section = self._latest(pointer, offset, exists)
        kind, width = self._element(expr.dtype), offset.width
        addresses = section.value(
            f"getelementptr {kind}, ptr {pointer.name}, <{width} x i64> {offset.name}"
        )
        addresses = self._safe_addresses(
            section, addresses, exists if mask is not None else None, width
        )
        return gather(self.language, section, addresses, expr.dtype, width, exists)

    def _load_from(
        self, expr: Expr, offset: Lane, factor: Length, mask: Lane | None, pointer: Any = None
    ) -> Any:
        pointer = self._entry(expr) if pointer is None else pointer
        width, dtype = self.space.width, expr.dtype
        if type(factor) is int and factor == 0:
            return self._load_one(expr, pointer, offset, mask)
        exists = self.both(mask, self._mask)
        section = self._latest(pointer, offset, exists, self._counters[self._vector_axis().counter])  # type: ignore[union-attr]
        address = self._address(section, pointer, offset, dtype)
        if index_analysis.is_one(factor):
            if mask is not None and exists is not None:
                address = self._safe_address(section, address, exists, width * dtype.itemsize)
            return load(self.language, section, address, dtype, width, exists)
        steps = self.language.cast(self._iota() * self._number(factor), I64)
        steps = self.language.widened(steps, width)
        section = max(section, steps.section or section, key=lambda s: s.rank)
        kind = self._element(dtype)
        addresses = section.value(
            f"getelementptr {kind}, ptr {address}, <{width} x i64> {steps.name}"
        )
        addresses = self._safe_addresses(
            section, addresses, exists if mask is not None else None, width
        )
        return gather(self.language, section, addresses, dtype, width, exists)

    def _load_one(self, expr: Expr, pointer: Lane, offset: Lane, mask: Lane | None) -> Any:
        """One element for all lanes, read only if some lane of the mask needs it."""
        section = self._latest(pointer, offset, mask)
        address = self._address(section, pointer, offset, expr.dtype)
        if mask is not None:
            some = mask.name
            if mask.width > 1:
                exists = self.both(mask, self._mask) or mask
                section = self._latest(pointer, offset, exists)
                some = section.any_lane(exists.name, exists.width)
            safe = self._safe(16)
            address = section.value(f"select i1 {some}, ptr {address}, ptr {safe}")
        return load(self.language, section, address, expr.dtype, 1, None)

    # A masked lane is not read, but if its address is not mapped, the processor suppresses the
    # fault in microcode: hundreds of cycles for a vector.

    def _safe(self, size: int) -> str:
        """The address of a number of readable bytes."""
        if size not in self._safe_bytes:
            slot: str = self.function.slot(f"[{size} x i8]", 16)
            self._head.write(f"store [{size} x i8] zeroinitializer, ptr {slot}")
            self._safe_bytes[size] = slot
        return self._safe_bytes[size]

    def _safe_address(self, section: Section, address: str, exists: Lane, size: int) -> str:
        """The address of a vector, or a mapped one if all its lanes are masked."""
        some = section.any_lane(exists.name, exists.width)
        return section.value(f"select i1 {some}, ptr {address}, ptr {self._safe(size)}")

    def _safe_addresses(
        self, section: Section, addresses: str, exists: Lane | None, width: int
    ) -> str:
        """The addresses of lanes; those of masked lanes are replaced by a mapped one."""
        if exists is None:
            return addresses
        active = self.language.widened(exists, width).name
        one = section.value(f"insertelement <{width} x ptr> poison, ptr {self._safe(16)}, i64 0")
        every = section.value(
            f"shufflevector <{width} x ptr> {one}, <{width} x ptr> poison, "
            f"<{width} x i32> zeroinitializer"
        )
        return section.value(
            f"select <{width} x i1> {active}, <{width} x ptr> {addresses}, <{width} x ptr> {every}"
        )

    def _put(self, section: Section, root: Expr, value: Lane, index: Index) -> None:
        if any(type(n) is int and n == 0 for n in root.shape):
            return  # no elements, and no strides
        offset, factor = self._split(offset_of(index, self._strides(root)))
        pointer = self._entry(root)
        address = self._address(section, pointer, offset, root.dtype)
        if type(factor) is int and factor == 0:
            store(self.language, section, address, value, 1, None)
            return
        width = self.space.width
        if index_analysis.is_one(factor):
            store(self.language, section, address, value, width, self._mask)
            return
        addresses = self._strided(section, address, factor, root.dtype)
        scatter(self.language, section, addresses, value, width, self._mask)

    def _current(self, section: Section, root: Expr, index: Index) -> Any:
        """The element that a store would overwrite."""
        offset, factor = self._split(offset_of(index, self._strides(root)))
        address = self._address(section, self._entry(root), offset, root.dtype)
        width = self.space.width
        if type(factor) is int and factor == 0:
            return load(self.language, section, address, root.dtype, 1, None)
        if index_analysis.is_one(factor):
            return load(self.language, section, address, root.dtype, width, self._mask)
        addresses = self._strided(section, address, factor, root.dtype)
        return gather(self.language, section, addresses, root.dtype, width, self._mask)

    def _strided(self, section: Section, address: str, factor: Length, dtype: Dtype) -> str:
        """The addresses of lanes with a stride."""
        width = self.space.width
        steps = self.language.cast(self._iota() * self._number(factor), I64)
        name = self.language.widened(steps, width).name
        return section.value(
            f"getelementptr {self._element(dtype)}, ptr {address}, <{width} x i64> {name}"
        )

    def _element(self, dtype: Dtype) -> str:
        kind = in_memory(part_of(dtype))
        return f"[2 x {kind}]" if dtype.kind == "c" else kind

    def _address(self, section: Section, pointer: Lane, offset: Lane | int, dtype: Dtype) -> str:
        if type(offset) is int and offset == 0:
            return pointer.name
        return section.value(
            f"getelementptr {self._element(dtype)}, ptr {pointer.name}, i64 {self._name(offset)}"
        )

    def _entry(self, key: str | Expr | tuple[Expr, int]) -> Lane:
        """An entry of the table: an address or a size."""
        found = self._entries.get(key)
        if found is None and key in self.fused.local and key not in self._stored:
            found = self._entries[key] = self._row_buffer(key)
        if found is None:
            place = self._head.value(f"getelementptr i64, ptr %table, i64 {len(self.table) + 1}")
            kind = "i64" if isinstance(key, str) else "ptr"
            name = self._head.value(f"load {kind}, ptr {place}")
            self.table.append(key)
            if key in self.partial:
                name = self._partial_result(key, name)
            found = self._entries[key] = Lane(self.language, self._head, name, I64, 1)
        if key in self._own and key not in self._columns:
            found = Lane(self.language, self._floor, found.name, I64, 1)
            if self.fused.block > 1 and key in self.fused.local and key not in self._stored:
                return self._of_block(key, found)
        return found

    def _partial_result(self, expr: Expr, name: str) -> str:
        """The address of the result of one part of a parallel loop."""
        size = self._name(self._number(size_of(expr.shape)))
        skipped = self._head.value(f"mul i64 %part, {size}")
        kind = self._element(expr.dtype)
        return self._head.value(f"getelementptr {kind}, ptr {name}, i64 {skipped}")

    def _row_buffer(self, expr: Expr) -> Lane:
        """A buffer for the rows of a block of an intermediate result."""
        raise NotImplementedError

    def _of_block(self, expr: Expr, pointer: Lane) -> Lane:
        """The address that row 0 would have in such a buffer."""
        raise NotImplementedError

    # ---- numbers ---------------------------------------------------------------------------------

    def _number(self, length: Length) -> Any:
        """A length: an int, or a lane computed before the loops."""
        if not isinstance(length, Dim):
            return length
        found = self._numbers.get(length)
        if found is None:
            sizes = {name: self._entry(name) for name in sorted(names_in((length,)))}
            found = self._numbers[length] = length.replace(sizes)  # type: ignore[arg-type]
        return found

    def _split(self, form: Affine) -> tuple[Any, Any]:
        """An affine expression without its vector lanes, and the factor of the vectorized axis."""
        vector = self._vector_axis()
        key = "form", form
        total = self._numbers.get(key)
        factor: Length = 0
        for c, f in form.terms:
            if vector is not None and c == vector.counter and self.space.width > 1:
                factor = f
        if total is None:
            total = self._number(form.offset)
            for c, f in sorted(form.terms, key=lambda t: self._counters[t[0]].section.rank):
                term = (
                    self._counters[c]
                    if index_analysis.is_one(f)
                    else self._counters[c] * self._number(f)
                )
                total = term if type(total) is int and total == 0 else term + total
            if isinstance(total, Lane):
                self._numbers[key] = total
        return total, factor

    def _iota(self) -> Lane:
        lanes = ", ".join(f"i64 {k}" for k in range(self.space.width))
        lane = Lane(self.language, self._head, f"<{lanes}>", I64, self.space.width)
        return lane

    def _name(self, number: Lane | int) -> str:
        return number.name if isinstance(number, Lane) else str(number)

    def _latest(self, *lanes: Any) -> Section:
        sections = [x.section for x in lanes if isinstance(x, Lane) and x.section is not None]
        return max([self._head, *sections], key=lambda s: s.rank)
