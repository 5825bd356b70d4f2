"""Buffers: NumPy programs that store tensors in arrays, under all transformations."""

import functools
import math
from math import sin

import numpy as np
import pytest
import scipy.special
from numpy import zeros

import wengert as wg
import wengert.numpy as wnp

# By NumPy 2.5, where the programs below run as they are.
pytestmark = pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")

X = np.linspace(0.1, 1.0, 6)
M = np.arange(16.0).reshape(4, 4)


def elements(x):
    y = np.zeros(5)
    y[0] = x[0] ** 2
    y[1:3] = x[1:3] * 2
    return np.sum(y)


def imported_names(x):
    y = zeros(3)
    for i in range(3):
        y[i] = x[i] * sin(x[i])
    y += x[:3]
    return y.sum()


def nested_lists(x):
    return np.sum(np.array([[x[0], x[1]], [x[1], 2.0]]) @ np.array([1.0, 2.0])) + np.sum(x[:2])


def list_of_tensors(x):
    return np.sum([x[0], x[1]]) * np.mean([x[2], 2.0])


def shape_in_place(x):
    y = np.empty(4)
    y[:] = x[:4]
    y.shape = (2, 2)
    y[0, 1] *= 3.0
    return (y @ y).sum()


def shape_of_a_view(x):
    y = x * 1.0
    z = y[1:5]
    z.shape = (2, 2)
    z[1, 1] = x[0]
    return (y * y).sum()


def from_iterator(x):
    return np.fromiter((v * 2 for v in x), float).sum() + np.fromiter(x, float, 2).prod()


def method_of_a_plain_array(x):
    return M.dot(x[:4]).sum()


def filled(x):
    y = np.full(3, x[0])
    z = np.ones_like(y)
    z[1] = x[1]
    e = np.eye(3)
    e[0, 2] = x[2]
    w = np.ndarray((2,))
    w[:] = x[3:5]
    return (y * z @ e).sum() + w.sum()


def with_our_numpy(x):
    y = wnp.zeros(2)
    y[0] = x[0] * x[1]
    return y.sum()


def helper(x):
    z = np.zeros_like(x)
    z[0] = x[1]
    return z


def calls_a_function(x):
    return helper(x).sum() + math.exp(x[0]) + math.hypot(x[1], x[2])


class Model:
    def __init__(self):
        self.w = 2.0

    def method(self, x):
        z = np.zeros(2)
        z[1] = self.w * x[0]
        return z.sum()

    def __call__(self, x):
        return self.method(x)


class Child(Model):
    def method(self, x):
        return super().method(x) * x[1]


MODEL = Model()


def calls_a_method(x):
    return MODEL.method(x)


def outer():
    def inner(x):
        z = np.ones(3)
        z[0] = x[2]
        return z.prod()

    return lambda x: inner(x) * 2


def with_an_argument(f, x):
    return f(x) * 2.0


def of_scipy(x):
    return scipy.special.logsumexp(x) + scipy.special.gammaln(x[0] + 2)


def asks_for_arrays(x):
    y = np.zeros(2)
    y[0] = x[0] if isinstance(x, np.ndarray) else 0.0
    return y.sum() + (1.0 if isinstance(x[0], float) else 0.0)


BASE = np.arange(1.0, 7.0)


def copies_of_plain_arrays(x):
    a, b = BASE.copy(), BASE[[0, 2, 4]]
    a[1] = x[0] * a[2]
    a[2] -= x[1]
    b[0] = x[1]
    c = np.roll(BASE * 2.0, 1)[::-1]
    c[1:3] = x[:2] * c[2]
    d = BASE.astype(complex)
    d[0] = x[0] + 1j * x[1]
    for i in range(3):
        e = -BASE
        e[i] *= x[i]
        a[i] += e.sum()
    return np.sum(a**2) + b.prod() + c @ x + np.abs(d[0]) ** 2


def without_calls(x):
    a = BASE - 1.0
    a[1] = x[0]
    a[0] = x[1] * a[1]
    return (a * x).sum()


FUNCTIONS = [
    elements, imported_names, nested_lists, list_of_tensors, shape_in_place, shape_of_a_view,
    from_iterator, method_of_a_plain_array, filled, with_our_numpy, calls_a_function,
    copies_of_plain_arrays, without_calls, calls_a_method, MODEL, MODEL.method, Child(), outer(),
    of_scipy, asks_for_arrays,
    functools.partial(lambda n, x: elements(x) * n, 3),
    functools.partial(with_an_argument, elements),
]  # fmt: skip


def name(f):
    return getattr(f, "__name__", type(f).__name__)


def differences(f):
    steps = 1e-6 * np.eye(X.size)
    return np.array([(f(X + h) - f(X - h)) / 2e-6 for h in steps])


