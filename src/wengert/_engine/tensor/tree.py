"""Functions of nested containers, by the names of `jax.tree`.

    map, map_with_path               apply a function to the leaves
    flatten, unflatten               the leaves and the structure; and back
    leaves, structure                one of them
    leaves_with_path                 leaves with the places where they stand
    reduce, all                      fold over the leaves
    transpose                        a container of containers, the other way round
    ravel                            the leaves as one vector, and back; differentiable

Containers are lists, tuples, named tuples, dicts, `types.SimpleNamespace`, dataclasses, and classes
registered with optree.  None is a leaf here, where JAX has an empty container: a derivative of a
value without one is None.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import optree

from wengert._engine.core import pytree
from wengert._engine.core.handle import describe
from wengert._engine.core.lazy_import import public_dir
from wengert.errors import ArgumentError, DtypeError, ShapeError, StructureError, at, user_line

__all__ = [
    "all",
    "flatten",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "ravel",
    "reduce",
    "structure",
    "transpose",
    "unflatten",
]
IsLeaf = Callable[[Any], bool] | None
_MISSING: Any = object()


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], Any]:
    """The leaves of a tree in order, and its structure.

    Parameters
    ----------
    tree : any
        Nested containers; anything that is not a container is a leaf. Dicts are in the order of
        sorted keys.
    is_leaf : callable, optional
        Whether a container is a leaf nevertheless.

    Examples
    --------
    >>> import wengert as wg
    >>> leaves, structure = wg.tree.flatten({"b": (1.0, 2.0), "a": 3.0})
    >>> leaves
    [3.0, 1.0, 2.0]
    >>> wg.tree.unflatten(structure, [1, 2, 3])
    {'b': (2, 3), 'a': 1}
    """
    if is_leaf is None:
        return pytree.flatten(tree)
    pytree.flatten(tree)  # which registers dataclasses
    found, structure = optree.tree_flatten(
        tree, is_leaf=is_leaf, none_is_leaf=True, namespace=pytree.NAMESPACE
    )
    return found, structure


def unflatten(treedef: Any, leaves: Any) -> Any:
    """A tree of a structure from `flatten`, with these leaves.

    Raises
    ------
    StructureError
        The number of leaves is another one, or `treedef` is not a structure.
    """
    if not isinstance(treedef, optree.PyTreeSpec):
        raise StructureError(
            f"unflatten({treedef!r}, ...): the first argument must be a structure, which flatten "
            f"or structure returns{at(user_line())}."
        )
    given = list(leaves)
    if len(given) != treedef.num_leaves:
        raise StructureError(
            f"{len(given)} leaves for a structure of {treedef.num_leaves}: {treedef}. Give as many"
            f"{at(user_line())}."
        )
    return pytree.unflatten(treedef, given)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree in order.

    Examples
    --------
    >>> import wengert as wg
    >>> wg.tree.leaves({"w": [1.0, 2.0], "b": None})
    [None, 1.0, 2.0]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> Any:
    """The structure of a tree; structures can be compared and hashed.

    Examples
    --------
    >>> import wengert as wg
    >>> wg.tree.structure((1, [2])) == wg.tree.structure((3.0, [4.0]))
    True
    """
    return flatten(tree, is_leaf)[1]


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply `f` to the leaves of a tree.

    Parameters
    ----------
    f : callable
        A function of one leaf of each tree.
    tree : any
        It determines the structure of the result.
    *rest : any
        Trees of the same structure; where `tree` has a leaf they may have containers.
    is_leaf : callable, optional
        Whether a container in `tree` is a leaf.

    Raises
    ------
    StructureError
        The structures differ.

    Examples
    --------
    >>> import wengert as wg
    >>> wg.tree.map(lambda p, g: p - 0.1 * g, {"a": 1.0, "b": [2.0]}, {"a": 10.0, "b": [0.0]})
    {'a': 0.0, 'b': [2.0]}
    """
    found, treedef = flatten(tree, is_leaf)
    columns = [found, *[_up_to(treedef, other) for other in rest]]
    return pytree.unflatten(treedef, [f(*xs) for xs in zip(*columns, strict=True)])


def _up_to(treedef: Any, other: Any) -> list[Any]:
    """The parts of a tree where another one has leaves."""
    try:
        return list(treedef.flatten_up_to(other))
    except ValueError as error:
        raise StructureError(
            f"Two containers of different structure: {treedef} and {structure(other)}. Give both "
            f"the same nesting of lists, tuples, dicts and keys{at(user_line())}."
        ) from error


def leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[tuple[Any, ...], Any]]:
    """Pairs of the path of a leaf, a tuple of keys, indices and names, and the leaf.

    Examples
    --------
    >>> import wengert as wg
    >>> wg.tree.leaves_with_path({"a": [1.0, 2.0]})
    [(('a', 0), 1.0), (('a', 1), 2.0)]
    """
    found, treedef = flatten(tree, is_leaf)
    return list(zip(treedef.paths(), found, strict=True))


