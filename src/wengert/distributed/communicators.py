"""Communicators: groups of processes that exchange messages.

Communicator           a group of processes
CartesianCommunicator  processes on a grid, with neighbors
world                  all processes that mpirun started
communicator_of        the argument `comm` of functions, as a Communicator
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import itertools
import os
import sys
import time
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.message_order import MpiLibrary, start_using
from wengert._engine.kinds.collective import number_of
from wengert.errors import ArgumentError, CommunicationError, at, user_line

from .mpi_library import may_use_main_thread_only, mpi


class Communicator:
    """A group of processes that exchange messages.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional
        The processes; by default all. All of them have to create the communicator together.
    name : str, optional
        Its name in messages.

    Attributes
    ----------
    rank, size : int
        The number of this process, and the number of processes.
    name : str
    checked : bool
        Whether collective operations check that all processes call the same one, with the same
        shape and dtype, by an additional message of 16 bytes. Without the check, processes that do
        not agree wait forever or get wrong numbers.

    Examples
    --------
    >>> from wengert import distributed
    >>> comm = distributed.world()
    >>> comm.rank, comm.size
    (0, 1)
    """

    __module__ = "wengert.distributed"

    def __init__(self, comm: Any = None, name: str | None = None) -> None:
        self.mpi = mpi().COMM_WORLD if comm is None else comm
        self.lost: str | None = None  # why it cannot be used any more
        if self.mpi == mpi().COMM_NULL:
            raise ArgumentError(
                "comm is MPI.COMM_NULL: this process does not belong to the communicator, or it "
                f"has been freed{at(user_line())}."
            )
        self.rank: int = self.mpi.Get_rank()
        self.size: int = self.mpi.Get_size()
        self.name = name or self.mpi.Get_name() or "a communicator"
        self.checked = True
        self._own: Any = None
        self.key = "world" if comm is None else f"{next(_numbers)}"
        _BY_KEY[self.key] = self
        if comm is not None:
            _notify_when_freed(self)

    @property
    def collective(self) -> Any:
        """The mpi4py communicator of collective operations: a duplicate.

        So they do not match operations of other libraries on the same processes.
        """
        self.refuse_lost()
        if self._own is None:
            self._own = self.mpi.Dup() if self.size > 1 else self.mpi
            if self.key == "world" and self.size > 1:
                atexit.register(_compare_end, self, os.getpid())
        return self._own

    @property
    def cache_key(self) -> tuple[Any, ...]:
        """What compiled code depends on."""
        library = self.native_handle_kind, mpi().Get_library_version()
        return self.key, self.rank, self.size, self.checked, *library

    @property
    def native_handle_kind(self) -> str:
        """The LLVM type of handles: a number in MPICH, a pointer in Open MPI."""
        return "i32" if mpi()._sizeof(mpi().Comm) == 4 else "ptr"

    def split(self, color: int | None, key: int | None = None) -> Communicator | None:
        """Divide the processes into groups; called by all of them.

        Parameters
        ----------
        color : int or None
            The group of this process; None for no group.
        key : int, optional
            Determines the order of the processes in the group; by default that of their ranks.

        Returns
        -------
        Communicator or None
            The group of this process.
        """
        undefined = mpi().UNDEFINED
        comm = self.mpi.Split(
            undefined if color is None else int(color), self.rank if key is None else int(key)
        )
        return None if color is None else Communicator(comm, f"{self.name}, group {color}")

    def cartesian(
        self, shape: Sequence[int] | int | None = None, periodic: Sequence[bool] | bool = False
    ) -> CartesianCommunicator:
        """The processes on a grid; called by all of them.

        Parameters
        ----------
        shape : int or sequence of int, optional
            The number of processes along each axis; 0 for one that is to be determined. An int is
            the number of axes. By default one axis.
        periodic : bool or sequence of bool, default False
            Whether the last process along an axis is a neighbor of the first.
        """
        lengths = [0] if shape is None else [0] * shape if isinstance(shape, int) else list(shape)
        try:
            lengths = list(mpi().Compute_dims(self.size, lengths))
        except Exception as error:
            raise ArgumentError(
                f"a grid of {tuple(lengths)} does not fit {self.size} processes. The product of "
                f"the lengths must be their number; give 0 for a length that is to be determined"
                f"{at(user_line())}."
            ) from error
        periods = [periodic] * len(lengths) if isinstance(periodic, bool) else list(periodic)
        if len(periods) != len(lengths):
            raise ArgumentError(
                f"periodic has {len(periods)} entries for {len(lengths)} axes. Give one for each"
                f"{at(user_line())}."
            )
        return CartesianCommunicator(self.mpi.Create_cart(lengths, periods), f"{self.name}, grid")

    def free(self) -> None:
        """Free the communicator; called by all of its processes.

        Operations that use it are refused afterwards. Communicators that are not freed are in use
        until the program ends; MPI libraries permit some thousands.
        """
        self.refuse_lost()
        if self.key == "world":
            raise ArgumentError(
                f"{self.name} cannot be freed: it has all processes{at(user_line())}."
            )
        if self._own is not None and self._own != self.mpi:
            self._own.Free()
        self.mpi.Free()

    def refuse_lost(self) -> None:
        """Raise CommunicationError if the communicator cannot be used any more, or not here."""
        reason = self.lost
        if reason is None and mpi().Is_finalized():
            reason = "MPI has been finalized. Do so at the end of the program"
        if reason is None and may_use_main_thread_only() and not mpi().Is_thread_main():
            reason = (
                "MPI was initialized for calls from the main thread only "
                "(mpi4py.rc.thread_level). Call operations there, or use thread_level='multiple'"
            )
        if reason is not None:
            raise CommunicationError(f"{self.name} cannot be used: {reason}{at(user_line())}.")

    def check(self, what: str, *signature: Any) -> None:
        """Raise CommunicationError in all processes if they do not give the same arguments."""
        if not self.checked or self.size == 1:
            return
        number = number_of(repr((what, signature)))
        mine = np.array([number, -number], np.int64)
        greatest = np.empty(2, np.int64)
        self.collective.Allreduce(mine, greatest, mpi().MAX)
        if greatest[0] != -greatest[1]:
            every = self.collective.allgather(f"{what} {_spelled(signature)}".strip())
            listed = "; ".join(f"process {k}: {text}" for k, text in enumerate(every))
            raise CommunicationError(
                f"the processes do not take part in the same operation. {listed}. Call the same "
                "operations in the same order, with arrays of the same shape and dtype, in all "
                f"processes of {self.name}{at(user_line())}."
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: process {self.rank} of {self.size}>"

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{self!r} cannot be pickled or copied: it refers to processes. Create it in each "
            "process (wengert.distributed.world)."
        )


def _spelled(signature: tuple[Any, ...]) -> str:
    return ", ".join(str(x) for x in signature)


class CartesianCommunicator(Communicator):
    """Processes on a grid; made by `Communicator.cartesian`.

    Attributes
    ----------
    shape : tuple of int
        The number of processes along each axis.
    periodic : tuple of bool
    coordinates : tuple of int
        The position of this process.
    """

    __module__ = "wengert.distributed"

    def __init__(self, comm: Any, name: str | None = None) -> None:
        super().__init__(comm, name)
        shape, periodic, coordinates = comm.Get_topo()
        self.shape: tuple[int, ...] = tuple(shape)
        self.periodic: tuple[bool, ...] = tuple(bool(p) for p in periodic)
        self.coordinates: tuple[int, ...] = tuple(coordinates)

    def neighbors(self, axis: int, offset: int = 1) -> tuple[int | None, int | None]:
        """The ranks at ``-offset`` and ``+offset`` along an axis; None outside of the grid."""
        if not -len(self.shape) <= axis < len(self.shape):
            raise ArgumentError(
                f"axis {axis} of a grid with {len(self.shape)} axes{at(user_line())}."
            )
        before, after = self.mpi.Shift(axis % len(self.shape), offset)
        none = mpi().PROC_NULL
        return None if before == none else before, None if after == none else after


@functools.cache
def world() -> Communicator:
    """All processes that ``mpirun -n N`` started; this process alone without mpirun.

    Examples
    --------
    >>> from wengert import distributed
    >>> distributed.world().size
    1
    """
    return Communicator(None, "the world")


_numbers = itertools.count()
_BY_KEY: weakref.WeakValueDictionary[str, Communicator] = weakref.WeakValueDictionary()
_cells: dict[str, Any] = {}  # the memory of handles, which compiled code reads


def _lose(comm: Communicator, reason: str) -> None:
    """Refuse operations from now on; calls of compiled code fail, and touch no freed memory."""
    comm.lost = reason
    for group in ("direct", "collective"):
        cell = _cells.get(f"{group}.{comm.key}")
        if cell is not None:
            cell[0][0] = mpi()._handleof(mpi().COMM_NULL)


def _lose_all() -> None:
    """In a process that was forked: it shares the connections of the process that MPI knows."""
    for comm in list(_BY_KEY.values()):
        _lose(
            comm,
            "this process was forked after MPI was initialized, and MPI does not know it. Start "
            "processes by mpirun, or by multiprocessing.get_context('spawn')",
        )


os.register_at_fork(after_in_child=_lose_all)


def _compare_end(comm: Communicator, process: int) -> None:
    """At the end of the program: end all processes if some of them wait for messages.

    Otherwise they would wait forever, and this process for them.
    """
    if os.getpid() != process or comm.lost or mpi().Is_finalized():
        return
    try:
        comm.check("the end of the program")
    except CommunicationError as error:
        sys.stderr.write(f"wengert.distributed: {error} All processes are ended.\n")
        sys.stderr.flush()
        time.sleep(0.5)  # the others print where they are
        mpi().COMM_WORLD.Abort(1)


@functools.cache
def _users() -> int:
    """The key of the attribute of mpi4py communicators that lists our Communicators."""

    def freed(comm: Any, key: int, users: list[weakref.ref[Communicator]]) -> None:
        for reference in users:
            user = reference()
            if user is not None:
                _lose(user, "it has been freed. Free a communicator after its last operation")

    return int(mpi().Comm.Create_keyval(delete_fn=freed))


def _notify_when_freed(comm: Communicator) -> None:
    users = comm.mpi.Get_attr(_users())
    if users is None:
        users = []
        comm.mpi.Set_attr(_users(), users)
    users.append(weakref.ref(comm))


@functools.cache
def _library() -> ctypes.CDLL:
    """The MPI library, whose functions are found through the module of mpi4py."""
    return ctypes.CDLL(mpi().__file__ if hasattr(mpi(), "__file__") else None)


def address_of(name: str) -> int:
    """The address of a function of MPI, or of a handle: "function.MPI_Send", "handle.op.SUM"."""
    kind, _, rest = name.partition(".")
    if kind == "function":
        return int(ctypes.cast(getattr(_library(), rest), ctypes.c_void_p).value or 0)
    if rest not in _cells:
        group, _, own = rest.partition(".")
        if group == "op":
            value = getattr(mpi(), own)
        elif group == "type":
            value = mpi().C_BOOL if own == "b1" else mpi()._typedict[np.dtype(own).char]
        else:
            comm = _BY_KEY[own]
            value = comm.collective if group == "collective" else comm.mpi
        _cells[rest] = np.array([mpi()._handleof(value)], np.uint64), value
    return int(_cells[rest][0].ctypes.data)


MpiLibrary.address_of = staticmethod(address_of)
# Before the first message: it may be in a function that is being traced or differentiated, which
# needs a token from its beginning.
start_using()


def communicator_of(comm: Any) -> Communicator:
    """The argument `comm` as a Communicator; None is `world`.

    An mpi4py communicator becomes the same Communicator at each use.
    """
    comm = world() if comm is None else comm
    if isinstance(comm, Communicator):
        comm.refuse_lost()
        return comm
    if hasattr(comm, "Allreduce"):
        return _of_mpi4py(comm)
    raise ArgumentError(
        f"comm is a {type(comm).__name__}. Give a wengert.distributed.Communicator, an mpi4py "
        f"communicator, or None for all processes{at(user_line())}."
    )


_OF_MPI4PY: dict[int, Communicator] = {}


def _of_mpi4py(comm: Any) -> Communicator:
    if comm == mpi().COMM_WORLD:
        return world()
    key = int(mpi()._handleof(comm))
    known = _OF_MPI4PY.get(key)
    if known is None or known.lost or known.mpi != comm:
        known = _OF_MPI4PY[key] = Communicator(comm)
    return known
