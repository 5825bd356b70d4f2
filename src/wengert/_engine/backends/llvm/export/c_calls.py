"""Calls of functions and of LLVM's intrinsics, as C.

    FunctionCalls    prints the calls of a function

Vector functions (`leaf.exp.f64`) have no effects and become parts of expressions.  A masked load or
store of a vector is one for each lane, if its flag is set.

Instructions without control flow, as expressions and statements of C.

FunctionOperations    loads, stores, addresses, arithmetic, vectors as their lanes

A vector is one expression for each lane; rearranging lanes has no cost.
"""

from __future__ import annotations

import re

from . import c_values
from .c_names import Called, Line, call_of, typed
from .c_types import SCALARS, CType, kind_of, split, suffix
from .c_values import MEMORY, FunctionValues, bare, c_name, offsets
from .c_vectors import is_vector, parts_of, selected, suffix_of, vector_literal

_CONVERSIONS = frozenset(
    "bitcast trunc zext sext fptrunc fpext fptosi fptoui sitofp uitofp ptrtoint".split()
)


class FunctionOperations(FunctionValues):
    """Prints the instructions of a function."""

    def _store(self, line: Line) -> None:
        first, second = split(line.rest)[:2]
        kind_text, operand = typed(first)
        kind, place = kind_of(kind_text), typed(second)[1]
        lanes, _ = self._lanes(kind, operand)
        slot = place[1:]
        if slot in self._slots:
            self._evaluate(slot)
            if slot in self._unread:
                return
            for variable, text in zip(self._names(self._c(slot), kind), lanes, strict=True):
                self._write(f"{variable} = {bare(text)};")
            return
        (address,), _ = self._lanes(kind_of("ptr"), place)
        self._evaluate(MEMORY)
        if kind.count:
            assert operand == "zeroinitializer", line
            self._write(f"wg_fill({address}, 0, {kind.size});")
            return
        for (offset, scalar), text in zip(offsets(kind), lanes, strict=True):
            at = f"{address} + {offset}" if offset else bare(address)
            self._write(f"wg_store_{suffix(scalar)}({at}, {bare(text)});")

    def _load(self, line: Line) -> None:
        kind, _ = self._access(line)
        place = typed(split(line.rest)[1])[1]
        if place[1:] in self._slots:
            names = self._names(self._c(place[1:]), kind)
            self._value(line, kind, names, frozenset({place[1:]}))
            return
        (address,), reads = self._lanes(kind_of("ptr"), place)
        lanes = [
            f"wg_load_{suffix(s)}({f'{address} + {o}' if o else bare(address)})"
            for o, s in offsets(kind)
        ]
        self._value(line, kind, lanes, reads | {MEMORY})

    def _pure(self, line: Line) -> None:
        """An instruction without effects."""
        op, rest = line.op, line.rest
        if op == "getelementptr":
            self._address(line)
        elif op in ("extractvalue", "insertvalue"):
            self._member(line)
        elif op in ("insertelement", "extractelement", "shufflevector"):
            self._shuffled(line)
        elif op in _CONVERSIONS:
            source, _, target = rest.rpartition(" to ")
            kind_text, operand = typed(source)
            kind, result = kind_of(kind_text), kind_of(target)
            lanes, reads = self._lanes(kind, operand)
            if (kind.scalars[0], result.scalars[0]) == ("i64", "i32") and op == "bitcast":
                halves = [f"(uint32_t)((uint64_t){x}{by})" for x in lanes for by in ("", " >> 32")]
                self._value(line, result, halves, reads)
                return
            made = [
                c_values.expression(op, k, [x], t)
                for x, k, t in zip(lanes, kind.scalars, result.scalars, strict=True)
            ]
            self._value(line, result, made, reads)
        elif op == "select":
            (test, one, two) = (typed(p) for p in split(rest))
            kind = kind_of(one[0])
            flags, r0 = self._lanes(kind_of(test[0]), test[1])
            a, r1 = self._lanes(kind, one[1])
            b, r2 = self._lanes(kind, two[1])
            if is_vector(kind.scalar) and is_vector(test[0]):
                made = [selected(kind.scalar, flags[0], a[0], b[0])]
                self._value(line, kind, made, r0 | r1 | r2)
                return
            flags = flags * (len(kind.scalars) // len(flags))
            made = [
                c_values.expression("select", k, given)
                for k, *given in zip(kind.scalars, flags, a, b, strict=True)
            ]
            self._value(line, kind, made, r0 | r1 | r2)
        else:
            self._operation(line)

    def _operation(self, line: Line) -> None:
        op, rest = line.op, line.rest
        if op in ("icmp", "fcmp"):
            relation, _, rest = rest.partition(" ")
            op = f"{op} {relation}"
        parts = split(rest)
        kind_text, first = typed(parts[0])
        kind = kind_of(kind_text)
        reads: frozenset[str] = frozenset()
        operands = []
        for operand in (first, *parts[1:]):
            lanes, more = self._lanes(kind, operand)
            operands.append(lanes)
            reads |= more
        if line.op == "icmp" and parts[1] == first:
            relation = line.rest.split(" ", 1)[0]
            made = [str(int(relation.endswith(("eq", "ge", "le"))))] * len(kind.scalars)
            if is_vector(kind.scalar):
                made = [vector_literal(made[0], f"<{parts_of(kind.scalar)[0]} x i1>")]
        else:
            made = [
                c_values.expression(op, k, list(given))
                for k, *given in zip(kind.scalars, *operands, strict=True)
            ]
        result = kind
        if line.op in ("icmp", "fcmp"):
            result = CType(("i1",) * len(kind.scalars), is_several=kind.is_several)
            if is_vector(kind.scalar):
                result = CType((f"<{parts_of(kind.scalar)[0]} x i1>",))
        self._value(line, result, made, reads)

    def _address(self, line: Line) -> None:
        element, base, index = split(line.rest)
        size = kind_of(element).size
        (pointer,), r0 = self._lanes(kind_of("ptr"), typed(base)[1])
        index_kind, number = typed(index)
        kind = kind_of(index_kind)
        indices, r1 = self._lanes(kind, number)
        if is_vector(kind.scalar):
            self._addresses(line, pointer, indices[0], kind, size, r0 | r1)
            return
        made = []
        for one in indices:
            if number.lstrip("-").isdigit():
                offset = int(number) * size
                made.append(f"({pointer} + {offset})" if offset > 0 else f"({pointer} - {-offset})")
                if not offset:
                    made[-1] = pointer
            else:
                signed = f"(int{8 * kind_of(kind.scalar).size}_t){one}"
                made.append(f"({pointer} + {signed}{f' * {size}' if size > 1 else ''})")
        result = CType(("ptr",) * len(indices), is_several=kind.is_several)
        self._value(line, result, made, r0 | r1)

    def _addresses(
        self, line: Line, pointer: str, index: str, kind: CType, size: int, reads: frozenset[str]
    ) -> None:
        """A vector of addresses, as integers."""
        count, scalar = parts_of(kind.scalar)
        result = CType((f"<{count} x ptr>",))
        pointer = vector_literal(f"((uint64_t)(uintptr_t){pointer})", result.scalar)
        wide = c_values.expression("sext", kind.scalar, [index], f"<{count} x i64>")
        index = index if scalar == "i64" else wide
        factor = f" * UINT64_C({size})" if size > 1 else ""
        self._value(line, result, [f"({pointer} + {index}{factor})"], reads)

    def _member(self, line: Line) -> None:
        parts = split(line.rest)
        kind_text, operand = typed(parts[0])
        kind, place = kind_of(kind_text), int(parts[-1])
        lanes, reads = self._lanes(kind, operand)
        if line.op == "extractvalue":
            self._value(line, kind_of(kind.scalars[place]), [lanes[place]], reads)
            return
        (value,), more = self._lanes(kind_of(kind.scalars[place]), typed(parts[1])[1])
        made = [*lanes[:place], value, *lanes[place + 1 :]]
        self._value(line, kind, made, reads | more)

    def _shuffled(self, line: Line) -> None:
        parts = [typed(p) for p in split(line.rest)]
        kind = kind_of(parts[0][0])
        lanes, reads = self._lanes(kind, parts[0][1])
        if is_vector(kind.scalar):
            self._vector_shuffled(line, parts, kind, lanes[0], reads)
            return
        one = CType(kind.scalars[:1])
        if line.op == "extractelement":
            self._value(line, one, [lanes[int(parts[1][1])]], reads)
        elif line.op == "insertelement":
            (value,), more = self._lanes(one, parts[1][1])
            place = int(parts[2][1])
            made = [*lanes[:place], value, *lanes[place + 1 :]]
            self._value(line, kind, made, reads | more)
        else:
            other, more = self._lanes(kind, parts[1][1])
            mask_kind, mask = parts[2]
            count = len(kind_of(mask_kind).scalars)
            if mask == "zeroinitializer":
                order = [0] * count
            else:
                order = [int(typed(p)[1]) for p in split(mask[1:-1])]
            both = [*lanes, *other]
            result = CType(kind.scalars[:1] * count, is_several=True)
            self._value(line, result, [both[k] for k in order], reads | more)

    def _vector_shuffled(
        self, line: Line, parts: list[tuple[str, str]], kind: CType, x: str, reads: frozenset[str]
    ) -> None:
        """The same for a value of a vector type."""
        suffix, scalar = suffix_of(kind.scalar), parts_of(kind.scalar)[1]
        if line.op == "extractelement":
            made = f"wg_lane_{suffix}({bare(x)}, {parts[1][1]})"
            made = f"(-(int){made})" if scalar == "i1" else made
            made = f"((char *)(uintptr_t){made})" if scalar == "ptr" else made
            self._value(line, CType((scalar,)), [made], reads)
            return
        if line.op == "insertelement":
            (value,), more = self._lanes(CType((scalar,)), parts[1][1])
            value = f"(-{value})" if scalar == "i1" else bare(value)
            value = f"(uint64_t)(uintptr_t)({value})" if scalar == "ptr" else value
            if parts[0][1] in ("poison", "undef") and parts[2][1] == "0":
                made = f"wg_splat_{suffix}({value})"  # which other lanes is not said
            else:
                made = f"wg_insert_{suffix}({bare(x)}, {value}, {parts[2][1]})"
            self._value(line, kind, [made], reads | more)
            return
        (other,), more = self._lanes(kind, parts[1][1])
        mask_kind, mask = parts[2]
        count = parts_of(mask_kind)[0]
        result = CType((f"<{count} x {scalar}>",))
        if mask == "zeroinitializer":
            made = f"wg_splat_{suffix_of(result.scalar)}(wg_lane_{suffix}({bare(x)}, 0))"
        else:
            order = ", ".join(typed(p)[1] for p in split(mask[1:-1]))
            made = f"__builtin_shufflevector({bare(x)}, {bare(other)}, {order})"
        self._value(line, result, [made], reads | more)


_INTRINSIC = re.compile(r"llvm\.((?:[a-z]+\.)*?[a-z]+)((?:\.(?:v\d+)?(?:i\d+|f\d+|p\d+))*)$")
_OVERFLOW = {"sadd": "add", "ssub": "sub", "smul": "mul", "umul": "mul"}
_JOINED = {"add": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_IGNORED = frozenset({"prefetch", "lifetime.start", "lifetime.end", "assume"})


class FunctionCalls(FunctionOperations):
    """Prints the calls of a function."""

    def _call(self, line: Line) -> None:
        called = call_of(line)
        if called.name.startswith("llvm."):
            match = _INTRINSIC.match(called.name)
            assert match is not None, called.name
            self._intrinsic(line, called, match[1])
            return
        if called.name == "wengert_parallel":  # one part, by a function that is known
            function, frame, start, stop, *_ = [a for _, a in called.arguments]
            places, _ = self._lanes(kind_of("ptr"), frame)
            ends = [self._lanes(kind_of("i64"), x)[0][0] for x in (start, stop)]
            self._evaluate(MEMORY)
            passed = f"{bare(places[0])}, {bare(ends[0])}, {bare(ends[1])}, 0u, memory"
            name = c_name(function[1:])
            self._write(f"if ((int64_t){ends[0]} < (int64_t){ends[1]}) {name}({passed});")
            return
        given, reads = self._given(called)
        text = f"{c_name(called.name)}({', '.join(map(bare, given))})"
        kind = None if called.kind == "void" else kind_of(called.kind)
        if called.name.startswith("leaf.") and kind is not None and not kind.is_several:
            self._value(line, kind, [text], reads)
            return
        self._evaluate(MEMORY)
        if kind is None or not self._uses[line.result]:
            self._write(f"{text};")
        elif kind.is_several:
            whole = f"{self._c(line.result)}_s"
            self._declared.setdefault(self._struct(kind).c, []).append(whole)
            self._write(f"{whole} = {text};")
            self._kinds[line.result] = kind
            self._values[line.result] = [f"{whole}.m{k}" for k in range(len(kind.scalars))]
        else:
            (variable,) = self._bind(line.result, kind, self._c(line.result))
            self._write(f"{variable} = {text};")
            self._declare(line.result, kind)

    def _given(self, called: Called) -> tuple[list[str], frozenset[str]]:
        """The arguments, lane by lane, and what they read."""
        given: list[str] = []
        reads: frozenset[str] = frozenset()
        for kind, operand in called.arguments:
            lanes, more = self._lanes(kind_of(kind), operand)
            given += lanes
            reads |= more
        return given, reads

    def _intrinsic(self, line: Line, called: Called, name: str) -> None:
        if name in _IGNORED:
            return
        if name.startswith("masked."):
            self._masked(line, called, name.partition(".")[2])
        elif name in ("memcpy", "memmove", "memset"):
            given, _ = self._given(called)
            self._evaluate(MEMORY)
            helper = "wg_fill" if name == "memset" else "wg_copy"
            self._write(f"{helper}({', '.join(map(bare, given[:3]))});")
        elif name.endswith(".with.overflow"):
            way = name.partition(".")[0]
            (a, b), reads = self._given(called)
            kind = called.arguments[0][0]
            value = c_values.expression(_OVERFLOW[way], kind, [a, b])
            overflow = f"wg_overflow_{way}_{kind}({a}, {b})"
            self._value(line, kind_of(called.kind), [value, overflow], reads)
        elif name.startswith("vector.reduce."):
            self._reduced(line, called, name.rpartition(".")[2])
        else:
            self._elementwise(line, called, name)

    def _elementwise(self, line: Line, called: Called, name: str) -> None:
        kind = kind_of(called.kind)
        columns = []
        reads: frozenset[str] = frozenset()
        for text, operand in called.arguments:
            own = kind_of(text)
            lanes, more = self._lanes(own, operand)
            columns.append(lanes if own.is_several else lanes * len(kind.scalars))
            reads |= more
        made = []
        for scalar, *given in zip(kind.scalars, *columns, strict=True):
            one = c_values.intrinsic(name, scalar, list(given))
            if one is None and is_vector(scalar):
                one = self._lane_by_lane(name, scalar, called, given)
            assert one is not None, f"{called.name} has no form in C"
            made.append(one)
        self._value(line, kind, made, reads)

    def _lane_by_lane(self, name: str, kind: str, called: Called, given: list[str]) -> str | None:
        """An intrinsic of vectors, as one of each lane."""
        count, scalar = parts_of(kind)
        lanes = []
        for k in range(count):
            operands = [
                f"wg_lane_{suffix(text)}({bare(x)}, {k})" if is_vector(text) else x
                for (text, _), x in zip(called.arguments, given, strict=True)
            ]
            one = c_values.intrinsic(name, scalar, operands)
            if one is None:
                return None
            lanes.append(bare(one))
        return vector_literal(lanes, kind)

    def _reduced(self, line: Line, called: Called, way: str) -> None:
        """The lanes of a vector combined, one after the other."""
        given, reads = self._given(called)
        scalar = kind_of(called.arguments[-1][0]).scalar
        if is_vector(scalar):
            count, lane = parts_of(scalar)
            whole = given.pop()
            if lane == "i1":
                test = {"or": "any", "and": "all"}[way]
                self._value(line, kind_of("i1"), [f"wg_{test}_{suffix(scalar)}({whole})"], reads)
                return
            given += [f"wg_lane_{suffix(scalar)}({whole}, {k})" for k in range(count)]
            scalar = lane
        total, *rest = given
        for x in rest:
            if way in ("fadd", "fmul") or way in _JOINED:
                total = c_values.expression(way, scalar, [total, x])
            else:
                name = {"fmaximum": "maximum", "fminimum": "minimum"}.get(way, way)
                one = c_values.intrinsic(name, scalar, [total, x])
                assert one is not None, way
                total = one
        self._value(line, kind_of(called.kind), [total], reads)

    def _masked(self, line: Line, called: Called, way: str) -> None:
        operands = []
        reads: frozenset[str] = frozenset()
        for text, operand in called.arguments:
            lanes, more = self._lanes(kind_of(text), operand)
            operands.append(lanes)
            reads |= more
        loads = way in ("load", "gather")
        kind = kind_of(called.kind if loads else called.arguments[0][0])
        if loads:
            places, _, flags, others = operands
        else:
            values, places, _, flags = operands
        if is_vector(kind.scalar):
            self._masked_vector(line, way, kind, operands, reads)
            return
        at = self._places(kind, places, way in ("gather", "scatter"))
        if loads:
            made = [
                f"({flag} ? wg_load_{suffix(s)}({bare(place)}) : {other})"
                for s, place, flag, other in zip(kind.scalars, at, flags, others, strict=True)
            ]
            self._value(line, kind, made, reads | {MEMORY})
            return
        self._evaluate(MEMORY)
        for s, place, flag, value in zip(kind.scalars, at, flags, values, strict=True):
            self._write(f"if ({bare(flag)}) wg_store_{suffix(s)}({bare(place)}, {bare(value)});")

    def _masked_vector(
        self, line: Line, way: str, kind: CType, operands: list[list[str]], reads: frozenset[str]
    ) -> None:
        end = suffix(kind.scalar)
        if way in ("load", "gather"):
            (place,), _, (flags,), (others,) = operands
            helper = f"wg_{'mload' if way == 'load' else way}_{end}"
            made = f"{helper}({bare(place)}, {bare(flags)}, {bare(others)})"
            self._value(line, kind, [made], reads | {MEMORY})
            return
        (value,), (place,), _, (flags,) = operands
        self._evaluate(MEMORY)
        helper = f"wg_{'mstore' if way == 'store' else way}_{end}"
        self._write(f"{helper}({bare(place)}, {bare(flags)}, {bare(value)});")

    def _places(self, kind: CType, places: list[str], are_several: bool) -> list[str]:
        """The address of each lane."""
        if are_several:
            return places
        assert all(s in SCALARS for s in kind.scalars)
        return [f"({places[0]} + {o})" if o else places[0] for o, _ in offsets(kind)]
