"""The names that a function reads and assigns, from its bytecode.

Reads       the globals, attributes and free variables of a code object and of nested ones
reads_of    those of a code object; cached
"""

from __future__ import annotations

import dis
import functools
from types import CodeType
from typing import Any, NamedTuple

_GLOBALS = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))
_ATTRIBUTES = frozenset(("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM"))
_WRITTEN_CELLS = frozenset(("STORE_DEREF", "DELETE_DEREF"))
_WRITTEN_GLOBALS = frozenset(("STORE_GLOBAL", "DELETE_GLOBAL"))
# Code that uses one of these names may read attributes that its bytecode does not name.
_ANY_ATTRIBUTE = frozenset(
    (
        *("getattr", "vars", "hasattr", "__dict__", "attrgetter", "methodcaller", "asdict"),
        *("astuple", "fields", "dir"),
    )
)
_ANY_GLOBAL = frozenset(("globals", "eval", "exec"))
_CONSTANTS = frozenset(("LOAD_CONST", "LOAD_SMALL_INT"))


class Reads(NamedTuple):
    """The names that a code object may read, and those that it assigns.

    Attributes
    ----------
    globals : frozenset of str
        The global variables that it reads.
    attributes : frozenset of str
        The attributes that it reads, of any object.
    written_cells, written_globals : frozenset of str
        The free variables and the global variables that it assigns.
    imports : frozenset of (str, int)
        The modules that it imports, each with the number of dots before it.
    any_attribute, any_global : bool
        Whether it may read attributes, or globals, that it does not name.
    absent : bool
        Whether it may continue if an attribute that it reads does not exist.
    """

    globals: frozenset[str]
    attributes: frozenset[str]
    written_cells: frozenset[str]
    written_globals: frozenset[str]
    imports: frozenset[tuple[str, int]]
    any_attribute: bool
    any_global: bool
    absent: bool


@functools.lru_cache(maxsize=4096)
def reads_of(code: CodeType) -> Reads:
    """The reads of a code object, and of the functions defined inside it.

    Examples
    --------
    >>> def f(x):
    ...     return x * scale.value
    >>> sorted(reads_of(f.__code__).globals), sorted(reads_of(f.__code__).attributes)
    (['scale'], ['value'])
    """
    names: set[str] = set()
    attributes: set[str] = set()
    cells: set[str] = set()
    written_globals: set[str] = set()
    imports: set[tuple[str, int]] = set()
    constants: list[Any] = []
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name in _GLOBALS:
            names.add(instruction.argval)
        elif name in _ATTRIBUTES:
            attributes.add(instruction.argval)
        elif name in _WRITTEN_CELLS:
            cells.add(instruction.argval)
        elif name in _WRITTEN_GLOBALS:
            written_globals.add(instruction.argval)
        elif name in _CONSTANTS:
            constants.append(instruction.argval)
        elif name == "IMPORT_NAME":
            level = constants[-2] if len(constants) > 1 else 0
            imports.add((instruction.argval, level if type(level) is int else 0))
    if {"import_module", "modules"} & (names | attributes):
        imports |= {(c, 0) for c in constants if type(c) is str}
    absent = bool(code.co_exceptiontable or {"hasattr", "getattr"} & names)
    any_attribute = bool(_ANY_ATTRIBUTE & (names | attributes))
    any_global = bool(_ANY_GLOBAL & names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            inner_reads = reads_of(inner)
            names |= inner_reads.globals
            attributes |= inner_reads.attributes
            cells |= inner_reads.written_cells
            written_globals |= inner_reads.written_globals
            imports |= inner_reads.imports
            absent |= inner_reads.absent
            any_attribute |= inner_reads.any_attribute
            any_global |= inner_reads.any_global
    return Reads(
        frozenset(names),
        frozenset(attributes),
        frozenset(cells & set(code.co_freevars)),
        frozenset(written_globals),
        frozenset(imports),
        any_attribute,
        any_global,
        absent,
    )
