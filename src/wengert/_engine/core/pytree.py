"""Nested containers: arguments and results as trees of leaves (optree does the work).

Lists, tuples, named tuples, dicts, `types.SimpleNamespace`, and any class registered with optree
are containers; so are plain dataclasses, which are registered here at first use, and classes of
other libraries that a module of wengert registers (`LATE_CONTAINERS`).  None is a leaf: a value
without derivative, not an empty container.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import optree

from wengert.errors import StructureError

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

NAMESPACE = "wengert"
# By the start of the name of a class's module: the module that registers it, imported when a leaf
# is an instance; set by wengert/__init__.py.
LATE_CONTAINERS: dict[str, str] = {}


class LateContainers:
    """The number of containers of other libraries that have been flattened.

    A structure names the class of wengert in place of the other library's, into which it is
    restored, so that both are the same container.
    """

    count = 0


_registered: set[type] = set()
_PLAIN = frozenset((np.ndarray, float, int, bool, complex, str, type(None)))


def _namespace_parts(x: Any) -> tuple[list[Any], tuple[str, ...], list[str]]:
    names = sorted(vars(x))
    return [vars(x)[n] for n in names], tuple(names), names


def _words(names: Any) -> tuple[str, ...]:
    return tuple(names)


optree.register_pytree_node(
    SimpleNamespace,
    _namespace_parts,
    lambda names, parts: SimpleNamespace(**dict(zip(_words(names), parts, strict=True))),
    namespace=NAMESPACE,
)


def _register_dataclass(cls: type) -> None:
    names = [f.name for f in dataclasses.fields(cls)]

    def flatten(x: Any) -> tuple[list[Any], None, list[str]]:
        return [getattr(x, n) for n in names], None, names

    def unflatten(_: Any, children: Iterable[Any]) -> Any:
        x: Any = object.__new__(cls)  # __init__ may reject leaves that are gradients or None
        for n, child in zip(names, children, strict=True):
            object.__setattr__(x, n, child)
        return x

    optree.register_pytree_node(cls, flatten, unflatten, namespace=NAMESPACE)
    _registered.add(cls)


def _is_new_container(x: Any) -> bool:
    cls = type(x)
    if cls in _registered or isinstance(x, type):
        return False
    if dataclasses.is_dataclass(x):
        return True
    for begin, module in LATE_CONTAINERS.items():
        if cls.__module__.startswith(begin) and module not in sys.modules:
            import_module(module)
            return True
    return False


class _LeafMark:
    def __repr__(self) -> str:
        return "*"


LEAF = _LeafMark()  # replaces a leaf in a message


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of a tree in order, and its structure."""
    before = LateContainers.count
    leaves, structure = optree.tree_flatten(tree, none_is_leaf=True, namespace=NAMESPACE)
    if LateContainers.count != before:
        marks = optree.tree_unflatten(structure, [LEAF] * len(leaves))
        structure = optree.tree_structure(marks, none_is_leaf=True, namespace=NAMESPACE)
    new = {type(x) for x in leaves if type(x) not in _PLAIN and _is_new_container(x)}
    if not new:
        return leaves, structure
    for cls in new:
        if dataclasses.is_dataclass(cls):
            _register_dataclass(cls)
    return flatten(tree)


def unflatten(structure: Any, leaves: Sequence[Any]) -> Any:
    """A tree of that structure with these leaves."""
    return optree.tree_unflatten(structure, leaves)


def marked(tree: Any) -> Any:
    """The containers with a star for each leaf, for messages."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [x if x is None else LEAF for x in leaves])


def paths(tree: Any) -> list[str]:
    """The path of each leaf: `[0]`, `['weights']`, `.bias`; empty for a bare leaf."""
    flatten(tree)
    accessors = optree.tree_accessors(tree, none_is_leaf=True, namespace=NAMESPACE)
    return [a.codify("") for a in accessors]


def insertion_order(tree: Array | dict[Any, Any] | list[Operand]) -> list[int]:
    """The indices that the leaves have in `flatten`, in the insertion order of dicts.

    `flatten` sorts the keys of a dict, so that equal containers have equal leaves; a container
    shown to the user as one vector is shown in insertion order.
    """
    _, structure = flatten(tree)
    return _ordered(tree, structure, 0)


def _ordered(x: Any, structure: Any, begin: int) -> list[int]:
    if structure.is_leaf():
        return [begin]
    children, _, keys, _ = optree.tree_flatten_one_level(x, none_is_leaf=True, namespace=NAMESPACE)
    leaf_indices: dict[Any, list[int]] = {}
    for key, child, part in zip(keys, children, structure.children(), strict=True):
        leaf_indices[key] = _ordered(child, part, begin)
        begin += part.num_leaves
    ordered_keys = x if isinstance(x, dict) else keys
    return [k for key in ordered_keys for k in leaf_indices[key]]


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Apply `f` to corresponding leaves, in the structure of the first tree.

    Raises
    ------
    StructureError
        The trees differ in structure.
    """
    leaves, structure = flatten(tree)
    columns = [leaves]
    for other in rest:
        more, other_structure = flatten(other)
        if other_structure != structure:
            raise StructureError(
                f"Two containers of different structure: {structure} and {other_structure}. "
                "Give both the same nesting of lists, tuples, dicts and keys."
            )
        columns.append(more)
    return unflatten(structure, [f(*xs) for xs in zip(*columns, strict=True)])
