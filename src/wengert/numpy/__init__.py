"""NumPy's names, for arrays and tensors alike.

    shapes       reshape, transpose, moveaxis, flip, roll, pad, broadcast_to, diag, tril ...
    joining      concatenate, stack, block, split, tile, repeat, insert ...
    indexing     take, put, where, select, choose, piecewise, fill_diagonal ...
    creation     array, zeros, arange, linspace, zeros_like, meshgrid, vander ...
    inspection   what is asked of an array and not computed from it: shape, allclose, printing

Each function takes plain arrays and gives plain arrays, exactly NumPy's; with a tensor among the
arguments it gives a tensor.  What NumPy has and is not listed here is NumPy's own: dtypes,
constants, functions of integers, printing options.
"""

import importlib
import pkgutil
import sys
from typing import Any

import numpy as np

from ..tensor.protocols import NAMESPACE

SUBMODULES = {"linalg", "fft", "random"}  # their names stay there, as in NumPy

__all__: list[str] = []
for _info in pkgutil.iter_modules(__path__):
    _module = importlib.import_module(f"{__name__}.{_info.name}")
    for _name in () if _info.name in SUBMODULES else getattr(_module, "__all__", ()):
        globals()[_name] = getattr(_module, _name)
        __all__.append(_name)  # noqa: PYI056


def __getattr__(name: str) -> Any:
    """NumPy's own of that name, where there is none of ours."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(np, name)


NAMESPACE.append(sys.modules[__name__])
