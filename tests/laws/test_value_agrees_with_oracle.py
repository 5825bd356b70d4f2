"""What runs agrees with a witness from outside: mpmath, or another way to the same value."""

from wengert.testing.laws.common import value_agrees_with_oracle


def test_value_agrees_with_oracle(op, rng):
    value_agrees_with_oracle(op, rng)
