"""<t, J v> == <J^T t, v> to rounding, complex numbers included."""

from wengert.testing.laws.common import modes_are_transposes


def test_modes_are_transposes(op, rng):
    modes_are_transposes(op, rng)
