"""Faults about how arrays lie in memory, on which depends what a write shows in."""

import numpy as np
import pytest

import wengert as wg


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@pytest.mark.parametrize("n", [3, 40])
def test_copy_ignored_the_order_asked_for(order, n):
    a = np.arange(2.0 * n).reshape(2, n)
    x = wg.tensor(a, requires_grad=True)
    for plain, ours in [
        (a.copy(order), x.copy(order)),
        (a.T.copy(order), x.T.copy(order)),
        (a[:, ::2].copy(order), x[:, ::2].copy(order)),
        (np.copy(a.T, order=order), np.copy(x.T, order=order)),
    ]:
        assert ours.strides == plain.strides
        assert np.array_equal(ours.numpy(), plain)


def test_write_to_a_flattened_copy_of_a_transpose():
    def f(x):
        y = x.T.copy()  # in C order, so that reshape is a view
        y.reshape(-1)[1] = 0.0
        return np.sum(y**2)

    x = np.arange(1.0, 7.0).reshape(2, 3)
    value, slope = wg.value_and_grad(f)(x)
    assert value == f(x)
    assert slope.tolist() == [[2.0, 4.0, 6.0], [0.0, 10.0, 12.0]]


def test_an_argument_in_fortran_order_was_laid_out_anew():
    def f(x):
        x = x.T  # of x in Fortran order in C order
        x.reshape(-1)[1] = 0.0
        return np.sum(x**2)

    x = np.asfortranarray(np.arange(1.0, 7.0).reshape(2, 3))
    value, slope = wg.value_and_grad(f)(x)
    assert value == f(x.copy("F")) == 91.0 - 16.0
    assert slope.tolist() == [[2.0, 4.0, 6.0], [0.0, 10.0, 12.0]]
