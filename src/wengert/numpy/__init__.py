"""NumPy's names, for arrays and tensors alike.

    shapes       reshape, transpose, moveaxis, flip, roll, broadcast_to, diag, tril ...
    padding      pad
    joining      concatenate, stack, block, split, tile, repeat, insert ...
    indexing     take, put, where, select, choose, piecewise, meshgrid ...
    creation     array, zeros, arange, linspace, zeros_like, vander ...
    inspection   what is asked of an array and not computed from it: shape, allclose, printing
    sets, polynomials, and the modules beside them: sums and products, sorting, statistics, ...
    linalg       a module of its own, as in NumPy

Each function takes plain arrays and gives plain arrays, exactly NumPy's; with a tensor among the
arguments it gives a tensor.  Every module here states its public names in `__all__`, and they are
collected below.  What NumPy has beside them is NumPy's own: dtypes, constants, functions of
integers, printing options.
"""

import importlib
import pkgutil
import sys
from typing import Any

import numpy as np

from ..tensor.protocols import NAMESPACE

SUBMODULES = {"linalg", "fft", "random"}  # their names stay there, as in NumPy

_ours: dict[str, Any] = {}
for _info in pkgutil.iter_modules(__path__):
    _module = importlib.import_module(f"{__name__}.{_info.name}")
    for _name in () if _info.name in SUBMODULES else getattr(_module, "__all__", ()):
        _ours[_name] = getattr(_module, _name)
globals().update(_ours)

__all__ = sorted({*np.__all__, *_ours})


def __getattr__(name: str) -> Any:
    """NumPy's own of that name, where there is none of ours."""
    if name.startswith("__") and name not in np.__all__:
        raise AttributeError(name)
    return getattr(np, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})


NAMESPACE.append(sys.modules[__name__])
