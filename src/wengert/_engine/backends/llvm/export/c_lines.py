"""Lines of LLVM IR, as the builders of this package write them, taken apart.

    Line         one instruction, or the label of a block
    lines_of     those of a function
    Called       the parts of a call

The builders write a small part of LLVM's language (ir/ir_builder.py): no phi instructions, no
exceptions, types before operands.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .c_types import split

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
