"""SciPy's names, for arrays and tensors: those of `wengert.scipy`.

special, linalg, integrate  as in wengert.scipy
misc                        special; autograd has logsumexp there
stats.py                    distributions, importable as modules
signal.py                   convolve, with autograd's arguments

They are imported at first use.
"""

import importlib
import sys
from typing import Any

from wengert._engine.core.lazy_import import LazyModule, public_dir

_PLACES = {
    **{name: f"wengert.scipy.{name}" for name in ("special", "linalg", "integrate")},
    "misc": "wengert.scipy.special",
}
__all__ = [*_PLACES, "signal", "stats"]
# For `from wengert.compat.autograd.scipy.special import gammaln`.
for _name, _place in _PLACES.items():
    sys.modules[f"{__name__}.{_name}"] = LazyModule(_place)  # type: ignore[assignment]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return importlib.import_module(_PLACES[name])
    if name in ("signal", "stats"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = public_dir(__name__)
