"""Spec and run agree on mixtures of float32 arrays and Python numbers."""

from wengert.testing.laws.full_range import python_numbers_are_weak


def test_python_numbers_are_weak(op, rng):
    python_numbers_are_weak(op, rng)
