"""The functions of scipy.spatial.distance, for arrays and tensors.

distance    cdist, pdist, squareform and the distances of two vectors, by differentiable metrics
metrics     the metrics, along the last axis

The other names of scipy.spatial are SciPy's, for plain arrays.
"""

from typing import Any

import scipy.spatial as _scipy_spatial

from wengert._engine.core.lazy_import import public_dir

from . import distance

__all__ = ["distance"]


def __getattr__(name: str) -> Any:
    if name.startswith("_") or not hasattr(_scipy_spatial, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_scipy_spatial, name)


__dir__ = public_dir(__name__)
