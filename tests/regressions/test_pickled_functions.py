"""Fault: what the transformations return could not be pickled, nor sent to a pool of processes."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import wengert as wg


def energy(x, scale=2.0):
    """Energy of x."""
    return scale * np.sum(x**3)


@wg.checkpoint
def decorated(x):
    """Decorated."""
    return np.sum(np.sin(x))


@wg.grad
def slope(x):
    return np.sum(x**2)


class Spring:
    stiffness = 3.0

    @wg.checkpoint
    def energy(self, x):
        return self.stiffness * np.sum(x**2)

    force = wg.grad(energy, argnums=1)


X = np.array([1.0, 2.0])
MADE = {
    "grad": wg.grad(energy),
    "grad by name": wg.grad(energy, argnames="x"),
    "value_and_grad": wg.value_and_grad(energy, unconnected="raise"),
    "jacobian": wg.jacobian(energy),
    "jacfwd": wg.jacfwd(energy),
    "jacrev": wg.jacrev(energy),
    "hessian": wg.hessian(energy),
    "checkpoint": wg.checkpoint(energy),
    "grad of grad": wg.jacobian(wg.grad(energy)),
    "grad of a ufunc": wg.jacobian(np.sin),
    "decorated": decorated,
    "decorator that is not named as the function": wg.grad(decorated),
    "gradient in place of its function": slope,
}


def parts(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", MADE)
def test_round_trip(name, protocol):
    f = MADE[name]
    back = pickle.loads(pickle.dumps(f, protocol))
    for copied in (back, copy.deepcopy(f)):
        assert all(map(np.array_equal, parts(copied(X)), parts(f(X))))
    assert back.__name__ == f.__name__ and back.__doc__ == f.__doc__


def test_what_stands_under_its_own_name_stays_itself():
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert pickle.loads(pickle.dumps(slope)) is slope


def test_it_looks_like_the_function():
    f = wg.grad(energy)
    assert f.__name__ == "energy" and f.__doc__ == energy.__doc__ and f.__wrapped__ is energy
    assert inspect.signature(f) == inspect.signature(energy)
    assert repr(f) == "<grad of energy>"
    assert f(X, scale=1.0).tolist() == [3, 12]


def test_names_of_arguments_are_the_users():
    f = lambda x, fun, what, both, argnums, mode: x * fun * what * both * argnums * mode  # noqa: E731
    named = dict.fromkeys(("fun", "what", "both", "argnums", "mode"), 2.0)
    for derivative in (wg.grad(f), wg.jacobian(f), wg.grad(wg.checkpoint(f))):
        assert derivative(1.0, **named) == 32.0


def test_methods():
    spring = Spring()
    assert spring.energy(X) == 15.0
    assert spring.force(X).tolist() == [6, 12]
    assert Spring.energy(spring, X) == 15.0
    assert wg.grad(spring.energy)(X).tolist() == [6, 12]
    assert pickle.loads(pickle.dumps(wg.grad(spring.energy)))(X).tolist() == [6, 12]


def test_a_function_without_a_name_of_its_own_says_so():
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(wg.grad(lambda x: x))
