"""Every operand may be broadcast, and gets a cotangent of its own shape."""

from wengert.testing.laws.common import broadcasting_is_undone


def test_broadcasting_is_undone(op, rng):
    broadcasting_is_undone(op, rng)
