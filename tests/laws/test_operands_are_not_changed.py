"""Neither run nor the rules write to the operands."""

from wengert.testing.laws.common import operands_are_not_changed


def test_operands_are_not_changed(op, rng):
    operands_are_not_changed(op, rng)
