"""Partials keep the digits of mpmath's derivative of the oracle, in the tails too."""

from wengert.testing.laws.full_range import partials_keep_their_digits


def test_partials_keep_their_digits(op, rng):
    partials_keep_their_digits(op, rng)
