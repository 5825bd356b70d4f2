"""What several costly expressions are chosen from is computed once for each, and then chosen.

A choice by the index is a choice among values: every element of a stack or of joined arrays would
otherwise be computed of all its operands.  The number of operations that the plan counts tells.
"""

import numpy as np
import pytest

import wengert as wg


@pytest.mark.parametrize(
    "joined",
    [
        lambda xs: np.stack(xs, axis=-1),
        lambda xs: np.stack(xs),
        lambda xs: np.concatenate(xs, axis=1),
        lambda xs: np.pad(np.stack(xs, axis=-1), ((2, 1), (0, 0), (0, 0))),
    ],
)
def test_each_is_computed_once(joined):
    def program(w, *xs):
        return joined([np.tanh(x * w) * w for x in xs])

    random = np.random.default_rng(0)
    arguments = random.normal(size=(5, 6, 10))
    compiled = wg.jit(program)
    np.testing.assert_allclose(compiled(*arguments), program(*arguments), rtol=1e-15, atol=1e-16)
    # Of 60 elements each: a product, tanh, a product.
    assert f" {4 * 60 * 3} flops" in str(compiled.lower(*arguments).loops)


def test_a_long_expression_is_one_loop():
    """Arithmetic is not cut in two, which would send what is between through memory."""

    def program(x, y):
        for _ in range(110):
            x, y = x * y + 0.5, y - 0.25 * x
            x, y = x / (1.0 + y * y), y * 0.5 + x
        return x + y

    arguments = np.random.default_rng(1).uniform(size=(2, 100))
    compiled = wg.jit(program)
    np.testing.assert_allclose(compiled(*arguments), program(*arguments), rtol=1e-12)
    assert str(compiled.lower(*arguments).loops).startswith("1 nest, 0 calls, 0 islands, 0 buffers")
