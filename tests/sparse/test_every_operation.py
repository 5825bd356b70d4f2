"""The pattern of every registered operation contains all nonzero entries of its derivative.

Each of an operation's own examples is differentiated densely, by each of its floating operands
alone (the others are what they are in every run, which the rules make use of) and by all together.
"""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ShapeError, TraceError
from wengert.testing.laws.common import arguments_of, floating

PLAIN = ("elementwise", "opaque", "control")  # by rules of few lines, or by none


def pytest_generate_tests(metafunc):
    if "op" in metafunc.fixturenames:
        metafunc.parametrize(
            "op",
            [
                pytest.param(op, id=name, marks=[pytest.mark.slow] * (op.kind in PLAIN))
                for name, op in metafunc.config.operations.items()
                if op.differentiable and not op.discrete
            ],
        )


def test_pattern_has_every_entry(op, rng):
    for args, params in arguments_of(op, rng):
        f, xs = floating(op, args, params)
        for chosen in {*range(len(xs)), tuple(range(len(xs)))}:
            check(f, xs, chosen)


def check(f, xs, chosen):
    positions = chosen if isinstance(chosen, tuple) else (chosen,)

    def of_chosen(*some):
        given = list(xs)
        for k, x in zip(positions, some, strict=True):
            given[k] = x
        return f(*given)

    inputs = tuple(np.asarray(xs[k]) for k in positions)
    numbers = tuple(range(len(inputs)))
    try:
        pattern = wg.sparsity(of_chosen, numbers)(*inputs).toarray()
    except (ShapeError, TraceError):
        return  # lengths that only values tell
    if not pattern.size:
        return
    with np.errstate(all="ignore"):
        blocks = wg.jacobian(of_chosen, numbers)(*inputs)
    rows = []
    for row in blocks:
        parts = [b.reshape(-1, x.size) for b, x in zip(row, inputs, strict=True) if x.size]
        rows.append(np.concatenate(parts, axis=1))
    dense = np.concatenate(rows)
    assert dense.shape == pattern.shape
    assert not np.any((dense != 0) & ~pattern)
