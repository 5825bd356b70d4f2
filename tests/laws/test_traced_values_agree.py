"""A graph of the operation gives its value, special values too; each line has its spec."""

from wengert.testing.laws.tracing import traced_values_agree


def test_traced_values_agree(op, rng):
    traced_values_agree(op, rng)
