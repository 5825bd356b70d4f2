"""Graphs of derivatives that are kept for repeated eager calls.

The derivative of a solution is a function of values that depends only on the graph of the equation.
Graphs are compared by content, so the graph of the derivative, traced once, is evaluated in later
calls with equal equations; nothing of the user's is kept, and no value.

    by_graph    the results of a function of arrays, by its graph
    KeptGraphs  graphs by key; the last ones used
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from wengert._engine.control_flow.closure_conversion import closed
from wengert._engine.core.fork_safe_locks import lock
from wengert._engine.core.handle import Handle, describe, value_of
from wengert._engine.core.recording import current_trace
from wengert._engine.core.spec import Spec
from wengert._engine.core.subgraph import evaluated

from .functions import is_constant, with_constants

T = TypeVar("T")
_MAX_GRAPHS = 256
_MAX_CONSTANTS = 1 << 17  # elements of the constants of a graph that is kept


class KeptGraphs(Generic[T]):
    """Values by key; the last ones used are kept."""

    def __init__(self) -> None:
        self._lock = lock()
        self._values: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made if there is none."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > _MAX_GRAPHS:
                self._values.popitem(last=False)
        return value


def _elements(x: Any) -> int:
    return int(np.size(value_of(x)))


_kept: KeptGraphs[tuple[Any, tuple[bool, ...]] | None] = KeptGraphs()


def by_graph(
    key: Hashable, fun: Callable[..., Sequence[Any]], operands: Sequence[Any]
) -> list[Any]:
    """The results of a function of arrays; the function is traced once for a key and specs.

    Parameters
    ----------
    key : hashable
        Of everything that the function depends on except its operands; None: it is not kept.
    fun : callable
        Returns arrays, or None.
    operands : sequence
        If one is a tensor, or within a trace, the function is called.
    """
    is_plain = current_trace() is None and not any([isinstance(x, Handle) for x in operands])
    specs = [describe(x) for x in operands] if key is not None and is_plain else []
    if not specs or not all([type(s) is Spec for s in specs]):
        return list(fun(*operands))

    def make() -> tuple[Any, tuple[bool, ...]] | None:
        closure = closed(lambda *xs: list(fun(*xs)), specs, "a derivative", hoist=False)
        # Arrays that the derivative makes, such as the unit vectors of a Jacobian.
        made = closure.captured
        if not all(map(is_constant, made)) or sum(map(_elements, made)) > _MAX_CONSTANTS:
            return None
        return evaluated(with_constants(closure.body, made)), closure.live

    kept = _kept.get((key, *specs), make)
    if kept is None:
        return list(fun(*operands))
    run, live = kept
    found = iter(run(operands))
    return [next(found) if is_live else None for is_live in live]
