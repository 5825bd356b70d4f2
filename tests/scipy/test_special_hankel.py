"""Order derivatives of Hankel functions on the branch cut, where SciPy takes the upper side."""

import mpmath as mp
import numpy as np
import pytest

import wengert as wg

SCALES = {
    "hankel1": lambda z: 1,
    "hankel2": lambda z: 1,
    "hankel1e": lambda z: mp.exp(-1j * z),
    "hankel2e": lambda z: mp.exp(1j * z),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize(("v", "x"), [(0.3, -1.7), (-1.2, -0.6), (2.0, -3.0)])
def test_derivatives_with_respect_to_the_order_at_negative_arguments(name, v, x):
    f, exact = getattr(wg.scipy.special, name), getattr(mp, name[:7])

    def derivative(v):
        return wg.jvp(lambda v: f(v, x), (v,), (1.0,))[1]

    with mp.workdps(30):
        wants = [
            complex(SCALES[name](x) * mp.diff(lambda u: exact(u, mp.mpc(x, 0)), v, n))
            for n in (1, 2)
        ]
    np.testing.assert_allclose(complex(derivative(v)), wants[0], rtol=2e-14)
    np.testing.assert_allclose(complex(wg.jvp(derivative, (v,), (1.0,))[1]), wants[1], rtol=2e-14)


@pytest.mark.parametrize("name", ["hankel1", pytest.param("hankel2", marks=pytest.mark.slow)])
def test_native_code_agrees(name):
    def derivative(v, x):
        return wg.jvp(lambda v: getattr(wg.scipy.special, name)(v, x), (v,), (np.ones(3),))[1]

    v, x = np.array([0.3, 2.0, 1.5]), np.array([-1.7, -3.0, 2.0])
    np.testing.assert_allclose(wg.jit(derivative)(v, x), derivative(v, x), rtol=2e-14)
