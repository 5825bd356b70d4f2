"""Captured numbers that change: compared at first, then inputs of the compiled function."""

import numpy as np
import pytest

import wengert as wg

X = np.arange(3.0)


class Model:
    """An object with numbers."""

    def __init__(self):
        self.rate, self.step, self.total = 0.5, 0, 0.0
        self.table = {"rate": 0.5, "rates": [1.0, 2]}

    def loss(self, x):
        return np.sum(x**2) * self.rate + self.step

    def of_containers(self, x):
        return np.sum(x**2) * self.table["rate"] * self.table["rates"][0] + self.table["rates"][1]

    def advance(self, x):
        self.step += 1
        self.rate *= 0.9
        self.total = self.total + np.sum(x)
        return np.sum(x) * self.rate + self.step

    def copied(self, x):
        self.step = self.step + 1
        self.before, self.same = self.step, [self.rate]
        return np.sum(x) * self.rate

    def rows(self, x):
        return np.sum(np.zeros(self.step) + x[0]) * self.rate

    def on_even_steps(self, x):
        return np.sum(x) * self.rate if self.step % 2 == 0 else x[1]

    def of_a_key(self, x):
        return np.sum(x) * {0: 1.0, 1: 2.0}.get(self.step, 3.0) * self.rate


def decay(model):
    model.rate *= 0.9
    model.step += 1
    model.table["rate"] *= 0.8
    model.table["rates"][0] += 0.5
    model.table["rates"][1] += 1


@pytest.mark.parametrize("name", ["loss", "of_containers", "on_even_steps"])
def test_numbers_that_change_are_inputs(name):
    model = Model()
    f = getattr(model, name)
    value, gradient, eager = wg.jit(f), wg.jit(wg.grad(f)), wg.grad(f)
    for _ in range(9):
        np.testing.assert_allclose(value(X), f(X), rtol=1e-14)
        np.testing.assert_allclose(gradient(X), eager(X), rtol=1e-14)
        decay(model)
    assert value.cache_info().traces == gradient.cache_info().traces == 3


def test_floats_are_inputs_after_one_change():
    model = Model()
    f = wg.jit(model.loss)
    for k in range(6):
        model.rate = 0.5 + k
        assert f(X) == model.loss(X)
    assert f.cache_info().traces == 2


@pytest.mark.parametrize("name", ["rows", "of_a_key"])
def test_numbers_whose_values_are_needed_are_compared(name):
    model = Model()
    compiled = wg.jit(getattr(model, name))
    for _ in range(6):
        np.testing.assert_allclose(compiled(X), getattr(model, name)(X), rtol=1e-14)
        decay(model)


def test_numbers_that_the_function_assigns():
    model, expected = Model(), Model()
    compiled = wg.jit(model.advance)
    for _ in range(8):
        np.testing.assert_allclose(compiled(X), expected.advance(X), rtol=1e-14)
        assert (model.step, type(model.step)) == (expected.step, int)
        assert type(model.rate) is float
        np.testing.assert_allclose([model.rate, model.total], [expected.rate, expected.total])
    assert compiled.cache_info().traces == 3


def test_numbers_that_the_function_copies():
    model, expected = Model(), Model()
    compiled = wg.jit(model.copied)
    for k in range(6):
        model.rate = expected.rate = 1.5 * k
        assert compiled(X) == expected.copied(X)
        assert (model.step, model.before, model.same) == (k + 1, k + 1, [1.5 * k])
        assert type(model.before) is int


def test_another_class_of_number_or_no_number():
    model = Model()
    compiled = wg.jit(model.loss)
    for rate in (0.5, 1.5, 2, True, 3, np.float32(0.1), np.float64(0.1), 7, 2**70, -0.0, np.nan):
        model.rate = rate
        found, expected = compiled(X), model.loss(X)
        np.testing.assert_array_equal(found, expected)
        assert np.asarray(found).dtype == np.asarray(expected).dtype
    model.rate = None
    with pytest.raises(TypeError, match="NoneType"):
        compiled(X)


def test_narrow_arrays_stay_narrow():
    model = Model()
    compiled = wg.jit(lambda x: x * model.rate)
    for k in range(4):
        model.rate = 0.5 + k
        assert compiled(X.astype(np.float32)).dtype == np.float32


def test_several_objects_share_a_method():
    class Owner:
        def __init__(self, rate):
            self.rate = rate

        @wg.jit
        def scaled(self, x):
            return np.sum(x) * self.rate

    owners = [Owner(1.0), Owner(2.0)]
    for _ in range(6):
        for owner in owners:
            owner.rate *= 0.9
            np.testing.assert_allclose(owner.scaled(X), 3.0 * owner.rate, rtol=1e-14)
    assert Owner.scaled.cache_info().traces == 4


def test_variables_of_functions_and_modules():
    rate = 0.5

    def f(x):
        return np.sum(x) * rate * GLOBAL["rate"] * NUMBER

    compiled = wg.jit(f)
    for k in range(6):
        rate = 1.0 + k
        globals()["NUMBER"] = 2.0 + k
        assert compiled(X) == f(X)
    assert compiled.cache_info().traces == 2


GLOBAL = {"rate": 2.0}
NUMBER = 1.0


def test_a_python_number_is_not_modified_in_place():
    def f(a):
        b = a
        a *= 2.0
        return a + b

    assert wg.jit(f)(1.5) == f(1.5)
    assert wg.jit(wg.grad(f))(1.5) == wg.grad(f)(1.5) == 3.0
