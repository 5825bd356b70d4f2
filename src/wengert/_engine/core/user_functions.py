"""What is known of the functions of users: names that they read, parameters, callbacks.

The names that a function reads and assigns, from its bytecode.

Reads       the globals, attributes and free variables of a code object and of nested ones
reads_of    those of a code object; cached

The parameters of a user's function, whose annotations are not evaluated.

Since Python 3.14 annotations are evaluated when they are read (PEP 649), which `inspect.signature`
does: a name that only type checkers see, ``if TYPE_CHECKING: from a import B``, is an error there.

    signature_of       the signature, with annotations as text where they are not evaluated
    known_signature    the same, or None for functions written in C that have no signature
    copy_annotations   give a copy of a function the annotations, evaluated or not

Functions that are passed to be called when a program runs, and never while it is traced.

What such a function reads does not determine the program, so it is not guarded
(graphs/captures/traced_function.py), and the function that runs is the user's own: it reads and
assigns the user's objects, not the copies with which a function is traced.

CALLBACK_TAKERS      the names of functions of wengert that call an argument in this way
called_at_run_time   their decorator
parameter_called     the parameter of one of them that is called, or None
any_calls            whether one of them is among some objects
originals_by         a block in which copies of the user's objects have originals
original             the user's object in place of a copy
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any, NamedTuple, TypeVar

from .thread_state import Blocks, ScopedValue

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


if sys.version_info >= (3, 14):
    import annotationlib

    def signature_of(function: Callable[..., Any]) -> inspect.Signature:
        """The signature of a callable, with annotations as text."""
        return inspect.signature(function, annotation_format=annotationlib.Format.STRING)

else:

    def signature_of(function: Callable[..., Any]) -> inspect.Signature:
        """The signature of a callable."""
        return inspect.signature(function)


def known_signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a callable; None if it has none, as some functions written in C."""
    try:
        return signature_of(function)
    except (TypeError, ValueError):
        return None


def copy_annotations(copy: FunctionType, function: FunctionType) -> None:
    """Give a copy of a function its annotations, which are not evaluated for this."""
    annotate = getattr(function, "__annotate__", None)
    if annotate is None:
        copy.__annotations__ = function.__annotations__
    else:
        copy.__annotate__ = annotate  # type: ignore[attr-defined]


F = TypeVar("F", bound=Callable[..., Any])

# Known before the modules that define them are imported: a function whose code has none of these
# names is not examined.
CALLBACK_TAKERS = frozenset(("callback",))
_parameters: dict[int, tuple[Callable[..., Any], str]] = {}
_originals: Blocks[Callable[[Any], Any]] = Blocks("wengert_originals", lambda x: x)


def called_at_run_time(parameter: str) -> Callable[[F], F]:
    """A decorator of functions that call their first parameter, which has this name, later."""

    def register(fun: F) -> F:
        assert fun.__name__ in CALLBACK_TAKERS, f"{fun.__name__} must be among CALLBACK_TAKERS"
        _parameters[id(fun)] = fun, parameter
        return fun

    return register


def parameter_called(fun: object) -> str | None:
    """The name of the first parameter, if a function calls it only when the program runs."""
    known = _parameters.get(id(fun))
    return None if known is None else known[1]


def any_calls(objects: Iterable[object]) -> bool:
    """Whether one of these functions is among some objects."""
    return any(id(x) in _parameters for x in objects)


@contextmanager
def originals_by(original_of: Callable[[Any], Any]) -> Iterator[None]:
    """A block in which `original_of` gives the user's object in place of a copy."""
    around = _originals.get()
    block: ScopedValue[Callable[[Any], Any]] = ScopedValue(lambda x: around(original_of(x)))
    try:
        _originals.open(block)
        yield
    finally:
        block.end(True)
        _originals.forget()


def original(x: Any) -> Any:
    """The user's object in place of a copy with which a function is traced; others themselves."""
    return _originals.get()(x)
