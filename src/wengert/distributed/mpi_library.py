"""MPI through mpi4py, which is imported here only, at the first use of a communicator.

mpi                        the module mpi4py.MPI
may_use_main_thread_only   whether MPI may be called by other threads
abort_on_exception         end all processes if one of them ends with an exception
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import traceback
from types import TracebackType
from typing import Any

from wengert.errors import CommunicationError, at, user_line


@functools.cache
def mpi() -> Any:
    """The module mpi4py.MPI; MPI is initialized at its first import.

    Raises
    ------
    ImportError
        mpi4py or an MPI library is not installed.
    CommunicationError
        MPI is not initialized (`mpi4py.rc.initialize` is False).
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # the latter without an MPI library
        raise ImportError(
            "wengert.distributed needs mpi4py and an MPI library: pip install 'wengert[mpi]', or "
            f"install MPICH or Open MPI and mpi4py ({error})."
        ) from error
    if not MPI.Is_initialized():
        raise CommunicationError(
            "MPI is not initialized (mpi4py.rc.initialize is False). Call mpi4py.MPI.Init() before "
            f"the first use of wengert.distributed{at(user_line())}."
        )
    if MPI.COMM_WORLD.Get_size() > 1:
        abort_on_exception(MPI)
    return MPI


@functools.cache
def may_use_main_thread_only() -> bool:
    """Whether MPI was initialized for calls from the main thread only."""
    return bool(mpi().Query_thread() < mpi().THREAD_SERIALIZED)


def abort_on_exception(MPI: Any) -> None:
    """End all processes if one of them ends with an exception.

    The others would wait for its messages forever.
    """
    previous, process = sys.excepthook, os.getpid()

    def hook(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
        previous(kind, error, where)
        if os.getpid() != process:  # it was forked, and is not one of those that MPI knows
            return
        sys.stderr.write(
            f"wengert.distributed: process {MPI.COMM_WORLD.Get_rank()} of "
            f"{MPI.COMM_WORLD.Get_size()} ended with {kind.__name__}; all processes are ended.\n"
        )
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)

    def thread_hook(arguments: threading.ExceptHookArgs) -> None:
        traceback.print_exception(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)
        if os.getpid() == process:
            MPI.COMM_WORLD.Abort(1)

    sys.excepthook = hook
    threading.excepthook = thread_hook
