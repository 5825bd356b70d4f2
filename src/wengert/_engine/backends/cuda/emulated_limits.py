"""What the emulated device shares with a card: a limit of memory, and the functions of CuPy 14.

    EmulatedMemory    counts bytes until their arrays are freed
    has_ufunc         whether it has a method of a ufunc
    has_function      whether it has a function of NumPy

Arrays that functions of NumPy make on the device are not counted.

So a host callback shows without a card.  CuPy finds its function by the name of NumPy's, or of the
ufunc of scipy.special; tests/backends/cuda/test_card.py compares the lists with an installed CuPy.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from wengert._engine.core.device_arrays import MemoryInfo, megabytes

_TOTAL = 1 << 36  # bytes, where no limit is given


class EmulatedMemory:
    """Counts the bytes of arrays until they are freed.

    Parameters
    ----------
    limit : int or None
        The bytes of the device.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._total = _TOTAL if limit is None else limit
        self._arrays: list[tuple[weakref.ref[Any], int]] = []

    def check(self, count: int) -> None:
        """Raise if so many bytes cannot be had."""
        if self._used() + count > self._total:
            raise MemoryError(f"{megabytes(count)} more than the emulated device has")

    def add(self, array: np.ndarray[Any, Any]) -> None:
        """Count the bytes of an array until it and all views of it are freed."""
        self._arrays.append((weakref.ref(array), array.nbytes))

    def _used(self) -> int:
        self._arrays = [(ref, count) for ref, count in self._arrays if ref() is not None]
        return sum(count for _, count in self._arrays)

    @property
    def info(self) -> MemoryInfo:
        """The bytes in use and free."""
        used = self._used()
        return MemoryInfo(used, used, self._total - used, self._total)


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
