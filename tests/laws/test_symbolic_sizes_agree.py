"""A graph for sizes with names gives what eager execution gives, at several sizes."""

from wengert.testing.symbolic_laws import symbolic_sizes_agree


def test_symbolic_sizes_agree(op, rng):
    symbolic_sizes_agree(op, rng)
