"""Names of inputs, outputs and sizes as identifiers of C and C++.

    identifier      a text as an identifier
    function_name   the same for a function, which differs from those of C's library
    distinct        several of them, all different

`p['a']` becomes `p_a`.  A keyword, a macro of the standard headers and a name that C reserves (that
begins with an underscore) get an underscore at their end, or the letter x before them.

Lines of LLVM IR, as the builders of this package write them, taken apart.

    Line         one instruction, or the label of a block
    lines_of     those of a function
    Called       the parts of a call

The builders write a small part of LLVM's language (ir/ir_builder.py): no phi instructions, no
exceptions, types before operands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .c_types import split

_RESERVED = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const "
    "const_cast constexpr continue decltype default delete do double dynamic_cast else enum errno "
    "explicit export extern false float for friend goto if inline int long mutable namespace new "
    "noexcept not not_eq nullptr operator or or_eq private protected public register "
    "reinterpret_cast requires restrict return short signed sizeof static static_assert "
    "static_cast struct switch template this thread_local throw true try typedef typeid typename "
    "union unsigned using virtual void volatile wchar_t while xor xor_eq typeof main NULL NAN "
    "INFINITY I complex imaginary assert stdin stdout stderr "
    "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t".split()
)

# Functions of C's library that compilers know, or that common headers declare.
_LIBRARY = frozenset(
    "abort abs acos acosh asin asinh atan atan2 atanh bcmp bcopy bzero calloc cbrt ceil copysign "
    "cos cosh drem erf erfc exit exp exp10 exp2 expm1 fabs fdim ffs finite floor fma fmax fmin "
    "fmod free frexp gamma hypot ilogb index isinf isnan isfinite j0 j1 jn labs ldexp lgamma llabs "
    "llrint llround log log10 log1p log2 logb lrint lround malloc memchr memcmp memcpy memmove "
    "memset modf nan nearbyint nextafter nexttoward pow pow10 printf puts remainder remquo rindex "
    "rint round scalb scalbln scalbn select signbit significand sin sincos sinh sqrt strcat strchr "
    "strcmp strcpy strlen tan tanh tgamma time trunc y0 y1 yn random rand read write open close "
    "link signal system remove rename".split()
)


_OWN = ("wg_", "wengert_", "leaf_")  # what names of functions in exported C begin with


def function_name(text: str) -> str:
    """A text as the name of a function.

    Examples
    --------
    >>> function_name("exp"), function_name("model.energy"), function_name("wg_model")
    ('exp_', 'model_energy', 'xwg_model')
    """
    name = identifier(text, _LIBRARY)
    return f"x{name}" if name.startswith(_OWN) else name


def identifier(text: str, taken: Iterable[str] = ()) -> str:
    """A text as an identifier.

    Parameters
    ----------
    taken : iterable of str
        Names that it must differ from.

    Examples
    --------
    >>> identifier("p['a']"), identifier("double"), identifier("_x"), identifier("2d")
    ('p_a', 'double_', 'x', 'x2d')
    """
    name = re.sub(r"[^0-9A-Za-z]+", "_", text)
    name = name.strip("_") or "x"
    if not name[0].isalpha():
        name = f"x{name}"
    used = set(taken)
    if name in _RESERVED or name in used:
        name += "_"
    base, count = name, 2
    while name in used:
        name, count = f"{base.rstrip('_')}_{count}", count + 1
    return name


def distinct(texts: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """Identifiers for several texts, all different.

    Examples
    --------
    >>> distinct(["x", "x", "int"], taken=["work"])
    ['x', 'x_', 'int_']
    """
    found: list[str] = []
    used = set(taken)
    for text in texts:
        found.append(identifier(text, used))
        used.add(found[-1])
    return found


_USED = re.compile(r"%([-\w.$]+)")
_LABEL = re.compile(r"([-\w.$]+):")
_RESULT = re.compile(r"%([-\w.$]+) = (.*)")
_CALL = re.compile(
    r"(?:tail )?call (?:reassoc |preserve_allcc |nnan |nsz )*(?P<type>\{[^}]*\}|<[^>]*>|\S+) "
    r"@(?P<name>[-\w.$]+)\("
)
_ATTRIBUTES = ("align ", "!nontemporal", "!")
_FLAGS = frozenset("nsw nuw exact reassoc nnan ninf nsz arcp contract afn fast volatile".split())


class Line(NamedTuple):
    """One instruction, or a label.

    result : the name of its value, or "".
    op : the first word; "label" for a label, whose name is `rest`.
    rest : what follows the first word, without flags and alignment.
    uses : the names of values that it uses, and of blocks.
    """

    result: str
    op: str
    rest: str
    uses: tuple[str, ...]


class Called(NamedTuple):
    """The parts of a call.

    kind : the type of the result.
    name : that of the function.
    arguments : each with its type.
    """

    kind: str
    name: str
    arguments: list[tuple[str, str]]


def lines_of(text: str) -> list[Line]:
    """The lines of a function, without the first and the last."""
    found = []
    for raw in text.split("\n")[1:-1]:
        line = raw.strip()
        match = _LABEL.fullmatch(line)
        if match is not None:
            found.append(Line("", "label", match[1], ()))
            continue
        result = ""
        match = _RESULT.fullmatch(line)
        if match is not None:
            result, line = match[1], match[2]
        op, _, rest = line.partition(" ")
        words = rest.split(" ")
        while words and words[0] in _FLAGS:
            words.pop(0)
        rest = " ".join(words)
        if op in ("load", "store", "alloca"):
            rest = ", ".join(p for p in split(rest) if not p.startswith(_ATTRIBUTES))
        found.append(Line(result, op, rest, tuple(_USED.findall(rest))))
    return found


def typed(text: str) -> tuple[str, str]:
    """A type and an operand: ``<2 x double> %v1``."""
    text = text.strip()
    if text[0] in "<{[":
        closing = {"<": ">", "{": "}", "[": "]"}[text[0]]
        depth = 0
        for k, character in enumerate(text):
            depth += (character == text[0]) - (character == closing)
            if not depth:
                return text[: k + 1], text[k + 1 :].strip()
    kind, _, operand = text.partition(" ")
    return kind, operand.strip()


def call_of(line: Line) -> Called:
    """The parts of a call."""
    text = f"{line.op} {line.rest}"
    match = _CALL.match(text)
    assert match is not None, text
    depth, end = 1, match.end()
    while depth:
        depth += (text[end] == "(") - (text[end] == ")")
        end += 1
    given = split(text[match.end() : end - 1])
    return Called(match["type"], match["name"], [typed(a) for a in given])
