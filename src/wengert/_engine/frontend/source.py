"""The code of a function: what it uses, from its bytecode, and its syntax tree.

What a function uses, from its bytecode; this decides whether it must be converted.

Most functions that only use numpy need no conversion: NumPy's protocols dispatch to tensors.  A
function is converted if it creates arrays that it may fill, uses `math` or `scipy`, or calls
functions that may do so; and it is rewritten if it has loops or branches.

    CodeFacts     what one code object uses
    code_facts    the facts about a code object; cached
    nested_code   a code object, and those of the functions defined inside it

The syntax tree of a function.

The source file is compiled again, and used only if this gives the code object of the function: a
file that was edited after it was imported is ignored.

    FunctionSource   the syntax tree of a function, and the data needed to compile it again
    definition_of    the definition of a code object; cached
    without_syntax_warnings   a block in which compiling warns of nothing

Rewritten code on disk, for other processes.

Parsing and rewriting the source of a function takes some milliseconds, up to a fifth of a first
call.  The result depends only on the code object, the text of its file, and the sources of this
package, which are the key; so a function of an edited file is rewritten again.

    find    the rewritten code of a function, if it is on disk
    keep    write it

Only code that was made from a source that belongs to the code object is written, so a
function whose rewritten code is found has such a source.
"""

from __future__ import annotations
import __future__

import ast
import dis
import functools
import hashlib
import linecache
import marshal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.cache import disk_cache
from wengert._engine.cache.disk_cache import library_sources
from wengert._engine.core.thread_state import lock

from .syntax import children

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


Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_FILES = 64  # parsed files in memory
_FUTURES = 0
for _name in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _name).compiler_flag


_lock = lock()  # `warnings` restores its filters, in any thread


@contextmanager
def without_syntax_warnings() -> Iterator[None]:
    """A block in which compiling warns of nothing: Python has compiled the same source before."""
    with _lock, warnings.catch_warnings():
        for category in (SyntaxWarning, DeprecationWarning):  # of escape sequences, until 3.11
            warnings.simplefilter("ignore", category)
        yield


class FunctionSource(NamedTuple):
    """The syntax tree of a function.

    Attributes
    ----------
    node : ast.FunctionDef, ast.AsyncFunctionDef or ast.Lambda
        The definition; must not be modified.
    classes : tuple of str
        The enclosing classes, for the mangling of private names (``__name``).
    flags : int
        The compiler flags of ``from __future__`` imports.
    """

    node: Function
    classes: tuple[str, ...]
    flags: int


class _File(NamedTuple):
    lines: tuple[str, ...]
    definitions: dict[tuple[str, int], list[tuple[Function, tuple[str, ...]]]]
    codes: dict[int, dict[CodeType, CodeType]]  # by flags
    tree: ast.Module


_files: dict[str, _File] = {}


def definition_of(code: CodeType) -> FunctionSource | None:
    """The definition of a code object; None if its source is unavailable, or has changed."""
    file = _parsed(code.co_filename)
    if file is None:
        return None
    candidates = file.definitions.get((code.co_name, code.co_firstlineno), [])
    if not candidates:
        return None
    flags = code.co_flags & _FUTURES
    if not (code in _codes(file, code.co_filename, flags) or _is_rewritten_by_pytest(code)):
        return None
    if len(candidates) > 1:  # lambdas in one line: the smallest that contains all positions
        candidates = sorted([c for c in candidates if _contains(c[0], code)], key=_extent)
        if not candidates:
            return None
    node, classes = candidates[0]
    return FunctionSource(node, classes, flags)


def _parsed(name: str) -> _File | None:
    linecache.checkcache(name)
    lines = tuple(linecache.getlines(name))
    cached = _files.get(name)
    if cached is not None and cached.lines == lines:
        return cached
    if not lines:
        return None
    try:
        with without_syntax_warnings():
            tree = ast.parse("".join(lines), name)
    except (SyntaxError, ValueError):  # not Python, e.g. a magic command of a notebook
        return None
    definitions: dict[tuple[str, int], list[Any]] = {}
    for node, classes in _functions(tree, ()):
        key = _name_of(node), _first_line(node)
        definitions.setdefault(key, []).append((node, classes))
    file = _File(lines, definitions, {}, tree)
    while len(_files) >= _FILES:
        _files.pop(next(iter(_files)), None)
    _files[name] = file
    return file


