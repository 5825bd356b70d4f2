"""A graph for symbolic sizes gives what eager execution gives, at several sizes."""

from wengert.testing.laws.tracing import symbolic_sizes_agree


def test_symbolic_sizes_agree(op, rng):
    symbolic_sizes_agree(op, rng)
