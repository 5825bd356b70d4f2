"""Which results of branches share memory with existing arrays, and how views are taken of these.

    BranchMemory    records this for the results of a branch
    shared_with     the existing arrays with which a value at the end of a block shares memory
    arrays_in       the arrays in the value of a variable
    is_outside      whether an array from before a block has a memory
    ViewPath        a view of an array from before a block

    if c: b = a            # after the branch, b is a new array if c is false, and a if it is true
    else: b = 2.0 * a

    if c: row = A[k[i]]      # after the branch, a write to row is one to A[k[i]] where c holds
    else: row = A[j]

The view is made again after the block, for which the integers that its indices need are results of
the block.  Where the block was not run they are 0, so that no index is out of bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from wengert._engine.core.branch_aliases import (
    ArrayMemory,
    add_choices,
    add_unknown,
    choices_of,
    memories_of,
    own_memory,
    unknown_of,
)
from wengert._engine.core.handle import Handle, Put, Take, link, owner_of_memory, wrap
from wengert._engine.core.loop_rows import LoopRow
from wengert._engine.core.node import CONSTANT, Node
from wengert._engine.core.op import lookup
from wengert._engine.core.tracing import SIZE

from ..state import UNBOUND
from .block_tracing import TracedBlock
from .values import MaybeUnbound, PartitionedValue


class _ViewStep(NamedTuple):
    """One view of another.

    Attributes
    ----------
    take, put : callable
        As in `link`.
    node : Node or None
        The node of the view, if its operands are replaced.
    """

    take: Take
    put: Put | None
    node: Node | None

    def view(self, base: Handle, operands: Iterator[Any]) -> Handle:
        """The view of another array, linked to it."""
        view: Handle
        if self.node is None:
            view = self.take(base)
            link(view, base, self.take, self.put, shares=True)
            return view
        others = [
            next(operands) if _is_computed(x) else wrap(x) if isinstance(x, Node) else x
            for x in self.node.args[1:]
        ]
        view = self.node.op(base, *others, **self.node.params)
        return view


class ViewPath:
    """How a view is taken of an array from before a block.

    Parameters
    ----------
    base : Handle
        The array.
    steps : sequence of _ViewStep
    """

    def __init__(self, base: Handle, steps: Sequence[_ViewStep]) -> None:
        self.base = base
        self._steps = steps
        self.operands: list[Node] = [
            x
            for step in steps
            if step.node is not None
            for x in step.node.args[1:]
            if _is_computed(x)
        ]

    @staticmethod
    def of(view: Handle, since: int) -> ViewPath | None:
        """The path of a view; None if it is not known, or another array is its base.

        Parameters
        ----------
        view : Handle
        since : int
            The serial number of the first node of the block.
        """
        if view.node.serial < since:
            return ViewPath(view, ())
        shared = getattr(view, "_link", None)
        if shared is None:
            return None
        base, take, put = shared
        path = ViewPath.of(base, since)
        node = view.node
        if path is None:
            return None
        computed = [x for x in node.args[1:] if _is_computed(x)]
        if computed:
            is_view = getattr(node.op, "aliasing", None) is not None and node.op.aliasing.view
            is_known = put is not None and is_view and node.args[0].spec == base.node.spec
            if not is_known or 0 in base.node.spec.shape:
                return None
            if any(x.spec.shape or x.spec.dtype.kind not in "iu" for x in computed):
                return None
        step = _ViewStep(take, put, node if computed else None)
        return ViewPath(path.base, (*path._steps, step))

    def view(self, operands: Sequence[Any]) -> Handle:
        """The view, with the values of its `operands`."""
        remaining = iter(operands)
        view = self.base
        for step in self._steps:
            view = step.view(view, remaining)
        return view


def _is_computed(operand: object) -> bool:
    """Whether an operand is not a constant."""
    return isinstance(operand, Node) and operand.op is not CONSTANT and operand.op is not SIZE


Key = tuple[str, int]  # a variable, and the number of one of the arrays in its value


def arrays_in(value: Any) -> list[Handle | None]:
    """The arrays among the numbers of a value, None for others."""
    if type(value) is MaybeUnbound:
        value = value.value
    if value is UNBOUND:
        return []
    return [
        x if isinstance(x, Handle) and not isinstance(x, LoopRow) and x.node.spec.shape else None
        for x in PartitionedValue.of(value).numeric_leaves
    ]


Target: TypeAlias = Handle | ArrayMemory | ViewPath


def shared_with(array: Handle, since: int) -> list[tuple[Target, Any]]:
    """What existed before a block with which an array shares memory, with the conditions.

    Parameters
    ----------
    array : Handle
    since : int
        The serial number of the first node of the block.

    Returns
    -------
    list of (target, condition)
        A target is an array with all memories that it may have, one memory, or a view of an array.
        A condition is True, a traced boolean of the block, or None if it is not known.
    """
    if array.node.serial < since:
        return [(array, True), *[(x, None) for x in unknown_of(owner_of_memory(array))]]
    owner = owner_of_memory(array)
    if owner is not array:
        path = None if choices_of(owner) else ViewPath.of(array, since)
        if path is not None:
            return [(path, True)]
        return [(x, None) for x in _arrays_outside(owner, since)]
    found: list[tuple[Target, Any]] = []
    for memory, condition in choices_of(array):
        view = memory.handle
        if is_outside(memory, since):
            found.append((memory, condition))
            members = [x for x, _ in memory.arrays() if x.node.serial < since]
            found += [(other, None) for x in members for other in unknown_of(x)]
        elif view is not None and owner_of_memory(view) is not view:
            found += [(t, condition if c is True else None) for t, c in shared_with(view, since)]
    unknown = [x for x in unknown_of(array) if x.node.serial < since]
    return [*found, *[(x, None) for x in unknown]]


def is_outside(memory: ArrayMemory, since: int) -> bool:
    """Whether an array from before a block has a memory."""
    return any(x.node.serial < since for x, _ in memory.arrays())


def _arrays_outside(array: Handle, since: int) -> list[Handle]:
    """The arrays from before a block that an array may share memory with."""
    found: list[Handle] = []
    for target, _ in shared_with(array, since):
        if isinstance(target, ViewPath):
            found.append(target.base)
        elif isinstance(target, ArrayMemory):
            found += [x for x, _ in target.arrays() if x.node.serial < since]
        else:
            found.append(target)
    return found


class _MadeMemory:
    """A memory that a branch has made, and the results that may have it.

    Attributes
    ----------
    branch : int
    owners : list of (Key, condition)
        Those that have it as a whole, with the conditions, in the branch.
    views : list of Key
        Those that are views of it.
    """

    def __init__(self, branch: int, owner: object) -> None:
        self.branch = branch
        self.owners: list[tuple[Key, Any]] = []
        self.views: list[Key] = []
        self._owner = owner  # kept alive, since it is identified by its address


class BranchMemory:
    """Which arrays the results of a branch share memory with.

    Parameters
    ----------
    blocks : sequence of TracedBlock
        The else branch, and the if branch.
    names : iterable of str
        The variables that they assign.
    """

    def __init__(self, blocks: Sequence[TracedBlock], names: Iterable[str]) -> None:
        self._blocks = blocks
        self._names: dict[str, list[list[Handle | None]]] = {}
        self._shared: list[tuple[Key, int, Target, Any]] = []
        self._made: dict[tuple[int, int], _MadeMemory] = {}
        self._outputs: list[tuple[int, Any]] = []
        for name in names:
            self._add(name)
        for made in self._made.values():
            for _, condition in made.owners if len(made.owners) > 1 else ():
                self._need(made.branch, condition)

    def _add(self, name: str) -> None:
        self._names[name] = [arrays_in(b.values[name]) for b in self._blocks]
        for k, arrays in enumerate(self._names[name]):
            for number, array in enumerate(arrays):
                if array is not None:
                    self._add_array((name, number), k, array)

    def _add_array(self, key: Key, k: int, array: Handle) -> None:
        since = self._blocks[k].since
        for target, condition in shared_with(array, since):
            self._shared.append((key, k, target, condition))
            self._need(k, condition)
            for node in target.operands if isinstance(target, ViewPath) else ():
                self._need(k, wrap(node))
        if array.node.serial < since:
            return
        owner = owner_of_memory(array)
        if owner is not array:
            if owner.node.serial >= since:
                self._made_memory(k, owner).views.append(key)
            return
        memories = memories_of(array) if choices_of(array) else [(None, True)]
        for memory, condition in memories:
            view = array if memory is None else memory.handle
            if view is array or view is None or owner_of_memory(view) is view:
                if memory is None or not is_outside(memory, since):
                    made = self._made_memory(k, memory if view is None else view)
                    made.owners.append((key, condition))
            elif owner_of_memory(view).node.serial >= since:
                self._made_memory(k, owner_of_memory(view)).views.append(key)

    def _made_memory(self, k: int, owner: object) -> _MadeMemory:
        return self._made.setdefault((k, id(owner)), _MadeMemory(k, owner))

    def _need(self, k: int, value: Any) -> None:
        """Note a value of a branch that is needed after it."""
        if isinstance(value, Handle):
            self._outputs.append((k, value))

    def same(self, name: str, numbers: list[Any]) -> list[Any]:
        """The results for a variable; if it is the same existing array in both branches, that."""
        other, then = self._names[name]
        if len(other) != len(then):
            return numbers
        pairs = zip(other, then, strict=True)
        first = self._blocks[0].since
        both = [a if a is b and a is not None and a.node.serial < first else None for a, b in pairs]
        return [x if a is None else a for a, x in zip(both, numbers, strict=False)] + numbers[
            len(both) :
        ]

    def outputs(self, branch: int) -> list[Any]:
        """The conditions and indices that are computed in the branches, as outputs of one."""
        return [x if k == branch else x.node.spec.dtype.type(0) for k, x in self._outputs]

    def record(self, results: dict[str, list[Any]], test: Any, outputs: Sequence[Any]) -> None:
        """Record with which arrays results share memory.

        Parameters
        ----------
        results : dict
            The numeric leaves of the variables after the branch.
        test : Tensor
            The condition of the branch.
        outputs : sequence of Tensor
            The results that correspond to `outputs`.
        """
        taken = lookup("logical_not")(test), test
        remaining = iter(outputs)
        choices: dict[Key, list[tuple[Handle | ArrayMemory, Any]]] = {}
        unknown: list[tuple[Handle, Handle]] = []

        def result_of(key: Key) -> Any:
            return results[key[0]][key[1]]

        def after(k: int, condition: Any) -> Any:
            return next(remaining) if isinstance(condition, Handle) else taken[k]

        for key, k, target, condition in self._shared:
            holds = None if condition is None else after(k, condition)
            if isinstance(target, ViewPath):
                target = target.view([next(remaining) for _ in target.operands])
            result = result_of(key)
            if not isinstance(result, Handle) or target is result:
                continue
            if holds is not None:
                choices.setdefault(key, []).append((target, holds))
            elif isinstance(target, Handle):
                unknown.append((result, target))
        for made in self._made.values():
            found = made.owners if len(made.owners) > 1 else ()
            members = [(key, after(made.branch, c)) for key, c in found]
            whole = next((key for key, c in found if c is True), None)
            if found:
                memory = ArrayMemory(None) if whole is None else own_memory(result_of(whole))
            for key, condition in members:
                if whole is None or result_of(key) is not result_of(whole):
                    choices.setdefault(key, []).append((memory, condition))
            keys = [*[key for key, _ in made.owners], *made.views]
            for key in made.views:
                if result_of(key) is not result_of(keys[0]):
                    unknown.append((result_of(key), result_of(keys[0])))
        for key, pairs in choices.items():
            add_choices(result_of(key), pairs)
        add_unknown(unknown)
