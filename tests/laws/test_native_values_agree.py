"""Native code gives the values of eager execution: of all dtypes, shapes and layouts."""

import pytest

from wengert.testing.laws.native_code import native_values, native_values_agree


def test_native_values_agree(op, rng):
    native_values_agree(op, rng)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_every_example_in_every_variant(op, seed, rng):
    native_values(op, rng, thorough=True)
