"""NumPy's names, for arrays and tensors.

creation             array, zeros, eye, zeros_like
ranges_and_windows   arange, linspace, geomspace, vander; `r_` and `c_`; i0, and windows such as
                     kaiser
array_info           shape, allclose, printing
elementwise          elementwise functions
ufuncs               methods of ufuncs on tensors: reduce, accumulate, outer, at, reduceat
reductions           sum, prod, mean, var, std; nansum, nanmean, nanvar, nanmax, nancumsum ...
minmax_norms         max, min, ptp, argmax, argmin, any, all, count_nonzero; norms of vectors and
                     matrices, log-sum-exp, softmax; arguments that reductions share
cumulative           cumsum, cumprod, diff, gradient, trapezoid, interp
statistics           average, cov, corrcoef ...; histogram, bincount, digitize
quantiles            median, quantile, percentile, and their variants without NaN
matmul_einsum        matmul, dot, tensordot, einsum
einsum_subscripts    the subscripts of einsum
shape_manipulation   reshape, transpose, moveaxis, flip, roll, broadcast_to, diag, tril
joining              concatenate, stack, block, split, tile, repeat, insert
indexing             take, where, select, choose, piecewise, meshgrid
put_and_place        put, place, putmask, copyto
sort_search_unique   sort, argsort, searchsorted, unique; set operations on arrays
padding              pad
poly1d_functions     polyval, polyfit, roots ...
fft                  numpy.fft
random               numpy.random
linalg/              numpy.linalg
polynomial           numpy.polynomial

For plain arrays the results are exactly NumPy's; with a tensor among the arguments the result is a
tensor.  The `__all__` of each module has its public names, which are collected below.  All other
names are NumPy's own: dtypes, constants, functions of integers, printing options.
"""

# ruff: noqa: F403  (each module has an `__all__`)

import sys
from importlib import import_module
from typing import Any

import numpy as np

from wengert._engine.core.lazy_import import DUNDERS, exported
from wengert._engine.core.other_libraries import NUMPY, missing
from wengert._engine.tensor.numpy_protocols import NAMESPACE

from . import fft as fft  # its names stay there
from . import linalg as linalg
from . import random as random
from .array_info import *
from .creation import *
from .cumulative import *
from .elementwise import *
from .indexing import *
from .joining import *
from .matmul_einsum import *
from .minmax_norms import *
from .padding import *
from .poly1d_functions import *
from .put_and_place import *
from .quantiles import *
from .ranges_and_windows import *
from .reductions import *
from .shape_manipulation import *
from .sort_search_unique import *
from .statistics import *
from .ufuncs import *

SUBMODULES = {"linalg", "fft", "random", "polynomial"}  # their names stay there, as in NumPy
MODULES = """
    array_info creation cumulative elementwise indexing joining matmul_einsum minmax_norms
    padding poly1d_functions put_and_place quantiles ranges_and_windows reductions
    shape_manipulation sort_search_unique statistics ufuncs
"""

__all__ = sorted({*np.__all__, *exported(__name__, MODULES)})


def __getattr__(name: str) -> Any:
    """NumPy's own name, where wengert does not define it."""
    if name == "polynomial":  # imported at first use, because most programs do not need it
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
