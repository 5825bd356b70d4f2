"""Kelvin functions of tensors in single precision, where SciPy's loop is inaccurate.

scipy.special.keip of a float32 array has an error larger than its value at 10; for tensors, and in
native code, it is computed in double precision.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import wengert as wg

NAMES = "ber bei ker kei berp beip kerp keip".split()


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", NAMES)
def test_kelvin_in_single_precision(name):
    function = getattr(scipy.special, name)
    x = np.linspace(0.1, 12.0, 200).astype(np.float32)
    want = function(x.astype(np.float64))
    for found in (function(wg.tensor(x)).numpy(), wg.jit(function)(x)):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, want, rtol=2e-7)


def test_dtypes_are_those_of_scipy():
    for x in (2, 2.0, np.float16(2), np.float32(2), np.arange(3), np.ones(2, np.float16)):
        want = scipy.special.kei(x)
        assert scipy.special.kei(wg.tensor(x)).dtype == np.asarray(want).dtype
