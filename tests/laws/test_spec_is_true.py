"""The spec inferred from the operands' specs is the spec of the value."""

from wengert.testing.laws.common import spec_is_true


def test_spec_is_true(op, rng):
    spec_is_true(op, rng)
