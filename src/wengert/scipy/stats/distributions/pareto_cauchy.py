"""The Pareto and Cauchy distributions, and those derived from them.

    pareto genpareto lomax truncpareto bradford
    cauchy halfcauchy foldcauchy skewcauchy wrapcauchy

genpareto is smooth where its parameter c is 0.
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from wengert.random import functions

from ...special import exprel
from ..continuous_distribution import Continuous
from .common import PositiveSupport, log1p_ratio, where_finite


class _Pareto(Continuous):
    """The Pareto distribution with power `b`, on [1, inf)."""

    ends = (1.0, np.inf)
    inner = 2.0

    def valid(self, b: Any) -> Any:
        return b > 0

    def log_density(self, x: Any, b: Any) -> Any:
        return np.log(b) - (b + 1.0) * np.log(x)

    def lower(self, x: Any, b: Any) -> Any:
        return -np.expm1(-b * np.log(x))

    def log_upper(self, x: Any, b: Any) -> Any:
        return -b * np.log(x)

    def upper(self, x: Any, b: Any) -> Any:
        return x ** (-b)

    def quantile(self, q: Any, b: Any) -> Any:
        return np.exp(-np.log1p(-q) / b)

    def upper_quantile(self, q: Any, b: Any) -> Any:
        return q ** (-1.0 / b)

    def standard_mean(self, b: Any) -> Any:
        safe = np.where(b > 1, b, 2.0)
        return np.where(b > 1, safe / (safe - 1.0), np.inf)

    def standard_var(self, b: Any) -> Any:
        safe = np.where(b > 2, b, 3.0)
        return np.where(b > 2, safe / ((safe - 2.0) * (safe - 1.0) ** 2), np.inf)

    def standard_entropy(self, b: Any) -> Any:
        return 1.0 + 1.0 / b - np.log(b)

    def standard_draw(self, key: Any, shape: Any, b: Any) -> Any:
        return functions.pareto(key, b, shape)


pareto = _Pareto("pareto")


class _GenPareto(Continuous):
    """The generalized Pareto distribution; c = 0 gives expon."""

    def support_of(self, c: Any) -> Any:
        return 0.0, np.where(c < 0, -1.0 / np.where(c < 0, c, -1.0), np.inf)

    def inside_of(self, c: Any) -> Any:
        return np.where(c < 0, -0.5 / np.where(c < 0, c, -1.0), 1.0)

    at_high = False

    def log_density(self, x: Any, c: Any) -> Any:
        return -(c + 1.0) * log1p_ratio(c, x)

    def log_upper(self, x: Any, c: Any) -> Any:
        return -log1p_ratio(c, x)

    def lower(self, x: Any, c: Any) -> Any:
        return -np.expm1(-log1p_ratio(c, x))

    def quantile(self, q: Any, c: Any) -> Any:
        y = -np.log1p(-q)
        return y * exprel(c * y)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        y = -np.log(q)
        return y * exprel(c * y)

    def standard_mean(self, c: Any) -> Any:
        return np.where(c < 1, 1.0 / (1.0 - np.where(c < 1, c, 0.0)), np.inf)

    def standard_var(self, c: Any) -> Any:
        safe = np.where(c < 0.5, c, 0.0)
        return np.where(c < 0.5, 1.0 / ((1.0 - safe) ** 2 * (1.0 - 2.0 * safe)), np.inf)

    def standard_entropy(self, c: Any) -> Any:
        return 1.0 + c

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        y = functions.exponential(key, shape)
        return y * exprel(c * y)


genpareto = _GenPareto("genpareto")


class _Lomax(PositiveSupport):
    """The Lomax (Pareto type II) distribution with power `c`."""

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        return np.log(c) - (c + 1.0) * np.log1p(x)

    def log_upper(self, x: Any, c: Any) -> Any:
        return -c * np.log1p(x)

    def lower(self, x: Any, c: Any) -> Any:
        return -np.expm1(-c * np.log1p(x))

    def quantile(self, q: Any, c: Any) -> Any:
        return np.expm1(-np.log1p(-q) / c)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return np.expm1(-np.log(q) / c)

    def standard_mean(self, c: Any) -> Any:
        return where_finite(c > 1, lambda c: 1.0 / (c - 1.0), c, fallback=(2.0,))

    def standard_var(self, c: Any) -> Any:
        def var(c: Any) -> Any:
            return c / ((c - 1.0) ** 2 * (c - 2.0))

        return where_finite(c > 2, var, c, fallback=(3.0,))

    def standard_entropy(self, c: Any) -> Any:
        return 1.0 + 1.0 / c - np.log(c)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return np.expm1(functions.exponential(key, shape) / c)


lomax = _Lomax("lomax")


class _TruncPareto(Continuous):
    """The Pareto distribution truncated to [1, c]; the power `b` may be negative."""

    def valid(self, b: Any, c: Any) -> Any:
        return np.logical_and(b != 0, c > 1)

    def support_of(self, b: Any, c: Any) -> Any:
        return 1.0, c

    def inside_of(self, b: Any, c: Any) -> Any:
        return 0.5 * (1.0 + c)

    def _mass(self, x: Any, b: Any) -> Any:
        """(1 - x^-b) / b."""
        y = np.log(x)
        return y * exprel(-b * y)

    def log_density(self, x: Any, b: Any, c: Any) -> Any:
        return -np.log(self._mass(c, b)) - (b + 1.0) * np.log(x)

    def lower(self, x: Any, b: Any, c: Any) -> Any:
        return self._mass(x, b) / self._mass(c, b)

    def upper(self, x: Any, b: Any, c: Any) -> Any:
        return x ** (-b) * self._mass(c / x, b) / self._mass(c, b)

    def quantile(self, q: Any, b: Any, c: Any) -> Any:
        return np.exp(-np.log1p(-b * q * self._mass(c, b)) / b)

    def upper_quantile(self, q: Any, b: Any, c: Any) -> Any:
        return c * np.exp(-np.log1p(b * q * c**b * self._mass(c, b)) / b)

    def _moment(self, n: float, b: Any, c: Any) -> Any:
        return self._mass(c, b - n) / self._mass(c, b)

    def standard_mean(self, b: Any, c: Any) -> Any:
        return self._moment(1.0, b, c)

    def standard_var(self, b: Any, c: Any) -> Any:
        return self._moment(2.0, b, c) - self._moment(1.0, b, c) ** 2

    def standard_entropy(self, b: Any, c: Any) -> Any:
        y = np.log(c)
        logs = (1.0 / exprel(b * y) - 1.0) / -b  # the mean of log x
        return np.log(self._mass(c, b)) + (b + 1.0) * logs

    def standard_draw(self, key: Any, shape: Any, b: Any, c: Any) -> Any:
        return self.quantile(functions.uniform(key, shape), b, c)


truncpareto = _TruncPareto("truncpareto")


class _Bradford(Continuous):
    """The Bradford distribution: its density is proportional to 1 / (1 + c x)."""

    ends = (0.0, 1.0)

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        return np.log(c) - np.log(np.log1p(c)) - np.log1p(c * x)

    def lower(self, x: Any, c: Any) -> Any:
        return np.log1p(c * x) / np.log1p(c)

    def upper(self, x: Any, c: Any) -> Any:
        return np.log1p(c * (1.0 - x) / (1.0 + c * x)) / np.log1p(c)

    def quantile(self, q: Any, c: Any) -> Any:
        return np.expm1(q * np.log1p(c)) / c

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return self.quantile(1.0 - q, c)

    def standard_mean(self, c: Any) -> Any:
        return 1.0 / np.log1p(c) - 1.0 / c

    def standard_var(self, c: Any) -> Any:
        k = np.log1p(c)
        return ((c + 2.0) * k - 2.0 * c) / (2.0 * c * (k * k))

    def standard_entropy(self, c: Any) -> Any:
        k = np.log1p(c)
        return 0.5 * k - np.log(c / k)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return self.quantile(functions.uniform(key, shape), c)


bradford = _Bradford("bradford")


class _Cauchy(Continuous):
    """The Cauchy distribution."""

    def log_density(self, x: Any) -> Any:
        return -log(pi) - 2.0 * np.log(np.hypot(1.0, x))

    def lower(self, x: Any) -> Any:
        return np.arctan2(1.0, -x) / pi

    def upper(self, x: Any) -> Any:
        return np.arctan2(1.0, x) / pi

    def quantile(self, q: Any) -> Any:
        return -self.upper_quantile(q)

    def upper_quantile(self, q: Any) -> Any:
        # Measured from the nearer end or the middle: near pi, tan is inaccurate.
        small = np.where(q < 0.5, q, 1.0 - q)
        middle = small > 0.25
        size = 1.0 / np.tan(pi * np.where(middle, 0.25, small))
        inner = np.tan(pi * np.where(middle, 0.5 - q, 0.0))
        return np.where(middle, inner, np.where(q < 0.5, size, -size))

    def standard_mean(self) -> Any:
        return np.nan

    standard_var = standard_mean

    def standard_entropy(self) -> Any:
        return log(4.0 * pi)

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.cauchy(key, shape)


cauchy = _Cauchy("cauchy")


class _HalfCauchy(PositiveSupport):
    """The absolute value of a Cauchy variable."""

    def log_density(self, x: Any) -> Any:
        return log(2.0 / pi) - 2.0 * np.log(np.hypot(1.0, x))

    def lower(self, x: Any) -> Any:
        return 2.0 / pi * np.arctan(x)

    def upper(self, x: Any) -> Any:
        return 2.0 / pi * np.arctan2(1.0, x)

    def quantile(self, q: Any) -> Any:
        return np.tan(0.5 * pi * q)

    def upper_quantile(self, q: Any) -> Any:
        return 1.0 / np.tan(0.5 * pi * q)

    def standard_mean(self) -> Any:
        return np.inf

    standard_var = standard_mean

    def standard_entropy(self) -> Any:
        return log(2.0 * pi)

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return np.abs(functions.cauchy(key, shape))


halfcauchy = _HalfCauchy("halfcauchy")


class _FoldCauchy(PositiveSupport):
    """The absolute value of a Cauchy variable with median `c`."""

    def valid(self, c: Any) -> Any:
        return c >= 0

    def log_density(self, x: Any, c: Any) -> Any:
        first = -2.0 * np.log(np.hypot(1.0, x - c))
        return np.logaddexp(first, -2.0 * np.log(np.hypot(1.0, x + c))) - log(pi)

    def lower(self, x: Any, c: Any) -> Any:
        return np.arctan2(2.0 * x, 1.0 - (x - c) * (x + c)) / pi

    def upper(self, x: Any, c: Any) -> Any:
        return (np.arctan2(1.0, x - c) + np.arctan2(1.0, x + c)) / pi

    def quantile(self, q: Any, c: Any) -> Any:
        return self._quantile(np.cos(pi * q), np.sin(pi * q), c)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return self._quantile(-np.cos(pi * q), np.sin(pi * q), c)

    def _quantile(self, cos: Any, sin: Any, c: Any) -> Any:
        """The positive x with sin x^2 + 2 cos x = sin (1 + c^2)."""
        square = 1.0 + c * c
        root = np.sqrt(cos * cos + sin * sin * square)
        low = cos > 0
        one = sin * square / np.where(low, cos + root, 1.0)
        return np.where(low, one, (root - cos) / sin)

    def standard_mean(self, c: Any) -> Any:
        return np.inf + 0.0 * c

    standard_var = standard_mean

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return np.abs(functions.cauchy(key, shape) + c)


foldcauchy = _FoldCauchy("foldcauchy")


class _SkewCauchy(Continuous):
    """The skewed Cauchy distribution, with scale 1 - a below and 1 + a above its mode."""

    def valid(self, a: Any) -> Any:
        return np.abs(a) < 1

    def log_density(self, x: Any, a: Any) -> Any:
        width = np.where(x < 0, 1.0 - a, 1.0 + a)
        return -log(pi) - 2.0 * np.log(np.hypot(1.0, x / width))

    def lower(self, x: Any, a: Any) -> Any:
        low, high = np.where(x < 0, x, -1.0), np.where(x < 0, 1.0, x)
        below = (1.0 - a) * np.arctan2(1.0 - a, -low) / pi
        return np.where(x < 0, below, 1.0 - (1.0 + a) * np.arctan2(1.0 + a, high) / pi)

    def upper(self, x: Any, a: Any) -> Any:
        return self.lower(-x, -a)

    def quantile(self, q: Any, a: Any) -> Any:
        middle = 0.5 * (1.0 - a)
        low = q < middle
        below = -(1.0 - a) / np.tan(pi * np.where(low, q, 0.25 * (1.0 - a)) / (1.0 - a))
        above = (1.0 + a) / np.tan(pi * np.where(low, 0.25 * (1.0 + a), 1.0 - q) / (1.0 + a))
        return np.where(low, below, above)

    def upper_quantile(self, q: Any, a: Any) -> Any:
        return -self.quantile(q, -a)


skewcauchy = _SkewCauchy("skewcauchy")


class _WrapCauchy(Continuous):
    """The wrapped Cauchy distribution with concentration `c`."""

    ends = (0.0, 2.0 * pi)
    inner = 1.0

    def valid(self, c: Any) -> Any:
        return np.logical_and(c > 0, c < 1)

    def log_density(self, x: Any, c: Any) -> Any:
        square = (1.0 - c) ** 2 + 4.0 * c * np.sin(0.5 * x) ** 2
        return np.log1p(-c) + np.log1p(c) - log(2.0 * pi) - np.log(square)

    def lower(self, x: Any, c: Any) -> Any:
        return np.arctan2((1.0 + c) * np.sin(0.5 * x), (1.0 - c) * np.cos(0.5 * x)) / pi

    def upper(self, x: Any, c: Any) -> Any:
        return np.arctan2((1.0 + c) * np.sin(0.5 * x), -(1.0 - c) * np.cos(0.5 * x)) / pi

    def quantile(self, q: Any, c: Any) -> Any:
        return 2.0 * np.arctan2((1.0 - c) * np.sin(pi * q), (1.0 + c) * np.cos(pi * q))

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return 2.0 * np.arctan2((1.0 - c) * np.sin(pi * q), -(1.0 + c) * np.cos(pi * q))

    def standard_entropy(self, c: Any) -> Any:
        return log(2.0 * pi) + np.log1p(-c) + np.log1p(c)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return self.quantile(functions.uniform(key, shape), c)


wrapcauchy = _WrapCauchy("wrapcauchy")
