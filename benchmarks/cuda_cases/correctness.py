"""Correctness on a card: every operation, and random programs, against eager execution.

    check    what was run, and what differed

The same laws run with an emulated device in the tests (wengert.testing.laws.device_code).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import wengert.nn
import wengert.random
import wengert.scipy.linalg
import wengert.scipy.signal
import wengert.scipy.special  # noqa: F401
from wengert._engine.backends.cuda.current_device import current
from wengert._engine.core.op import REGISTRY
from wengert.testing.laws import device_code
from wengert.testing.laws.native_code import native_values


class StrictCard(device_code.StrictDevice):
    """The device in use, without fallback to the interpreter."""

    def __init__(self) -> None:
        self.device: Any = current()


def check(names: Sequence[str] = ()) -> dict[str, Any]:
    """Compare the values of operations; those that differ are listed with the message."""
    wanted = list(names) or sorted(REGISTRY)
    differing = {}
    for name in wanted:
        try:
            native_values(
                REGISTRY[name], np.random.default_rng(0), thorough=False, alone=StrictCard
            )
        except Exception as error:
            differing[name] = f"{type(error).__name__}: {error}"[:300]
    return {"operations": len(wanted), "differing": differing}
