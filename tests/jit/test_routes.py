"""A compiled function that is called in several ways has a native entry for each of them."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.jit.compiled_program import ROUTES

X = np.array([0.5, -1.0, 2.0])
WIDE = np.arange(12.0).reshape(3, 4)


def straight(f, monkeypatch, *args, **kwargs):
    """What a call gives that must not go through Python's part of `jit`."""
    with monkeypatch.context() as patch:
        patch.setattr(type(f._layout), "call", None)  # what that part begins with
        return f(*args, **kwargs)


WAYS = {
    "float64": ((X, 2.0), {}),
    "float32": ((X.astype(np.float32), 2.0), {}),
    "integer factor": ((X, 2), {}),
    "two arrays": ((X, X[::-1].copy()), {}),
    "scalar": ((np.float64(2.0), 3.0), {}),
    "strided": ((np.arange(6.0)[::2], 2.0), {}),
    "Fortran order": ((np.asfortranarray(WIDE), 2.0), {}),
    "matrix": ((WIDE, 2.0), {}),
    "by name": ((), {"a": X, "b": 2.0}),
    "by name, turned round": ((), {"b": 2.0, "a": X}),
    "one by name": ((X,), {"b": 2.0}),
}


def test_each_way_keeps_its_entry(compiler, monkeypatch):
    if compiler != "llvm":
        pytest.skip("native code only")
    f = wg.jit(lambda a, b: a - 2.0 * b)
    for args, kwargs in WAYS.values():
        for _ in range(3):
            f(*args, **kwargs)
    for args, kwargs in WAYS.values():
        want = (lambda a, b: a - 2.0 * b)(*args, **kwargs)
        found = straight(f, monkeypatch, *args, **kwargs)
        np.testing.assert_array_equal(found, want)
        assert found.dtype == want.dtype


def test_names_are_distinguished_from_positions():
    f = wg.jit(lambda a, b=1.0, c=2.0: a + 10.0 * b + 100.0 * c)
    for _ in range(3):
        for args, kwargs in (
            ((1.0, 2.0, 3.0), {}),
            ((1.0, 2.0), {"c": 3.0}),
            ((1.0,), {"c": 3.0, "b": 2.0}),
            ((1.0,), {"b": 3.0}),
            ((1.0,), {"c": 3.0}),
            ((), {"c": 1.0, "a": 2.0, "b": 3.0}),
        ):
            want = (lambda a, b=1.0, c=2.0: a + 10.0 * b + 100.0 * c)(*args, **kwargs)
            assert f(*args, **kwargs) == want
    with pytest.raises(TypeError):
        f(1.0, d=2.0)


def test_captured_arrays_are_fed_by_every_way():
    w = np.array([1.0, 2.0, 3.0])
    f = wg.jit(lambda a, b: a * w - b)
    for k in range(4):
        w[0] = float(k)
        np.testing.assert_array_equal(f(X, 2.0), X * w - 2.0)
        np.testing.assert_array_equal(f(b=X, a=2.0), 2.0 * w - X)
        np.testing.assert_array_equal(f(np.arange(6.0)[::2], b=X), np.arange(6.0)[::2] * w - X)


def test_ways_are_bounded():
    f = wg.jit(lambda a: a * 2.0)
    for axes in range(1, ROUTES + 6):
        for _ in range(2):
            assert f(np.ones((1,) * axes)).shape == (1,) * axes
    assert len(f._routes._known) <= ROUTES


def test_lengths_and_emptiness_change_nothing():
    f = wg.jit(lambda a, b: a * b)
    for n in (3, 4, 0, 1, 5):
        np.testing.assert_array_equal(f(np.ones(n), 2.0), 2.0 * np.ones(n))
        np.testing.assert_array_equal(f(a=np.ones(n, np.float32), b=2.0), 2.0 * np.ones(n))


def test_a_check_does_not_cost_the_entry(compiler, monkeypatch):
    if compiler != "llvm":
        pytest.skip("native code only")

    @wg.jit
    def root(x):
        if np.sum(x) < 0:
            raise ValueError("negative sum")
        assert np.all(x < 100)
        return np.sqrt(np.sum(x))

    for _ in range(3):
        root(X)
    assert straight(root, monkeypatch, X) == np.sqrt(np.sum(X))
    for _ in range(2):
        with pytest.raises(ValueError, match="negative sum"):
            straight(root, monkeypatch, -X)
        with pytest.raises(AssertionError):
            straight(root, monkeypatch, 100 * X)
    assert straight(root, monkeypatch, X) == np.sqrt(np.sum(X))


def test_a_check_that_fails_leaves_modified_arguments(compiler):
    @wg.jit
    def scaled(x, factor):
        x *= factor
        assert factor > 0
        return np.sum(x)

    x = X.copy()
    for _ in range(3):
        scaled(x, 1.0)
    with pytest.raises(AssertionError):
        scaled(x, -1.0)
    np.testing.assert_array_equal(x, X)
