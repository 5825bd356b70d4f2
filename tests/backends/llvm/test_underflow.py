"""Values around the threshold below which a result underflows to zero.

A processor takes hundreds of cycles for arithmetic whose result is subnormal or underflows.  The
exponential of -1e9 (which is how masks are written), and tanh of 1e20, are chosen to be zero and
one instead; that this is fast is for `make guard` to see.
"""

import numpy as np
import pytest

import wengert as wg


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_where_zero_begins(dtype):
    info = np.finfo(dtype)
    last = np.log(float(info.smallest_subnormal))  # half of it rounds to zero
    x = np.array(
        [last + 1, last, last - 0.6, last - 0.8, last - 5, -1e9, -info.max, -np.inf, np.nan]
    )
    x = x.astype(dtype)
    right = np.exp(x.astype(np.longdouble)).astype(dtype)
    found = wg.jit(np.exp)(x)
    np.testing.assert_allclose(found, right, rtol=0, atol=float(info.smallest_subnormal))
    assert np.isnan(found[-1]) and not found[-4:-1].any()
    doubled = wg.jit(np.exp2)(x)
    assert np.isnan(doubled[-1]) and not doubled[-4:-1].any()
    slopes = wg.jit(wg.vmap(wg.grad(np.tanh)))(-0.5 * x)
    right = 4.0 * np.exp(x.astype(np.longdouble)).astype(dtype)
    np.testing.assert_allclose(slopes, right, rtol=0, atol=4 * float(info.smallest_subnormal))
