"""Vectors of LLVM as vector types of GNU C (GCC 12 and Clang).

    vector_types        a block in which vectors are values of such types, instead of their lanes
    parts_of            the number of lanes and the type of a lane of a vector type of LLVM
    vector_literal      a constant
    vector_expression   an instruction on vectors
    vector_intrinsic    a function of LLVM on vectors
    vector_helper       the definition of a helper, from its name
    type_definition     that of a type, from its name

The lanes of a mask (a vector of i1) are integers of 0 or -1, as comparisons of GNU C give; they are
as wide as the lanes of a register with so many. Arithmetic and comparisons are operators of C;
others are helpers, whose loops over lanes compilers turn into single instructions, or intrinsics of
the processor where they do not.

https://gcc.gnu.org/onlinedocs/gcc/Vector-Extensions.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

_REGISTER_BYTES = 64
_VECTOR = re.compile(r"<(\d+) x (\w+)>")
_TYPE = re.compile(r"wg_v(\d+)(f64|f32|i64|i32|i16|i8|s64|s32|s16|s8|m)$")
_HELPER = re.compile(r"wg_([a-z]+)_(v\d+(?:f64|f32|i64|i32|i16|i8|m))$")
_NAMES = {"double": "f64", "float": "f32", "i1": "m", "ptr": "i64"}
_C = {
    "f64": ("double", 8), "f32": ("float", 4),
    **{f"i{8 * n}": (f"uint{8 * n}_t", n) for n in (1, 2, 4, 8)},
    **{f"s{8 * n}": (f"int{8 * n}_t", n) for n in (1, 2, 4, 8)},
}  # fmt: skip
_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "shl": "<<",
    "lshr": ">>", "fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/", "udiv": "/", "urem": "%",
}  # fmt: skip
_RELATIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_NEGATED = {"lt": ">=", "le": ">", "gt": "<=", "ge": "<"}
_ENABLED: ContextVar[bool] = ContextVar("vector_types", default=False)


@contextmanager
def vector_types() -> Iterator[None]:
    """A block in which vectors are values of vector types."""
    token = _ENABLED.set(True)
    try:
        yield
    finally:
        _ENABLED.reset(token)


def are_vectors() -> bool:
    """Whether vectors are values of vector types."""
    return _ENABLED.get()


def is_vector(kind: str) -> bool:
    """Whether a type of LLVM is a vector."""
    return kind.startswith("<")


def parts_of(kind: str) -> tuple[int, str]:
    """The number of lanes and the type of a lane.

    Examples
    --------
    >>> parts_of("<8 x double>")
    (8, 'double')
    """
    match = _VECTOR.fullmatch(kind)
    assert match is not None, kind
    return int(match[1]), match[2]


def suffix_of(kind: str) -> str:
    """The end of the names of the type and of its helpers: "v8f64"."""
    count, scalar = parts_of(kind)
    return f"v{count}{_NAMES.get(scalar, scalar)}"


def c_vector(kind: str) -> tuple[str, int]:
    """The name of the type in C, and its size."""
    count, scalar = parts_of(kind)
    return f"wg_{suffix_of(kind)}", count * _lane(count, _NAMES.get(scalar, scalar))[1]


def _lane(count: int, name: str) -> tuple[str, int]:
    """The type of C of a lane, and its size."""
    if name == "m":
        size = min(8, max(1, _REGISTER_BYTES // count))
        return f"int{8 * size}_t", size
    return _C[name]


def type_definition(name: str) -> str | None:
    """The definition of a type; None for other names."""
    match = _TYPE.match(name)
    if match is None:
        return None
    count = int(match[1])
    c, size = _lane(count, match[2])
    return f"typedef {c} {name} __attribute__((vector_size({size * count})));"


def _signed(kind: str) -> str:
    count, scalar = parts_of(kind)
    return f"wg_v{count}s{scalar[1:]}"


def vector_literal(lanes: Sequence[str] | str, kind: str) -> str:
    """A constant, from those of its lanes, or from one for all."""
    c = c_vector(kind)[0]
    if parts_of(kind)[1] == "i1":
        lanes = [f"-{x}" if x == "1" else x for x in ([lanes] if isinstance(lanes, str) else lanes)]
        lanes = lanes[0] if len(lanes) == 1 else lanes
    if isinstance(lanes, str):
        if lanes.strip("u()") in ("0", "0.0", "0.0f"):
            return f"(({c}){{0}})"
        return f"wg_splat_{suffix_of(kind)}({lanes})"
    return f"(({c}){{{', '.join(lanes)}}})"


# ---- instructions ------------------------------------------------------------------------------


def _as(text: str, kind: str, to: str) -> str:
    """Lanes converted, each to the nearest value of another type."""
    return text if kind == to else f"__builtin_convertvector({text}, {to})"


def vector_expression(op: str, kind: str, operands: Sequence[str], to: str) -> str:
    """The expression of an instruction on vectors; see `c_expressions.expression`."""
    word, _, relation = op.partition(" ")
    c = c_vector(kind)[0]
    if word in _OPERATORS:
        return f"({operands[0]} {_OPERATORS[word]} {operands[1]})"
    if word == "fneg":
        return f"(-{operands[0]})"
    if word in ("ashr", "sdiv", "srem"):
        a, b = (f"({_signed(kind)}){x}" for x in operands)
        sign = {"ashr": ">>", "sdiv": "/", "srem": "%"}[word]
        return f"(({c})({a} {sign} {b}))"
    if word in ("icmp", "fcmp"):
        return _compared(relation, kind, *operands)
    if word == "freeze":
        return operands[0]
    return _converted(word, kind, operands[0], to)


def _compared(relation: str, kind: str, a: str, b: str) -> str:
    count, scalar = parts_of(kind)
    if scalar not in ("double", "float"):
        if relation[0] == "s" and scalar != "i1":
            a, b = (f"({_signed(kind)}){x}" for x in (a, b))
        found = f"({a} {_RELATIONS[relation[-2:]]} {b})"
    elif relation in ("uno", "ord"):
        sign, joined = ("!=", "|") if relation == "uno" else ("==", "&")
        found = f"({a} {sign} {a})"
        found = found if a == b else f"({found} {joined} ({b} {sign} {b}))"
    elif relation in ("oeq", "une"):
        found = f"({a} {'==' if relation == 'oeq' else '!='} {b})"
    elif relation in ("one", "ueq"):
        found = f"(({a} < {b}) | ({a} > {b}))"
        found = found if relation == "one" else f"(~{found})"
    elif relation[0] == "o":
        found = f"({a} {_RELATIONS[relation[1:]]} {b})"
    else:
        found = f"(~({a} {_NEGATED[relation[1:]]} {b}))"
    own = _lane(count, _NAMES.get(scalar, scalar))[1]
    mask = _lane(count, "m")[1]
    return found if own == mask else f"__builtin_convertvector({found}, wg_v{count}m)"


def _converted(word: str, kind: str, a: str, to: str) -> str:
    c = c_vector(to)[0]
    (count, source), target = parts_of(kind), parts_of(to)[1]
    if word == "bitcast":
        return a if kind == to else f"(({c}){a})"
    if word in ("ptrtoint", "inttoptr"):
        return a
    if source == "i1":
        if word in ("sext", "sitofp"):
            return _as(a, "", c)
        whole = f"(__builtin_convertvector({a}, wg_v{count}s32) & 1)"
        return _as(whole, "", c)
    if target == "i1":
        test = f"(({a} & {vector_literal('1u', kind)}) != 0)"
        return _as(test, "", c)
    if word in ("sext", "sitofp"):
        return _as(f"({_signed(kind)}){a}", "", c)
    if word == "fptosi":
        return f"(({c})__builtin_convertvector({a}, {_signed(to)}))"
    assert word in ("trunc", "zext", "uitofp", "fptoui", "fpext", "fptrunc"), word
    return _as(a, "", c)


def vector_intrinsic(name: str, kind: str, operands: Sequence[str]) -> str | None:
    """A function of LLVM on vectors; None if it is computed lane by lane."""
    suffix = suffix_of(kind)
    named = {"roundeven": "rint"}.get(name, name)
    if f"{named}" in _FUNCTIONS and kind.endswith(("double>", "float>")):
        return f"wg_{named}_{suffix}({', '.join(operands)})"
    if name in ("smin", "smax", "umin", "umax"):
        relation = name[0] + ("lt" if name.endswith("min") else "gt")
        return selected(kind, _compared(relation, kind, *operands), *operands)
    return None


def selected(kind: str, test: str, a: str, b: str) -> str:
    """Lanes of one or the other vector."""
    return f"wg_select_{suffix_of(kind)}({test}, {a}, {b})"


# ---- helpers -----------------------------------------------------------------------------------

# Functions of the mathematical library, lane by lane; GCC and Clang have instructions for them.
_FUNCTIONS = {
    **{n: 1 for n in ("sqrt", "floor", "ceil", "trunc", "rint", "fabs")},
    "copysign": 2, "maximum": 2, "minimum": 2, "fma": 3,
}  # fmt: skip
# By processor: the type and the prefix of its intrinsics, and when it has them.
_PROCESSORS = (
    ("defined(__AVX512F__)", 64, "__m512", "_mm512_"),
    ("defined(__FMA__) && defined(__AVX2__)", 32, "__m256", "_mm256_"),
)
_ROUNDING = {"rint": 8, "floor": 9, "ceil": 10, "trunc": 11}
# Vectors are passed in registers only to functions that are inlined.
_INLINE = "static inline __attribute__((always_inline))"
_MASKED = """{inside} {t} wg_mload_{s}(const char *at, wg_v{n}m m, {t} other) {{
  if (wg_all_v{n}m(m)) return wg_load_{s}(at);
  {t} r = other; for (int k = 0; k < {n}; k++) if (m[k]) {{ {e} x; memcpy(&x, at + {b} * k, {b}); r[k] = x; }} return r;
}}"""  # noqa: E501


def vector_helper(name: str) -> str | None:
    """The definition of a helper, from its name; None for other names."""
    match = _HELPER.match(name)
    if match is None:
        return None
    way, s = match[1], match[2]
    whole = re.match(r"v(\d+)(\w+)", s)
    assert whole is not None
    n, lane = int(whole[1]), whole[2]
    e, b = _lane(n, lane)
    t, m = f"wg_{s}", f"wg_v{n}m"
    each = f"for (int k = 0; k < {n}; k++)"
    inside = _INLINE
    if way == "mload":
        return _MASKED.format(inside=inside, t=t, s=s, n=n, e=e, b=b)
    integer = f"wg_v{n}i{8 * b}"
    texts = {
        "splat": f"{t} {name}({e} x) {{ return x - ({t}){{0}}; }}",
        "lane": f"{e} {name}({t} x, int k) {{ return x[k]; }}",
        "insert": f"{t} {name}({t} x, {e} y, int k) {{ x[k] = y; return x; }}",
        "load": f"{t} {name}(const char *at) {{ {t} x; memcpy(&x, at, sizeof x); return x; }}",
        "store": f"void {name}(char *at, {t} x) {{ memcpy(at, &x, sizeof x); }}",
        "mstore": f"void {name}(char *at, {m} m, {t} x) {{ if (wg_all_v{n}m(m)) {{ wg_store_{s}"
        f"(at, x); return; }} {each} if (m[k]) {{ const {e} y = x[k]; "
        f"memcpy(at + {b} * k, &y, {b}); }} }}",
        "gather": f"{t} {name}(wg_v{n}i64 p, {m} m, {t} other) {{ {t} r = other; {each} if (m[k]) "
        f"{{ {e} x; memcpy(&x, (const char *)(uintptr_t)p[k], {b}); r[k] = x; }} return r; }}",
        "scatter": f"void {name}(wg_v{n}i64 p, {m} m, {t} x) {{ {each} if (m[k]) {{ const {e} y = "
        f"x[k]; memcpy((char *)(uintptr_t)p[k], &y, {b}); }} }}",
        "select": f"{t} {name}({m} m, {t} a, {t} b) {{ const {integer} i = ({integer})"
        f"__builtin_convertvector(m, wg_v{n}s{8 * b}); return ({t})((({integer})a & i) | "
        f"(({integer})b & ~i)); }}",
        "any": f"int {name}({t} x) {{ int r = 0; {each} r |= x[k] != 0; return r; }}",
        "all": f"int {name}({t} x) {{ int r = 1; {each} r &= x[k] != 0; return r; }}",
        "fabs": f"{t} {name}({t} x) {{ return ({t})(({integer})x & ~({integer})(-({t}){{0}})); }}",
        "copysign": f"{t} {name}({t} x, {t} y) {{ const {integer} i = ({integer})(-({t}){{0}}); "
        f"return ({t})((({integer})x & ~i) | (({integer})y & i)); }}",
    }
    if way in texts:
        return f"{inside} {texts[way]}"
    if way in ("maximum", "minimum"):
        sign, zero = (">", "!") if way == "maximum" else ("<", "")
        wins = f"x[k] != x[k] || x[k] {sign} y[k] || (x[k] == y[k] && {zero}signbit(x[k]))"
        return (
            f"{inside} {t} {name}({t} x, {t} y) {{ {t} r; {each} r[k] = {wins} ? x[k] : y[k]; "
            "return r; }"
        )
    return _function(way, n, lane) if way in _FUNCTIONS else None


def _function(way: str, n: int, lane: str) -> str:
    """A function of the mathematical library, by an intrinsic of the processor if it has one."""
    t, size, letter = f"wg_v{n}{lane}", n * _C[lane][1], "d" if lane == "f64" else "s"
    names = "xyz"[: _FUNCTIONS[way]]
    lines = [f"{_INLINE} {t} wg_{way}_v{n}{lane}({', '.join(f'{t} {x}' for x in names)}) {{"]
    each = ", ".join(f"{x}[k]" for x in names)
    plain = (
        f"{t} r; for (int k = 0; k < {n}; k++) r[k] = {way}{'f' if letter == 's' else ''}({each});"
    )
    for condition, width, kind, prefix in _PROCESSORS:
        if width != size:
            continue
        given = ", ".join(f"({kind}{'d' if letter == 'd' else ''}){x}" for x in names)
        called = {"fma": "fmadd"}.get(way, way)
        if way in _ROUNDING:
            called = "roundscale" if width == 64 else "round"
            given += f", {_ROUNDING[way]}"
        lines += [
            f"#if {condition}",
            f"  return ({t}){prefix}{called}_p{letter}({given});",
            "#else",
        ]
        lines += [f"  {plain} return r;", "#endif"]
    if len(lines) == 1:
        lines.append(f"  {plain} return r;")
    return "\n".join([*lines, "}"])
