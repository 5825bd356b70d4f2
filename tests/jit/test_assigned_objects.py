"""Objects from outside that a compiled function assigns to have afterwards the values of Python.

A graph, and `vmap`, refuse; in no case is a value of a trace left in an object.
"""

import copy
import dataclasses

import numpy as np
import pytest

import wengert as wg
from wengert.errors import TraceError

TOTAL = 1.0


class Filter:
    """An object with state."""

    def __init__(self):
        self.state, self.gain, self.calls = np.zeros(2), 1.0, 0

    def step(self, x):
        self.state = self.state * 0.9 + x
        return np.sum(self.state)

    def steps(self, x):
        for _ in range(20):
            self.state = self.state * 0.9 + x
            self.gain = self.gain * 0.5 + x
        return np.sum(self.state) * self.gain

    def in_a_branch(self, x):
        if x > 1.0:
            self.gain = self.gain * x
        self.calls += 1
        return self.gain * self.calls


@dataclasses.dataclass
class State:
    x: object
    v: object


def advance(s, dt):
    for _ in range(20):
        s.v = s.v - dt * s.x
        s.x = s.x + dt * s.v
    return np.sum(s.x)


def same(a, b):
    for x, y in zip(vars(a).values(), vars(b).values(), strict=True):
        assert not isinstance(x, wg.Tensor)
        np.testing.assert_allclose(x, y, rtol=1e-13)


@pytest.mark.parametrize("name", ["step", "steps", "in_a_branch"])
def test_attributes_of_the_object_of_a_method(name):
    mine, plain = Filter(), Filter()
    f, g = wg.jit(getattr(mine, name)), getattr(plain, name)
    for x in (1.5, 0.5, 2.5):
        np.testing.assert_allclose(f(x), g(x), rtol=1e-13)
        same(mine, plain)


class Average:
    """An object with a method named like one of dicts and one of arrays."""

    def __init__(self):
        self.value = np.zeros(2)

    def update(self, x):
        self.value = self.value * 0.5 + x
        return self.value

    def sum(self, x):
        return np.sum(self.update(x))


@pytest.mark.parametrize("name", ["update", "sum"])
def test_methods_with_names_of_containers(name):
    mine, plain = Average(), Average()
    compiled = wg.jit((lambda x: mine.update(x)) if name == "update" else (lambda x: mine.sum(x)))
    for x in (1.0, 2.0):
        np.testing.assert_allclose(compiled(x), getattr(plain, name)(x))
        same(mine, plain)


def test_attributes_of_an_argument():
    f = wg.jit(Filter.step)
    mine, plain = [Filter(), Filter()], [Filter(), Filter()]
    for k in (0, 1, 1, 0):
        np.testing.assert_allclose(f(mine[k], 2.0), plain[k].step(2.0), rtol=1e-13)
        same(mine[k], plain[k])


def test_an_object_that_is_replaced():
    box = {"filter": Filter()}
    f = wg.jit(lambda x: box["filter"].step(x))
    f(1.0)
    first, box["filter"] = box["filter"], Filter()
    f(2.0)
    assert first.state.tolist() == [1.0, 1.0] and box["filter"].state.tolist() == [2.0, 2.0]


def test_containers_that_are_arguments():
    def f(d, s, x):
        d["a"] = d["a"] * x
        d["new"] = x + 1.0
        s[0][1] = s[0][1] + x
        return d["a"] + s[0][1]

    mine, plain = ({"a": 2.0}, [[1.0, np.ones(2)]]), ({"a": 2.0}, [[1.0, np.ones(2)]])
    compiled = wg.jit(f)
    for x in (3.0, 0.5):
        np.testing.assert_allclose(compiled(*mine, x), f(*plain, x))
        assert mine[0] == plain[0]
        np.testing.assert_allclose(mine[1][0][1], plain[1][0][1])


def test_dataclasses_that_are_arguments():
    mine, plain = State(1.0, np.zeros(2)), State(1.0, np.zeros(2))
    f = wg.jit(advance)
    for _ in range(2):
        np.testing.assert_allclose(f(mine, 0.1), advance(plain, 0.1))
        same(mine, plain)
    g = wg.jit(wg.grad(advance, argnums=1))
    start = copy.deepcopy(mine)
    assert np.isfinite(g(mine, 0.1))
    advance(plain, 0.1)
    same(mine, plain)
    h = [advance(copy.deepcopy(start), 0.1 + e) for e in (1e-6, -1e-6)]
    np.testing.assert_allclose(g(copy.deepcopy(start), 0.1), (h[0] - h[1]) / 2e-6, rtol=1e-6)


def test_variables_of_modules_and_of_enclosing_functions():
    total = 0.0
    globals()["TOTAL"] = 1.0

    def f(x):
        nonlocal total
        global TOTAL
        total = total + x
        TOTAL = TOTAL * x
        return total + TOTAL

    compiled = wg.jit(f)
    assert [float(compiled(2.0)) for _ in range(3)] == [4.0, 8.0, 14.0]
    assert (float(total), float(TOTAL)) == (6.0, 8.0)


def test_objects_that_the_function_makes_are_not_outside():
    def f(x):
        state = copy.deepcopy(State(np.zeros(2), [1.0, 2.0]))
        state.x = state.x + x
        state.v[0] = x
        other = State.__new__(State)
        other.x, other.v = x * 2, state
        return other.x + np.sum(other.v.x) + state.v[0]

    compiled = wg.jit(f)
    assert compiled(1.0) == f(1.0) == wg.trace(f)(1.0)(1.0)
    assert not compiled.program(1.0)[0].assigned


def test_tensors_keep_their_history():
    mine = Filter()
    x = wg.tensor(2.0, requires_grad=True)
    wg.jit(mine.step)(x)
    np.sum(mine.state**2).backward()
    np.testing.assert_allclose(x.grad.numpy(), 8.0)


@pytest.mark.parametrize("transform", [wg.trace, lambda f: lambda x: wg.vmap(f)(np.ones(3))])
def test_a_graph_refuses(transform):
    mine = Filter()
    with pytest.raises(TraceError, match=r"assigns attribute state of a Filter.*test_assigned_obj"):
        transform(mine.step)(1.0)
    assert type(mine.state) is np.ndarray and mine.state.tolist() == [0.0, 0.0]


def test_an_error_while_tracing_leaves_no_value_of_the_trace():
    mine = Filter()

    def f(x):
        mine.step(x)
        mine.gain = x
        raise ValueError("no")

    for run in (wg.jit(f), wg.trace(f)):
        with pytest.raises(ValueError, match="no"):
            run(1.0)
        assert type(mine.state) is np.ndarray and mine.gain == 1.0


def test_an_error_while_running_assigns_nothing():
    mine = Filter()

    def f(x):
        y = mine.step(x)
        assert y < 3.0
        return y

    compiled = wg.jit(f)
    assert compiled(1.0) == 2.0
    with pytest.raises(AssertionError):
        compiled(5.0)
    assert mine.state.tolist() == [1.0, 1.0]
