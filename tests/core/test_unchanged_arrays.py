"""A plain array that several products of a function use is compared once in a backward pass."""

import re

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core import node as nodes
from wengert.errors import MutatedError

X = np.random.default_rng(3).normal(size=(100, 120))
W = np.random.default_rng(4).normal(size=120)


def loss(w, x):
    return np.sum(np.logaddexp(0.0, x @ w) * (x @ w))


def wanted(w, x):
    z = x @ w
    return (np.logaddexp(0.0, z) + z / (1.0 + np.exp(-z))) @ x


@pytest.fixture
def taken(monkeypatch):
    """The arrays whose fingerprints are taken."""
    found = []

    def counted(array):
        found.append(array)
        return nodes.fingerprint(array)

    monkeypatch.setattr(nodes.Fingerprints, "native", counted)
    return found


def test_it_is_compared_once(taken):
    np.testing.assert_allclose(wg.grad(loss)(W, X), wanted(W, X), rtol=1e-10)
    assert len(taken) == 3  # by each product, and in the backward pass


def test_an_array_that_is_overwritten_after_either_product(taken):
    for after in (1, 2):
        x = X.copy()

        def f(w, x=x, after=after):
            y = x @ w
            if after == 1:
                x[3, 4] += 1.0
            z = x @ w
            if after == 2:
                x[3, 4] += 1.0
            return np.sum(y * z)

        with pytest.raises(MutatedError, match="overwritten"):
            wg.grad(f)(W)


def test_the_error_names_the_lines_of_the_use_and_of_the_derivative():
    x = np.ones(100_000)
    w = wg.tensor(x, requires_grad=True)
    y = np.sum(w * x)
    x[3] = 2.0
    with pytest.raises(MutatedError) as found:
        y.backward()
    used, derivative = re.findall(r"\(at (\S*):(\d+), in test_the_error", str(found.value))
    assert used[0] == derivative[0] == __file__
    assert int(derivative[1]) == int(used[1]) + 3


def test_hooks_that_overwrite_it_between_two_products(taken):
    x = X.copy()
    w = wg.tensor(W, requires_grad=True)
    y = x @ w
    u = y * 2.0
    z = x @ (w + 1.0)

    def hook(bar):
        x[3, 4] += 1.0

    u.register_hook(hook)
    total = np.sum(u) + np.sum(z)
    with pytest.raises(MutatedError, match="overwritten"):
        total.backward()


def test_rules_of_users_that_overwrite_it_between_two_products(taken):
    x = X.copy()

    @wg.custom_vjp
    def spoiled(v):
        return v * 2.0

    def backward(residuals, t):
        x[3, 4] += 1.0
        return (t * 2.0,)

    spoiled.defvjp(lambda v: (v * 2.0, None), backward)
    total = lambda w: np.sum(spoiled(x @ w)) + np.sum(x @ (w + 1.0))  # noqa: E731
    with pytest.raises(MutatedError, match="overwritten"):
        wg.grad(total)(W)


def test_native_code_takes_fingerprints_after_many(monkeypatch):
    loads = []
    monkeypatch.setattr(nodes.Fingerprints, "native", None)
    monkeypatch.setattr(nodes.Fingerprints, "load", lambda: loads.append(1))
    monkeypatch.setattr(nodes.Fingerprints, "count", nodes._LOAD_BYTES - 4 * X.nbytes)
    gradient = wg.grad(loss)
    for _ in range(4):
        np.testing.assert_allclose(gradient(W, X), wanted(W, X), rtol=1e-10)
    assert loads == [1]
