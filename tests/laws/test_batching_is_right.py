"""Many rows at once are what a Python loop over the rows gives, derivatives included."""

from wengert.testing.batching_laws import batching_is_right


def test_batching_is_right(op, rng):
    batching_is_right(op, rng)
