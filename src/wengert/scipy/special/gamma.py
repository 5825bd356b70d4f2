"""The gamma function, its logarithm and their derivatives: DLMF 5.

gammaln                  the logarithm of |gamma|
digamma, psi             the slope of the logarithm
polygamma                the derivatives of that
"""

from __future__ import annotations

from typing import Any

from ...kinds.elementwise import POSITIVE, elementwise
from .entries import PREFIX, function

__all__ = ["gammaln", "digamma", "psi"]


@elementwise(
    name=f"{PREFIX}polygamma",
    domain=[(0, 4), POSITIVE],
    oracle="psi(int(n), x)",
    singular=True,
    half=False,
)
def polygamma_of(s: Any, n: Any, x: Any) -> Any:
    """The derivative of order n of psi, DLMF 5.15: (-1)^(n+1) n! zeta(n + 1, x)."""
    order = s.copysign(n, s.abs(x)) + 1.0  # in the dtype of both
    size = s.special("gamma", order) * s.special("zeta", s.where(s.less(n, 1), 2.0, order), x)
    odd = s.equal(s.fmod(order, 2.0), 0.0)
    return s.where(s.less(n, 1), s.special("psi", x), s.where(odd, size, -size))


polygamma_of.partials(None, lambda t, out, n, x: t * polygamma_of(n + 1, x))

psi = function(
    "psi",
    "x",
    domain=[POSITIVE],
    oracle="psi(0, x)",
    singular=True,
    doc="The logarithmic derivative of gamma, DLMF 5.2.2; its derivative is polygamma(1, x).",
)
psi.partials(lambda t, out, x: t * polygamma_of(1, x))
digamma = psi

gammaln = function(
    "gammaln",
    "x",
    domain=[POSITIVE],
    oracle="log(abs(gamma(x)))",
    singular=True,
    doc="log|gamma(x)|, DLMF 5.2; its derivative is digamma(x).",
)
gammaln.partials(lambda t, out, x: t * digamma(x))
