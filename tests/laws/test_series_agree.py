"""Taylor series of an operation agree with nested forward mode, to third order along a curve."""

from wengert.testing.laws.batching_series_layout import series_agree


def test_series_agree(op, rng):
    series_agree(op, rng)
