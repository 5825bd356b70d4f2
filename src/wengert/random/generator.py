"""Generator: the methods of numpy.random.Generator over a stream.

    Generator     normal, uniform, gamma ...: names, arguments and meaning are NumPy's
    default_rng   a generator from a seed

`wengert.numpy.random` exports them.  The numbers are not those of NumPy: each method draws with the
next key of the stream and a function of wengert.random.  So samples are differentiable with respect
to the parameters, and each run of a compiled function draws new numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, shape_of
from wengert._engine.tensor.numpy_dispatch import as_array, broadcast_shapes

from ..errors import ArgumentError, at, user_line
from . import functions
from .keys import as_shape
from .stream import Stream

__all__ = ["Generator", "default_rng"]


def default_rng(seed: Any = None) -> Generator:
    """A generator from a seed; by default from entropy of the operating system.

    Parameters
    ----------
    seed : int, sequence of int, Stream or Generator, optional

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> rng = wg.numpy.random.default_rng(0)
    >>> x = rng.normal(1.0, 2.0, size=(2, 3))
    >>> x.shape, bool(np.all(x == wg.numpy.random.default_rng(0).normal(1.0, 2.0, (2, 3))))
    ((2, 3), True)
    """
    if isinstance(seed, Generator):
        return seed
    if isinstance(seed, Stream):
        return Generator(seed)
    return Generator(Stream(np.random.SeedSequence().entropy if seed is None else seed))


def _size(size: Any, *given: Any) -> Any:
    return broadcast_shapes(*map(shape_of, given)) if size is None else as_shape(size)


class Generator:
    """The methods of numpy.random.Generator over a stream.

    Parameters
    ----------
    stream : Stream

    Notes
    -----
    Arguments are NumPy's, without `out`. If a parameter is a tensor, the result is a tensor, which
    is differentiable for continuous distributions.
    """

    def __init__(self, stream: Stream) -> None:
        if not isinstance(stream, Stream):
            raise ArgumentError(
                f"Generator(stream) was given a {type(stream).__name__}, not a Stream. Use "
                f"default_rng(seed) for a seed{at(user_line())}."
            )
        self.stream = stream

    def __repr__(self) -> str:
        return f"Generator({self.stream!r})"

    def spawn(self, n_children: int) -> list[Generator]:
        """Independent generators."""
        return [
            Generator(Stream([int(w) for w in np.asarray(key)]))
            for key in functions.split(self.stream.key(), n_children)
        ]

    # ---- uniform and integers -------------------------------------------------------------

    def random(self, size: Any = (), dtype: Any = "float64") -> Any:
        """Uniform samples from [0, 1)."""
        return functions.uniform(self.stream.key(), _size(size), dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Uniform samples from [low, high)."""
        shape = _size(size, low, high)
        return functions.uniform(self.stream.key(), shape, minval=low, maxval=high)

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Any = None,
        dtype: Any = "int64",
        endpoint: bool = False,
    ) -> Any:
        """Integers from [low, high), or from [0, low) without `high`."""
        low, high = (0, low) if high is None else (low, high)
        high = high + 1 if endpoint else high
        return functions.randint(self.stream.key(), _size(size, low, high), low, high, dtype)

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0
    ) -> Any:
        """Elements of an array, or of the integers below `a`."""
        return functions.choice(self.stream.key(), a, _size(size), replace, p, axis)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """The elements along an axis in random order."""
        return functions.permutation(self.stream.key(), x, axis)

    def permuted(self, x: Any, *, axis: int | None = None) -> Any:
        """Independent permutations of the slices along an axis, or one of all elements."""
        x = as_array(x)
        if axis is None:
            return functions.permutation(self.stream.key(), x.reshape(-1)).reshape(shape_of(x))
        return functions.permutation(self.stream.key(), x, axis, independent=True)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Permute an array or a tensor along an axis in place."""
        if not isinstance(x, np.ndarray | Handle):
            raise ArgumentError(
                f"a {type(x).__name__} cannot be shuffled in place. Pass an array or a tensor, or "
                f"use permutation(x){at(user_line())}."
            )
        x[...] = functions.permutation(self.stream.key(), x, axis)  # type: ignore[index]

    # ---- continuous ----------------------------------------------------------------------------

    def standard_normal(self, size: Any = (), dtype: Any = "float64") -> Any:
        """Normal samples with mean 0 and standard deviation 1."""
        return functions.normal(self.stream.key(), _size(size), dtype)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Normal samples with mean `loc` and standard deviation `scale`."""
        return loc + scale * functions.normal(self.stream.key(), _size(size, loc, scale))

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
        """Log-normal samples: exp of normal ones."""
        return np.exp(self.normal(mean, sigma, size))

    def standard_exponential(self, size: Any = (), dtype: Any = "float64") -> Any:
        """Exponential samples with mean 1."""
        return functions.exponential(self.stream.key(), _size(size), dtype)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Exponential samples with mean `scale`."""
        return scale * functions.exponential(self.stream.key(), _size(size, scale))

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Gumbel samples."""
        return loc + scale * functions.gumbel(self.stream.key(), _size(size, loc, scale))

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Laplace samples."""
        return loc + scale * functions.laplace(self.stream.key(), _size(size, loc, scale))

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Logistic samples."""
        return loc + scale * functions.logistic(self.stream.key(), _size(size, loc, scale))

    def standard_cauchy(self, size: Any = ()) -> Any:
        """Cauchy samples."""
        return functions.cauchy(self.stream.key(), _size(size))

    def rayleigh(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Rayleigh samples."""
        return functions.rayleigh(self.stream.key(), scale, _size(size, scale))

    def weibull(self, a: Any, size: Any = None) -> Any:
        """Weibull samples with shape parameter `a`."""
        return functions.weibull_min(self.stream.key(), 1.0, a, _size(size, a))

    def pareto(self, a: Any, size: Any = None) -> Any:
        """Samples from the Lomax (Pareto II) distribution, as in NumPy."""
        return np.expm1(functions.exponential(self.stream.key(), _size(size, a)) / a)

    def power(self, a: Any, size: Any = None) -> Any:
        """Samples from the density a x^(a - 1) on [0, 1]."""
        return np.exp(-functions.exponential(self.stream.key(), _size(size, a)) / a)

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> Any:
        """Samples from the triangular distribution."""
        shape = _size(size, left, mode, right)
        return functions.triangular(self.stream.key(), left, mode, right, shape)

    def standard_gamma(self, shape: Any, size: Any = None) -> Any:
        """Gamma samples with shape parameter `shape`."""
        return functions.gamma(self.stream.key(), shape, _size(size, shape))

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        """Gamma samples with shape parameter `shape`, times `scale`."""
        return scale * functions.gamma(self.stream.key(), shape, _size(size, shape, scale))

    def beta(self, a: Any, b: Any, size: Any = None) -> Any:
        """Beta samples."""
        return functions.beta(self.stream.key(), a, b, _size(size, a, b))

    def chisquare(self, df: Any, size: Any = None) -> Any:
        """Chi-squared samples."""
        return functions.chisquare(self.stream.key(), df, _size(size, df))

    def f(self, dfnum: Any, dfden: Any, size: Any = None) -> Any:
        """Samples from the F distribution."""
        return functions.f(self.stream.key(), dfnum, dfden, _size(size, dfnum, dfden))

    def standard_t(self, df: Any, size: Any = None) -> Any:
        """Samples from Student's t distribution."""
        return functions.t(self.stream.key(), df, _size(size, df))

    def vonmises(self, mu: Any, kappa: Any, size: Any = None) -> Any:
        """Angles from -pi to pi around `mu`, with concentration `kappa`."""
        angle = mu + functions.von_mises(self.stream.key(), kappa, _size(size, mu, kappa))
        return angle - 2.0 * np.pi * np.floor((angle + np.pi) / (2.0 * np.pi))

    def dirichlet(self, alpha: Any, size: Any = None) -> Any:
        """Samples from the Dirichlet distribution."""
        return functions.dirichlet(self.stream.key(), alpha, size)

    def multivariate_normal(
        self, mean: Any, cov: Any, size: Any = None, *, method: str = "cholesky"
    ) -> Any:
        """Samples from the multivariate normal distribution."""
        return functions.multivariate_normal(self.stream.key(), mean, cov, size, method=method)

    # ---- counts --------------------------------------------------------------------------------

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        """Poisson samples with rate `lam`."""
        return functions.poisson(self.stream.key(), lam, _size(size, lam))

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """Numbers of successes in `n` trials."""
        return functions.binomial(self.stream.key(), n, p, _size(size, n, p))

    def negative_binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """Numbers of failures before `n` successes."""
        return functions.negative_binomial(self.stream.key(), n, p, _size(size, n, p))

    def geometric(self, p: Any, size: Any = None) -> Any:
        """Numbers of trials until the first success."""
        return functions.geometric(self.stream.key(), p, _size(size, p))

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        """Numbers of occurrences of each class in `n` trials."""
        return functions.multinomial(self.stream.key(), n, pvals, size)
