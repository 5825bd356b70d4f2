"""Native code gives the derivatives of eager execution, in both modes, to second order."""

import pytest

from wengert.testing.laws.native_code import native_derivatives, native_derivatives_agree


def test_native_derivatives_agree(op, rng):
    native_derivatives_agree(op, rng)


@pytest.mark.slow
def test_every_example_in_both_precisions(op, rng):
    native_derivatives(op, rng, thorough=True)
