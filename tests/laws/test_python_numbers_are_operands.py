"""An operand may be a Python number, constant or variable."""

from wengert.testing.laws.common import python_numbers_are_operands


def test_python_numbers_are_operands(op, rng):
    python_numbers_are_operands(op, rng)
