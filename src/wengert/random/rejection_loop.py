"""Rejection sampling, element by element.

    Trials    an operation of a key and parameters that proposes until every element is accepted

Trial k of element i uses the random block with counter (i + 1, k, 0, TRIALS)
(_engine/ops/random/bits.py).  So an element depends on the key, its position and its parameters,
but not on the rejections of others, the order of evaluation or the number of threads.

A sampler defines `prepare`, which computes constants from the parameters, and `propose`, which
computes a value and whether it is accepted from the four words of a block.  All samplers return
integers, without derivatives; differentiable samples are functions of one uniform number instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from wengert._engine.core.dispatch import Operation
from wengert._engine.core.op_facts import BY_TRIALS
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.batching import fronted
from wengert._engine.ops.random.bits import TRIALS, blocks, raw
from wengert._engine.ops.random.keys import expect_key

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
