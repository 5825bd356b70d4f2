"""State that a block shares with the rest of the function: variables and Python objects.

A block (the body of a loop, one branch of an ``if``) is traced speculatively: if tracing fails, it
has to run in Python.  So its changes of variables and objects are recorded, and undone afterwards.

UNBOUND         the value of an unbound variable
SharedVariables the variables and assignment targets of a block, by name
Speculation     the blocks that are being traced speculatively
ChangeLog       the objects that one such block creates and changes
object_changes  a context in which changes of objects are recorded, to be undone at its end
ObjectChanges   these changes
NotTraceable    the exception that says why a block cannot be traced
subject         how an error message refers to a variable or an assignment target
cell_value, set_cell_value  the value of a variable or an assignment target
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
    changed_targets,
    contents,
    refusal_of,
    restore,
)


class _Unbound:
    def __repr__(self) -> str:
        return "UNBOUND"


UNBOUND = _Unbound()


class NotTraceable(Exception):
    """A block cannot be traced separately from the enclosing function.

    Parameters
    ----------
    reason : str
    peeling : bool
        Whether the loop may be traceable if its first iteration is peeled off.
    """

    def __init__(self, reason: str, peeling: bool = False) -> None:
        super().__init__(reason)
        self.peeling = peeling


class SharedVariables:
    """The variables that blocks share with the enclosing function.

    Parameters
    ----------
    blocks : iterable of callable or None
    names : iterable of str, optional
        The variables to include; by default, all free variables of the blocks.

    Attributes
    ----------
    cells : dict
        The cell of each variable, and each assignment target that was added, by name.
    targets : dict
        The names of the assignment targets.
    fixed : set of str
        Lists that may have other names, so that their variables cannot refer to another list.
    """

    def __init__(
        self, blocks: Iterable[Callable[..., Any] | None], names: Iterable[str] | None = None
    ) -> None:
        self.cells: dict[str, CellType | AssignmentTarget] = {}
        self.targets: dict[AssignmentTarget, str] = {}
        self.fixed: set[str] = set()
        for block in blocks:
            if block is None:
                continue
            code = block.__code__
            cells = block.__closure__ or ()
            self.cells.update(zip(code.co_freevars, cells, strict=True))
        if names is not None:
            self.cells = {n: self.cells[n] for n in names if n in self.cells}

    def of(self, names: Iterable[str]) -> SharedVariables:
        """These of the variables."""
        subset = SharedVariables(())
        subset.cells = {n: self.cells[n] for n in names if n in self.cells}
        return subset

    def add(self, target: AssignmentTarget) -> str:
        """Treat an assignment target as a variable, and return its name."""
        if target not in self.targets:
            name = text = str(target)
            count = 1
            while name in self.cells:
                count += 1
                name = f"{text} ({count})"
            self.targets[target], self.cells[name] = name, target
        return self.targets[target]

    def read(self) -> dict[str, Any]:
        """The values of the variables."""
        return {name: cell_value(cell) for name, cell in self.cells.items()}

    def write(self, values: dict[str, Any]) -> None:
        """Set variables."""
        for name, value in values.items():
            cell = self.cells[name]
            if isinstance(cell, AssignmentTarget):
                Speculation.note_change(cell.owner, cell.name)
            set_cell_value(cell, value)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """A context that restores the variables when it exits."""
        before = self.read()
        try:
            yield
        finally:
            self.write(before)


_RESULTS = {
    "__wg_result__": "the result of the function",
    "__wg_chosen__": "the value of the conditional expression",
}


def subject(name: str) -> str:
    """How an error message refers to a variable or an assignment target."""
    if name in _RESULTS:
        return _RESULTS[name]
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
    """A changed object, its contents before the first change, and the source line of that."""

    owner: Any
    before: Contents
    where: str


class ChangeLog:
    """The objects that a block creates and changes.

    Attributes
    ----------
    cells : frozenset of int
        The ids of the cells whose variables are restored after the block.
    changes : dict
        The changed objects that existed before the block, by id (and name, for a global variable).
    rebuilt : dict
        Containers that were rebuilt for a variable of a loop, and its name, by id.
    modified : set of str
        The variables whose rebuilt containers the block changes.
    is_traced : bool
        True for a loop body or branch, False for a whole function.
    """

    def __init__(self, cells: Iterable[object], is_traced: bool = True) -> None:
        self.cells, self.is_traced = frozenset(map(id, cells)), is_traced
        self.changes: dict[Any, NotedChange] = {}
        self.rebuilt: dict[int, tuple[Any, str]] = {}
        self.modified: set[str] = set()
        self._new: dict[int, Any] = {}

    def note_new(self, x: object) -> None:
        """Record that the block has created an object."""
        self._new[id(x)] = x

    def is_new(self, x: object) -> bool:
        """Whether the block has created an object."""
        return id(x) in self._new

    def has(self, x: object) -> bool:
        """Whether the block has created an object, or built it for a variable."""
        return id(x) in self._new or id(x) in self.rebuilt

    def note_change(self, x: Any, name: str | None) -> None:
        """Record the contents of an object that is about to be changed."""
        if id(x) in self.rebuilt:
            self.modified.add(self.rebuilt[id(x)][1])
            return
        key = (id(x), name) if type(x) is dict and name is not None else id(x)
        if key not in self.changes:
            where = "" if self.is_traced else user_line()
            self.changes[key] = NotedChange(x, contents(x, name), where)

    def assigned_targets(self) -> dict[AssignmentTarget, Any]:
        """The targets that were assigned, with their values; UNBOUND if deleted."""
        return {
            target: value if has_value else UNBOUND
            for x, before, _ in self.changes.values()
            for target, value, has_value in changed_targets(x, before)
        }

    def forget(self) -> None:
        """Drop all references to objects."""
        for known in (self.changes, self.rebuilt, self._new):
            known.clear()

    def restore(self) -> None:
        """Restore the contents of all changed objects."""
        for x, before, _ in self.changes.values():
            restore(x, before)


class _OpenLogs(threading.local):
    logs: tuple[ChangeLog, ...] = ()


class Speculation:
    """Blocks that are being traced speculatively: they may have to run in Python after all.

    Such a block may only change what can be restored: the variables that it shares with the
    function, and objects whose contents are recorded before the change.
    """

    _open = _OpenLogs()

    @classmethod
    def is_open(cls) -> bool:
        """Whether a block is being traced in which changes that cannot be undone are refused."""
        return bool(cls._open.logs) and cls._open.logs[-1].is_traced

    @classmethod
    def open_logs(cls) -> tuple[ChangeLog, ...]:
        """The logs of the blocks that are being traced, outermost first."""
        return cls._open.logs

    @classmethod
    def notes(cls) -> bool:
        """Whether changes of objects are recorded."""
        return bool(cls._open.logs)

    @classmethod
    def refuse(cls, what: str) -> None:
        """Raise NotTraceable, inside of a traced block, for a change that cannot be undone."""
        if cls.is_open():
            raise NotTraceable(what)

    @classmethod
    def note_new(cls, x: object) -> None:
        """Record that the innermost block has created an object, which it may change."""
        if cls._open.logs:
            cls._open.logs[-1].note_new(x)

    @classmethod
    def is_new(cls, x: object) -> bool:
        """Whether the innermost block has created an object."""
        return bool(cls._open.logs) and cls._open.logs[-1].is_new(x)

    @classmethod
    def note_built(cls, x: object, name: str) -> None:
        """Record that a container was rebuilt for a variable of the innermost block."""
        cls._open.logs[-1].rebuilt[id(x)] = x, name

    @classmethod
    def note_change(cls, x: Any, name: str | None = None) -> None:
        """Record that the innermost block is about to change an object or a variable.

        Parameters
        ----------
        x : object or cell
        name : str, optional
            The attribute to be assigned, or the name of the variable.

        Raises
        ------
        NotTraceable
            The change cannot be undone.
        """
        if not cls._open.logs:
            return
        log = cls._open.logs[-1]
        if not log.is_new(x) and id(x) not in log.cells:
            reason = refusal_of(x, name)
            if reason is None:
                log.note_change(x, name)
            else:
                cls.refuse(reason)

    @classmethod
    @contextmanager
    def block(cls, variables: SharedVariables) -> Iterator[ChangeLog]:
        """A context that restores these variables, and all changed objects, when it exits."""
        before, log = cls._open.logs, ChangeLog(variables.cells.values())
        cls._open.logs = (*before, log)
        try:
            with variables.restored():
                try:
                    yield log
                finally:
                    log.restore()
        finally:
            cls._open.logs = before


class ObjectChanges:
    """Changes of objects by a function that is being traced."""

    def __init__(self, log: ChangeLog) -> None:
        self._log = log

    def taken(self, is_result: Callable[[Any], bool]) -> list[tuple[AssignmentTarget, Any, str]]:
        """Restore the targets that contain results of the function, and return them.

        Parameters
        ----------
        is_result : callable
            Whether a leaf of an assigned value is computed by the function.

        Returns
        -------
        list of (target, value, source line)
        """
        assigned = []
        for x, before, where in self._log.changes.values():
            for target, value, has_value in list(changed_targets(x, before))[::-1]:
                if has_value and any(map(is_result, pytree.flatten(value)[0])):
                    old = before.get(target.key, ABSENT)
                    set_cell_value(target, UNBOUND if old is ABSENT else old)
                    assigned.append((target, value, where))
        return assigned[::-1]

    def forget(self) -> None:
        """Drop all references to objects."""
        self._log.forget()


def is_noted(x: object) -> bool:
    """Whether the function that is being traced has changed an object."""
    logs = Speculation._open.logs
    return bool(logs) and any(c.owner is x for c in logs[0].changes.values())


@contextmanager
def object_changes(inner: bool) -> Iterator[ObjectChanges | None]:
    """A context in which changes of objects are recorded; yields None if nested, unless `inner`."""
    if Speculation.notes() and not inner:
        yield None
        return
    log = ChangeLog((), is_traced=False)  # records changes, and refuses none
    changes = ObjectChanges(log)
    # Without calls, as an interrupt comes where a function is called or returns.
    open_logs = Speculation._open
    before = open_logs.logs
    open_logs.logs = (*before, log)
    try:
        yield changes
    except BaseException:
        changes.taken(lambda x: isinstance(x, Handle) and is_traced(x))
        raise
    finally:
        open_logs.logs = before
