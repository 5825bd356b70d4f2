"""NumPy's names, for arrays and tensors alike.

    shapes       reshape, transpose, moveaxis, flip, roll, broadcast_to, diag, tril ...
    padding      pad
    joining      concatenate, stack, block, split, tile, repeat, insert ...; concatenators: r_, c_
    indexing     take, where, select, choose, piecewise, meshgrid ...
    writing      put, place, putmask, copyto ...
    creation     array, zeros, eye, zeros_like ...
    ranges       arange, linspace, geomspace, vander ...
    inspection   what is asked of an array and not computed from it: shape, allclose, printing
    elements     elementwise; methods of ufuncs in ufuncs
    numbers      reductions, extremes, norms, nanfunctions, cumulative
    statistics   statistics, quantiles, histograms
    products     products (subscripts: those of einsum)
    order        sorting, sets
    polynomials  by their coefficients
    windows      i0, and Kaiser's window, which is made of it
    linalg, fft, random    modules of their own, as in NumPy
    polynomial   series in Chebyshev's and other polynomials: a module of its own, too
    options      what reductions take

Each function takes plain arrays and gives plain arrays, exactly NumPy's; with a tensor among the
arguments it gives a tensor.  Every module here states its public names in `__all__`, and they are
collected below.  What NumPy has beside them is NumPy's own: dtypes, constants, functions of
integers, printing options.
"""

import sys
from importlib import import_module
from typing import Any

import numpy as np

from wengert._engine.core.lazy_import import DUNDERS
from wengert._engine.core.other_libraries import NUMPY, missing
from wengert._engine.tensor.numpy_protocols import NAMESPACE

from . import (
    concatenators,
    creation,
    cumulative,
    elementwise,
    extremes,
    histograms,
    indexing,
    inspection,
    joining,
    nanfunctions,
    norms,
    padding,
    polynomials,
    products,
    quantiles,
    ranges,
    reductions,
    sets,
    shapes,
    sorting,
    statistics,
    ufuncs,
    windows,
    writing,
)
from . import fft as fft  # its names stay there
from . import linalg as linalg
from . import random as random
from .concatenators import *  # noqa: F403 - its `__all__`
from .creation import *  # noqa: F403 - its `__all__`
from .cumulative import *  # noqa: F403 - its `__all__`
from .elementwise import *  # noqa: F403 - its `__all__`
from .extremes import *  # noqa: F403 - its `__all__`
from .histograms import *  # noqa: F403 - its `__all__`
from .indexing import *  # noqa: F403 - its `__all__`
from .inspection import *  # noqa: F403 - its `__all__`
from .joining import *  # noqa: F403 - its `__all__`
from .nanfunctions import *  # noqa: F403 - its `__all__`
from .norms import *  # noqa: F403 - its `__all__`
from .padding import *  # noqa: F403 - its `__all__`
from .polynomials import *  # noqa: F403 - its `__all__`
from .products import *  # noqa: F403 - its `__all__`
from .quantiles import *  # noqa: F403 - its `__all__`
from .ranges import *  # noqa: F403 - its `__all__`
from .reductions import *  # noqa: F403 - its `__all__`
from .sets import *  # noqa: F403 - its `__all__`
from .shapes import *  # noqa: F403 - its `__all__`
from .sorting import *  # noqa: F403 - its `__all__`
from .statistics import *  # noqa: F403 - its `__all__`
from .windows import *  # noqa: F403 - its `__all__`
from .writing import *  # noqa: F403 - its `__all__`

SUBMODULES = {"linalg", "fft", "random", "polynomial"}  # their names stay there, as in NumPy
COLLECTED = (
    concatenators,
    creation,
    cumulative,
    elementwise,
    extremes,
    histograms,
    indexing,
    inspection,
    joining,
    nanfunctions,
    norms,
    padding,
    polynomials,
    products,
    quantiles,
    ranges,
    reductions,
    sets,
    shapes,
    sorting,
    statistics,
    ufuncs,
    windows,
    writing,
)

__all__ = sorted({*np.__all__, *(name for module in COLLECTED for name in module.__all__)})


def __getattr__(name: str) -> Any:
    """NumPy's own of that name, where there is none of ours."""
    if name == "polynomial":  # at first use, as most programs have none
        return import_module(f"{__name__}.polynomial")
    if name.startswith("__") and name not in (*np.__all__, "__array_api_version__"):
        raise AttributeError(name)
    try:
        return getattr(np, name)
    except AttributeError:
        raise missing(f"module {__name__!r}", name, NUMPY) from None


def __dir__() -> list[str]:
    return sorted({*__all__, *SUBMODULES, *DUNDERS})


NAMESPACE.append(sys.modules[__name__])
