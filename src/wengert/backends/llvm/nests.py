"""Nests: the loops of a walk, as text.

A nest is one function, `void @nest(ptr %table, i64 %lo, i64 %hi)`: the table has the addresses of
the arrays and the sizes it needs, the outermost loop goes from lo to hi.  Nests with the same text
are one function, so an unrolled loop is compiled once.

    Nest     writes it; it is the `at` of the rules (items.py): `read`, `lane_of`, `all_of`, `both`

A value is written in the outermost loop in which all it needs is known; what the table holds is
read before the first loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dims import Dim, names_in
from .access import gather, load, scatter, store
from .accumulators import BLOCK, UFUNC, accumulator, identity
from .assembly import Function, Section
from .dtypes import BOOL, I64, in_memory, part_of
from .forms import ZERO, Affine, Index, Length, is_one, offset_of, size_of, strides_of
from .items import Condition, Item, Reduce
from .lane import Lane
from .language import Language
from .spaces import Axis, Space, space_for
from .walks import Walk, role_of

_TWICE = 60  # up to this weight the last, partial step of a loop is written apart
_I8 = np.dtype(np.int8)
_ON_STACK = 16384  # bytes for one row, up to which they are part of the stack
_SIGNATURE = [("ptr", "table"), ("i64", "lo"), ("i64", "hi")]


class Nest:
    """One walk as a function.

    Parameters
    ----------
    language : Language
    walk : Walk
    stored : container of Item
        The roots that have memory.
    register_bytes : int
        Of the machine's vectors.

    Attributes
    ----------
    table : list of Item, or of str
        What the table holds: an item's address, or the size of that name.
    spaces : list of Space
        Of the walk's sweeps.
    """

    def __init__(
        self, language: Language, walk: Walk, stored: Any, register_bytes: int
    ) -> None:
        self.language, self.walk, self._stored = language, walk, stored
        self.spaces = [space_for(s, register_bytes, walk.rows) for s in walk.sweeps]
        self.sweep, self.space = walk.sweeps[0], self.spaces[0]
        self.table: list[Any] = []
        self.function = Function(language.module, "nest", _SIGNATURE, "i64", "nounwind #1")
        self._head = language.home = self.function.body.inside()
        self._entries: dict[Any, Any] = {}
        self._memo: dict[Any, Any] = {}
        self._numbers: dict[Any, Any] = {}
        self._counters: dict[int, Any] = {}
        self._mask: Lane | None = None
        self._floor = self._head  # nothing that this walk has made is read before it
        self._scratch: list[str] = []
        self._own = {r for s in walk.sweeps for r in s.roots} if walk.rows else set()
        self._status: Any = None
        self._write(self.function.body.inside())

    @property
    def may_fail(self) -> bool:
        """Whether it can return a status other than 0."""
        return self._status is not None or bool(self._scratch)

    def text(self, name: str) -> str:
        """The function, under a name."""
        return self.function.text().replace("@nest(", f"@{name}(", 1)

    # ---- the loops -----------------------------------------------------------------------------

    def _write(self, body: Section) -> None:
        rows = [
            Axis(k, n, False)
            for k, n in enumerate(self.sweep.space[: self.walk.rows])
            if not is_one(n)
        ]
        self._outlasting: dict[Item, Any] = {}
        self._columns: set[Item] = set()
        if rows:
            self._begin(body)
        self._row(body.inside(), rows, True)
        self._end(body.inside())
        for slot in self._scratch:
            free = self.language.module.declare("free", "void", ["ptr"])
            self.function.body.write(f"call void {free}(ptr {slot})")
        self.function.body.write(f"ret i64 {self._final_status()}")

    def _begin(self, section: Section) -> None:
        """What combines all rows starts before the first."""
        for sweep, space in zip(self.walk.sweeps, self.spaces, strict=True):
            role = role_of(sweep, self.walk.rows)
            width = 1 if space.vector is None else space.width
            for root in sweep.roots:
                if role == "each" or not isinstance(root.rule, Reduce):
                    continue
                if role == "columns":
                    self._columns.add(root)
                    self._clear(section, root)
                    continue
                self._outlasting[root] = accumulator(
                    self.language, section, root.rule.monoid, root.operands[0].dtype, width, True
                )

    def _clear(self, section: Section, root: Item) -> None:
        """Memory in which rows are combined, before the first."""
        start = identity(root.rule.monoid, root.dtype)  # type: ignore[attr-defined]
        value = self.language.constant(start, root.dtype)
        count = self._name(self._number(size_of(root.shape)))
        pointer = self._entry(root)
        with section.loop("0", count) as (inner, i):
            place = self._address(inner, pointer, Lane(self.language, inner, i, I64, 1), root.dtype)
            store(self.language, inner, place, value, 1, None)

    def _end(self, section: Section) -> None:
        """What all rows together give."""
        for sweep, space in zip(self.walk.sweeps, self.spaces, strict=True):
            self.sweep, self.space = sweep, space
            for root in sweep.roots:
                if root in self._outlasting:
                    value = self._outlasting[root].result(section, space.across)
                    self._put(section, root, self.language.cast(value, root.dtype), (ZERO,) * len(root.shape))

    def _row(self, section: Section, rows: list[Axis], outermost: bool) -> None:
        """Loops over the rows, and all sweeps in each."""
        if rows:
            start, stop = self._range(rows[0], section, outermost)
            with section.loop(start, stop) as (inner, i):
                self._count(rows[0], inner, i)
                self._row(inner.inside(), rows[1:], False)
            self._leave(inner)
            return
        for sweep, space in zip(self.walk.sweeps, self.spaces, strict=True):
            self.sweep, self.space = sweep, space
            self._floor = section.inside()
            kept = [a for a in space.axes if not a.is_reduced]
            self._open(section.inside(), list(space.axes), len(kept), outermost)

    def _final_status(self) -> str:
        if self._status is None:
            return "0"
        return self.function.body.value(f"load i64, ptr {self._status}")

    def _open(self, section: Section, axes: list[Axis], kept: int, outermost: bool) -> None:
        """Loops over the kept axes, one after the other, and what is inside them."""
        if kept == 0:
            self._combine(section, axes, outermost)
            return
        axis = axes[0]
        start, stop = self._range(axis, section, outermost)
        if axis is self._vector_axis():
            for begin, end, mask in self._steps(section, axis, start, stop):
                with section.loop(begin, end, str(self.space.width)) as (inner, i):
                    self._enter(axis, inner, i, mask, stop)
                    self._open(inner.inside(), axes[1:], kept - 1, False)
                self._leave(inner)
                self._mask = None
            return
        with section.loop(start, stop) as (inner, i):
            self._count(axis, inner, i)
            self._open(inner.inside(), axes[1:], kept - 1, False)
        self._leave(inner)

    def _vector_axis(self) -> Axis | None:
        return None if self.space.vector is None else self.space.axes[self.space.vector]

    def _range(self, axis: Axis, section: Section, outermost: bool) -> tuple[str, str]:
        if outermost:
            return "%lo", "%hi"
        return "0", self._name(self._number(axis.length))

    def _steps(
        self, section: Section, axis: Axis, start: str, stop: str
    ) -> list[tuple[str, str, bool]]:
        """Begin and end of the loops that take several at a time, and whether under a mask."""
        width = self.space.width
        if width == 1:
            return [(start, stop, False)]
        if self.sweep.weight > _TWICE or (type(axis.length) is int and axis.length < width):
            return [(start, stop, True)]
        whole = section.value(f"sub i64 {stop}, {start}")
        rest = section.value(f"and i64 {whole}, {width - 1}")
        middle = section.value(f"sub i64 {stop}, {rest}")
        return [(start, middle, False), (middle, stop, True)]

    def _enter(self, axis: Axis, inner: Section, i: str, masked: bool, stop: str) -> None:
        """Note the counter of the loop that takes several at a time, and which lanes exist."""
        width = self.space.width
        start = self._count(axis, inner, i)
        self._mask = None
        if masked:
            left = start.value(f"sub i64 {stop}, {i}")
            callee = self.language.module.declare("llvm.smin.i64", "i64", ["i64", "i64"])
            few = start.value(f"call i64 {callee}(i64 {left}, i64 {width})")
            short = Lane(self.language, start, start.value(f"trunc i64 {few} to i8"), _I8, 1)
            lanes = ", ".join(f"i8 {k}" for k in range(width))
            every = Lane(self.language, None, f"<{lanes}>", _I8, width)
            self._mask = self.language.emit("icmp slt", BOOL, every, short)

    def _count(self, axis: Axis, inner: Section, i: str) -> Section:
        """Note a counter; what depends on it is written before what else is in the loop."""
        start = inner.inside()
        self._counters[axis.counter] = Lane(self.language, start, i, I64, 1)
        return start

    def _leave(self, inner: Section) -> None:
        """Forget what was computed inside a loop."""
        for memo in (self._memo, self._numbers):
            for key in [
                k for k, x in memo.items() if x.section is not None and x.section.rank >= inner.rank
            ]:
                del memo[key]

    # ---- inside the kept axes --------------------------------------------------------------------

    def _combine(self, section: Section, axes: list[Axis], outermost: bool) -> None:
        """Loops over the reduced axes, and what they give."""
        reductions = [
            r for r in self.sweep.roots if isinstance(r.rule, Reduce) and r not in self._columns
        ]
        width = 1 if self._vector_axis() is None else self.space.width
        blocked = self._is_long(axes)
        kept: dict[Item, Any] = {
            r: self._outlasting.get(r)
            or accumulator(
                self.language, section, r.rule.monoid, r.operands[0].dtype, width, blocked
            )
            for r in reductions
        }
        if not axes:
            self._body(section, kept)
        else:
            self._reduce(section.inside(), axes, kept, outermost)
        tail = section.inside()
        for root, one in kept.items():
            if root in self._outlasting:
                continue
            value = self.language.cast(one.result(tail, self.space.across), root.dtype)
            index = self._kept_index(root)
            if self.walk.rows and self._is_single(index):
                self._memo[root, index, None] = value
            if root in self._stored or root in self.walk.local:
                self._put(tail, root, value, index)

    def _is_long(self, axes: Sequence[Axis]) -> bool:
        if not axes:
            return False
        step = self.space.width if self.space.across else 1
        total: Length = 1
        for axis in axes:
            total = total * axis.length
        return type(total) is not int or total > 2 * BLOCK * step

    def _reduce(
        self, section: Section, axes: list[Axis], kept: dict[Item, Any], outermost: bool
    ) -> None:
        axis = axes[0]
        start, stop = self._range(axis, section, outermost)
        if len(axes) > 1:
            with section.loop(start, stop) as (inner, i):
                self._count(axis, inner, i)
                self._reduce(inner.inside(), axes[1:], kept, False)
            self._leave(inner)
            return
        wide = axis is self._vector_axis()
        pieces = self._steps(section, axis, start, stop) if wide else [(start, stop, False)]
        width = self.space.width if wide else 1
        outer_mask = self._mask
        if not self._is_long([axis]):
            for begin, end, mask in pieces:
                self._terms(section, axis, (begin, end, stop), mask, width, kept, outer_mask)
            self._flush(section, kept)
            return
        smin = self.language.module.declare("llvm.smin.i64", "i64", ["i64", "i64"])
        for begin, end, mask in pieces:
            with section.loop(begin, end, str(BLOCK * width)) as (block, b):
                far = block.value(f"add nsw i64 {b}, {BLOCK * width}")
                near = block.value(f"call i64 {smin}(i64 {far}, i64 {end})")
                inner = block.inside()
                self._terms(inner, axis, (b, near, stop), mask, width, kept, outer_mask)
                self._flush(block, kept)
            self._leave(block)
            self._mask = outer_mask

    def _flush(self, section: Section, kept: dict[Item, Any]) -> None:
        for one in kept.values():
            one.flush(section)

    def _terms(
        self, section: Section, axis: Axis, ends: tuple[str, str, str], masked: bool,
        width: int, kept: dict[Item, Any], outer_mask: Lane | None,
    ) -> None:
        """The innermost loop."""
        begin, end, stop = ends
        with section.loop(begin, end, str(width)) as (inner, i):
            if axis is self._vector_axis():
                self._enter(axis, inner, i, masked, stop)
            else:
                self._count(axis, inner, i)
            self._body(inner.inside(), kept)
        self._leave(inner)
        self._mask = outer_mask

    def _body(self, section: Section, kept: dict[Item, Any]) -> None:
        """Every root once."""
        index = self.space.index
        for root in self.sweep.roots:
            if root in self._columns:
                self._combine_in_memory(section, root)
                continue
            if root not in kept:
                value = root.rule.value(self, root, index, None)
                value = self.language.cast(value, root.dtype)
                self._memo[root, index, None] = value
                if root in self._stored or root in self.walk.local:
                    self._put(section, root, value, index)
                continue
            (x,) = root.operands
            value = self.read(x, index, None)
            if root.rule.monoid.startswith("arg"):
                value = (value, self._place(root))
            kept[root].step(section, value, self._mask)

    def _combine_in_memory(self, section: Section, root: Item) -> None:
        """One row more, place by place."""
        value = self.read(root.operands[0], self.space.index, None)
        index = self._kept_index(root)
        offset, factor = self._split(offset_of(index, strides_of(root.shape)))
        address = self._address(section, self._entry(root), offset, root.dtype)
        width = self.space.width if is_one(factor) else 1
        mask = self._mask if is_one(factor) else None
        now = load(self.language, section, address, root.dtype, width, mask)
        word = UFUNC[root.rule.monoid]  # type: ignore[attr-defined]
        new = self.language.cast(self.language.binary(word, value, now), root.dtype)
        store(self.language, section, address, new, width, mask)

    def _place(self, root: Item) -> Any:
        """The position among what is combined."""
        (x,) = root.operands
        axes = root.rule.axes  # type: ignore[attr-defined]
        lengths = [x.shape[k] for k in axes]
        forms = [self.space.index[k] for k in axes]
        return self.lane_of(offset_of(tuple(forms), strides_of(lengths)))

    def _is_single(self, index: tuple[Affine, ...]) -> bool:
        """Whether an index is one place of each row."""
        return all(c < self.walk.rows for form in index for c, _ in form.terms)

    def _kept_index(self, root: Item) -> tuple[Affine, ...]:
        axes = root.rule.axes  # type: ignore[attr-defined]
        return tuple(ZERO if k in axes else f for k, f in enumerate(self.space.index))

    # ---- what rules ask for ----------------------------------------------------------------------

    def read(self, item: Item, index: Index, mask: Lane | None) -> Any:
        """The element of an item at an index, where the mask holds."""
        if index == self.space.index:
            found = self._memo.get((item, index, None))
            if found is not None:
                return found
        key = item, index, None if mask is None else mask.name
        found = self._memo.get(key)
        if found is None:
            if item.is_root:
                found = self._load(item, index, mask)
            else:
                found = item.rule.value(self, item, index, mask)
            self._memo[key] = found
        return found

    def lane_of(self, form: Affine) -> Any:
        """A form as whole numbers."""
        base, factor = self._split(form)
        base = self.language.cast(base, I64)
        if type(factor) is int and factor == 0:
            return base
        return base + self._iota() * self._number(factor)

    def all_of(self, conditions: Sequence[Condition]) -> Any:
        """Whether all conditions hold; None if they always do."""
        found: Any = None
        for condition in conditions:
            lane = self._held(condition)
            found = self.both(found, lane)
        return found

    def both(self, one: Lane | None, two: Lane | None) -> Lane | None:
        """Where both masks hold."""
        if one is None or two is None:
            return one if two is None else two
        found: Lane = self.language.binary("logical_and", one, two)
        return found

    def _held(self, condition: Condition) -> Any:
        key = condition
        if key in self._memo:
            return self._memo[key]
        form, low, high = condition
        lane = self.lane_of(form)
        found: Any = None
        if not self._is_natural(form, low):
            found = self.language.compare("less_equal", self.language.cast(self._number(low), I64), lane)
        if not self._is_within(form, high):
            below = self.language.compare("less", lane, self.language.cast(self._number(high), I64))
            found = self.both(found, below)
        if found is not None:
            self._memo[key] = found
        return found

    def _is_natural(self, form: Affine, low: Length) -> bool:
        """Whether a form is never below a bound, as far as one can see."""
        numbers = [form.offset, *[f for _, f in form.terms]]
        return type(low) is int and all(type(n) is int for n in numbers) and (
            form.offset >= low and all(f >= 0 for _, f in form.terms)
        )

    def _is_within(self, form: Affine, high: Length) -> bool:
        """Whether a form is always below a bound, as far as one can see."""
        if not form.terms:
            return type(form.offset) is int and type(high) is int and form.offset < high
        if len(form.terms) > 1 or not is_one(form.terms[0][1]):
            return False
        length = next((a.length for a in self.space.axes if a.counter == form.terms[0][0]), None)
        return length is not None and form.offset == 0 and bool(length == high)

    # ---- memory ----------------------------------------------------------------------------------

    def _strides(self, item: Item) -> tuple[Length, ...]:
        """Of an item in memory; what is kept for one row only has no distance between rows."""
        strides = strides_of(item.shape)
        if item in self._stored or item not in self.walk.local:
            return strides
        return tuple(0 if k < self.walk.rows else n for k, n in enumerate(strides))

    def _load(self, item: Item, index: Index, mask: Lane | None) -> Any:
        offset, factor = self._split(offset_of(index, self._strides(item)))
        pointer = self._entry(item)
        width = self.space.width
        dtype = item.dtype
        if type(factor) is int and factor == 0:
            return self._load_one(item, pointer, offset, mask)
        exists = self.both(mask, self._mask)
        section = self._latest(pointer, offset, exists, self._counters[self._vector_axis().counter])  # type: ignore[union-attr]
        address = self._address(section, pointer, offset, dtype)
        if is_one(factor):
            return load(self.language, section, address, dtype, width, exists)
        steps = self.language.cast(self._iota() * self._number(factor), I64)
        steps = self.language.widened(steps, width)
        section = max(section, steps.section or section, key=lambda s: s.rank)
        kind = self._element(dtype)
        places = section.value(
            f"getelementptr {kind}, ptr {address}, <{width} x i64> {steps.name}"
        )
        return gather(self.language, section, places, dtype, width, exists)

    def _load_one(self, item: Item, pointer: Lane, offset: Any, mask: Lane | None) -> Any:
        """The same element for all lanes; under a mask only if some lane wants it."""
        section = self._latest(pointer, offset, mask)
        address = self._address(section, pointer, offset, item.dtype)
        if mask is not None:
            some = mask.name
            if mask.width > 1:
                callee = self.language.module.declare(
                    f"llvm.vector.reduce.or.v{mask.width}i1", "i1", [f"<{mask.width} x i1>"]
                )
                exists = self.both(mask, self._mask) or mask
                section = self._latest(pointer, offset, exists)
                some = section.value(f"call i1 {callee}(<{mask.width} x i1> {exists.name})")
            safe = self.function.slot("[16 x i8]", 16)
            self._head.write(f"store [16 x i8] zeroinitializer, ptr {safe}")
            address = section.value(f"select i1 {some}, ptr {address}, ptr {safe}")
        return load(self.language, section, address, item.dtype, 1, None)

    def _put(self, section: Section, root: Item, value: Any, index: Index) -> None:
        offset, factor = self._split(offset_of(index, self._strides(root)))
        pointer = self._entry(root)
        address = self._address(section, pointer, offset, root.dtype)
        if type(factor) is int and factor == 0:
            store(self.language, section, address, value, 1, None)
            return
        width = self.space.width
        if is_one(factor):
            store(self.language, section, address, value, width, self._mask)
            return
        steps = self.language.widened(self.language.cast(self._iota() * self._number(factor), I64), width)
        places = section.value(
            f"getelementptr {self._element(root.dtype)}, ptr {address}, "
            f"<{width} x i64> {steps.name}"
        )
        scatter(self.language, section, places, value, width, self._mask)

    def _element(self, dtype: Any) -> str:
        kind = in_memory(part_of(dtype))
        return f"[2 x {kind}]" if dtype.kind == "c" else kind

    def _address(self, section: Section, pointer: Lane, offset: Any, dtype: Any) -> str:
        if type(offset) is int and offset == 0:
            return pointer.name
        return section.value(
            f"getelementptr {self._element(dtype)}, ptr {pointer.name}, i64 {self._name(offset)}"
        )

    def _entry(self, key: Any) -> Lane:
        """What the table holds: an address, or a size."""
        found = self._entries.get(key)
        if found is None and key in self.walk.local and key not in self._stored:
            found = self._entries[key] = self._scratched(key)
        if found is None:
            place = self._head.value(f"getelementptr i64, ptr %table, i64 {len(self.table)}")
            kind = "i64" if isinstance(key, str) else "ptr"
            name = self._head.value(f"load {kind}, ptr {place}")
            found = self._entries[key] = Lane(self.language, self._head, name, I64, 1)
            self.table.append(key)
        if key in self._own and key not in self._columns:
            return Lane(self.language, self._floor, found.name, I64, 1)
        return found

    def _scratched(self, item: Item) -> Lane:
        """Memory for one row of what only this walk needs."""
        size = size_of(item.shape[self.walk.rows :]) * item.dtype.itemsize
        if type(size) is int and size <= _ON_STACK:
            name = self.function.slot(f"[{size} x i8]", 64)
        else:
            allocate = self.language.module.declare("malloc", "ptr", ["i64"])
            count = self._name(self._number(size))
            name = self._head.value(f"call ptr {allocate}(i64 {count})")
            self._scratch.append(name)
            none = self._head.value(f"icmp eq ptr {name}, null")
            n = self.function.number()
            self._head.write(f"br i1 {none}, label %none{n}, label %some{n}")
            self._head.label(f"none{n}")
            self._head.write("ret i64 3")
            self._head.label(f"some{n}")
        return Lane(self.language, self._head, name, I64, 1)

    # ---- numbers ---------------------------------------------------------------------------------

    def _number(self, length: Length) -> Any:
        """A length: an int, or a lane computed before the loops."""
        if not isinstance(length, Dim):
            return length
        found = self._numbers.get(length)
        if found is None:
            sizes = {name: self._entry(name) for name in names_in((length,))}
            found = self._numbers[length] = length.replace(sizes)  # type: ignore[arg-type]
        return found

    def _split(self, form: Affine) -> tuple[Any, Any]:
        """A form without the vector counter's lanes, and the factor of that counter."""
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
                term = self._counters[c] if is_one(f) else self._counters[c] * self._number(f)
                total = term if type(total) is int and total == 0 else term + total
            if isinstance(total, Lane):
                self._numbers[key] = total
        return total, factor

    def _iota(self) -> Lane:
        lanes = ", ".join(f"i64 {k}" for k in range(self.space.width))
        lane = Lane(self.language, self._head, f"<{lanes}>", I64, self.space.width)
        return lane

    def _name(self, number: Any) -> str:
        return number.name if isinstance(number, Lane) else str(number)

    def _latest(self, *lanes: Any) -> Section:
        sections = [x.section for x in lanes if isinstance(x, Lane) and x.section is not None]
        return max([self._head, *sections], key=lambda s: s.rank)


def extent_of(nest: Nest) -> Length:
    """How far the outermost loop goes."""
    rows = [n for n in nest.sweep.space[: nest.walk.rows] if not is_one(n)]
    if rows:
        return rows[0]
    return nest.space.axes[0].length if nest.space.axes else 1


