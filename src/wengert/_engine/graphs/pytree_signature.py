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
    """How a graph is called.

    names : the arguments by position.
    structure : of ``(args, kwargs)``, as containers.
    fed : for each leaf of the structure whether it is fed, or was passed on while tracing.
    passed : for each leaf what was passed on, spelled (`Static`); empty where that is not known.
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
        """For `inspect.signature`, so that arguments can be chosen by name."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(n, kind) for n in self.names])

    def leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any], what: str) -> list[Any]:
        """The values for the inputs, in order.

        Raises
        ------
        StructureError
            The arguments are others, or nested otherwise, than the graph was built for; or one
            that was part of the program while tracing has another value now.
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
                    f"{now or f'a {type(x).__name__}'}: what is not an array, or is static, was "
                    f"part of the program while it was traced. Trace again{at(user_line())}."
                )
        return [x for x, is_fed in zip(leaves, self.fed, strict=True) if is_fed]

    def _refusal(self, given: Any, count: int, what: str) -> StructureError:
        wanted = pytree.unflatten(self.structure, ["*"] * len(self.fed))
        return StructureError(
            f"{what} takes ({', '.join(self.names)}), nested as {_spelled(wanted)}, but was "
            f"called with {_spelled(pytree.unflatten(given, ['*'] * count))}{at(user_line())}."
        )

    def arguments(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments to call with, from one value for each input; `Static` where nothing is fed."""
        rest = iter(values)
        leaves = [
            next(rest) if is_fed else Static(word)
            for is_fed, word in zip(self.fed, self.passed, strict=True)
        ]
        made = pytree.unflatten(self.structure, leaves)
        return made  # type: ignore[no-any-return]

    def _by_position(self, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> tuple[Any, Any]:
        """The same call with keywords moved to their positions, as far as they have one."""
        full, more = list(args), dict(kwargs)
        for name in self.names[len(args) :]:
            if name not in more:
                break
            full.append(more.pop(name))
        return tuple(full), more


class Static(str):
    """What an argument was that the program had as it is, while a graph was built: as a word.

    A graph knows its inputs, and not what else it was built from: a mode, a number of layers. The
    word is enough to notice that it is called with another.
    """

    __slots__ = ()

    @classmethod
    def of(cls, x: Any) -> Static:
        """For a value; the word is empty if it is no plain value and has no name of its own."""
        if isinstance(x, cls):
            return x
        if isinstance(x, np.generic):
            x = x.item()
        if x is None or isinstance(x, bool | int | float | complex | str | bytes | np.dtype):
            return cls(repr(x))
        name = getattr(x, "__qualname__", "<")
        return cls("" if "<" in name else f"{getattr(x, '__module__', None)}.{name}")


def _is_array_like(x: Any) -> bool:
    """Whether it can stand for an array: not a container of arrays, but a list of numbers may."""
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
    """What a graph returns.

    structure : of the outputs, as containers.
    live : for each leaf whether it is an output; the others are None.
    """

    structure: Any
    live: tuple[bool, ...]


def restored(structure: Any, values: Sequence[Any]) -> Any:
    """Values of the outputs in the structure they were returned in."""
    rest = iter(values)
    if isinstance(structure, ResultStructure):
        leaves = [next(rest) if live else None for live in structure.live]
        return pytree.unflatten(structure.structure, leaves)
    made = pytree.unflatten(structure, list(rest))
    return made[0] if len(made) == 1 else made
