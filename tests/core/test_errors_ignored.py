"""`errors_ignored`: NumPy's floating-point errors are ignored inside, and as before outside."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.thread_state import errors_ignored


def test_errors_are_ignored_inside_only():
    reciprocal = errors_ignored(lambda x: 1.0 / x)
    assert np.isinf(reciprocal(np.zeros(1)))
    with np.errstate(divide="raise"):
        assert np.isinf(reciprocal(np.zeros(1)))
        with pytest.raises(FloatingPointError):
            1.0 / np.zeros(1)


def test_what_an_interrupted_block_left_ends_with_the_call():
    before = np.geterr()

    @errors_ignored
    def interrupted():
        np.errstate(all="raise").__enter__()  # as if interrupted before the block begins
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert np.geterr() == before


@pytest.mark.parametrize("derivative", [wg.grad, wg.jacfwd])
def test_derivatives_leave_the_state_of_the_caller(derivative):
    @wg.custom_vjp
    def f(x):
        return x * x

    def backward(x, g):
        np.errstate(all="raise").__enter__()
        return (2.0 * x * g,)

    f.defvjp(lambda x: (x * x, x), backward)
    before = np.geterr()
    assert float(derivative(f)(3.0)) == 6.0
    assert np.geterr() == before
    graph = wg.trace(f)(wg.spec(()))
    assert float(graph(3.0)) == 9.0
    assert np.geterr() == before
