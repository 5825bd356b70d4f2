"""State: the variables of a function that a block shares with it.

UNBOUND         the value of an unbound variable
SharedVariables       the variables of blocks, and the places that they assign, by name
Speculation     whether a traced block may have to run in Python after all
ChangeLog           what one such block makes and changes
object_changes  a block that notes the changes of objects, to be undone at its end
NotTraceable    the reason
subject         the words for a variable or place in a message
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CellType
from typing import Any, NamedTuple

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, is_traced
from wengert.errors import user_line

from .assignment_targets import (
    ABSENT,
    AssignmentTarget,
    Contents,
    changed,
    contents,
    refusal_of,
    restore,
)


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
        self.cells: dict[str, CellType | AssignmentTarget] = {}
        self.places: dict[AssignmentTarget, str] = {}
        for block in blocks:
            if block is None:
                continue
            code = block.__code__
            cells = block.__closure__ or ()
            self.cells.update(zip(code.co_freevars, cells, strict=True))
        if names is not None:
            self.cells = {n: self.cells[n] for n in names if n in self.cells}

    def of(self, names: Iterable[str]) -> SharedVariables:
        """Some of the variables."""
        made = SharedVariables(())
        made.cells = {n: self.cells[n] for n in names if n in self.cells}
        return made

    def add(self, place: AssignmentTarget) -> str:
        """The name of a place, which is treated as a variable from now on."""
        if place not in self.places:
            name = shown = str(place)
            count = 1
            while name in self.cells:
                count += 1
                name = f"{shown} ({count})"
            self.places[place], self.cells[name] = name, place
        return self.places[place]

    def read(self) -> dict[str, Any]:
        """The values of the variables."""
        return {name: cell_value(cell) for name, cell in self.cells.items()}

    def write(self, values: dict[str, Any]) -> None:
        """Give variables values."""
        for name, value in values.items():
            cell = self.cells[name]
            if isinstance(cell, AssignmentTarget):
                Speculation.note_change(cell.owner, cell.name)
            set_cell_value(cell, value)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """A block after which the variables have the values that they had."""
        before = self.read()
        try:
            yield
        finally:
            self.write(before)


def subject(name: str) -> str:
    """The words for a variable or place in a message."""
    return name if " " in name else f"the variable {name}"


def cell_value(cell: CellType | AssignmentTarget) -> Any:
    """The value of a variable, or UNBOUND."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


def set_cell_value(cell: CellType | AssignmentTarget, value: object) -> None:
    """Give a variable a value, or unbind it."""
    if value is not UNBOUND:
        cell.cell_contents = value
    elif cell_value(cell) is not UNBOUND:
        del cell.cell_contents


class NotedChange(NamedTuple):
    """An object that is changed, what it contained, and the line of the first change."""

    owner: Any
    before: Contents
    where: str


class ChangeLog:
    """What a traced block makes and changes.

    Attributes
    ----------
    cells : frozenset of int
        The variables that it restores, by identity.
    changes : dict
        Objects made before it that it changes, and what they contained, by identity.
    rebuilt : dict
        Containers that were built for variables of a loop, and the name of the variable.
    modified : set of str
        Of these, the variables whose containers it changes.
    is_traced : bool
        Whether it is the body of a loop or a branch, and not a whole function.
    """

    def __init__(self, cells: Iterable[object], is_traced: bool = True) -> None:
        self.cells, self.is_traced = frozenset(map(id, cells)), is_traced
        self.changes: dict[Any, NotedChange] = {}
        self.rebuilt: dict[int, tuple[Any, str]] = {}
        self.modified: set[str] = set()
        self._new: dict[int, Any] = {}

    def note_new(self, x: object) -> None:
        """Note an object that the block has made."""
        self._new[id(x)] = x

    def is_new(self, x: object) -> bool:
        """Whether the block has made an object."""
        return id(x) in self._new

    def note_change(self, x: Any, name: str | None) -> None:
        """Note that an object is about to be changed."""
        if id(x) in self.rebuilt:
            self.modified.add(self.rebuilt[id(x)][1])
            return
        key = (id(x), name) if type(x) is dict and name is not None else id(x)
        if key not in self.changes:
            where = "" if self.is_traced else user_line()
            self.changes[key] = NotedChange(x, contents(x, name), where)

    def places(self) -> dict[AssignmentTarget, Any]:
        """The changed places, and their values; UNBOUND for one that was deleted."""
        return {
            place: value if has_value else UNBOUND
            for x, before, _ in self.changes.values()
            for place, value, has_value in changed(x, before)
        }

    def forget(self) -> None:
        """Forget the objects."""
        for known in (self.changes, self.rebuilt, self._new):
            known.clear()

    def restore(self) -> None:
        """Give the objects what they contained."""
        for x, before, _ in self.changes.values():
            restore(x, before)


