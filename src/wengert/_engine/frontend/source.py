"""The syntax tree of a function.

The source file is compiled again, and used only if this gives the code object of the function: a
file that was edited after it was imported is ignored.

    FunctionSource   the syntax tree of a function, and the data needed to compile it again
    definition_of    the definition of a code object; cached
    without_syntax_warnings   a block in which compiling warns of nothing
"""

from __future__ import annotations
import __future__

import ast
import linecache
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any, NamedTuple

from wengert._engine.core.fork_safe_locks import lock

from .code_facts import nested_code
from .tree_traversal import children

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