def _functions(
    node: ast.AST, classes: tuple[str, ...]
) -> Iterator[tuple[Function, tuple[str, ...]]]:
    for child in children(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child, classes
        inner = (*classes, child.name) if isinstance(child, ast.ClassDef) else classes
        yield from _functions(child, inner)


def _name_of(node: Function) -> str:
    return "<lambda>" if isinstance(node, ast.Lambda) else node.name


def _first_line(node: Function) -> int:
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min([node.lineno, *[d.lineno for d in decorators]])


def _codes(file: _File, name: str, flags: int) -> dict[CodeType, CodeType]:
    """The code objects of functions in the current source."""
    codes = file.codes.get(flags)
    if codes is None:
        codes = file.codes[flags] = {}
        with without_syntax_warnings():
            module = compile(file.tree, name, "exec", flags=flags, dont_inherit=True)
        codes.update((c, c) for c in nested_code(module) if c is not module)
    return codes


def _is_rewritten_by_pytest(code: CodeType) -> bool:
    """Whether pytest rewrote the assertions, so that the code differs from the source."""
    return any(name.startswith("@py") for name in (*code.co_names, *code.co_varnames))


def _contains(node: Function, code: CodeType) -> bool:
    """Whether all positions of a code object are inside a definition."""
    # A lambda that returns another has the positions of the other one.
    place: Function | ast.expr = node.body if isinstance(node, ast.Lambda) else node
    first, last = (place.lineno, place.col_offset), (place.end_lineno, place.end_col_offset)
    for line, end_line, column, end_column in code.co_positions():
        if None in (line, end_line, column, end_column) or (column, end_column) == (0, 0):
            continue
        if not (first <= (line, column) and (end_line, end_column) <= last):
            return False
    return True


def _extent(candidate: tuple[Function, tuple[str, ...]]) -> tuple[int, int]:
    node = candidate[0]
    assert node.end_lineno is not None and node.end_col_offset is not None
    return node.end_lineno - node.lineno, node.end_col_offset - node.col_offset


_MAX_FOUND = 1024
_found: dict[tuple[CodeType, str, bool], CodeType] = {}
_VERSION = 2  # of marshal: the last whose bytes depend on the value only, not on its references


def find(code: CodeType, whole: bool) -> CodeType | None:
    """The rewritten code of a function; None if it is not on disk.

    Parameters
    ----------
    code : CodeType
        The original code.
    whole : bool
        Whether loops and branches are rewritten, or only calls.
    """
    place = code, code.co_filename, whole  # code objects of different files may be equal
    known = _found.get(place)
    if known is not None:
        return known
    key = _key(code, whole)
    content = None if key is None else disk_cache.read(key)
    if content is None:
        return None
    try:
        found = marshal.loads(content)
    except Exception:  # damaged
        return None
    if type(found) is not CodeType or not _belongs(found, code):
        return None
    while len(_found) >= _MAX_FOUND:
        _found.pop(next(iter(_found)), None)
    _found[place] = found
    return found


def keep(code: CodeType, whole: bool, rewritten: CodeType) -> None:
    """Write the rewritten code of a function, for other processes."""
    key = _key(code, whole)
    if key is not None:
        disk_cache.write(key, marshal.dumps(rewritten))


def _belongs(found: CodeType, code: CodeType) -> bool:
    """Whether rewritten code has the names, the parameters and the free variables of a function.

    The checksum of a file only detects accidental damage.
    """
    return (
        (found.co_name, found.co_filename) == (code.co_name, code.co_filename)
        and found.co_argcount == code.co_argcount
        and found.co_kwonlyargcount == code.co_kwonlyargcount
        and set(found.co_freevars) <= set(code.co_freevars)
    )


def _without_slices(constant: Any) -> Any:
    """Code whose constant slices are tuples, because marshal has had slices since version 5 only.

    Python 3.14 has constants for them: ``x[1:]`` loads one.
    """
    if isinstance(constant, slice):
        return ..., constant.start, constant.stop, constant.step
    if isinstance(constant, CodeType):
        return constant.replace(co_consts=tuple(map(_without_slices, constant.co_consts)))
    return tuple(map(_without_slices, constant)) if type(constant) is tuple else constant


def _key(code: CodeType, whole: bool) -> bytes | None:
    """The key of a function's rewritten code; None if it cannot be cached."""
    if not disk_cache.enabled():
        return None
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    sources = library_sources() if lines else None
    if sources is None:
        return None
    try:
        own = marshal.dumps(_without_slices(code), _VERSION)
    except ValueError:  # a constant of an unknown type
        return None
    options = repr((whole, sys.flags.optimize)).encode()
    key = hashlib.sha256(b"rewritten code")
    for part in (sources, options, "".join(lines).encode("utf-8", "surrogatepass"), own):
        key.update(hashlib.sha256(part).digest())
    return key.digest()
