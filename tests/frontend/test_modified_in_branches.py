"""Arrays that are modified in place in one branch or iteration, and reassigned in another.

The compiled function has NumPy's value, and its gradient agrees with the eager gradient.
"""

import numpy as np
import pytest

import wengert as wg

X = np.linspace(0.1, 0.9, 5)


def rebound_in_the_other_branch(x):
    y = np.zeros(5)
    if x[0] > 0.05:
        y[1] += x[1]
    else:
        y = y * 0.5
    return np.sum(y)


def in_a_loop(x):
    y = np.zeros(5)
    for i in range(20):
        if x[i % 5] > 0.3:
            y[i % 5] += x[i % 5]
        else:
            y = y * 0.5
    return np.sum(y)


def with_another_name(x):
    y = np.zeros(5)
    z = y
    if x[0] > 0.05:
        y[1] += x[1]
        w = y
    else:
        w = y * 0.5
    return np.sum(w) + np.sum(z)


def with_a_view(x):
    y = x * 1.0
    if x[0] > 0.05:
        y[1] = 3.0 * x[2]
        z = y[:3]
    else:
        z = x[:3]
    return np.sum(z) + np.sum(y)


def swapped_in_one_branch(x):
    y, z = x * 1.0, x * 2.0
    for i in range(20):
        if x[i % 5] > 0.3:
            y[i % 5] += x[i % 5]
            y, z = z, y
        else:
            z[i % 5] *= 0.5
    return np.sum(y) + 3 * np.sum(z)


def bound_in_each_iteration(x):
    y = x * 1.0
    for i in range(20):
        z = y
        z[i % 5] = z[i % 5] * 0.5 + x[0]
    return np.sum(y) + np.sum(z) * 2


def a_view_bound_in_each_iteration(x):
    y = x * 1.0
    for i in range(20):
        y[i % 5] = y[i % 5] * 0.5 + x[0]
        z = y[1:3]
    return np.sum(y) + np.sum(z) * 2


def an_entry_of_a_dict(x):
    d = {"a": x * 1.0}
    for i in range(20):
        if x[i % 5] > 0.3:
            d["a"][i % 5] += x[i % 5]
        else:
            d["a"] = d["a"] * 0.5
    return np.sum(d["a"])


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "f",
    [
        rebound_in_the_other_branch, in_a_loop, with_another_name, with_a_view,
        swapped_in_one_branch, bound_in_each_iteration, a_view_bound_in_each_iteration,
        an_entry_of_a_dict,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_compiled_functions_are_right(f):
    np.testing.assert_allclose(wg.jit(f)(X.copy()), f(X.copy()), rtol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X), wg.grad(f)(X), rtol=1e-10, atol=1e-12)
