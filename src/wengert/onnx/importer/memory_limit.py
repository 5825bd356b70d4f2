"""A limit on the memory for arrays that a file describes but does not contain.

Nodes of known operands are computed during the import, and a few bytes of a file can describe an
array of any size: a filled array, a range, a padding, an outer product.  So before such a node is
computed, the size of its result is inferred and compared with the remaining memory.

    MemoryLimit      the remaining memory
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.display import memory
from wengert._engine.core.handle import Handle
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.graphs import spec, trace
from wengert.errors import FileError, at, user_line

_UNCHECKED_BYTES = 1 << 16  # results of at most this size are not checked


class MemoryLimit:
    """The remaining memory for arrays that are computed during the import.

    Parameters
    ----------
    limit : int
        Total in bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit

    def need(self, what: str, shape: Sequence[Any], dtype: Any) -> None:
        """Raise if an array is too large; arrays of symbolic size are not computed now.

        Raises
        ------
        FileError
            The array exceeds the remaining memory.
        """
        if any(isinstance(m, Dim) for m in shape):
            return
        size = math.prod(map(int, shape)) * np.dtype(dtype).itemsize
        if size > self.left:
            raise FileError(
                f"onnx.load: {what} would compute an array of {memory(size)} during the import, "
                f"but {memory(self.left)} are left of limit={self.limit}, which all such arrays "
                f"share. If you trust the file, raise the limit{at(user_line())}."
            )

    def need_result(
        self, what: str, run: Callable[..., Any], inputs: Sequence[Any], fixed: Iterable[int],
        grows: bool,
    ) -> None:  # fmt: skip
        """Raise if the result of a node of known operands is too large.

        Parameters
        ----------
        what : str
            Name of the node in messages.
        run : callable
            Computes the result from the operands.
        inputs, fixed
            The operands, and the indices of those that are lengths, axes etc.
        grows : bool
            Whether the result can have more elements than the product of those of the operands.
        """
        free = [k for k, x in enumerate(inputs) if k not in set(fixed) and x is not None]
        arrays = [inputs[k] for k in free]
        if any(isinstance(x, Handle) or np.asarray(x).dtype.kind == "O" for x in arrays):
            return  # a node of the graph, or an array of symbolic sizes
        bound = max((x.itemsize for x in arrays), default=1) * math.prod(x.size for x in arrays)
        if not grows and bound <= max(_UNCHECKED_BYTES, self.left // 8):
            return

        def of_free_inputs(*values: Any) -> Any:
            given = list(inputs)
            for k, value in zip(free, values, strict=True):
                given[k] = value
            return run(*given)

        try:
            traced = trace(of_free_inputs)(*[spec(x.shape, x.dtype) for x in arrays])
        except FileError:
            raise
        except Exception as error:  # it depends on values: use the upper bound
            if isinstance(error, MemoryError):
                self.need(what, (1 << 62,), np.int8)
            if not grows:
                self.need(what, (bound,), np.int8)
            return
        for node in traced.outputs:
            self.need(what, node.spec.shape, node.spec.dtype)

    def take(self, results: Iterable[Any]) -> None:
        """Count the memory of the results of a node; views have none."""
        for x in results:
            if isinstance(x, np.ndarray) and x.base is None:
                self.left -= x.nbytes
