"""Written arguments: plain arrays that a function modifies while others are differentiated.

A tensor is passed to the function in place of the array.  When the function returns, the values are
copied into the array, as if the function had been called without being differentiated.

    written_arguments   the arrays of one call
    WrittenArguments    replaces them, and stores their values
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from wengert._engine.core.concretization import refuse_differentiated
from wengert._engine.core.conversion_hook import written_parameters
from wengert._engine.core.handle import Handle, wrap
from wengert._engine.core.node import Node, constant
from wengert._engine.core.recording import current_trace
from wengert._engine.core.signatures import signature_of

Array = np.ndarray[Any, Any]


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
        self._arrays: list[tuple[str, Array, Handle, Node]] = []
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
