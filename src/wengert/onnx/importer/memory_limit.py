"""A limit on the memory for arrays that a file describes but does not contain.

What is known when a file is read is computed at once, and a few bytes of a file can ask for any
number of elements: a constant of a shape, a range, a padding, an outer product.  So before a node
of known operands runs, the size of its result is found without computing it, and compared with
what is left of the limit.

    Room      what is left
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.format_units import memory
from wengert._engine.core.handle import Handle
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.graphs import spec, trace
from wengert.errors import FileError, at, user_line

_UNCHECKED_BYTES = 1 << 16  # bytes; what is less is not worth a look


class Room:
    """Bytes that arrays made while a file is read may still take.

    Parameters
    ----------
    limit : int
        Of all of them together.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit

    def need(self, what: str, shape: Sequence[Any], dtype: Any) -> None:
        """Refuse an array that is too large; one of symbolic size is made when the graph runs.

        Raises
        ------
        FileError
            More is needed than is left.
        """
        if any(isinstance(m, Dim) for m in shape):
            return
        size = math.prod(map(int, shape)) * np.dtype(dtype).itemsize
        if size > self.left:
            raise FileError(
                f"onnx.load: {what} makes an array of {memory(size)} when the file is read, and "
                f"{memory(self.left)} are left of limit={self.limit}, which all such arrays share. "
                f"If the file is to be trusted, raise the limit{at(user_line())}."
            )

    def need_result(
        self, what: str, run: Callable[..., Any], inputs: Sequence[Any], fixed: Iterable[int],
        grows: bool,
    ) -> None:  # fmt: skip
        """Refuse a node whose result, computed from known operands, is too large.

        Parameters
        ----------
        what : str
            How to call the node.
        run : callable
            Computes the result from the operands.
        inputs, fixed
            The operands, and the numbers of those that are lengths, axes and the like.
        grows : bool
            Whether the result can have more elements than a product of the operands.
        """
        free = [k for k, x in enumerate(inputs) if k not in set(fixed) and x is not None]
        arrays = [inputs[k] for k in free]
        if any(isinstance(x, Handle) or np.asarray(x).dtype.kind == "O" for x in arrays):
            return  # then it is a node of the graph, or a list of lengths
        bound = max((x.itemsize for x in arrays), default=1) * math.prod(x.size for x in arrays)
        if not grows and bound <= max(_UNCHECKED_BYTES, self.left // 8):
            return

        def alone(*values: Any) -> Any:
            given = list(inputs)
            for k, value in zip(free, values, strict=True):
                given[k] = value
            return run(*given)

        try:
            found = trace(alone)(*[spec(x.shape, x.dtype) for x in arrays])
        except FileError:
            raise
        except Exception as error:  # it needs the values: what it may make at most has to do
            if isinstance(error, MemoryError):
                self.need(what, (1 << 62,), np.int8)
            if not grows:
                self.need(what, (bound,), np.int8)
            return
        for node in found.outputs:
            self.need(what, node.spec.shape, node.spec.dtype)

    def take(self, results: Iterable[Any]) -> None:
        """Count what a node has made; views take nothing."""
        for x in results:
            if isinstance(x, np.ndarray) and x.base is None:
                self.left -= x.nbytes
