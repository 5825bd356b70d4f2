"""What a function uses, from its bytecode; this decides whether it must be converted.

Most functions that only use numpy need no conversion: NumPy's protocols dispatch to tensors.  A
function is converted if it creates arrays that it may fill, uses `math` or `scipy`, or calls
functions that may do so; and it is rewritten if it has loops or branches.

    CodeFacts     what one code object uses
    code_facts    the facts about a code object; cached
    nested_code   a code object, and those of the functions defined inside it
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple

import numpy as np

_NUMERIC_METHODS = frozenset(
    name for cls in (np.ndarray, float, complex) for name in dir(cls)
) - frozenset(("dot",))


_STORE_OPCODES = frozenset(
    ("STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "DELETE_ATTR", "DELETE_SUBSCR")
)
# Whether PUSH_NULL is before the callee; since Python 3.13 the arguments come after it.
_NULL_FIRST = sys.version_info < (3, 13)


class CodeFacts(NamedTuple):
    """What a function uses that may need conversion.

    Attributes
    ----------
    names, free : tuple of str
        The global and free variables that it reads.
    members : tuple of str
        The global variables whose attributes it reads.
    branches : bool
        Whether it has loops, branches, conditional expressions or the operator ``in``.
    calls : bool
        Whether it may call a function that is an argument, a variable or an attribute.
    writes_globals : bool
        Whether it assigns global variables.
    stores : bool
        Whether it assigns or deletes elements or attributes.
    containers : bool
        Whether it makes a list or dict.
    elements : bool
        Whether it reads elements of an object.
    handlers : bool
        Whether it may catch exceptions.
    """

    names: tuple[str, ...]
    free: tuple[str, ...]
    members: tuple[str, ...]
    branches: bool
    calls: bool
    writes_globals: bool
    stores: bool
    containers: bool
    elements: bool
    handlers: bool


@functools.lru_cache(maxsize=8192)
def code_facts(code: CodeType) -> CodeFacts:
    """The facts about a code object, including the functions defined inside it."""
    found = _CodeSearch()
    for inner in nested_code(code):
        found.search(inner)
    return CodeFacts(
        tuple(sorted(found.names)),
        tuple(sorted(found.free & set(code.co_freevars))),
        tuple(sorted(found.members)),
        found.branches,
        found.calls,
        found.writes,
        found.stores,
        found.containers,
        found.elements,
        found.handlers,
    )


def nested_code(code: CodeType) -> Iterator[CodeType]:
    """A code object, and those of the functions, classes and comprehensions inside it."""
    stack = [code]
    while stack:
        current = stack.pop()
        yield current
        stack += [
            c
            for c in current.co_consts
            # Since Python 3.14 annotations of inner functions are functions that nobody calls.
            if isinstance(c, CodeType) and c.co_name != "__annotate__"
        ]


class _CodeSearch:
    def __init__(self) -> None:
        self.names: set[str] = set()
        self.free: set[str] = set()
        self.members: set[str] = set()
        self.branches = self.calls = self.writes = self.stores = False
        self.containers = self.elements = self.handlers = False

    def search(self, code: CodeType) -> None:
        previous, loaded_global = "", None  # the global variable that was loaded just before
        for instruction in dis.get_instructions(code):
            opcode = instruction.opname
            if previous == "PUSH_EXC_INFO" and opcode != "WITH_EXCEPT_START":
                self.handlers = True
            if opcode in ("LOAD_ATTR", "LOAD_METHOD"):
                if loaded_global is not None:
                    self.members.add(loaded_global)
                    self.calls = self.calls or instruction.argval == "ndarray"
                elif instruction.argval not in _NUMERIC_METHODS:
                    self.calls = True
                previous = opcode
                continue
            loaded_global = None
            if opcode in ("LOAD_GLOBAL", "LOAD_NAME"):
                loaded_global = instruction.argval
                self.names.add(loaded_global)
            elif opcode.startswith(("LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF")):
                if opcode.startswith("LOAD_DEREF"):
                    self.free.add(instruction.argval)
                self.calls = self.calls or (_NULL_FIRST and previous == "PUSH_NULL")
            elif opcode == "PUSH_NULL":
                self.calls = self.calls or not previous.startswith(("LOAD_GLOBAL", "LOAD_ATTR"))
            elif opcode in ("IMPORT_NAME", "LOAD_SUPER_ATTR"):
                self.calls = True
            elif opcode in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                self.writes = True
            elif opcode in ("BUILD_LIST", "BUILD_MAP", "BUILD_CONST_KEY_MAP"):
                self.containers = True
            elif opcode == "BINARY_SUBSCR" or instruction.argrepr == "[]":  # since Python 3.14
                self.elements = True
            elif opcode in _STORE_OPCODES:
                self.stores = True
            elif "JUMP" in opcode or opcode in ("FOR_ITER", "CONTAINS_OP"):
                self.branches = True
            previous = opcode
