"""Global variables that functions assign: functions that they call see them, loops carry them."""

import numpy as np
import pytest

import wengert as wg

N = 30
X = np.linspace(0.2, 1.2, N)
STATE = 1.0
COUNT = 0
VALUES = []


def twice():
    return STATE * 2


def advance(v):
    global STATE
    STATE = STATE * 0.5 + v


def read_by_a_function(x):
    global STATE
    STATE = x[0]
    return twice() + STATE


def assigned_by_a_function(x):
    global STATE
    STATE = 1.0
    for i in range(N):
        advance(x[i])
    return STATE * twice()


def carried(x):
    global STATE, COUNT
    STATE, COUNT = 1.0, 0
    s = 0.0
    for i in range(N):
        STATE = STATE * 0.5 + x[i]
        COUNT += 1
        s += twice()
    return s + STATE * COUNT


def in_a_branch(x):
    global STATE
    STATE = 1.0
    if x[0] > 0:
        STATE = x[3] * 2
    else:
        STATE = STATE + 1
    return STATE * twice()


def in_a_while_loop(x):
    global STATE
    STATE = x[0]
    while STATE < 10.0:
        STATE *= 1.5
        STATE += x[1]
    return twice()


def as_the_counter(x):
    global COUNT
    s = 0.0
    for COUNT in range(N):
        s += x[COUNT] * COUNT
    return s + COUNT


def by_an_inner_function(x):
    def add(v):
        global STATE
        STATE = STATE + v

    global STATE
    STATE = 0.0
    for i in range(N):
        add(x[i] ** 2)
    return twice()


def a_list(x):
    global VALUES
    VALUES = []
    for i in range(5):
        VALUES += [x[i]]
    return sum(VALUES) * len(VALUES)


def a_comprehension_beside(x):
    global COUNT
    COUNT = 2
    return sum([x[COUNT] for COUNT in range(3)]) * COUNT


PROGRAMS = [
    read_by_a_function, assigned_by_a_function, carried, in_a_branch, in_a_while_loop,
    as_the_counter, by_an_inner_function, a_list, a_comprehension_beside,
]  # fmt: skip


@pytest.fixture(autouse=True)
def _same_globals():
    before = STATE, COUNT, VALUES
    yield
    globals().update(STATE=before[0], COUNT=before[1], VALUES=before[2])


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_gradients(f):
    expected = f(X)
    left = STATE, COUNT, [*VALUES]
    compiled = wg.jit(f)
    for _ in range(3):
        np.testing.assert_allclose(compiled(X), expected, rtol=1e-12)
        np.testing.assert_allclose(STATE, left[0], rtol=1e-12)
        np.testing.assert_allclose(VALUES, left[2], rtol=1e-12)
        assert left[1] == COUNT
    h = 1e-6 * np.eye(N)
    differences = [(f(X + h[k]) - f(X - h[k])) / 2e-6 for k in range(N)]
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X), differences, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(wg.grad(f)(X), differences, rtol=1e-5, atol=1e-7)
