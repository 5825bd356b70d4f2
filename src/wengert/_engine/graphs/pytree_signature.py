"""Signatures: nested containers of arguments as flat inputs, and of outputs as results.

A traced graph is called as the function it was traced from; one built by hand takes its inputs by
position or by name.
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

    names : the arguments by position.
    structure : of ``(args, kwargs)``, as containers.
    fed : for each leaf of the structure whether it is an input, or was static while tracing.
    passed : for each leaf its static value as text (`Static`); empty if it has none.
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
            The structure of the arguments is not the one that the graph was traced for; or a
            static argument has another value now.
        """
        _, given = leaves_given = pytree.flatten((args, kwargs))
        if given != self.structure:
            args, kwargs = self._by_position(args, kwargs)
            _, given = leaves_given = pytree.flatten((args, kwargs))
        leaves = leaves_given[0]
        if given != self.structure:
            try:
                leaves = self.structure.flatten_up_to((args, kwargs))
            except ValueError:
                raise self._refusal(given, len(leaves_given[0]), what) from None
            if not all(map(_is_array_like, leaves)):
                raise self._refusal(given, len(leaves_given[0]), what)
        for x, word in zip(leaves, self.passed, strict=True):
            if word and word != (now := Static.of(x)):
                raise StructureError(
                    f"{what} was built with {word} where it is called with "
                    f"{now or f'a {type(x).__name__}'}: static arguments, and those that are not "
                    f"arrays, are part of the graph. Trace again{at(user_line())}."
                )
        return [x for x, is_fed in zip(leaves, self.fed, strict=True) if is_fed]

    def _refusal(self, given: Any, count: int, what: str) -> StructureError:
        wanted = pytree.unflatten(self.structure, ["*"] * len(self.fed))
        return StructureError(
            f"{what} takes ({', '.join(self.names)}), nested as {_spelled(wanted)}, but was "
            f"called with {_spelled(pytree.unflatten(given, ['*'] * count))}{at(user_line())}."
        )

    def arguments(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments of a call, from one value per input; `Static` for static arguments."""
        rest = iter(values)
        leaves = [
            next(rest) if is_fed else Static(word)
            for is_fed, word in zip(self.fed, self.passed, strict=True)
        ]
        made = pytree.unflatten(self.structure, leaves)
        return made  # type: ignore[no-any-return]

    def _by_position(self, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> tuple[Any, Any]:
        """The same call with keywords moved to their positions, if they have one."""
        full, more = list(args), dict(kwargs)
        for name in self.names[len(args) :]:
            if name not in more:
                break
            full.append(more.pop(name))
        return tuple(full), more


class Static(str):
    """The value of a static argument while a graph was traced, as text.

    A graph does not store the other objects that it was traced with: a mode, a number of layers.
    The text is enough to notice that it is called with another value.
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
    """Whether it can be converted to an array: a list of numbers, but no container of arrays."""
    if not isinstance(x, list | tuple | dict):
        return True
    return type(x) is list and all(
        isinstance(n, int | float | complex) for n in pytree.flatten(x)[0]
    )


def _spelled(call: Any) -> str:
    args, kwargs = call
    parts = [*map(str, args), *(f"{k}={v}" for k, v in kwargs.items())]
    return "(" + ", ".join(parts).replace("'*'", "*") + ")"


class ResultStructure(NamedTuple):
    """The structure of a graph's results.

    structure : of the outputs, as containers.
    live : for each leaf whether it is an output; the others are None.
    """

    structure: Any
    live: tuple[bool, ...]


def restored(structure: Any, values: Sequence[Any]) -> Any:
    """The values of the outputs in the structure of the function's result."""
    rest = iter(values)
    if isinstance(structure, ResultStructure):
        leaves = [next(rest) if live else None for live in structure.live]
        return pytree.unflatten(structure.structure, leaves)
    made = pytree.unflatten(structure, list(rest))
    return made[0] if len(made) == 1 else made
