"""Values of a function that is printed as C: variables, or expressions for later.

    expression    an instruction on values, for each lane
    INTRINSICS    functions of LLVM as expressions

Each function takes C expressions of operands and returns one.  Operands are names, constants or
enclosed in parentheses.

    FunctionValues    the values and stack slots of a function; printers derive from it
    c_name            the name of a value, a function or a constant

Values that are used once, in the block where they are computed, become parts of expressions; others
become variables.  Stack slots that are only loaded and stored as a whole become variables, which is
what counters and accumulators are.  An expression that reads a slot or memory is evaluated before
the next statement that may write it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .c_names import Line, lines_of, typed
from .c_types import LIBM, SCALARS, SIGNED, CType, kind_of, literal, split
from .c_vectors import are_vectors, is_vector, vector_expression, vector_intrinsic, vector_literal

_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
_FLOATING = {"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/"}
_RELATIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "i128": 128}
_SUFFIX = {"double": "f64", "float": "f32"}


def expression(op: str, kind: str, operands: Sequence[str], flags: str = "") -> str:
    """The expression of an instruction.

    Parameters
    ----------
    op : str
        The instruction: "add", "icmp slt".
    kind : str
        The LLVM type of its operands.
    operands : sequence of str
    flags : str
        The type of the result of a conversion.
    """
    word, _, relation = op.partition(" ")
    if is_vector(kind) and word != "select":
        return vector_expression(op, kind, operands, flags)
    if word in _ARITHMETIC:
        return _integer(word, kind, *operands)
    if word in _FLOATING:
        return f"({operands[0]} {_FLOATING[word]} {operands[1]})"
    if word == "fneg":
        return f"(-{operands[0]})"
    if word in ("shl", "lshr", "ashr"):
        return _shifted(word, kind, *operands)
    if word in ("sdiv", "srem", "udiv", "urem"):
        sign = "/" if word.endswith("div") else "%"
        if word.startswith("u"):
            return _wrapped(kind, f"{operands[0]} {sign} {operands[1]}")
        a, b = (f"({SIGNED[kind]}){x}" for x in operands)
        return f"({SCALARS[kind][0]})({a} {sign} {b})"
    if word == "icmp":
        return _compared(relation, kind, *operands)
    if word == "fcmp":
        return _float_compared(relation, *operands)
    if word == "select":
        return f"({operands[0]} ? {operands[1]} : {operands[2]})"
    if word == "freeze":
        return operands[0]
    return _converted(word, kind, operands[0], flags)


def _wrapped(kind: str, text: str) -> str:
    """An integer of less bits than C computes with."""
    if kind in ("i8", "i16"):
        return f"({SCALARS[kind][0]})({text})"
    return f"(({text}) & 1)" if kind == "i1" else f"({text})"


def _integer(word: str, kind: str, a: str, b: str) -> str:
    sign = _ARITHMETIC[word]
    if kind == "i128":
        return f"wg_wide_{'sum' if word == 'add' else 'product'}({a}, {b})"
    if kind == "i1" and word in ("add", "sub"):
        sign = "^"
    if word in ("and", "or", "xor"):
        return (
            f"({a} {sign} {b})" if kind not in ("i8", "i16") else _wrapped(kind, f"{a} {sign} {b}")
        )
    if kind == "i16" and word == "mul":
        a = f"(uint32_t){a}"
    return _wrapped(kind, f"{a} {sign} {b}")


def _shifted(word: str, kind: str, a: str, b: str) -> str:
    if kind == "i128":
        assert word == "lshr" and "(64u)" in b, (word, b)
        return f"wg_wide_high({a})"
    sign = "<<" if word == "shl" else ">>"
    if word == "ashr":
        return f"({SCALARS[kind][0]})(({SIGNED[kind]}){a} >> {b})"
    if kind in ("i8", "i16"):
        a = f"(uint32_t){a}"
    if kind == "i64" and a.rstrip("u").isdigit():  # C takes it for a number of 32 bits
        a = f"(uint64_t){a}"
    return _wrapped(kind, f"{a} {sign} {b}")


def _compared(relation: str, kind: str, a: str, b: str) -> str:
    sign = _RELATIONS[relation[-2:]]
    if kind == "ptr":
        return f"({a} {sign} {b})"
    if relation[0] == "s" and kind != "i1":
        if a.rstrip("u").isdigit() and b.rstrip("u").isdigit():
            bits = _BITS[kind]
            x, y = (int(v.rstrip("u")) for v in (a, b))
            x, y = (v - (1 << bits) if v >> (bits - 1) else v for v in (x, y))
            holds = {"lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[relation[1:]]
            return str(int(holds))
        a, b = (f"({SIGNED[kind]}){x}" for x in (a, b))
    elif relation in ("uge", "ult") and b == "0u":
        return str(int(relation == "uge"))
    return f"({a} {sign} {b})"


def _float_compared(relation: str, a: str, b: str) -> str:
    if relation in ("uno", "ord"):
        sign, joined = ("!=", "||") if relation == "uno" else ("==", "&&")
        return f"({a} {sign} {a})" if a == b else f"({a} {sign} {a} {joined} {b} {sign} {b})"
    if relation in ("oeq", "une"):
        return f"({a} {_RELATIONS[relation[1:] if relation == 'oeq' else 'ne']} {b})"
    if relation == "one":
        return f"({a} < {b} || {a} > {b})"
    if relation == "ueq":
        return f"(!({a} < {b} || {a} > {b}))"
    if relation[0] == "o":
        return f"({a} {_RELATIONS[relation[1:]]} {b})"
    opposite = {"lt": ">=", "le": ">", "gt": "<=", "ge": "<"}[relation[1:]]
    return f"(!({a} {opposite} {b}))"


def _converted(word: str, kind: str, a: str, to: str) -> str:
    c = SCALARS[to][0]
    if word == "bitcast":
        if kind == to:
            return a
        way = "bits" if kind in _SUFFIX else "number"
        return f"wg_{way}_{_SUFFIX[kind if way == 'bits' else to]}({a})"
    if to == "i128":
        return f"wg_widened({a})"
    if kind == "i128":
        return f"({a}.low)" if to == "i64" else f"({c})({a}.low)"
    if word == "trunc":
        return f"(int)({a} & 1)" if to == "i1" else f"({c})({a})"
    if word == "zext":
        return f"({c}){a}"
    if word == "sext":
        return f"(({c})-(int){a})" if kind == "i1" else f"({c})({SIGNED[to]})({SIGNED[kind]}){a}"
    if word == "sitofp":
        return f"({c})({SIGNED[kind]}){a}" if kind != "i1" else f"({c})-{a}"
    if word == "fptosi":
        return f"({c})({SIGNED[to]}){a}" if to != "i1" else f"(int){a}"
    if word in ("uitofp", "fptoui", "fpext", "fptrunc"):
        return f"({c}){a}"
    if word == "ptrtoint":
        return f"(uint64_t)(uintptr_t){a}"
    raise AssertionError(f"the instruction {word} has no form in C")


def intrinsic(name: str, kind: str, operands: Sequence[str]) -> str | None:
    """A call of an intrinsic of LLVM on values of a type; None if it has no expression.

    Parameters
    ----------
    name : str
        Without ``llvm.`` and the type: "smin", "fma".
    """
    if is_vector(kind):
        return vector_intrinsic(name, kind, operands)
    single = "f" if kind == "float" else ""
    if name in LIBM:
        return f"{LIBM[name]}{single}({', '.join(operands)})"
    if name in ("maximum", "minimum"):
        return f"wg_{name}_{_SUFFIX[kind]}({', '.join(operands)})"
    if name in ("smin", "smax", "umin", "umax"):
        a, b = operands
        sign = "<" if name.endswith("min") else ">"
        x, y = (f"({SIGNED[kind]}){v}" if name[0] == "s" else v for v in operands)
        return f"({x} {sign} {y} ? {a} : {b})"
    if name == "abs":
        (a, *_) = operands
        return f"(({SIGNED[kind]}){a} < 0 ? {expression('sub', kind, ['0u', a])} : {a})"
    if name in ("ctlz", "cttz"):
        way = "leading" if name == "ctlz" else "trailing"
        return f"wg_{way}_{kind}({operands[0]})"
    if name == "fshr" and kind == "i64":
        return f"wg_shifted_i64({', '.join(operands)})"
    return None


# ---- variables -----------------------------------------------------------------------------------


_HEAD = re.compile(r"define (?:internal )?(?:preserve_allcc )?(.*?)@([-\w.$]+)\(([^()]*)\)")
_BITCAST = re.compile(r"bitcast \((\w+) (\S+) to (\w+)\)")
_REPEATED = re.compile(r"@llvm\.(([su](min|max)|abs)\b|\w+\.with\.overflow)")
_REPEATED_LANES = re.compile(r"@llvm\.(?!(fma|sqrt|fabs|masked)\b)")  # lane by lane
_LONGEST = 160  # characters of an expression within another one
MEMORY = "memory"


def c_name(name: str) -> str:
    """The name of a value, a function or a constant in C."""
    return re.sub(r"[^0-9A-Za-z_]", "_", name)


@dataclass
class _Unevaluated:
    """The expressions of a value that is not yet evaluated, one for each lane.

    reads : the slots and the memory that they read.
    """

    kind: CType
    lanes: list[str]
    reads: frozenset[str]


class FunctionValues:
    """The values of one function.

    Parameters
    ----------
    text : str
        Its definition.
    structs : dict from str to CType
        Receives the types with several values that it uses.
    signature : str, optional
        The head of the function in C, if it is not internal.
    prefix : mapping from str to str
        Statements that define arguments of such a function, by their names.
    """

    def __init__(
        self,
        text: str,
        structs: dict[str, CType],
        signature: str = "",
        prefix: Mapping[str, str] | None = None,
    ) -> None:
        head = _HEAD.match(text.split("\n", 1)[0])
        assert head is not None, text.split("\n", 1)[0]
        self.result, self.name = head[1].strip(), head[2]
        self._structs, self._signature, self._prefix = structs, signature, dict(prefix or {})
        self._arguments = [typed(a) for a in split(head[3])]
        self._lines = lines_of(text)
        self._uses = Counter(n for line in self._lines for n in line.uses)
        self._values: dict[str, list[str]] = {}
        self._kinds: dict[str, CType] = {}
        self._pending: dict[str, _Unevaluated] = {}
        self._slots: dict[str, CType] = {}  # those that are variables
        self._declared: dict[str, list[str]] = {}
        self._body: list[str] = []
        self._depth = 1
        repeated = _REPEATED_LANES if are_vectors() else _REPEATED
        self._repeated = {
            n
            for line in self._lines
            if (line.op == "fcmp" and line.rest.split()[0] in ("one", "ueq", "uno", "ord"))
            or (line.op == "call" and repeated.search(line.rest))
            for n in line.uses
        }
        self._find_slots()
        self._blocks = self._block_of_uses()

    # ---- before printing -----------------------------------------------------------------------

    def _find_slots(self) -> None:
        """The stack slots that are variables: only loaded and stored as a whole."""
        slots = {
            line.result: kind_of(split(line.rest)[0]) for line in self._lines if line.op == "alloca"
        }
        whole: Counter[str] = Counter()
        for line in self._lines:
            if line.op in ("load", "store"):
                kind, place = self._access(line)
                if place in slots and slots[place] == kind and not kind.count:
                    whole[place] += 1
        self._slots = {n: k for n, k in slots.items() if whole[n] == self._uses[n]}
        loaded = {self._access(x)[1] for x in self._lines if x.op == "load"}
        self._unread = {n for n in self._slots if n not in loaded}

    def _access(self, line: Line) -> tuple[CType, str]:
        """The type that a load or store accesses, and the name of the address."""
        first, second = split(line.rest)[:2]
        kind = kind_of(first) if line.op == "load" else kind_of(typed(first)[0])
        return kind, typed(second)[1].lstrip("%")

    def _block_of_uses(self) -> dict[str, set[int]]:
        """The blocks in which each value is used or computed."""
        found: dict[str, set[int]] = {}
        block = 0
        for line in self._lines:
            if line.op == "label":
                block += 1
            for name in (*line.uses, *([line.result] if line.result else [])):
                found.setdefault(name, set()).add(block)
        return found

    # ---- values --------------------------------------------------------------------------------

    def _c(self, name: str) -> str:
        """The variable of a value; two underscores keep it apart from names of the user."""
        return f"{c_name(name)}__" if self._signature else c_name(name)

    def _names(self, name: str, kind: CType) -> list[str]:
        if not kind.is_several:
            return [name]
        return [f"{name}_{k}" for k in range(len(kind.scalars))]

    def _bind(self, name: str, kind: CType, variable: str) -> list[str]:
        self._kinds[name] = kind
        self._values[name] = self._names(variable, kind)
        return self._values[name]

    def _struct(self, kind: CType) -> CType:
        if kind.is_several:
            self._structs[kind.struct] = kind
        return kind

    def _lanes(self, kind: CType, operand: str) -> tuple[list[str], frozenset[str]]:
        """The expressions of an operand, and what they read."""
        count = len(kind.scalars)
        if operand.startswith("%"):
            name = operand[1:]
            pending = self._pending.pop(name, None)
            if pending is not None:
                return pending.lanes, pending.reads
            return self._values[name], frozenset()
        if operand.startswith("@"):
            return [f"((char *){c_name(operand[1:])})"], frozenset()
        if operand.startswith("splat"):
            scalar, value = typed(operand[operand.index("(") + 1 : -1])
            if is_vector(kind.scalar):
                return [vector_literal(literal(value, scalar), kind.scalar)], frozenset()
            return [literal(value, scalar)] * count, frozenset()
        if operand.startswith("<"):
            parts = [typed(p) for p in split(operand[1:-1])]
            listed = [literal(v, scalar) for scalar, v in parts]
            if is_vector(kind.scalar):
                return [vector_literal(listed, kind.scalar)], frozenset()
            return listed, frozenset()
        match = _BITCAST.match(operand)
        if match is not None:
            inner = literal(match[2], match[1])
            return [expression("bitcast", match[1], [inner], match[3])], frozenset()
        return [literal(operand, s) for s in kind.scalars], frozenset()

    def _value(self, line: Line, kind: CType, lanes: list[str], reads: frozenset[str]) -> None:
        """The value of an instruction: an expression for later, or variables."""
        name = line.result
        once = self._uses[name] == 1 and len(self._blocks[name]) == 1
        short = all(len(x) <= _LONGEST for x in lanes)
        if not self._uses[name]:
            return
        if once and short and not self._is_repeated(name):
            self._pending[name] = _Unevaluated(kind, lanes, reads)
            self._kinds[name] = kind
            return
        for variable, text in zip(self._bind(name, kind, self._c(name)), lanes, strict=True):
            self._write(f"{variable} = {bare(text)};")
        self._declare(name, kind)

    def _is_repeated(self, name: str) -> bool:
        """Whether the instruction that uses a value needs it several times."""
        return name in self._repeated

    def _declare(self, name: str, kind: CType) -> None:
        for variable, scalar in zip(self._names(self._c(name), kind), kind.scalars, strict=True):
            self._declared.setdefault(kind_of(scalar).c, []).append(variable)

    def _evaluate(self, reads: str | None) -> None:
        """Make variables of the pending expressions that read something; of all for None."""
        for name, pending in list(self._pending.items()):
            if reads is None or reads in pending.reads:
                del self._pending[name]
                variables = self._bind(name, pending.kind, self._c(name))
                for variable, text in zip(variables, pending.lanes, strict=True):
                    self._write(f"{variable} = {bare(text)};")
                self._declare(name, pending.kind)

    def _write(self, text: str) -> None:
        self._body.append("  " * self._depth + text)


def offsets(kind: CType) -> list[tuple[int, str]]:
    """The offset in memory and the type of each lane."""
    return [(k * kind_of(s).size, s) for k, s in enumerate(kind.scalars)]


def declared(c: str, name: str) -> str:
    return f"{c}{name}" if c.endswith("*") else f"{c} {name}"


def bare(text: str) -> str:
    """An expression without the parentheses around it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for k, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth and k < len(text) - 1:
            return text
    return text[1:-1]


def enclosed(text: str) -> str:
    return f"({bare(text)})"
