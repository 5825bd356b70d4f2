"""Collective operations whose messages are logged, and whose errors are CommunicationError.

With level DEBUG, the logger "wengert.distributed" reports when messages begin and end: those of
operations that run immediately, and of functions that are run by the interpreter
(``jit(..., backend="interpret")``).

operation    the decorator that registers one
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.handle import describe
from wengert._engine.kinds.collective import Collective, collective
from wengert.errors import CommunicationError, at, user_line

from .mpi_library import mpi

_log = logging.getLogger("wengert.distributed")


def operation(**options: Any) -> Callable[[Callable[..., Any]], Collective]:
    """Register the decorated function; errors of MPI become CommunicationError.

    With level DEBUG, the logger "wengert.distributed" reports when messages begin and end.
    """

    def register(exchange: Callable[..., Any]) -> Collective:
        @functools.wraps(exchange)
        def reported(x: Any, **params: Any) -> Any:
            if not _log.isEnabledFor(logging.DEBUG):
                return exchange(x, **params)
            begin, text = time.perf_counter(), _described(exchange, x, params)
            _log.debug("%s begins", text)
            y = exchange(x, **params)
            _log.debug("%s has ended, after %.2e s", text, time.perf_counter() - begin)
            return y

        @functools.wraps(exchange)
        def run(x: Any, **params: Any) -> Any:
            try:
                return reported(x, **params)
            except RuntimeError as error:
                if not isinstance(error, mpi().Exception):
                    raise
                raise CommunicationError(
                    f"{_described(exchange, x, params)} failed in MPI: {error}. A message may be "
                    f"larger than the array that receives it{at(user_line())}."
                ) from error

        return collective(**options)(run)

    return register


def _described(exchange: Callable[..., Any], x: Any, params: dict[str, Any]) -> str:
    comm = params["comm"]
    partners = [f", {k}={params[k]}" for k in ("root", "dest", "source", "tag") if k in params]
    return (
        f"process {comm.rank} of {comm.size}: {exchange.__name__} of {describe(np.asarray(x))}"
        f"{''.join(partners)}"
    )
