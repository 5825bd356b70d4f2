"""Rejection sampling: the loop, and the proposals of discrete distributions.

    poisson_counts     W. Hormann, Insurance: Mathematics and Economics 12 (1993) 39-45 (PTRS)
    binomial_counts    W. Hormann, J. of Statistical Computation and Simulation 46 (1993) (BTRS)
    below              D. Lemire, ACM TOMACS 29 (2019): uniformly distributed integers
    Trials             an operation of a key and parameters that proposes until every element is
                       accepted

Small counts are found by sequential search of the distribution function from 0.

Trial k of element i uses the random block with counter (i + 1, k, 0, TRIALS)
(_engine/ops/random/bits.py).  So an element depends on the key, its position and its parameters,
but not on the rejections of others, the order of evaluation or the number of threads.

A sampler defines `prepare`, which computes constants from the parameters, and `propose`, which
computes a value and whether it is accepted from the four words of a block.  All samplers return
integers, without derivatives; differentiable samples are functions of one uniform number instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
import scipy  # scipy.special is loaded when it is first used

from wengert._engine.core.dispatch import Example, Operation
from wengert._engine.core.op import register
from wengert._engine.core.op_facts import BY_TRIALS
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.batching import fronted
from wengert._engine.ops.random.bits import TRIALS, blocks, expect_key, raw

from .keys import as_key, filled

__all__ = ["poisson_counts", "binomial_counts", "below"]


_REMAINDER_ELEMENTS = 256  # remaining elements for which blocks are computed separately
_NUMPY_SPEEDUP = 50  # blocks of NumPy's generator per block of ours in the same time

Proposal = tuple[Any, Any]  # values, and whether each is accepted


class Trials(Operation):
    """An operation that draws by rejection sampling.

    Parameters
    ----------
    name : str
    propose : callable
        ``propose(words, *constants) -> (values, accepted)``, of 1-d arrays; `words` are four
        arrays of uint64.
    prepare : callable
        ``prepare(*parameters) -> (valid, *constants)``; elements that are not valid become
        `invalid`.
    doc : str
    invalid : int
        The result for invalid parameters.
    """

    discrete = True
    host_callback = BY_TRIALS

    def __init__(
        self,
        name: str,
        propose: Callable[..., Proposal],
        prepare: Callable[..., tuple[Any, ...]],
        doc: str,
        invalid: int = -1,
    ) -> None:
        super().__init__(name, doc)
        self.propose, self.constants, self.invalid = propose, prepare, invalid
        self.oracle = self._run_elementwise

    def run(self, key: Any, *parameters: Any, dtype: Any) -> Any:  # type: ignore[override]
        """A sample for each element of the parameters, which have one shape."""
        kind = np.dtype(dtype)
        batch_axes = key.ndim - 1
        given = [np.asarray(p) for p in parameters]
        shape = given[0].shape
        per_key = prod(shape[batch_axes:])
        with np.errstate(all="ignore"):
            valid, *constants = self.constants(*[_flat(p) for p in given])
        out = np.full(prod(shape), self.invalid, np.int64)
        pending = np.flatnonzero(valid)
        keys = key.reshape(-1, 2)
        trial = 0
        while pending.size:
            words = _words(keys, pending, per_key, trial)
            with np.errstate(all="ignore"):
                values, accepted = self.propose(words, *[c[pending] for c in constants])
            out[pending[accepted]] = values[accepted]
            pending = pending[~accepted]
            trial += 1
        samples = out.reshape(shape).astype(kind, copy=False)
        return samples if shape else samples[()]

    def _run_elementwise(self, key: Any, *parameters: Any, dtype: Any) -> Any:
        """`run` by a Python loop over the elements."""
        given = [np.asarray(p) for p in parameters]
        shape, batch_axes = given[0].shape, key.ndim - 1
        out = np.empty(shape, dtype)
        for index in np.ndindex(*shape):
            inner, inner_shape = index[batch_axes:], shape[batch_axes:]
            position = int(np.ravel_multi_index(inner, inner_shape)) if inner_shape else 0
            valid, *constants = self.constants(*[_flat(p[index]) for p in given])
            out[index] = self.invalid
            trial = 0
            while valid[0]:
                counter = (position + 1, trial, 0, TRIALS)
                words = tuple(w.reshape(1) for w in blocks(counter, key[index[:batch_axes]]))
                values, accepted = self.propose(words, *constants)
                if accepted[0]:
                    out[index] = values[0]
                    break
                trial += 1
        return out

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Spec:
        """The shape of the parameters."""
        key, first, *others = specs
        expect_key(key)
        if any(p.shape != first.shape for p in others):
            raise ValueError("the parameters have different shapes")
        return Spec(first.shape, np.dtype(params["dtype"]))

    def batched_as_kind(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """One draw for the batch, with one key per item or with a key for all."""
        return self(*[fronted(x, b, size) for x, b in zip(args, batched, strict=True)], **params)


def _flat(p: Any) -> Any:
    """Parameters as a 1-d array of float64 or int64."""
    return np.ravel(p).astype(np.float64 if np.asarray(p).dtype.kind == "f" else np.int64)


def _words(keys: Any, pending: Any, per_key: int, trial: int) -> tuple[Any, ...]:
    """The four words of the blocks of the pending elements, for a trial."""
    if len(keys) == 1:
        last = int(pending[-1]) + 1
        if pending.size > _REMAINDER_ELEMENTS or last < _NUMPY_SPEEDUP * (pending.size + 10):
            words = raw(keys[0], 4 * last, trial, TRIALS).reshape(-1, 4)[pending]
            return tuple(words.T)
    number = (pending % per_key + 1).astype(np.uint64)
    return blocks((number, trial, 0, TRIALS), keys[pending // per_key])


# ---- words as numbers --------------------------------------------------------------------------


def open_unit(word: Any) -> Any:
    """A word as a number in the open interval (0, 1)."""
    return ((word >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


_LARGEST_COUNT = 2.0**62  # bound of parameters, so that counts do not overflow int64


# ---- counts ------------------------------------------------------------------------------------


def _sequential_search(unit: Any, first: Any, ratio: Any, *given: Any) -> Any:
    """The first count at which the distribution function exceeds `unit`.

    `first` is the probability of 0, ``ratio(k, *given)`` that of k divided by that of k - 1.
    """
    count = np.zeros(unit.size)
    left, term = np.array(unit), np.array(first)
    going = np.flatnonzero(left > term)
    k = 0
    while going.size and k < 1000:  # probabilities may sum to less than 1 by rounding
        k += 1
        left[going] -= term[going]
        term[going] *= ratio(k, *[x[going] for x in given])
        count[going] = k
        going = going[(left[going] > term[going]) & (term[going] > 0.0)]
    return count


def _prepare_poisson(rate: Any) -> tuple[Any, ...]:
    return (rate >= 0.0) & (rate < _LARGEST_COUNT), rate


def _propose_poisson(words: Any, rate: Any) -> Proposal:
    values, accepted = np.empty(rate.size), np.ones(rate.size, bool)
    unit, height = open_unit(words[0]), open_unit(words[1])
    few = rate < 10.0
    low = rate[few]
    values[few] = _sequential_search(unit[few], np.exp(-low), lambda k, r: r / k, low)
    many = ~few
    if many.any():
        values[many], accepted[many] = _transformed_poisson(unit[many], height[many], rate[many])
    return values, accepted


def _transformed_poisson(unit: Any, height: Any, rate: Any) -> Proposal:
    b = 0.931 + 2.53 * np.sqrt(rate)
    a = -0.059 + 0.02483 * b
    u = unit - 0.5
    us = 0.5 - np.abs(u)
    k = np.floor((2.0 * a / us + b) * u + rate + 0.43)
    inside = (us >= 0.07) & (height <= 0.9277 - 3.6224 / (b - 2.0))
    out = (k < 0.0) | ((us < 0.013) & (height > us))
    bound = k * np.log(rate) - rate - scipy.special.gammaln(np.maximum(k, 0.0) + 1.0)
    scale = (1.1239 + 1.1328 / (b - 3.4)) / (a / (us * us) + b)
    return k, inside | (~out & (np.log(height * scale) <= bound))


poisson_counts = register(
    Trials(
        "random_poisson",
        _propose_poisson,
        _prepare_poisson,
        "Samples from the Poisson distribution; -1 for invalid rates.",
    )
)


def _prepare_binomial(n: Any, p: Any) -> tuple[Any, ...]:
    valid = (n >= 0.0) & (n < _LARGEST_COUNT) & (n == np.floor(n)) & (p >= 0.0) & (p <= 1.0)
    return valid, n, p


def _propose_binomial(words: Any, n: Any, p: Any) -> Proposal:
    values, accepted = np.empty(n.size), np.ones(n.size, bool)
    unit, height = open_unit(words[0]), open_unit(words[1])
    mirrored = p > 0.5
    p = np.where(mirrored, 1.0 - p, p)
    few = n * p < 10.0
    odds, top = p[few] / (1.0 - p[few]), n[few]
    none = np.exp(top * np.log1p(-p[few]))
    values[few] = np.minimum(
        _sequential_search(unit[few], none, lambda k, m, o: (m - k + 1.0) / k * o, top, odds), top
    )
    many = ~few
    if many.any():
        found = _transformed_binomial(unit[many], height[many], n[many], p[many])
        values[many], accepted[many] = found
    return np.where(mirrored, n - values, values), accepted


def _transformed_binomial(unit: Any, height: Any, n: Any, p: Any) -> Proposal:
    spread = np.sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    u = unit - 0.5
    us = 0.5 - np.abs(u)
    k = np.floor((2.0 * a / us + b) * u + n * p + 0.5)
    inside = (us >= 0.07) & (height <= 0.92 - 4.2 / b)
    out = (k < 0.0) | (k > n)
    middle, k_in = np.floor((n + 1.0) * p), np.clip(k, 0.0, n)
    log_factorial = lambda m: scipy.special.gammaln(m + 1.0)  # noqa: E731
    bound = log_factorial(middle) + log_factorial(n - middle)
    bound += (k - middle) * np.log(p / (1.0 - p)) - log_factorial(k_in) - log_factorial(n - k_in)
    scale = (2.83 + 5.1 / b) * spread / (a / (us * us) + b)
    return k, ~out & (inside | (np.log(height * scale) <= bound))


binomial_counts = register(
    Trials(
        "random_binomial",
        _propose_binomial,
        _prepare_binomial,
        "Samples from the binomial distribution; -1 for invalid parameters.",
    )
)


# ---- integers -----------------------------------------------------------------------------


def _prepare_below(low: Any, span: Any) -> tuple[Any, ...]:
    width = span.view(np.uint64)
    nonzero = np.maximum(width, np.uint64(1))
    return width > 0, low, width, (np.uint64(0) - nonzero) % nonzero


def _propose_below(words: Any, low: Any, width: Any, threshold: Any) -> Proposal:
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a, b, c, d = words[0] & mask, words[0] >> half, width & mask, width >> half
    carried = b * c + ((a * c) >> half)
    middle = a * d + (carried & mask)
    high = b * d + (carried >> half) + (middle >> half)
    return low + high.view(np.int64), words[0] * width >= threshold


_below = register(
    Trials(
        "random_below",
        _propose_below,
        _prepare_below,
        "Integers from [low, low + span); 0 where span is 0.",
        invalid=0,
    )
)


def below(key: Any, low: Any, span: Any, shape: tuple[Any, ...]) -> Any:
    """Integers uniformly distributed in [low, low + span)."""
    dtype = np.dtype(np.int64)
    return _below(as_key(key), filled(low, shape), filled(span, shape), dtype=dtype)


# ---- examples ----------------------------------------------------------------------------------


def _key(rng: np.random.Generator, *shape: int) -> Any:
    return rng.integers(0, 1 << 63, (*shape, 2)).astype(np.uint64)


@poisson_counts.examples
def _(rng: np.random.Generator) -> Iterator[Example]:
    yield (_key(rng), np.array([0.0, 0.3, 9.0, 11.0, 1e4])), {"dtype": np.dtype(int)}


@binomial_counts.examples
def _(rng: np.random.Generator) -> Iterator[Example]:
    n, p = np.array([0.0, 3.0, 60.0, 1e4, 5.0]), np.array([0.5, 0.2, 0.7, 0.001, 1.0])
    yield (_key(rng), n, p), {"dtype": np.dtype(int)}


@_below.examples
def _(rng: np.random.Generator) -> Iterator[Example]:
    low, span = np.array([-3, 0, 5]), np.array([7, 1 << 62, 1])
    yield (_key(rng), low, span), {"dtype": np.dtype(int)}
