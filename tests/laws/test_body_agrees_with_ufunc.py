"""The body in the scalar language is the same function as NumPy's ufunc."""

from wengert.testing.laws.common import body_agrees_with_ufunc


def test_body_agrees_with_ufunc(op, rng):
    body_agrees_with_ufunc(op, rng)
