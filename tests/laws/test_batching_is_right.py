"""Batches are what a Python loop over the rows gives, derivatives included."""

from wengert.testing.laws.batching_series_layout import batching_is_right


def test_batching_is_right(op, rng):
    batching_is_right(op, rng)
