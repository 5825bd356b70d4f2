"""Spherical Bessel functions of orders that are not integers, which SciPy truncates."""

import numpy as np
import pytest
import scipy.special as theirs

import wengert as wg
import wengert.scipy.special as ours


@pytest.mark.parametrize("name", ["spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"])
@pytest.mark.parametrize("order", [1.7, np.array([0.3, 2.9])])
def test_value_and_derivative_are_those_of_the_truncated_order(name, order):
    f, z = getattr(ours, name), 1.5
    want = getattr(theirs, name)(np.trunc(order).astype(int), z, derivative=True)
    np.testing.assert_allclose(wg.jvp(lambda z: f(order, z), (z,), (1.0,))[1], want, rtol=1e-12)
    got = f(wg.tensor(order), wg.tensor(z), derivative=True)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
