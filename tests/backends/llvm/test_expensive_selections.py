"""A selection among several expensive expressions evaluates each of them once.

A choice by the index is a choice among values: every element of a stack or of joined arrays would
otherwise be computed of all its operands.  The number of operations that the plan counts tells.
"""

import re

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.program import Program


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


@pytest.mark.usefixtures("unconverted")
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
    assert str(compiled.lower(*arguments).loops).startswith(
        "1 nest, 0 calls, 0 host callbacks, 0 buffers"
    )


@pytest.mark.parametrize(
    ("shapes", "joined"),
    [
        (((2, 40), (26, 40)), lambda a, b: np.concatenate([a.T, b.T], axis=1)),
        (((30,), (70,)), lambda a, b: np.concatenate([np.sqrt(a * a), b])),
        (((60,), (68,)), lambda a, b: np.concatenate([a[::2], b[::-2]])),
    ],
)
def test_lanes_that_are_not_wanted_have_addresses_that_are_mapped(shapes, joined):
    """A processor suppresses the fault of a lane that a mask excludes in hundreds of cycles.

    What is joined is read under a mask; behind an array nothing may be mapped: the loop that joined
    columns took five times as long where the first of its arrays was the last of a block.
    """
    random = np.random.default_rng(0)
    arguments = [random.normal(size=shape) for shape in shapes]
    compiled = wg.jit(joined)
    np.testing.assert_array_equal(compiled(*arguments), joined(*arguments))
    parts = Program(wg.trace(joined)(*arguments).simplify()).module.parts
    reads = 0
    for text in parts.values():
        for given in re.findall(r" = call [^@]*@llvm\.masked\.(?:gather|load)[^(]*\((.*)\)", text):
            name = re.match(r".*?ptr>? (%\S+),", given).group(1)
            assert "splat" in given or f"{name} = select " in text, given
            reads += 1
    assert reads
