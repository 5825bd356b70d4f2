"""At singular points both modes of a graph give what eager execution gives."""

from wengert.testing.laws.full_range import strong_zeros_agree


def test_strong_zeros_agree(op, rng):
    strong_zeros_agree(op, rng)
