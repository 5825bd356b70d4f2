"""Bodies keep mpmath's digits in tails and next to poles, in units of the last place."""

from wengert.testing.laws.full_range import value_keeps_its_digits


def test_value_keeps_its_digits(op, rng):
    value_keeps_its_digits(op, rng)
