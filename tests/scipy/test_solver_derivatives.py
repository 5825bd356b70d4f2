"""Derivatives of every solver against differences of whole solutions (cases: solver_cases.py).

Along random directions: both modes, order two, eager and compiled, and batches.  Differences have
seven points, so that steps can be large beside the errors of the solvers.
"""

import numpy as np
import pytest

import wengert as wg
from wengert.scipy import optimize
from wengert.scipy.optimize import other_functions

from .solver_cases import ACCURACY, CASES, P

STEP = 0.01
COEFFICIENTS = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
RNG = np.random.default_rng(5)
DIRECTION = RNG.normal(size=P.shape) / 2


def difference(f):
    """The derivative of f along the direction."""
    at = lambda k: np.asarray(f(P + k * STEP * DIRECTION))  # noqa: E731
    return sum([c * (at(k) - at(-k)) for k, c in COEFFICIENTS.items()]) / STEP


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_solvers(name):
    f, accuracy = CASES[name], ACCURACY.get(name, 1e-8)
    compiled = wg.jit(f)
    y = np.asarray(compiled(P))
    weights = np.random.default_rng(1).normal(size=y.shape)

    def close(got, want, factor=1.0):
        size = max(np.max(np.abs(want)), 0.1)
        np.testing.assert_allclose(got, want, rtol=0, atol=factor * accuracy * size)

    along = lambda g: lambda p: wg.jvp(g, (p,), (DIRECTION,))[1]  # noqa: E731
    slope = wg.grad(lambda p: np.sum(weights * f(p)))
    compiled_slope = wg.jit(slope)
    first = difference(compiled)
    tangent = wg.jit(along(f))(P)
    close(tangent, first, 100.0)
    close(along(f)(P), tangent, 10.0)  # eager
    gradient = compiled_slope(P)
    close(gradient @ DIRECTION, np.sum(weights * first), 300.0)
    close(slope(P), gradient, 10.0)  # eager
    close(wg.jit(along(slope))(P), difference(compiled_slope), 1000.0)  # order two
    points = np.stack([P, P + STEP * DIRECTION])
    batch = wg.jit(wg.vmap(slope))(points)
    close(batch, np.stack([compiled_slope(p) for p in points]), 10.0)


def test_every_solver_of_optimize_has_a_case():
    """`direct` is inaccurate (test_optimize_global.py); others are in test_optimize_names.py."""
    elsewhere = {"direct", "brent", "golden", "fminbound"}
    elsewhere |= {name for name in optimize.__all__ if name.startswith(("rosen", "fmin"))}
    elsewhere |= {*other_functions.__all__}
    assert set(optimize.__all__) <= {name.split(",")[0] for name in CASES} | elsewhere
