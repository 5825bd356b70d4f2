"""One native program serves all sizes: value and gradient at two sets of them."""

import pytest

from wengert.testing.laws.native_code import native_sizes, native_sizes_agree


def test_native_sizes_agree(op, rng):
    native_sizes_agree(op, rng)


@pytest.mark.slow
def test_sizes_of_every_example(op, rng):
    native_sizes(op, rng, examples=None)
