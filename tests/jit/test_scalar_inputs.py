"""Arguments without axes under in-place operators: numbers are replaced, arrays are modified."""

import numpy as np
import pytest

import wengert as wg


def doubled(a):
    b = a
    a *= 2
    return a * b


def newton(x):
    change = 0.0
    for _ in range(20):
        old = x
        x -= 0.5 * (x * x - 2.0) / (2.0 * x)
        change += abs(x - old)
    return change


def newton_to_tolerance(x):
    while True:
        old = x
        x -= (x * x - 2.0) / (2.0 * x)
        if abs(x - old) < 1e-5:
            return x


ARGUMENTS = [lambda: 3.0, lambda: np.float64(3.0), lambda: np.float32(3.0), lambda: np.array(3.0)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("f", [doubled, newton, newton_to_tolerance], ids=lambda f: f.__name__)
def test_values_for_each_kind_of_argument(f):
    compiled = wg.jit(f)
    gradient = wg.jit(wg.value_and_grad(f))
    for make in [*ARGUMENTS, *ARGUMENTS[::-1]]:
        expected, x = make(), make()
        np.testing.assert_allclose(compiled(x), f(expected), rtol=1e-5)
        np.testing.assert_array_equal(x, expected)  # an array has been modified
        value, slope = gradient(make())
        wanted = wg.value_and_grad(f)(make())
        np.testing.assert_allclose(value, wanted[0], rtol=1e-5)
        np.testing.assert_allclose(slope, wanted[1], rtol=1e-4, atol=1e-6)


def test_numbers_of_the_program_are_not_traced_again():
    compiled = wg.jit(newton)
    for x in (1.0, 3.0, 4.0):
        assert compiled(np.float64(x)) == newton(np.float64(x))
    assert compiled.cache_info().traces == 1
