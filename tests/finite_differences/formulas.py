"""Functions in mpmath, where SciPy's rounding or its own formulas hide what is right (exact.py).

    FORMULAS    by namespace and name, with the signature of SciPy's, for arrays of mpmath's numbers

Each is found another way than SciPy's, or the same way in many digits, and at the catalogue's own
arguments the tests demand that SciPy's gives the same.  Definitions: SciPy's documentation of the
function, and of the special functions in them DLMF.
"""

from __future__ import annotations

from .formulas_of_distributions import METHODS
from .formulas_of_functions import SPECIAL, SUMMARIES

FORMULAS = {("scipy.stats", name): formula for name, formula in METHODS.items()}
FORMULAS |= {("scipy.stats", name): formula for name, formula in SUMMARIES.items()}
FORMULAS |= {("scipy.special", name): formula for name, formula in SPECIAL.items()}
