"""Rejection sampling, element by element.

    Trials    an operation of a key and parameters that proposes until every element is accepted

The block of trial k of element i has the counter (i + 1, k, 0, TRIALS)
(_engine/ops/random/philox.py), so the number of an element depends on the key, its place and its
parameters, and not on how often others were rejected: it is the same in whatever order, and on
however many processors, they are drawn.

A sampler states `prepare`, constants of the parameters, and `propose`, a value and whether it is
accepted, from the four words of a block.  All are draws of integers, which have no derivative:
draws that have one are a map of one uniform number, and not of how often it was tried.
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
from wengert._engine.ops.random.keys import expect_key
from wengert._engine.ops.random.philox import TRIALS, blocks, raw

_REMAINDER_ELEMENTS = 256  # remaining elements for which blocks are computed separately
_SAVED = 50  # how many blocks NumPy's own generator gives in the time of one of ours

Proposal = tuple[Any, Any]  # values, and whether each is accepted


class Trials(Operation):
    """A draw by trials.

    Parameters
    ----------
    name : str
    propose : callable
        ``propose(words, *constants) -> (values, accepted)``, of elements in a line; `words` are
        four arrays of uint64.
    prepare : callable
        ``prepare(*parameters) -> (valid, *constants)``; what is not valid becomes `invalid`.
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
        self.oracle = self._one_by_one

    def run(self, key: Any, *parameters: Any, dtype: Any) -> Any:  # type: ignore[override]
        """A number for each element of the parameters, which have one shape."""
        kind = np.dtype(dtype)
        lead = key.ndim - 1
        given = [np.asarray(p) for p in parameters]
        shape = given[0].shape
        each = prod(shape[lead:])
        with np.errstate(all="ignore"):
            valid, *constants = self.constants(*[_line(p) for p in given])
        out = np.full(prod(shape), self.invalid, np.int64)
        waiting = np.flatnonzero(valid)
        keys = key.reshape(-1, 2)
        trial = 0
        while waiting.size:
            words = _words(keys, waiting, each, trial)
            with np.errstate(all="ignore"):
                values, accepted = self.propose(words, *[c[waiting] for c in constants])
            out[waiting[accepted]] = values[accepted]
            waiting = waiting[~accepted]
            trial += 1
        found = out.reshape(shape).astype(kind, copy=False)
        return found if shape else found[()]

    def _one_by_one(self, key: Any, *parameters: Any, dtype: Any) -> Any:
        """The same, one element after the other."""
        given = [np.asarray(p) for p in parameters]
        shape, lead = given[0].shape, key.ndim - 1
        out = np.empty(shape, dtype)
        for at in np.ndindex(*shape):
            place = int(np.ravel_multi_index(at[lead:], shape[lead:])) if shape[lead:] else 0
            valid, *constants = self.constants(*[_line(p[at]) for p in given])
            out[at] = self.invalid
            trial = 0
            while valid[0]:
                counter = (place + 1, trial, 0, TRIALS)
                words = tuple(w.reshape(1) for w in blocks(counter, key[at[:lead]]))
                values, accepted = self.propose(words, *constants)
                if accepted[0]:
                    out[at] = values[0]
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
        """Keys and parameters of all rows; where they share a key, they share its words."""
        return self(*[fronted(x, b, size) for x, b in zip(args, batched, strict=True)], **params)


def _line(p: Any) -> Any:
    """Parameters in a line, in double precision or whole."""
    return np.ravel(p).astype(np.float64 if np.asarray(p).dtype.kind == "f" else np.int64)


def _words(keys: Any, waiting: Any, each: int, trial: int) -> tuple[Any, ...]:
    """The four words of the blocks of elements, at a trial."""
    if len(keys) == 1:
        last = int(waiting[-1]) + 1
        if waiting.size > _REMAINDER_ELEMENTS or last < _SAVED * (waiting.size + 10):
            found = raw(keys[0], 4 * last, trial, TRIALS).reshape(-1, 4)[waiting]
            return tuple(found.T)
    number = (waiting % each + 1).astype(np.uint64)
    return blocks((number, trial, 0, TRIALS), keys[waiting // each])


# ---- words as numbers --------------------------------------------------------------------------


def open_unit(word: Any) -> Any:
    """A word as a number between 0 and 1, neither of which it is."""
    return ((word >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
