"""Arrays without elements have empty values and empty gradients."""

from wengert.testing.laws.full_range import empty_arrays_pass


def test_empty_arrays_pass(op, rng):
    empty_arrays_pass(op, rng)
