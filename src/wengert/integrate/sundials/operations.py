"""Solutions and adjoints by SUNDIALS as operations of graphs: host callbacks in compiled functions.

sundials_states      states at times
sundials_cotangents  cotangents of captured values and of the initial state
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.spec import Spec
from wengert._engine.kinds.opaque import opaque

from .adjoint import cotangents
from .system import System
from .trajectory import ReachedStates, states

_FLOAT, _WHOLE = np.dtype(float), np.dtype(np.int64)
_REASON = "SUNDIALS computes it"


@opaque(name="sundials_states", trusted=True)
def sundials_states(*operands: Any, system: System) -> Any:
    """The fields of `ReachedStates`."""
    return tuple(states(system, operands))


@sundials_states.spec
def _(*operands: Spec, system: System) -> Any:
    count, n = operands[-1].shape[0] + 1, system.size
    many = Spec((count, n), _FLOAT)
    fields = many, many, Spec((n + 1,), _FLOAT), Spec((5,), _WHOLE)
    assert len(fields) == len(ReachedStates._fields)
    return fields


@opaque(name="sundials_cotangents", trusted=True)
def sundials_cotangents(*operands: Any, system: System, active: tuple[int, ...]) -> Any:
    """The cotangents; the last operand are those of the states."""
    return cotangents(system, active, operands[:-1], operands[-1])


@sundials_cotangents.spec
def _(*operands: Spec, system: System, active: tuple[int, ...]) -> Any:
    total = sum([int(np.prod(system.const_specs[k].shape)) for k in active])
    return Spec((total,), _FLOAT), Spec((system.size,), _FLOAT)


sundials_states.host_callback = _REASON
sundials_cotangents.host_callback = _REASON
