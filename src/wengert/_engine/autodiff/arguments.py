"""Arguments of a function to be differentiated, and those that it writes to.

Written arguments: plain arrays that a function modifies while others are differentiated.

A tensor is passed to the function in place of the array.  When the function returns, the values are
copied into the array, as if the function had been called without being differentiated.

    written_arguments   the arrays of one call
    WrittenArguments    replaces them, and stores their values

Arguments of a function to be differentiated, and the callables that transformations return.

The chosen arguments are flattened as pytrees; every floating-point leaf is replaced by a handle on
a new node.  Results have the same structure; they are plain arrays if plain arrays were passed and
no outer derivative is recorded, and tensors otherwise.

`grad(f)` and the like have the name and signature of f and can be methods.  Unlike a function
defined inside a function, they can be pickled if f can, which process pools need.  A call takes no
longer than that of a `functools.partial`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import pytree, recording
from wengert._engine.core.conversion_hook import converted, written_parameters
from wengert._engine.core.device_arrays import recycling, refuse_on_device
from wengert._engine.core.handle import Handle, describe, is_traced, wrap
from wengert._engine.core.implicit_conversions import refuse_differentiated, with_variables
from wengert._engine.core.message_order import is_used, refuse_first_use
from wengert._engine.core.node import ConstantLeaf, Node, constant
from wengert._engine.core.other_libraries import Labelled, is_labelled, values_of
from wengert._engine.core.recording import current_trace
from wengert._engine.core.uniform_arrays import zeros
from wengert._engine.core.user_functions import signature_of
from wengert._engine.core.validation import function, integers, spelled, words
from wengert.errors import ArgumentError, NotDifferentiableError, StructureError, at, user_line

from .messages import Messages
from .tape import fresh

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


def written_arguments(
    fun: Callable[..., object], args: list[object], kwargs: dict[str, object]
) -> WrittenArguments | None:
    """The plain arrays among the arguments of a call that the function may modify, if any."""
    if not any(map(_is_buffer, (*args, *kwargs.values()))) or current_trace() is not None:
        return None
    names = written_parameters(fun)
    return WrittenArguments(fun, args, kwargs, names) if names else None


class WrittenArguments:
    """The plain arrays among the arguments of one call that the function modifies.

    Parameters
    ----------
    fun : callable
    args, kwargs : list, dict
        The arguments; the arrays are replaced by tensors.
    names : set of str
        The parameters that the function modifies.
    """

    def __init__(
        self,
        fun: Callable[..., object],
        args: list[object],
        kwargs: dict[str, object],
        names: frozenset[str],
    ) -> None:
        self._arrays: list[tuple[str, np.ndarray[Any, Any], Handle, Node]] = []
        for name in names & kwargs.keys():
            kwargs[name] = self._tensor(name, kwargs[name])
        parameters = signature_of(fun).parameters.values()
        positional = [p.name for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD]
        for i, name in enumerate(positional[: len(args)]):
            if name in names:
                args[i] = self._tensor(name, args[i])

    def _tensor(self, name: str, x: object) -> object:
        if not _is_buffer(x):
            return x
        assert isinstance(x, np.ndarray)
        for _, array, handle, _ in self._arrays:
            if array is x:
                return handle
        tensor: Handle = wrap(constant(x.copy()))
        self._arrays.append((name, x, tensor, tensor.node))
        return tensor

    @contextmanager
    def stored(self) -> Iterator[None]:
        """A block at whose end the values are copied into the arrays."""
        yield
        for name, array, handle, original in self._arrays:
            if handle.node is not original:
                refuse_differentiated(
                    handle.node,
                    f"storing the modified argument {name} into the caller's array",
                    lambda name=name: f"Pass a copy, {name}.copy()",  # type: ignore[misc]
                )
                array[...] = handle.node.value


def _is_buffer(x: object) -> bool:
    return type(x) is np.ndarray and x.dtype.kind in "fc" and x.flags.writeable


Argnums = int | Sequence[int]


def recorded(
    variables: Sequence[Node], fun: Callable[[], Any], messages: Messages | None = None
) -> Any:
    """Run a function that is to be differentiated with respect to these nodes.

    Under `no_grad` the derivative itself is not recorded, but it is not zero.  The function may
    exchange `messages` with other processes.
    """
    if messages is not None:
        return recorded([*variables, messages.node], functools.partial(messages.run, fun))
    was_used = is_used()
    if recording.is_recording():
        results = with_variables(variables, fun)
    else:
        with recording.enable_grad():
            results = with_variables(variables, fun)
    if not was_used:
        refuse_first_use()
    return results


_NOT_POSITIONS = (float, complex, str, dict, np.inexact, Handle)  # but arguments of a function


def check_argnums(argnums: object, what: str) -> None:
    """Raise at once where ``grad(f, x)`` is written for ``grad(f)(x)``."""
    if type(argnums) is int:
        return
    given = argnums if isinstance(argnums, tuple | list) else (argnums,)
    arrays = any(isinstance(x, np.ndarray) and x.dtype.kind not in "iu" for x in given)
    if arrays or any(isinstance(x, _NOT_POSITIONS) for x in given):
        transformation, _, fun = what.partition(" of ")
        raise ArgumentError(
            f"{what}: argnums must be an integer or a sequence of integers, not {spelled(argnums)}."
            f" The result is a function, to which arguments are passed: {transformation}({fun})(x)"
            f"{at(user_line())}."
        )


def name_of(fun: Any) -> str:
    """The name of a function in a message."""
    return getattr(fun, "__name__", None) or type(fun).__name__


class Variables:
    """The new nodes of one call.

    Attributes
    ----------
    nodes : list of Node
        One for each differentiable leaf, in order.
    leaves : list
        The leaves that were passed.
    """

    def __init__(self, tree_: Any, what: str) -> None:
        self.leaves, self.structure = pytree.flatten(tree_)
        self.slots: list[int] = []
        self.nodes: list[Node] = []
        for i, leaf in enumerate(self.leaves):
            node = self._variable(leaf, i, tree_, what)
            if node is not None:
                self.slots.append(i)
                self.nodes.append(node)

    def _variable(self, leaf: Any, i: int, tree_: tuple[Any, ...], what: str) -> Node | None:
        is_handle = isinstance(leaf, Handle)
        traced = is_traced(leaf)
        value = leaf.node.value if is_handle else leaf
        spec = describe(leaf)
        if isinstance(value, np.ndarray) and type(value).__mul__ is not np.ndarray.__mul__:
            kind, remedy = f"a {type(value).__name__}", "Convert it, np.asarray(x)"
        elif spec is None:
            if isinstance(leaf, str | bytes | None) and len(self.leaves) > 1:
                return None  # in a container, leaves that are not numbers stay unchanged
            if is_labelled(leaf):
                raise Labelled(leaf)
            refuse_on_device(leaf, f"{what}: the argument {pytree.paths(tree_)[i]}".rstrip())
            kind = f"a {type(leaf).__name__}"
            remedy = values_of(leaf) or "Pass an array of floats"
        elif spec.dtype.kind in "fc":
            return fresh(leaf.node if traced or (is_handle and _is_derived(leaf.node)) else value)
        else:
            cast = "float(x)" if isinstance(value, int) else "x.astype(float)"
            kind, remedy = f"{spec}", f"Cast it first, {cast}"
        path = pytree.paths(tree_)[i]
        raise NotDifferentiableError(
            f"{what}: the argument{' at ' + path if path else ''} is {kind}, and only floating "
            f"and complex numbers, and arrays of them, have derivatives. {remedy}, or choose other "
            f"arguments with argnums{at(user_line())}."
        )

    def handles(self) -> Any:
        """The tree with a handle on each variable."""
        leaves = list(self.leaves)
        for i, node in zip(self.slots, self.nodes, strict=True):
            leaves[i] = wrap(node)
        return pytree.unflatten(self.structure, leaves)

    def restore(self, items: Sequence[Any]) -> Any:
        """A tree of the same structure with `items` for the variables and None for other leaves."""
        leaves: list[Any] = [None] * len(self.leaves)
        for i, item in zip(self.slots, items, strict=True):
            leaves[i] = item
        return pytree.unflatten(self.structure, leaves)

    def like(self, bars: Sequence[Any]) -> list[Any]:
        """Cotangents of the variables: handles where the argument was one, others unchanged."""
        return [
            wrap_constant(bar) if isinstance(self.leaves[i], Handle) else bar
            for i, bar in zip(self.slots, bars, strict=True)
        ]


def _is_derived(node: Node) -> bool:
    """Whether it is recorded or, while a graph is built, the fixed value of a variable."""
    return type(node) is Node or (
        recording.current_trace() is not None and not isinstance(node, ConstantLeaf)
    )


def wrap_constant(x: Array) -> Any:
    """`x` as a handle."""
    return x if isinstance(x, Handle) else wrap(constant(x))


class DifferentiatedCall:
    """A call of `fun` with some of its arguments replaced by variables."""

    def __init__(
        self,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: Argnums,
        argnames: str | Sequence[str] | None,
        what: str,
    ) -> None:
        self.single = is_single(argnums, argnames)
        positions, names = positions_of(fun, args, kwargs, argnums, argnames, what)
        chosen = (*[args[p] for p in positions], *[kwargs[n] for n in names])
        self.variables = Variables(chosen, what)
        handles = self.variables.handles()
        new_args = list(args)
        for p, h in zip(positions, handles, strict=False):
            new_args[p] = h
        new_kwargs = dict(kwargs)
        for n, h in zip(names, handles[len(positions) :], strict=True):
            new_kwargs[n] = h
        has_handles = any([isinstance(leaf, Handle) for leaf in self.variables.leaves])
        self._written = None if has_handles else written_arguments(fun, new_args, new_kwargs)
        self.messages = Messages.of_call()
        self.fun, self.args, self.kwargs = fun, new_args, new_kwargs
        self.nodes = self.variables.nodes

    def __call__(self) -> Any:
        """Run the function."""
        if self._written is None:
            return recorded(self.nodes, self._run, self.messages)
        with self._written.stored():
            return recorded(self.nodes, self._run, self.messages)

    def run_noting_reads(self) -> Any:
        """Run the function for `why`, which records where values become plain (`reads`)."""
        return recorded((), self._run)

    def _run(self) -> Any:
        return recycling(self.nodes, converted(self.fun), *self.args, **self.kwargs)

    def results(self, bars: Sequence[Any]) -> Any:
        """The result for the caller: one pytree for a single argnum, else a tuple of them."""
        trees = self.variables.restore(self.variables.like(bars))
        return trees[0] if self.single else trees


def is_single(argnums: Argnums, argnames: str | Sequence[str] | None) -> bool:
    """Whether one argument is chosen, so that results are not tuples."""
    by_number = type(argnums) is int or isinstance(argnums, int | np.integer)
    by_name = isinstance(argnames, str) and by_number and argnums == 0
    return by_name or (by_number and argnames is None)


def positions_of(
    fun: Any, args: Any, kwargs: Any, argnums: Argnums, argnames: Any, what: str
) -> tuple[list[int], list[str]]:
    """The positions and the names of the chosen arguments, checked."""
    if argnames is None and type(argnums) is int and 0 <= argnums < len(args):
        return [argnums], []
    names = words(argnames, f"{what}: argnames")
    numbers: list[int] = []
    if argnames is None or not isinstance(argnums, int) or argnums != 0:
        numbers = integers(argnums, f"{what}: argnums")
    positions = []
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise StructureError(
                f"{what}: argnums names argument {n}, but {len(args)} positional arguments were "
                f"given. Pass it by position, or use argnames{at(user_line())}."
            )
        positions.append(n % len(args))
    keywords = []
    for name in names:
        if name in kwargs:
            keywords.append(name)
            continue
        parameters = list(signature_of(fun).parameters)
        if name in parameters and parameters.index(name) < len(args):
            positions.append(parameters.index(name))
            continue
        raise StructureError(
            f"{what}: no argument named {name!r} was given. The arguments are "
            f"{', '.join(parameters)}{at(user_line())}."
        )
    if len({*positions, *keywords}) < len(positions) + len(keywords):
        raise StructureError(
            f"{what}: the same argument is chosen twice, by argnums={argnums} and "
            f"argnames={argnames}. Choose each once{at(user_line())}."
        )
    return positions, keywords


def zeros_like(node: Node) -> Any:
    """Zeros with the spec of a node, as a node of the graph if one is being built."""
    return zeros(node.spec)


class Derived(functools.partial[Any]):
    """``run(*first, ...)``, with the name of the function `fun` that it transforms."""

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        return name_in_module(self) or super().__reduce__()

    def __repr__(self) -> str:
        name = getattr(self, "__qualname__", None) or repr(self.__dict__.get("__wrapped__"))
        return f"<{self.__dict__.get('_transformation') or _name_of_run(self.func)} of {name}>"


def derived(
    fun: Callable[..., Any], run: Callable[..., Any], *first: Any, name: str | None = None
) -> Callable[..., Any]:
    """`run` with its first arguments bound, as a transformation of `fun`.

    Messages call the transformation `name`, by default the name of `run`.
    """
    function(fun, name or _name_of_run(run))
    transformed = functools.update_wrapper(Derived(run, *first), fun, updated=())
    if name is not None:
        transformed._transformation = name  # type: ignore[attr-defined]
    return transformed


def _name_of_run(run: Callable[..., Any]) -> str:
    return run.__name__.strip("_")


def name_in_module(wrapper: Any) -> str | None:
    """The qualified name by which the module of a wrapper (a decorated function) has it, or None.

    It is then pickled by that name, as functions are: the name does not refer to the function that
    it wraps.
    """
    name: str | None = getattr(wrapper, "__qualname__", None)
    if name is None:
        return None
    value: Any = sys.modules.get(wrapper.__module__)
    for part in name.split("."):
        value = getattr(value, part, None)
    return name if value is wrapper else None
