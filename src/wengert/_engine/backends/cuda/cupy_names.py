"""Functions that CuPy 14 has and lacks, for the emulated device, whose arrays lack the same.

So a host callback shows without a card.  CuPy finds its function by the name of NumPy's, or of the
ufunc of scipy.special; tests/backends/cuda/test_card.py compares the lists with an installed CuPy.

    has_ufunc    whether it has a method of a ufunc
    has_function    whether it has a function of NumPy
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

# The methods of ufuncs other than calls, for these ufuncs only.
_METHODS = {
    "reduce": ("add", "multiply"),
    "accumulate": ("add", "multiply"),
    "reduceat": ("add",),
    "at": ("add", "subtract", "maximum", "minimum"),
}
_ABSENT_UFUNCS = frozenset(("isnat", "matvec", "spacing", "vecdot", "vecmat"))
# The ufuncs of scipy.special that cupyx.scipy.special has.
SPECIAL = frozenset(
    "bdtr bdtrc bdtri beta betainc betaincinv betaln binom boxcox boxcox1p cbrt chdtr chdtrc "
    "chdtri cosdg cosm1 cotdg digamma ellipeinc ellipj ellipk ellipkinc ellipkm1 entr erf erfc "
    "erfcinv erfcx erfinv exp1 exp10 exp2 expi expit expm1 expn exprel fdtr fdtrc fdtri gamma "
    "gammainc gammaincc gammainccinv gammaincinv gammaln gammasgn gdtr gdtrc huber i0 i0e i1 i1e "
    "inv_boxcox inv_boxcox1p j0 j1 k0 k0e k1 k1e kl_div log1p log_expit log_ndtr loggamma logit "
    "lpmv nbdtr nbdtrc nbdtri ndtr ndtri pdtr pdtrc pdtri poch pseudo_huber psi radian rel_entr "
    "rgamma round shichi sici sindg tandg wright_bessel xlog1py xlogy y0 y1 yn zetac".split()
)
_ABSENT = {
    "numpy": frozenset(
        "block einsum_path geomspace histogram_bin_edges insert nanpercentile nanquantile polyder "
        "polydiv polyint unstack".split()
    ),
    "numpy.linalg": frozenset(
        "diagonal matrix_norm multi_dot outer svdvals tensordot trace vecdot vector_norm".split()
    ),
}


_ABSENT_OPTIONS = {
    "lexsort": {"axis"},
    "matrix_rank": {"rtol"},
    "max": {"initial"},
    "min": {"initial"},
    "pinv": {"hermitian"},
}


def has_function(function: Any, options: Iterable[str] = ()) -> bool:
    """Whether CuPy has a function of NumPy, with such options."""
    if _ABSENT_OPTIONS.get(function.__name__, set()) & set(options):
        return False
    return function.__name__ not in _ABSENT.get(function.__module__, ())


def has_ufunc(ufunc: Any, method: str) -> bool:
    """Whether CuPy has a method of a ufunc."""
    name: str = ufunc.__name__
    if method in _METHODS:
        return name in _METHODS[method]
    if getattr(np, name, None) is ufunc:
        return name not in _ABSENT_UFUNCS
    return name in SPECIAL
