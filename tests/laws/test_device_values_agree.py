"""Kernels, run by an emulated device, give the values of eager execution."""

from wengert.testing.laws.device_code import device_values_agree


def test_device_values_agree(op, rng):
    device_values_agree(op, rng)
