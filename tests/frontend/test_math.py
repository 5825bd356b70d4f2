"""Functions of `math`, whose arguments are single numbers."""

import math

import numpy as np
import pytest

import wengert as wg


def of_an_array(x):
    return math.sin(x)


def of_a_constant_array(x):
    return x[0] * math.sin(np.ones(2))


@pytest.mark.parametrize("f", [of_an_array, of_a_constant_array])
@pytest.mark.parametrize(
    "run", [wg.grad, wg.jit, lambda f: wg.jit(wg.grad(f)), lambda f: wg.trace(f)]
)
def test_arrays_give_the_error_of_python(f, run):
    with pytest.raises(TypeError) as python:
        f(np.ones(2))
    with pytest.raises(TypeError) as caught:
        run(f)(np.ones(2))
    assert str(caught.value).startswith(str(python.value)) and "test_math.py" in str(caught.value)


def test_an_array_of_one_element():
    def outcome(f):
        try:
            return np.shape(f(np.array([0.5])))
        except TypeError:
            return TypeError

    assert outcome(wg.jit(of_an_array)) == outcome(of_an_array)


def test_values_outside_of_the_domain_raise_without_a_trace():
    def f(x):
        s = 0.0
        for v in x:
            try:
                s += math.sqrt(v) + math.log(v) + math.exp(800 * v)
            except ValueError:
                s += v**2
            except OverflowError:
                s += v**3
        return s

    x = np.array([-2.0, 0.0, 0.5, 3.0])
    expected = [-4.0, 0.0, 1.0 / np.sqrt(2.0) + 2.0 + 800.0 * np.exp(400.0), 27.0]
    np.testing.assert_allclose(wg.grad(f)(x), expected, rtol=1e-13)
    np.testing.assert_allclose(wg.jvp(f, (x,), (np.ones(4),))[1], np.sum(expected), rtol=1e-13)
    with pytest.raises(ValueError):
        wg.grad(lambda x: math.log(x))(-1.0)