@pytest.mark.sample(11)
@pytest.mark.parametrize("f", FUNCTIONS, ids=name)
def test_derivatives(f):
    want = differences(f)
    np.testing.assert_allclose(wg.grad(f)(X), want, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X), want, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(wg.grad(wg.jit(f))(X), want, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(wg.vjp(f, X)[1](1.0)[0], want, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(wg.jvp(f, (X,), (np.ones(6),))[1], want.sum(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("f", FUNCTIONS, ids=name)
def test_values(f):
    np.testing.assert_allclose(wg.jit(f)(X), f(X), rtol=1e-13)
    np.testing.assert_allclose(wg.trace(f)(X)(X), f(X), rtol=1e-13)
    np.testing.assert_allclose(wg.vmap(f)(np.stack([X, 2 * X])), [f(X), f(2 * X)], rtol=1e-13)


KEPT = []


def kept(a):
    KEPT[:] = [a]
    return a


@pytest.mark.parametrize(
    "make",
    [lambda: BASE, lambda: kept(BASE.copy()), lambda: kept(BASE.copy())[1:]],
    ids=["global", "kept", "view"],
)
def test_arrays_that_something_else_refers_to_stay_plain(make):
    """Their other users would not see the elements."""

    def f(x):
        a = make()
        a[0] = x
        return a.sum()

    before = BASE.copy()
    with pytest.raises(wg.errors.ConversionError, match="a is a plain array"):
        wg.grad(f)(2.0)
    np.testing.assert_array_equal(BASE, before)


@pytest.mark.parametrize("same", [lambda a: a, lambda a: [a][0]], ids=["returned", "element"])
def test_arrays_that_a_variable_refers_to_stay_plain(same):
    """Python 3.14 does not count the references of arguments, but those of results."""

    def f(x):
        b = BASE.copy()
        a = same(b)
        a[0] = x
        return b.sum()

    def g(x):
        b = BASE.copy()
        a = [b][0]
        a[0] = x
        return b.sum()

    for function in (f, g):
        with pytest.raises(wg.errors.ConversionError, match="a is a plain array"):
            wg.grad(function)(2.0)


def test_the_user_module_is_not_changed():
    before = dict(globals())
    wg.grad(calls_a_function)(X)
    wg.jit(calls_a_function)(X)
    assert {k: v for k, v in globals().items() if k in before} == before
    assert type(np.zeros(2)) is np.ndarray and math.sin.__module__ == "math"


COUNT = 0


def counts(x):
    global COUNT
    COUNT += 1
    y = np.zeros(1)
    y[0] = x
    return y.sum()


def test_assigned_globals_are_those_of_the_module():
    global COUNT
    COUNT = 0
    wg.jit(counts)(1.0)
    assert COUNT == 1


SCALE = 2.0


def scaled(x):
    return np.array([x])[0] * SCALE


def test_changed_globals_are_seen(monkeypatch):
    assert wg.grad(scaled)(1.0) == 2.0
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert wg.grad(scaled)(1.0) == 5.0


def test_integer_buffers_keep_their_dtype():
    def f(x):
        y = np.zeros(2, int)
        y[0] = x[0] > 0.05
        y[1] = 7
        return y * 2

    got = wg.jit(f)(X)
    assert got.dtype == int and got.tolist() == [2, 14]


def test_an_attribute_of_the_function_stays():
    @functools.lru_cache
    def constant(n):
        return n + 1

    def f(x):
        return x * constant(2)

    f.note = "here"
    assert wg.grad(f)(1.0) == 3.0 and f.note == "here"


@pytest.mark.parametrize("convert", [
    lambda x: np.array([x[0], x[1]], dtype=object), lambda x: np.array(x, dtype=object),
    lambda x: x.astype(object), lambda x: np.asarray([x[0], x[1]], dtype="O"),
])  # fmt: skip
@pytest.mark.parametrize("run", [wg.grad, wg.jit, lambda f: wg.jit(wg.grad(f))])
def test_arrays_of_objects_would_lose_derivatives(convert, run):
    def f(x):
        y = convert(x)
        return y[0] * y[1]

    with pytest.raises(wg.errors.DtypeError, match=r"array of objects.*test_buffers.py"):
        run(f)(np.array([1.0, 2.0]))


def test_arrays_of_objects_may_be_filled_with_tensors():
    def f(x):
        y = np.empty(2, dtype=object)
        y[0], y[1] = x[0], x * 2
        return y[0] * y[1].sum()

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(wg.grad(f)(x), [8.0, 2.0])
    np.testing.assert_allclose(wg.jit(wg.grad(f))(x), [8.0, 2.0])
