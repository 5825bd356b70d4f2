"""Where a value is a number or infinite, zero times a partial is zero, or the entry says so."""

from wengert.testing.laws.full_range import singular_is_declared


def test_singular_is_declared(op, rng):
    singular_is_declared(op, rng)
