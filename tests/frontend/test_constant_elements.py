"""Computations with constants inside of transformed functions work as in plain NumPy."""

import copy
import json
import pickle

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import wengert as wg

X = np.array([0.5, 1.5, 2.5])


def key_of_a_dict(x):
    n, v = np.array([1, 2])[0], np.array([1.5, 2.0])[0]
    table = {1: x[0], 1.5: x[1]}
    return table[n] * table[v] + table.get(n) * (2.0 if v in table else 0.0)


def hashed(x):
    n, v = np.array([1, 2])[0], np.array([1.5])[0]
    assert hash(n) == hash(1) and hash(v) == hash(1.5)
    return x[0] * len({n, 1, v, 1.5})


def index_of_a_list(x):
    n = np.array([1, 2])[0]
    return [x[0], x[1]][n] * (10, 20, 30)[n]


def argument_of_range(x):
    n = np.array([1, 2])[1]
    s = 0.0
    for i in range(n):
        s = s + x[i]
    return s


def condition(x):
    n = np.array([1, 2])[0]
    if n == 1 and not n > 5:
        return x[0] * 3
    return x[0]


def formatted(x):
    n, v = np.array([1, 2])[0], np.array([1.5, 2])[0]
    assert f"{v:.3f} {n:d} {n}" == "1.500 1 1" and format(v, ".1f") == "1.5"
    return x[0] * float(f"{v:.3f}")


def in_json(x):
    v = np.array([1.5, 2.0])
    told = json.dumps({"a": float(v[0]), "b": v.tolist(), "n": int(np.array([1])[0])})
    return x[0] * json.loads(told)["a"]


def classes(x):
    n, v = np.array([1, 2])[0], np.array([1.5])[0]
    assert isinstance(n, (int, np.integer)) and not isinstance(n, float)
    assert isinstance(v, float) and isinstance(v, np.floating)
    return x[0] * n * v


def copies(x):
    y = np.zeros(3)
    y[0] = 2.0
    a, b, c = copy.copy(y), copy.deepcopy(y), pickle.loads(pickle.dumps(y))
    a[1], b[1] = x[0], x[1]
    assert y[1] == 0 and c[0] == 2.0
    return a.sum() + b.sum() + c.sum() * x[0]


FUNCTIONS = [key_of_a_dict, hashed, index_of_a_list, argument_of_range, condition, formatted,
             in_json, classes, copies]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_elements(f):
    steps = 1e-6 * np.eye(X.size)
    want = np.array([(f(X + h) - f(X - h)) / 2e-6 for h in steps])
    np.testing.assert_allclose(wg.grad(f)(X), want, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X), want, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(wg.trace(f)(X)(X), f(X), rtol=1e-13)
    np.testing.assert_allclose(wg.jit(f)(X), f(X), rtol=1e-13)


def of_constants():
    rotation = np.array([[0.0, 1.0], [-1.0, 0.3]])
    symmetric = np.eye(3) + 0.1
    return [
        *np.linalg.eigh(symmetric),
        np.linalg.inv(rotation),
        np.linalg.solve(symmetric, np.arange(3.0)),
        scipy.linalg.expm(rotation),
        scipy.linalg.cholesky(symmetric),
        scipy.special.gamma(np.linspace(0.5, 3.0, 5)),
        np.fft.fft(np.arange(5.0)),
        np.tanh(np.linspace(-1.0, 1.0, 7)),
        np.einsum("ij,j->i", rotation, np.ones(2)),
        np.sort(np.array([3.0, 1.0, 2.0])),
    ]


@pytest.mark.parametrize("run", [wg.grad, lambda f: wg.jit(wg.grad(f)), wg.jit, wg.trace])
def test_functions_of_constants_give_the_bits_of_numpy(run):
    seen = []

    def f(x):
        seen[:] = of_constants()
        return x[0] * 2.0

    run(f)(X)
    want = of_constants()
    assert len(seen) == len(want)
    for ours, numpys in zip(seen, want, strict=True):
        assert np.asarray(ours).tobytes() == np.asarray(numpys).tobytes()


def integers(x):
    y = np.zeros(3, int)
    y[0] = x[0] * 5
    y[1] = -x[1]
    return y


def of_integers(x):
    y = integers(x)
    return (y * x).sum()


def test_integers_store_truncated_values_whose_derivative_is_zero():
    want = integers(X)
    for run in (wg.jit, wg.trace):
        got = run(integers)(X)
        got = got(X) if run is wg.trace else got
        assert got.dtype == want.dtype and got.tolist() == want.tolist()
    for run in (wg.grad(of_integers), wg.jit(wg.grad(of_integers)), wg.grad(wg.jit(of_integers))):
        np.testing.assert_array_equal(run(X), want)


def test_complex_values_are_not_stored_in_integers():
    def f(x):
        y = np.zeros(2, int)
        y[0] = x[0] * 1j
        return y

    with pytest.raises((TypeError, wg.errors.DtypeError), match="complex"):
        wg.jit(f)(X)
