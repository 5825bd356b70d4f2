"""Messages between the stages of a pipeline, on a communicator of their own.

Sends are begun and waited for at the end of a batch, so a stage computes meanwhile, and no order of
the passes makes two stages wait for each other.  An activation comes with its shape and dtype; the
receiver of a cotangent knows those of the activation that it has sent.

    StageMessages    the messages of one process
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.spec import Spec
from wengert.errors import DtypeError, at, user_line

from .arguments import message
from .communicators import Communicator

_HEADER, _ACTIVATION, _COTANGENT = 0, 1, 2  # tags
_MOST_AXES = 30


class StageMessages:
    """The messages of one process with the stages before and after its own.

    Parameters
    ----------
    comm : Communicator
        All its processes make one.
    ranks : sequence of int
        The ranks of the processes of the stages.
    """

    def __init__(self, comm: Communicator, ranks: Sequence[int]) -> None:
        self._mpi = comm.mpi.Dup() if comm.size > 1 else comm.mpi
        number = ranks.index(comm.rank) if comm.rank in ranks else None
        self._before = ranks[number - 1] if number else None
        is_last = number is None or number + 1 == len(ranks)
        self._after = None if number is None or is_last else ranks[number + 1]
        self._requests: list[Any] = []

    def send_forward(self, y: Any) -> None:
        """Begin to send an activation to the next stage."""
        y = np.ascontiguousarray(message(y, "pipeline"))
        if y.ndim > _MOST_AXES:
            raise DtypeError(
                f"pipeline: an activation with {y.ndim} axes; at most {_MOST_AXES} can be sent"
                f"{at(user_line())}."
            )
        header = np.zeros(_MOST_AXES + 2, np.int64)
        header[:2] = y.dtype.num, y.ndim
        header[2 : 2 + y.ndim] = y.shape
        self._begin(header, self._after, _HEADER)
        self._begin(y, self._after, _ACTIVATION)

    def receive_forward(self) -> np.ndarray[Any, Any]:
        """The next activation of the stage before."""
        header = np.empty(_MOST_AXES + 2, np.int64)
        self._mpi.Recv(header, self._before, _HEADER)
        number, ndim = header[:2]
        received = np.empty(tuple(map(int, header[2 : 2 + ndim])), _DTYPES[int(number)])
        self._mpi.Recv(received, self._before, _ACTIVATION)
        return received

    def send_backward(self, t: Any) -> None:
        """Begin to send the cotangent of an activation to the stage before."""
        self._begin(np.ascontiguousarray(t), self._before, _COTANGENT)

    def receive_backward(self, spec: Spec) -> np.ndarray[Any, Any]:
        """The cotangent of the next activation, from the next stage."""
        received = np.empty(spec.shape, spec.dtype)
        self._mpi.Recv(received, self._after, _COTANGENT)
        return received

    def _begin(self, x: np.ndarray[Any, Any], rank: int | None, tag: int) -> None:
        self._requests = [r for r in self._requests if not r[0].Test()]  # frees what has arrived
        self._requests.append((self._mpi.Isend(x, rank, tag), x))

    def wait(self) -> None:
        """Wait until everything has been sent."""
        for request, _ in self._requests:
            request.Wait()
        self._requests = []


_DTYPES: dict[int, np.dtype[Any]] = {
    np.dtype(code).num: np.dtype(code) for code in "? i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 c8 c16".split()
}
