"""CodeFacts: which functions must be converted, determined from their compiled code.

Most functions that use numpy only need no conversion: arrays and functions of tensors find each
other by NumPy's protocols.  A function is converted if it makes arrays that it may fill, uses
`math` or `scipy`, or calls functions that may do so; and it is rewritten if it branches.

    CodeFacts     the needs of one code object
    needs     the needs of a code object; cached
"""

from __future__ import annotations

import dis
import functools
from types import CodeType
from typing import NamedTuple

import numpy as np

_METHODS = frozenset(name for cls in (np.ndarray, float, complex) for name in dir(cls)) - frozenset(
    ("dot",)
)


_STORES = frozenset(("STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "DELETE_ATTR", "DELETE_SUBSCR"))


class CodeFacts(NamedTuple):
    """The uses of a function that may need conversion.

    names, free : the globals and free variables that it reads.
    members : the globals whose attributes it reads.
    branches : whether it has loops, branches or conditional expressions.
    calls : whether it may call a function that is an argument, a variable or an attribute.
    writes_globals : whether it assigns global variables.
    stores : whether it assigns or deletes elements or attributes.
    """

    names: tuple[str, ...]
    free: tuple[str, ...]
    members: tuple[str, ...]
    branches: bool
    calls: bool
    writes_globals: bool
    stores: bool


@functools.lru_cache(maxsize=8192)
def code_facts(code: CodeType) -> CodeFacts:
    """The needs of a code object, and of the functions defined inside it."""
    found = _CodeSearch()
    waiting = [code]
    while waiting:
        one = waiting.pop()
        found.search(one)
        waiting += [c for c in one.co_consts if isinstance(c, CodeType)]
    return CodeFacts(
        tuple(sorted(found.names)),
        tuple(sorted(found.free & set(code.co_freevars))),
        tuple(sorted(found.members)),
        found.branches,
        found.calls,
        found.writes,
        found.stores,
    )


class _CodeSearch:
    def __init__(self) -> None:
        self.names: set[str] = set()
        self.free: set[str] = set()
        self.members: set[str] = set()
        self.branches = self.calls = self.writes = self.stores = False

    def search(self, code: CodeType) -> None:
        before, module = "", None  # the global whose attribute is read
        for instruction in dis.get_instructions(code):
            word = instruction.opname
            if word in ("LOAD_ATTR", "LOAD_METHOD"):
                if module is not None:
                    self.members.add(module)
                    self.calls = self.calls or instruction.argval == "ndarray"
                elif instruction.argval not in _METHODS:
                    self.calls = True
                before = word
                continue
            module = None
            if word in ("LOAD_GLOBAL", "LOAD_NAME"):
                module = instruction.argval
                self.names.add(module)
            elif word.startswith(("LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF")):
                if word.startswith("LOAD_DEREF"):
                    self.free.add(instruction.argval)
                self.calls = self.calls or before == "PUSH_NULL"
            elif word == "PUSH_NULL":  # before the callee; since Python 3.13 after it
                self.calls = self.calls or not before.startswith(("LOAD_GLOBAL", "LOAD_ATTR"))
            elif word == "IMPORT_NAME":
                self.calls = True
            elif word in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                self.writes = True
            elif word in _STORES:
                self.stores = True
            elif "JUMP" in word or word == "FOR_ITER":
                self.branches = True
            before = word
