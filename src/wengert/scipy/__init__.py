"""SciPy's names, for arrays and tensors alike; each package is imported when it is asked for.

dispatch      how a function that is no ufunc meets SciPy's
register_all  imports them all: their operations, for who looks for one
fft/          those of them that are here (`SUBPACKAGES`)
integrate/    those of them that are here (`SUBPACKAGES`)
interpolate/  those of them that are here (`SUBPACKAGES`)
linalg/       scipy.linalg, for arrays and tensors alike: every function here differentiates
signal/       scipy.signal, for arrays and tensors alike
special/      scipy.special, for arrays and tensors alike: every function here differentiates
stats/        scipy.stats, for arrays and tensors alike: log-densities that differentiate, and
              draws

special, linalg, stats, signal,    as in SciPy: `wengert.scipy.special.gammaln`

`import wengert` loads none of them, as SciPy's own packages cost more than NumPy to import.  Nobody
has to import them by hand, though: `scipy.special.gammaln` called with a tensor finds its
operation (_engine/tensor/numpy_protocols.py), and so does a file with a saved graph
(_engine/core/op.py, `lookup`).
"""

import pkgutil
from importlib import import_module
from typing import Any

from wengert._engine.core.lazy_import import public_dir

SUBPACKAGES = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)

__all__ = [*SUBPACKAGES]


def __getattr__(name: str) -> Any:
    if name in SUBPACKAGES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = public_dir(__name__, *SUBPACKAGES)
