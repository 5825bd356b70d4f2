"""NumPy's `polynomial`: series in six families of polynomials, for arrays and tensors.

    polynomial    powers of x               laguerre     Laguerre
    chebyshev     Chebyshev, first kind     hermite      Hermite, of physics
    legendre      Legendre                  hermite_e    Hermite, of probability

    series        the functions of each family: val, der, int, mul, roots, fit ...

The functions have NumPy's names, ``wengert.numpy.polynomial.chebyshev.chebval``, and call NumPy's
for plain arrays.  NumPy's functions do not dispatch on tensors: those here are used instead of them
in converted functions, and elsewhere tensors must be passed to those here.  They are differentiable
with respect to points and coefficients.  The classes (``Chebyshev``) are NumPy's and support plain
arrays only.

The recurrences are those of NIST DLMF 18.9(i).
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np

from wengert._engine.core.lazy_import import public_dir

from .series import PolynomialFamily, Recurrence, functions


def _family(module: str, name: str, recurrence: Recurrence) -> Any:
    """A module with the functions of a family, and the names of NumPy's module."""
    theirs = getattr(np.polynomial, module)
    own = functions(PolynomialFamily(theirs, name, recurrence))
    made = ModuleType(f"{__name__}.{module}", theirs.__doc__)
    names = {n: getattr(theirs, n) for n in theirs.__all__}
    made.__dict__.update(names | own, OWN=sorted(own), __all__=sorted(names | own))
    sys.modules[made.__name__] = made
    return made


polynomial = _family("polynomial", "poly", lambda k: (1.0, 0.0, 0.0))
chebyshev = _family("chebyshev", "cheb", lambda k: (2.0 if k else 1.0, 0.0, 1.0))
legendre = _family("legendre", "leg", lambda k: ((2 * k + 1) / (k + 1), 0.0, k / (k + 1)))
laguerre = _family("laguerre", "lag", lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1)))
hermite = _family("hermite", "herm", lambda k: (2.0, 0.0, 2.0 * k))
hermite_e = _family("hermite_e", "herme", lambda k: (1.0, 0.0, 1.0 * k))

FAMILIES = "polynomial chebyshev legendre laguerre hermite hermite_e".split()
__all__ = FAMILIES


def __getattr__(name: str) -> Any:
    """NumPy's attribute of that name, for its classes."""
    return getattr(np.polynomial, name)


__dir__ = public_dir(__name__)
