"""Operands that lie otherwise in memory have the same values and cotangents."""

from wengert.testing.laws.batching_series_layout import memory_does_not_matter


def test_memory_does_not_matter(op, rng):
    memory_does_not_matter(op, rng)
