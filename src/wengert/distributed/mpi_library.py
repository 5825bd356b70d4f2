"""MPI through mpi4py, which is imported here only, at the first use of a communicator.

mpi     the module mpi4py.MPI
abort_on_exception   end all processes if one of them ends with an exception
"""

from __future__ import annotations

import functools
import sys
import threading
import traceback
from types import TracebackType
from typing import Any


@functools.cache
def mpi() -> Any:
    """The module mpi4py.MPI; MPI is initialized at its first import.

    Raises
    ------
    ImportError
        mpi4py or an MPI library is not installed.
    """
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ImportError(
            "wengert.distributed needs mpi4py and an MPI library: pip install 'wengert[mpi]', or "
            f"install MPICH or Open MPI and mpi4py ({error})."
        ) from error
    if MPI.COMM_WORLD.Get_size() > 1:
        abort_on_exception(MPI)
    return MPI


def abort_on_exception(MPI: Any) -> None:
    """End all processes if one of them ends with an exception.

    The others would wait for its messages forever.
    """
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
        previous(kind, error, where)
        sys.stderr.write(
            f"wengert.distributed: process {MPI.COMM_WORLD.Get_rank()} of "
            f"{MPI.COMM_WORLD.Get_size()} ended with {kind.__name__}; all processes are ended.\n"
        )
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)

    def thread_hook(arguments: threading.ExceptHookArgs) -> None:
        traceback.print_exception(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)
        MPI.COMM_WORLD.Abort(1)

    sys.excepthook = hook
    threading.excepthook = thread_hook
