"""float32 in, float32 gradient out."""

from wengert.testing.laws.common import dtype_is_kept


def test_dtype_is_kept(op, rng):
    dtype_is_kept(op, rng)
