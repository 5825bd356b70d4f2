"""SciPy's functions, for arrays and tensors; each subpackage is imported at first use.

dispatch      calls SciPy's functions for plain arrays
register_all  imports all subpackages, which registers their operations
fft/          scipy.fft
integrate/    scipy.integrate
interpolate/  scipy.interpolate
linalg/       scipy.linalg
ndimage/      scipy.ndimage
optimize/     scipy.optimize
signal/       scipy.signal
sparse/       scipy.sparse
spatial/      scipy.spatial.distance
special/      scipy.special
stats/        scipy.stats

`import wengert` imports none of them, as SciPy's packages take longer to import than NumPy.  They
need not be imported explicitly: `scipy.special.gammaln` called with a tensor finds its operation
(_engine/tensor/numpy_protocols.py), and so does a saved graph (_engine/core/op.py, `lookup`).
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
