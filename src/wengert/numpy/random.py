"""numpy.random, for arrays and tensors: wengert's `default_rng` and `Generator`.

The numbers are functions of a stream's keys (wengert.random.generator): derivatives with respect
to parameters pass, and a compiled function draws new numbers at each run.  What else numpy.random
has is NumPy's own: bit generators, SeedSequence, and the old functions with a state that all share.

The classes stand on a floor above this one, where streams are known, and are imported when they are
asked for.
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
