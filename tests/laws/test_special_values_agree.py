"""Body and ufunc agree on 0, -0.0, infinities, NaN, 1 and +-800, in every combination."""

from wengert.testing.laws.common import special_values_agree


def test_special_values_agree(op, rng):
    special_values_agree(op, rng)
