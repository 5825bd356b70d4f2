"""Handlers of exceptions: what a trace refuses is not caught, nor what is raised later.

An exception that depends on values is raised when the compiled function runs, after the ``try``
statement.  What may raise one that the statement catches is refused.
"""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ConversionError, TraceError

X = np.array([0.5, -1.0, 2.0, 3.0])


def not_raised(x):
    try:
        s = 0.0
        for i in range(20):
            s += x[i % 4] if x[i % 4] > 0 else 0.0
    except ZeroDivisionError:
        s = 1.0
    return s


def raised_for_known_values(x):
    s = 0.0
    for i in range(12):
        try:
            s += x[i]
        except IndexError:
            s += 1.0
        finally:
            s += 0.5
    return s


def missing_keys(x):
    table = {"a": x[0]}
    try:
        return table["b"]
    except (KeyError, TypeError):
        return table["a"] * 2


def shapes_that_differ(x):
    try:
        return np.sum(x[:2] + x[:3])
    except ValueError:
        return np.sum(x[:2])


def index_in_range(x):
    s = 0.0
    for i in range(12):
        try:
            s += x[i % 4]
        except IndexError:
            s += 1.0
    return s


@pytest.mark.parametrize(
    "f",
    [not_raised, raised_for_known_values, missing_keys, shapes_that_differ, index_in_range],
    ids=lambda f: f.__name__,
)
def test_values_and_gradients(f):
    np.testing.assert_allclose(wg.jit(f)(X), f(X), rtol=1e-12)
    gradient = wg.grad(f)
    np.testing.assert_allclose(wg.jit(gradient)(X), gradient(X), rtol=1e-12)


def raised_in_a_branch(x):
    try:
        if x[0] > 0:
            raise ValueError("it is positive")
        return x[1]
    except ValueError:
        return x[2]


def raised_by_a_function(x):
    def check(v):
        if v > 0:
            raise ValueError("it is positive")
        return v

    try:
        return check(x[0])
    except Exception:
        return x[2]


def failed_assertion(x):
    try:
        assert x[0] < 0
    except AssertionError:
        return x[2]
    return x[1]


def index_of_data(x):
    k = (x[0] * 40).astype(int)
    try:
        return x[k]
    except IndexError:
        return x[2]


@pytest.mark.parametrize(
    "f",
    [raised_in_a_branch, raised_by_a_function, failed_assertion, index_of_data],
    ids=lambda f: f.__name__,
)
def test_exceptions_that_depend_on_data(f):
    with pytest.raises(TraceError, match=r"try statement.*test_exception_handlers.py"):
        wg.jit(f)(X)
    np.testing.assert_allclose(wg.grad(f)(X), [0.0, 0.0, 1.0, 0.0])


def length_of_data(x):
    try:
        return np.zeros(int(x[2])).sum() + x[0]
    except (TypeError, ValueError):
        return x[1]


def unlike_branches(x):
    try:
        y = [x[0]] if x[0] > 0 else 1.0
        return sum(y) if isinstance(y, list) else y
    except Exception:
        return x[1]


@pytest.mark.parametrize("f", [length_of_data, unlike_branches], ids=lambda f: f.__name__)
def test_refusals_are_not_caught(f):
    with pytest.raises(TraceError):
        wg.jit(f)(X)


def test_lost_derivatives_are_not_caught():
    def f(x):
        try:
            return float(x[0]) * 2
        except TypeError:
            return x[1]

    with pytest.raises(ConversionError):
        wg.grad(f)(X)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X), [2.0, 0.0, 0.0, 0.0])


def test_handlers_that_name_refusals_catch_them():
    def f(x):
        try:
            return float(x[0]) * 2
        except wg.errors.ConversionError:
            return x[1]

    np.testing.assert_allclose(wg.grad(f)(X), [0.0, 1.0, 0.0, 0.0])
