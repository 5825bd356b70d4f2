"""The Gauss hypergeometric distribution; only the density.

gausshyper

Formula: C. Armero, M. J. Bayarri, Prior assessments for prediction in queues (1994).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...special import betaln, hyp2f1, xlog1py, xlogy
from ..continuous_distribution import Continuous


class _GaussHyper(Continuous):
    """The Gauss hypergeometric distribution: the beta density times (1 + z x)^-c."""

    ends = (0.0, 1.0)

    def valid(self, a: Any, b: Any, c: Any, z: Any) -> Any:
        valid = np.logical_and(a > 0, b > 0)
        return np.logical_and(valid, np.logical_and(c == c, z > -1))

    def log_density(self, x: Any, a: Any, b: Any, c: Any, z: Any) -> Any:
        out = xlogy(a - 1.0, x) + xlog1py(b - 1.0, -x) - c * np.log1p(z * x)
        return out - betaln(a, b) - np.log(hyp2f1(c, a, a + b, -z))

    def standard_mean(self, a: Any, b: Any, c: Any, z: Any) -> Any:
        return self._moment(1.0, a, b, c, z)

    def standard_var(self, a: Any, b: Any, c: Any, z: Any) -> Any:
        return self._moment(2.0, a, b, c, z) - self._moment(1.0, a, b, c, z) ** 2

    def _moment(self, n: float, a: Any, b: Any, c: Any, z: Any) -> Any:
        scale = np.exp(betaln(a + n, b) - betaln(a, b))
        return scale * hyp2f1(c, a + n, a + b + n, -z) / hyp2f1(c, a, a + b, -z)


gausshyper = _GaussHyper("gausshyper")
