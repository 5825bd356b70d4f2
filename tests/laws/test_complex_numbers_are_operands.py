"""Where complex operands are allowed, values and derivatives are right for them."""

from wengert.testing.laws.full_range import complex_numbers_are_operands


def test_complex_numbers_are_operands(op, rng):
    complex_numbers_are_operands(op, rng)
