"""Functions that are passed to be called when a program runs, and never while it is traced.

What such a function reads does not determine the program, so it is not guarded
(graphs/captures/traced_part.py), and the function that runs is the user's own: it reads and assigns
the user's objects, not the copies with which a function is traced (captures/substitution.py).

NAMES                the names of functions of wengert that call an argument in this way
called_at_run_time   their decorator
parameter_called     the parameter of one of them that is called, or None
any_calls            whether one of them is among some objects
originals_by         a block in which copies of the user's objects have originals
original             the user's object in place of a copy
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from .dynamic_scope import Blocks, ScopedValue

F = TypeVar("F", bound=Callable[..., Any])

# Known before the modules that define them are imported: a function whose code has none of these
# names is not examined.
NAMES = frozenset(("callback",))
_parameters: dict[int, tuple[Callable[..., Any], str]] = {}
_originals: Blocks[Callable[[Any], Any]] = Blocks("wengert_originals", lambda x: x)


def called_at_run_time(parameter: str) -> Callable[[F], F]:
    """A decorator of functions that call their first parameter, which has this name, later."""

    def register(fun: F) -> F:
        assert fun.__name__ in NAMES, f"{fun.__name__} must be among NAMES"
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
