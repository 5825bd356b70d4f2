"""Signatures: containers of arguments flattened to inputs, and outputs in containers of results.

A traced graph is called like the function it was traced from; one built by hand takes its inputs by
position or by name.

Signature           arguments of a graph
Static              the value of a static argument, as text
ResultStructure     results of a graph; `restored` puts outputs into their containers
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core import pytree
from wengert.errors import StructureError, at, user_line


class Signature(NamedTuple):
    """The signature of a graph.

    names : the names of the positional arguments.
    structure : the pytree structure of ``(args, kwargs)``.
    fed : for each leaf of the structure, whether it is an input (or was static while tracing).
    passed : for each leaf, its static value as text (`Static`); empty if it has none.
    """

    names: tuple[str, ...]
    structure: Any
    fed: tuple[bool, ...]
    passed: tuple[str, ...]

    @classmethod
    def flat(cls, names: Sequence[str]) -> Signature:
        """One argument for each input."""
        args = tuple(range(len(names)))
        return cls(
            tuple(names), pytree.flatten((args, {}))[1], (True,) * len(args), ("",) * len(args)
        )

    def inspected(self) -> inspect.Signature:
        """The signature for `inspect.signature`, so that arguments can be selected by name."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(n, kind) for n in self.names])

    def leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any], what: str) -> list[Any]:
        """The values for the inputs, in order.

        Raises
        ------
        StructureError
            The arguments do not have the structure that the graph was traced for; or a static
            argument has another value than then.
        """
        _, structure_given = flattened = pytree.flatten((args, kwargs))
        if structure_given != self.structure:
            args, kwargs = self._by_position(args, kwargs)
            _, structure_given = flattened = pytree.flatten((args, kwargs))
        leaves = flattened[0]
        if structure_given != self.structure:
            try:
                leaves = self.structure.flatten_up_to((args, kwargs))
            except ValueError:
                raise self._refusal(structure_given, len(flattened[0]), what) from None
            if not all(map(_is_array_like, leaves)):
                raise self._refusal(structure_given, len(flattened[0]), what)
        for x, text in zip(leaves, self.passed, strict=True):
            if text and text != (current := Static.of(x)):
                raise StructureError(
                    f"{what} was built with {text} where it is called with "
                    f"{current or f'a {type(x).__name__}'}: static arguments, and those that are "
                    f"not arrays, are part of the graph. Trace again{at(user_line())}."
                )
        return [x for x, is_fed in zip(leaves, self.fed, strict=True) if is_fed]

    def _refusal(self, structure_given: Any, count: int, what: str) -> StructureError:
        expected = pytree.unflatten(self.structure, ["*"] * len(self.fed))
        return StructureError(
            f"{what} takes ({', '.join(self.names)}), nested as {_formatted_call(expected)}, but "
            "was called with "
            f"{_formatted_call(pytree.unflatten(structure_given, ['*'] * count))}{at(user_line())}."
        )

    def arguments(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments of a call, from one value per input; `Static` for static arguments."""
        remaining = iter(values)
        leaves = [
            next(remaining) if is_fed else Static(text)
            for is_fed, text in zip(self.fed, self.passed, strict=True)
        ]
        arguments = pytree.unflatten(self.structure, leaves)
        return arguments  # type: ignore[no-any-return]

    def _by_position(self, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> tuple[Any, Any]:
        """The same call with keywords moved to their positions, if they have one."""
        positional, keywords = list(args), dict(kwargs)
        for name in self.names[len(args) :]:
            if name not in keywords:
                break
            positional.append(keywords.pop(name))
        return tuple(positional), keywords


class Static(str):
    """The value of a static argument while a graph was traced, as text.

    A graph does not store static arguments (a mode, a number of layers), only their text, which is
    enough to detect a call with another value.
    """

    __slots__ = ()

    @classmethod
    def of(cls, x: Any) -> Static:
        """The text of a value; empty if it is neither a plain value nor has a name."""
        if isinstance(x, cls):
            return x
        if isinstance(x, np.generic):
            x = x.item()
        if x is None or isinstance(x, bool | int | float | complex | str | bytes | np.dtype):
            return cls(repr(x))
        name = getattr(x, "__qualname__", "<")
        return cls("" if "<" in name else f"{getattr(x, '__module__', None)}.{name}")


def _is_array_like(x: Any) -> bool:
    """Whether it can be converted to an array: a list of numbers can, a container of arrays not."""
    if not isinstance(x, list | tuple | dict):
        return True
    return type(x) is list and all(
        isinstance(n, int | float | complex) for n in pytree.flatten(x)[0]
    )


def _formatted_call(call: Any) -> str:
    args, kwargs = call
    parts = [*map(str, args), *(f"{k}={v}" for k, v in kwargs.items())]
    return "(" + ", ".join(parts).replace("'*'", "*") + ")"


class ResultStructure(NamedTuple):
    """The structure of a graph's results.

    structure : the pytree structure of the result.
    live : for each leaf, whether it is an output; the others are None.
    """

    structure: Any
    live: tuple[bool, ...]


def restored(structure: Any, values: Sequence[Any]) -> Any:
    """The values of the outputs, in the containers of the function's result."""
    remaining = iter(values)
    if isinstance(structure, ResultStructure):
        leaves = [next(remaining) if live else None for live in structure.live]
        return pytree.unflatten(structure.structure, leaves)
    results = pytree.unflatten(structure, list(remaining))
    return results[0] if len(results) == 1 else results
