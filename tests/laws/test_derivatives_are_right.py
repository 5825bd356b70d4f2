"""Both modes agree with differences of the forward function, and all mixtures at order two."""

from wengert.testing.laws.common import derivatives_are_right


def test_derivatives_are_right(op, rng):
    derivatives_are_right(op, rng)
