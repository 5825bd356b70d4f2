"""Stores to slices of computed length: one loop that computes the elements where they belong."""

import numpy as np
import pytest

import wengert as wg


def outer_sums(x, v):
    for i in range(v.size):
        x[:, i:] += np.outer(0.3 * v[: x.shape[0]], v[i:]) * x[:, i:]
    return x


def shifted(x, v):
    """The new elements are other elements of the array."""
    for i in range(1, v.size):
        x[:, 1:i] = x[:, : i - 1] * v[i]
        x[:, :i] += x[:, :i][:, ::-1]
    return x


def twice(x, v):
    """One slice is written twice, another overlaps it, and what was before is used later."""
    for i in range(v.size - 1):
        before = x[:, i:] * 1.0
        x[:, i:] = v[i]
        x[:, i:] = before * v[i:] + x[:, i:]
        x[:, i + 1 :] -= np.sin(before[:, 1:])
    return x


def backwards(x, v):
    for i in range(2, v.size):
        x[:, i:0:-1] = x[:, :i] + v[:i]
        x[:, i - 1 :: -2] *= 0.5
    return x


def spread(x, v):
    """Numbers, rows and columns are broadcast to the slice."""
    for i in range(v.size):
        x[:, i:] = v[i]
        x[:, :i] = v[:i] + x[:, :i]
        x[1:, i:] = x[:1, i:]
    return x


def fresh(x, v):
    """An array that is made in the step."""
    total = 0.0
    for i in range(v.size):
        y = np.zeros_like(x)
        y[:, i:] = x[:, i:] * v[i]
        y[:, : i + 1] += x[:, : i + 1]
        total = total + np.sum(y * x)
    return total


def conditional(x, v):
    for i in range(v.size):
        if v[i] > 0.0:
            x[:, i:] *= v[i]
        else:
            x[:, :i] -= v[i]
    return x


PROGRAMS = [outer_sums, shifted, twice, backwards, spread, fresh, conditional]


def arguments(rows=6, columns=21):
    random = np.random.default_rng(4)
    return random.normal(size=(rows, columns)), random.normal(size=columns)


@pytest.mark.parametrize("f", PROGRAMS)
def test_values(f):
    x, v = arguments()
    expected = f(x.copy(), v)
    np.testing.assert_allclose(wg.jit(f)(x.copy(), v), expected, rtol=1e-12)


@pytest.mark.sample(2)
@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients(f):
    x, v = arguments(5, 12)
    total = lambda x, v: np.sum(np.sin(f(x * 1.0, v)))  # noqa: E731
    found = wg.jit(wg.grad(total, argnums=(0, 1)))(x, v)
    tape = wg.grad(total, argnums=(0, 1))(x, v)
    for a, b in zip(found, tape, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
    step = 1e-6 * np.cos(np.arange(v.size))
    numeric = (total(x, v + step) - total(x, v - step)) / 2.0
    np.testing.assert_allclose(np.sum(found[1] * step), numeric, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex128"])
def test_elements_have_the_dtype_of_the_array(dtype):
    def scaled(x, v):
        for i in range(v.size):
            x[:, i:] = x[:, i:] * 2 + v[i:]
        return x

    x, v = arguments()
    x, v = (10 * x).astype(dtype), np.abs(v).round()
    expected = scaled(x.copy(), v.astype(dtype))
    np.testing.assert_allclose(wg.jit(scaled)(x.copy(), v.astype(dtype)), expected, rtol=1e-5)


def test_of_a_sum_no_array_is_made():
    def added(x, v):
        for i in range(v.size):
            x[:, i:] += np.outer(v, v[i:])
        return x

    lowered = wg.jit(added).lower(np.zeros((90, 90)), np.zeros(90))
    assert "setitem" not in lowered.llvm_ir
    bodies = [t for t in lowered.llvm_ir.split("\ndefine ") if "@body" in t.split("(")[0]]
    assert bodies and not any("getelementptr i8, ptr %work" in t for t in bodies)


def test_a_strong_product_with_a_vector_ignores_what_a_zero_multiplies():
    strong = wg._engine.core.op.lookup("strong_einsum")
    a = np.array([[1.0, np.inf, 2.0], [np.nan, 3.0, 1.0], [2.0, 2.0, 2.0]])
    t = np.array([0.0, 0.0, 1.5])
    f = lambda t, a: strong(t, a, subscripts=("j", "kj", "k"))  # noqa: E731
    np.testing.assert_array_equal(wg.jit(f)(t, a), [3.0, 1.5, 3.0])
    np.testing.assert_array_equal(wg.jit(f)(t, a.T.copy().T), [3.0, 1.5, 3.0])
