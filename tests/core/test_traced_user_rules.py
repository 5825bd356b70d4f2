"""Operations of users that state one mode only trace in both, and serve all sizes."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.kinds.opaque import Opaque


def only(mode):
    """The cube of the sine, with one rule by hand."""

    def cube(x):
        """sin(x)**3."""
        return np.sin(x) ** 3

    def factor(x):
        return 3.0 * np.sin(x) ** 2 * np.cos(x)

    op = Opaque(cube)
    if mode == "vjp":
        op.define_vjp(lambda t, out, x: (t * factor(x),))
    else:
        op.define_jvp(lambda dots, out, x: dots[0] * factor(x))
    return op


@pytest.mark.parametrize("mode", ["vjp", "jvp"])
@pytest.mark.parametrize("length", [3, "n"])
def test_the_other_mode_is_derived_in_a_graph(mode, length):
    op, x = only(mode), np.array([0.3, -1.0, 2.0])

    def loss(x):
        return np.sum(op(x) * x)

    for derivative in [
        wg.grad(loss),
        lambda x: wg.jvp(op, (x,), (x,))[1],
        lambda x: wg.grad(lambda y: np.sum(wg.grad(loss)(y) * y))(x),
        lambda x: wg.jvp(wg.grad(loss), (x,), (x,))[1],
    ]:
        graph = wg.trace(derivative)(wg.spec(length))
        np.testing.assert_allclose(graph(x), derivative(x), rtol=1e-12)
        if length == "n":
            np.testing.assert_allclose(graph(x[:2]), derivative(x[:2]), rtol=1e-12)
