"""Exceptions of user functions come out of compiled functions, loops and solvers as themselves."""

import numpy as np
import pytest
import scipy.integrate

import wengert as wg
from wengert.extend import primitive, vjp


class Mine(ValueError):
    """An exception of the user's, of a class that wengert's errors have as a base."""


KINDS = [ValueError, TypeError, Mine, KeyError, IndexError]


def failing(kind):
    """A function that fails when it runs, not when it is traced."""

    @primitive(callback=True, name=f"exceptions.{kind.__name__}")
    def f(x):
        if x[0] < 0.0:
            raise kind("mine")
        return -x

    vjp[f] = lambda g, out, x: (-g,)
    return f


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_not_replaced(kind):
    f, x = failing(kind), np.array([-1.0, 2.0])
    runs = {
        "with tensors": lambda x: wg.value_and_grad(lambda x: np.sum(f(x)))(x),
        "compiled": wg.jit(lambda x: f(x) + 1.0),
        "a loop": wg.jit(lambda x: wg.fori_loop(0, 3, lambda i, y: f(y), x)),
        "a batch": wg.jit(wg.vmap(lambda x: f(x.reshape(1)) + 1.0)),
    }
    for name, run in runs.items():
        with pytest.raises(kind, match="mine") as caught:
            run(x)
        assert type(caught.value) is kind
        notes = getattr(caught.value, "__notes__", [])
        if name == "a loop":
            assert any(["exceptions." in note for note in notes])


@pytest.mark.parametrize("kind", KINDS[:2])
def test_solvers_that_call_the_function_do_not_replace_them(kind):
    f = failing(kind)

    def last(y):
        times = np.array([0.0, 1.0])
        rhs = lambda t, y: f(y) - 1.0  # noqa: E731
        return scipy.integrate.solve_ivp(rhs, (0.0, 1.0), y, "LSODA", times).y[0, -1]

    with pytest.raises(kind, match="mine") as caught:
        wg.jit(last)(np.array([0.1]))
    assert type(caught.value) is kind
