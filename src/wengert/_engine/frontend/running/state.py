"""State: the variables of a function that a block shares with it.

UNBOUND         the value of an unbound variable
SharedVariables       the variables of blocks, by name
Speculation     whether a traced block may have to run in Python after all
NotTraceable    the reason
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CellType
from typing import Any


class _Unbound:
    def __repr__(self) -> str:
        return "UNBOUND"


UNBOUND = _Unbound()


class NotTraceable(Exception):
    """Why a block cannot be traced separately from the enclosing function.

    peeling : bool
        Whether it may be traceable after its first trip.
    """

    def __init__(self, reason: str, peeling: bool = False) -> None:
        super().__init__(reason)
        self.peeling = peeling


class SharedVariables:
    """The variables that blocks share with their function.

    Parameters
    ----------
    blocks : callables
    names : iterable of str
        The variables to examine; those of the blocks if None.
    """

    def __init__(
        self, blocks: Iterable[Callable[..., Any] | None], names: Iterable[str] | None = None
    ) -> None:
        self.cells: dict[str, CellType] = {}
        for block in blocks:
            if block is None:
                continue
            code = block.__code__
            cells = block.__closure__ or ()
            self.cells.update(zip(code.co_freevars, cells, strict=True))
        if names is not None:
            self.cells = {n: self.cells[n] for n in names if n in self.cells}

    def read(self) -> dict[str, Any]:
        """The values of the variables."""
        return {name: content(cell) for name, cell in self.cells.items()}

    def write(self, values: dict[str, Any]) -> None:
        """Give variables values."""
        for name, value in values.items():
            fill(self.cells[name], value)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """A block after which the variables have the values that they had."""
        before = self.read()
        try:
            yield
        finally:
            self.write(before)


def content(cell: CellType) -> Any:
    """The value of a variable, or UNBOUND."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


def fill(cell: CellType, value: object) -> None:
    """Give a variable a value, or unbind it."""
    if value is not UNBOUND:
        cell.cell_contents = value
    elif content(cell) is not UNBOUND:
        del cell.cell_contents


class _Depth(threading.local):
    cells: tuple[frozenset[int], ...] = ()
    new: tuple[list[Any], ...] = ()


class Speculation:
    """Blocks that are traced although they may have to run in Python after all.

    While one is traced, nothing that Python code could see later may be changed.
    """

    _open = _Depth()

    @classmethod
    def is_open(cls) -> bool:
        """Whether a block is being traced."""
        return bool(cls._open.cells)

    @classmethod
    def refuse(cls, what: str) -> None:
        """Raise NotTraceable for a change that could not be taken back."""
        if cls._open.cells:
            raise NotTraceable(what)

    @classmethod
    def restores(cls, cell: CellType) -> bool:
        """Whether all open blocks restore a variable."""
        return all(id(cell) in known for known in cls._open.cells)

    @classmethod
    def note_new(cls, x: object) -> None:
        """Note an object that the innermost block has made, which may be changed in it."""
        if cls._open.new:
            cls._open.new[-1].append(x)

    @classmethod
    def is_new(cls, x: object) -> bool:
        """Whether the innermost block has made an object."""
        return bool(cls._open.new) and any(x is other for other in cls._open.new[-1])

    @classmethod
    @contextmanager
    def block(cls, variables: SharedVariables) -> Iterator[None]:
        """A block that restores these variables."""
        before, new = cls._open.cells, cls._open.new
        cls._open.cells = (*before, frozenset(map(id, variables.cells.values())))
        cls._open.new = (*new, [])
        try:
            with variables.restored():
                yield
        finally:
            cls._open.cells, cls._open.new = before, new
