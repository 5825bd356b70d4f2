"""What underflows to zero costs no more than what does not.

A processor takes hundreds of cycles for arithmetic whose result is subnormal or underflows.  The
exponential of -1e9 (which is how masks are written), and tanh of 1e20, are chosen to be zero and
one instead; here their time is compared with that of ordinary numbers, and their values around the
place from which on they are chosen.
"""

from time import perf_counter

import numpy as np
import pytest

import wengert as wg

SIZE = 4096


def least(function, x):
    """Seconds of the fastest of some calls."""
    found = []
    for _ in range(20):
        begin = perf_counter()
        function(x)
        found.append(perf_counter() - begin)
    return min(found)


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "usual", "far"), [("exp", -1.0, -1e9), ("exp2", -1.0, -1e9), ("tanh", 1.0, 1e20)]
)
def test_far_numbers_take_no_longer(dtype, name, usual, far):
    function = wg.jit(getattr(np, name))
    near, away = (np.full(SIZE, x, dtype) for x in (usual, far))
    function(near), function(away)
    for _ in range(5):  # on a busy machine one of them may have been interrupted
        if least(function, away) < 4.0 * least(function, near):
            return
    pytest.fail(f"{name} of {far} takes more than four times as long as that of {usual}")


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
