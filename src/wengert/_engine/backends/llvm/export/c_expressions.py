"""Instructions without effects as expressions of C.

    expression    an instruction on values, for each lane
    INTRINSICS    functions of LLVM as expressions

Each function takes C expressions of operands and returns one.  Operands are names, constants or
enclosed in parentheses.
"""

from __future__ import annotations

from collections.abc import Sequence

from .c_types import LIBM, SCALARS, SIGNED
from .c_vectors import is_vector, vector_expression, vector_intrinsic

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
