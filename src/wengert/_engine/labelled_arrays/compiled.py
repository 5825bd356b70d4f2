"""Compiled functions of objects with labels or units.

The labels are part of the structure of the arguments, as keys of a dict are: a call with other
labels compiles another program.  The values are inputs.

    LabelledContainer   labels and values as a container with one leaf
    with_containers     arguments with such containers
    without             results without them
    function_of         the function of containers that is compiled
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import optree

from wengert._engine.autodiff.arguments import derived
from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert.errors import ArgumentError, at, user_line

from .labels import Labels, Refused
from .objects import labels_of


class LabelledContainer:
    """Labels and values: a container with one leaf."""

    __slots__ = ("labels", "values")

    def __init__(self, labels: Labels, values: Any) -> None:
        self.labels, self.values = labels, values


def _flattened(x: LabelledContainer) -> tuple[tuple[Any], Labels, tuple[str]]:
    return (x.values,), x.labels, ("values",)


def _unflattened(labels: Labels, children: Iterable[Any]) -> LabelledContainer:
    return LabelledContainer(labels, next(iter(children)))


_register: Any = optree.register_pytree_node  # typed for collections only
_register(LabelledContainer, _flattened, _unflattened, namespace=pytree.NAMESPACE)


def with_containers(tree: object, what: str) -> Any:
    """A tree with containers in place of objects with labels; itself if there are none.

    Raises
    ------
    ArgumentError
        The values of an object are not numbers of one dtype.
    """
    leaves, structure = pytree.flatten(tree)
    items, changed = [], False
    for leaf in leaves:
        try:
            found = labels_of(leaf)
        except Refused as refused:
            raise ArgumentError(
                f"{what} {refused.kind}, not numbers. {refused.remedy}, or list the argument in "
                f"static_argnames{at(user_line())}."
            ) from None
        changed = changed or found is not None
        items.append(leaf if found is None else LabelledContainer(*found))
    return pytree.unflatten(structure, items) if changed else tree


def without(tree: Any) -> Any:
    """A tree with objects with labels in place of containers."""
    pytree.flatten(tree)  # registers new classes of containers
    found = optree.tree_leaves(
        tree, is_leaf=_is_container, none_is_leaf=True, namespace=pytree.NAMESPACE
    )
    if not any(map(_is_container, found)):
        return tree
    return optree.tree_map(
        lambda x: x.labels.wrap(x.values) if _is_container(x) else x,
        tree,
        is_leaf=_is_container,
        none_is_leaf=True,
        namespace=pytree.NAMESPACE,
    )


def _is_container(x: object) -> bool:
    return type(x) is LabelledContainer


def function_of(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function of containers that is compiled in place of `fun`."""
    function = derived(fun, _run, fun, name="jit")
    function.is_of_values = True  # type: ignore[attr-defined]
    return function


def _run(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    new_args = [without(x) for x in args]
    new_kwargs = {k: without(x) for k, x in kwargs.items()}
    out = converted(fun)(*new_args, **new_kwargs)
    name = getattr(fun, "__name__", type(fun).__name__)
    return with_containers(out, f"the compiled function {name} returned")
