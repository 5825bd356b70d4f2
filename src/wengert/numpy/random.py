"""numpy.random, for arrays and tensors: wengert's `default_rng` and `Generator`.

The numbers are functions of keys of a stream (wengert.random.generator): they are differentiable
with respect to parameters, and a compiled function draws new numbers in each run.  All other names
are NumPy's own: bit generators, SeedSequence, and the legacy functions with global state.

The classes belong to a higher layer, and are imported at first use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.lazy_import import DUNDERS, lazy_names

OURS = ("Generator", "default_rng")

_ours = lazy_names("wengert", dict.fromkeys(OURS, ".random"))


def __getattr__(name: str) -> Any:
    return _ours(name) if name in OURS else getattr(np.random, name)


def __dir__() -> list[str]:
    return sorted({*OURS, *np.random.__all__, *DUNDERS})
