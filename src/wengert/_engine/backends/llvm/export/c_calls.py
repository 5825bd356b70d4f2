"""Calls of functions and of LLVM's intrinsics, as C.

    FunctionCalls    prints the calls of a function

Vector functions (`leaf.exp.f64`) have no effects and become parts of expressions.  A masked load or
store of a vector is one for each lane, if its flag is set.
"""

from __future__ import annotations

import re

from . import c_expressions
from .c_helpers import suffix
from .c_lines import Called, Line, call_of
from .c_operations import FunctionOperations
from .c_types import SCALARS, CType, kind_of
from .c_values import MEMORY, bare, c_name, offsets
from .c_vectors import is_vector, parts_of, vector_literal

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
            value = c_expressions.expression(_OVERFLOW[way], kind, [a, b])
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
            one = c_expressions.intrinsic(name, scalar, list(given))
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
            one = c_expressions.intrinsic(name, scalar, operands)
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
                total = c_expressions.expression(way, scalar, [total, x])
            else:
                name = {"fmaximum": "maximum", "fminimum": "minimum"}.get(way, way)
                one = c_expressions.intrinsic(name, scalar, [total, x])
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
