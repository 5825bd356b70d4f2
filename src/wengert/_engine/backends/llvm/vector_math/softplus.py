"""softplus and log_sigmoid.

With e = exp(-|x|) <= 1, softplus(x) = max(x, 0) + log1p(e).  The general logarithm has a division;
between 0 and 1 a polynomial for log1p(e) / e takes half the time.  Coefficients:
docs/generate/special_coefficients.py.
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.types import Scalar, ScalarLanguage

from .polynomial_evaluation import polynomial
from .registry import leaf

# log1p(e) / e, of 2 e - 1.
_SOFT = {
    8: (
        0.8109302162163288, -0.14426354954966195, 0.03315243843855036, -0.008461080413870717,
        0.0022882409077055153, -0.0006421503724691594, 0.00018490300163022868,
        -5.426089826990582e-05, 1.615695015952578e-05, -4.8668772103456945e-06,
        1.479864483737165e-06, -4.535439845012538e-07, 1.399117957915816e-07,
        -4.3312552216200575e-08, 1.34890352487438e-08, -4.337005695913596e-09,
        1.372655169835486e-09, -3.4178368252597885e-10, 1.034481878950777e-10,
        -7.321916847011107e-11, 2.4180116889647706e-11,
    ),
    4: (
        0.8109302, -0.14426355, 0.033152618, -0.008461003, 0.0022883986, -0.00064270635,
        0.00018263451, -5.286411e-05, 1.9740186e-05, -6.2846384e-06,
    ),
}  # fmt: skip


def _bend(s: ScalarLanguage, x: Scalar, start: Scalar) -> Any:
    """start + log1p(exp(-|x|))."""
    e = s.exp(-s.abs(x))
    return s.fma(e, polynomial(s, s.fma(e, 2.0, -1.0), _SOFT), start)


@leaf("softplus")
def softplus(s: ScalarLanguage, x: Scalar) -> Any:
    """log(1 + exp(x))."""
    return _bend(s, x, s.where(s.less(x, 0.0), 0.0, x))


@leaf("log_sigmoid")
def log_sigmoid(s: ScalarLanguage, x: Scalar) -> Any:
    """-log(1 + exp(-x))."""
    return -_bend(s, x, s.where(s.less(0.0, x), 0.0, -x))