def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply ``f(path, leaf, ...)`` to the leaves of a tree, with the paths of `leaves_with_path`.

    Examples
    --------
    >>> import wengert as wg
    >>> wg.tree.map_with_path(lambda path, x: 0.0 if path[-1] == "bias" else x, {"bias": 1.0})
    {'bias': 0.0}
    """
    found, treedef = flatten(tree, is_leaf)
    columns = [treedef.paths(), found, *[_up_to(treedef, other) for other in rest]]
    return pytree.unflatten(treedef, [f(*xs) for xs in zip(*columns, strict=True)])


def reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _MISSING,
    is_leaf: IsLeaf = None,
) -> Any:
    """Fold a function of two arguments over the leaves, from the left.

    Examples
    --------
    >>> import operator
    >>> import wengert as wg
    >>> wg.tree.reduce(operator.add, {"a": 1.0, "b": (2.0, 3.0)})
    6.0
    """
    found = flatten(tree, is_leaf)[0]
    if initializer is not _MISSING:
        return functools.reduce(function, found, initializer)
    if not found:
        raise ArgumentError(
            f"reduce of a tree without leaves. Give an initializer{at(user_line())}."
        )
    return functools.reduce(function, found)


def all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.tree.all(wg.tree.map(np.allclose, {"a": 1.0}, {"a": 1.0}))
    True
    """
    return builtins.all(flatten(tree, is_leaf)[0])


def transpose(outer_treedef: Any, inner_treedef: Any | None, pytree_to_transpose: Any) -> Any:
    """A tree of structure `outer` of trees of structure `inner`, the other way round.

    Parameters
    ----------
    outer_treedef, inner_treedef : structure
        From `structure`; the inner one may be None and is then that of the first inner tree.
    pytree_to_transpose : any

    Raises
    ------
    StructureError
        The tree has another structure.

    Examples
    --------
    >>> import wengert as wg
    >>> rows = [{"x": 1, "y": 2}, {"x": 3, "y": 4}]
    >>> wg.tree.transpose(wg.tree.structure([0, 0]), wg.tree.structure({"x": 0, "y": 0}), rows)
    {'x': [1, 3], 'y': [2, 4]}
    """
    parts = _up_to(outer_treedef, pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = structure(parts[0])
    columns = [_up_to(inner_treedef, part) for part in parts]
    turned = [pytree.unflatten(outer_treedef, list(xs)) for xs in zip(*columns, strict=True)]
    return pytree.unflatten(inner_treedef, turned)


def ravel(tree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The leaves as one vector, and a function from vectors to trees.

    `jax.flatten_util.ravel_pytree`. Both directions are differentiable, compile and batch.

    Parameters
    ----------
    tree : any
        Its leaves are numbers, arrays or tensors.

    Returns
    -------
    array or Tensor
        One-dimensional, of the dtype to which all leaves are promoted.
    callable
        From a vector of that length to a tree with the shapes and dtypes of `tree`.

    Raises
    ------
    DtypeError
        A leaf is not a number or an array of numbers.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> vector, unravel = wg.tree.ravel({"w": np.ones((2, 2)), "b": 3.0})
    >>> vector
    array([3., 1., 1., 1., 1.])
    >>> unravel(2.0 * vector)["w"]
    array([[2., 2.],
           [2., 2.]])
    """
    found, treedef = pytree.flatten(tree)
    specs = [_numeric(x) for x in found]
    vector = np.concatenate([np.reshape(x, (-1,)) for x in found]) if found else np.zeros(0)
    ends: list[Any] = [0]
    for spec in specs:
        ends.append(ends[-1] + spec.size)

    def unravel(v: Any) -> Any:
        """The tree with the elements of a vector."""
        spec = describe(v)
        if isinstance(spec, tuple) or tuple(spec.shape) != (ends[-1],):
            raise ShapeError(
                f"unravel: {spec} instead of a vector of length {ends[-1]}{at(user_line())}."
            )
        parts = zip(ends, ends[1:], specs, strict=False)
        return pytree.unflatten(treedef, [_part(v[a:b], s) for a, b, s in parts])

    return vector, unravel


def _numeric(x: Any) -> Any:
    spec = None if isinstance(x, str | bytes) or x is None else describe(x)
    if spec is None or isinstance(spec, tuple) or spec.dtype.kind not in "biufc":
        raise DtypeError(
            f"ravel: the leaf {x!r} is not a number or an array of numbers. Take it out of the "
            f"tree{at(user_line())}."
        )
    return spec


def _part(piece: Any, spec: Any) -> Any:
    shaped = piece.reshape(spec.shape)
    if shaped.dtype == spec.dtype:
        return shaped
    if shaped.dtype.kind == "c" and spec.dtype.kind != "c":
        shaped = np.real(shaped)
    return shaped.astype(spec.dtype)


__dir__ = public_dir(__name__)