class _Open(threading.local):
    frames: tuple[ChangeLog, ...] = ()


class Speculation:
    """Blocks that are traced although they may have to run in Python after all.

    While one is traced, nothing that Python code could see later may be changed, except what is
    restored: the variables that it shares, and objects whose change is noted.
    """

    _open = _Open()

    @classmethod
    def is_open(cls) -> bool:
        """Whether a block is being traced, in which other changes are refused."""
        return bool(cls._open.frames) and cls._open.frames[-1].is_traced

    @classmethod
    def notes(cls) -> bool:
        """Whether changes of objects are noted."""
        return bool(cls._open.frames)

    @classmethod
    def refuse(cls, what: str) -> None:
        """Raise NotTraceable for a change that could not be taken back."""
        if cls.is_open():
            raise NotTraceable(what)

    @classmethod
    def note_new(cls, x: object) -> None:
        """Note an object that the innermost block has made, which may be changed in it."""
        if cls._open.frames:
            cls._open.frames[-1].note_new(x)

    @classmethod
    def is_new(cls, x: object) -> bool:
        """Whether the innermost block has made an object."""
        return bool(cls._open.frames) and cls._open.frames[-1].is_new(x)

    @classmethod
    def note_built(cls, x: object, name: str) -> None:
        """Note a container that was built for a variable of the innermost block."""
        cls._open.frames[-1].rebuilt[id(x)] = x, name

    @classmethod
    def note_change(cls, x: Any, name: str | None = None) -> None:
        """Note that the innermost block is about to change an object, or a variable.

        Parameters
        ----------
        x : object or cell
        name : str, optional
            The attribute that it assigns, or the name of the variable.

        Raises
        ------
        NotTraceable
            The change could not be taken back.
        """
        if not cls._open.frames:
            return
        frame = cls._open.frames[-1]
        if not frame.is_new(x) and id(x) not in frame.cells:
            reason = refusal_of(x, name)
            if reason is None:
                frame.note_change(x, name)
            else:
                cls.refuse(reason)

    @classmethod
    @contextmanager
    def noting(cls) -> Iterator[ChangeLog]:
        """A block that notes changes, and refuses none."""
        before, frame = cls._open.frames, ChangeLog((), is_traced=False)
        cls._open.frames = (*before, frame)
        try:
            yield frame
        finally:
            cls._open.frames = before

    @classmethod
    @contextmanager
    def block(cls, variables: SharedVariables) -> Iterator[ChangeLog]:
        """A block that restores these variables, and the objects that it changes."""
        before, frame = cls._open.frames, ChangeLog(variables.cells.values())
        cls._open.frames = (*before, frame)
        try:
            with variables.restored():
                try:
                    yield frame
                finally:
                    frame.restore()
        finally:
            cls._open.frames = before


class ObjectChanges:
    """Changes of objects by a function that is traced."""

    def __init__(self, frame: ChangeLog) -> None:
        self._frame = frame

    def taken(self, is_result: Callable[[Any], bool]) -> list[tuple[AssignmentTarget, Any, str]]:
        """The places with results of the function, their values and lines; they are restored."""
        found = []
        for x, before, where in self._frame.changes.values():
            for place, value, has_value in list(changed(x, before))[::-1]:
                if has_value and any(map(is_result, pytree.flatten(value)[0])):
                    old = before.get(place.key, ABSENT)
                    set_cell_value(place, UNBOUND if old is ABSENT else old)
                    found.append((place, value, where))
        return found[::-1]

    def forget(self) -> None:
        """Forget the objects."""
        self._frame.forget()


def is_noted(x: object) -> bool:
    """Whether a change of an object is noted for the function that is traced."""
    frames = Speculation._open.frames
    return bool(frames) and any(c.owner is x for c in frames[0].changes.values())


@contextmanager
def object_changes(inner: bool) -> Iterator[ObjectChanges | None]:
    """A block that notes the changes of objects; None inside of another one, unless `inner`."""
    if Speculation.notes() and not inner:
        yield None
        return
    with Speculation.noting() as frame:
        changes = ObjectChanges(frame)
        try:
            yield changes
        except BaseException:
            changes.taken(lambda x: isinstance(x, Handle) and is_traced(x))
            raise
