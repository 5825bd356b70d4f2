"""float16, float32 and complex64 give values and gradients of their precision."""

from wengert.testing.laws.full_range import precision_is_kept


def test_precision_is_kept(op, rng):
    precision_is_kept(op, rng)
