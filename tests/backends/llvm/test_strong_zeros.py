"""Strong zeros in native code: 0 where t is exactly 0 and g is not finite, g everywhere else.

Where g is a multiple of t one comparison decides; where it is not, a zero of t must leave a finite
g alone.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.op import lookup

strong_zero = lookup("strong_zero")
NUMBERS = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 5e-324]
T, P, Q = np.array(list(itertools.product(NUMBERS, repeat=3))).T


def multiples():
    return {
        "product": lambda t, p, q: strong_zero(t, t * p),
        "the other way round": lambda t, p, q: strong_zero(t, p * t),
        "quotient": lambda t, p, q: strong_zero(t, t / p),
        "of the negative": lambda t, p, q: strong_zero(-t, t * p),
        "sum": lambda t, p, q: strong_zero(t, t * p - (t * q) / p),
        "guarded twice": lambda t, p, q: strong_zero(t, strong_zero(t, t * p) * q),
        "guarded by another": lambda t, p, q: strong_zero(t, strong_zero(p, t * p) * q),
    }


def others():
    return {
        "no multiple": lambda t, p, q: strong_zero(t, p * q),
        "sum with another": lambda t, p, q: strong_zero(t, t * p + q),
        "divided by it": lambda t, p, q: strong_zero(t, p / t),
        "power": lambda t, p, q: strong_zero(t, np.power(p, t)),
    }


@pytest.mark.sample(9)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", [*multiples(), *others()])
def test_strong_zeros(name, dtype):
    function = {**multiples(), **others()}[name]
    t, p, q = T.astype(dtype), P.astype(dtype), Q.astype(dtype)
    with np.errstate(all="ignore"):
        found = wg.jit(function)(t, p, q)
        expected = function(t, p, q)
    assert found.dtype == t.dtype
    np.testing.assert_array_equal(found, expected)
    at_zero = found[t == 0]
    assert not np.isnan(at_zero).any()
    if name in multiples():
        assert not at_zero.any()
    elif name == "no multiple":
        assert at_zero.any()


def test_of_complex_numbers():
    z = np.array([0, 1 + 2j, 0])
    p = np.array([np.inf, 2.0, complex(np.nan, 1)])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            wg.jit(lambda t, p: strong_zero(t, t * p))(z, p), [0, 2 + 4j, 0]
        )


def test_a_multiple_of_the_negative_by_a_finite_number_needs_no_guard():
    graph = wg.trace(lambda t: strong_zero(-t, t * 2.0))(T).simplify()
    assert "strong_zero" not in [n.op.name for n in graph]
    graph = wg.trace(lambda t: strong_zero(-t, t * np.inf))(T).simplify()
    assert "strong_zero" in [n.op.name for n in graph]


def test_the_sum_of_a_product_with_strong_zeros_is_one_with_a_vector():
    t = np.zeros((40, 3))
    t[:, 1], t[7] = np.linspace(-1.0, 2.0, 40), [0.0, 2.0, 0.0]
    weights = np.array([[np.inf, 2.0], [1.5, -3.0], [np.nan, 4.0]])
    strong = lookup("strong_einsum")
    f = lambda t, w: np.sum(strong(t, w, subscripts=("ij", "jk", "ik")), axis=0)  # noqa: E731
    compiled = wg.jit(f)
    (product,) = [n for n in compiled.lower(t, weights).graph if n.op is strong]
    assert product.params["subscripts"] == ("j", "jk", "k")
    expected = np.sum(t[:, 1:2] * weights[1], axis=0)
    np.testing.assert_allclose(compiled(t, weights), expected, rtol=1e-13)
    t[0, 2] = 1.0  # and NaN where its factor is not zero
    assert np.isnan(compiled(t, weights)[0])
    np.testing.assert_allclose(compiled(t, weights)[1], expected[1] + 4.0, rtol=1e-13)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, None])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_of_two_long_vectors_and_strong_zeros(dtype, bad):
    # the factors are looked at before the result, which is much larger
    rng = np.random.default_rng(0)
    t, x = rng.normal(size=(3, 70)).astype(dtype), rng.normal(size=(3, 133)).astype(dtype)
    t[:, 5], t[1, 6], t[2, 7] = 0.0, 0.0, np.inf
    for row, column in ((0, 17), (1, 132), (2, 0)):
        if bad is not None:
            x[row, column] = bad
    strong = lookup("strong_einsum")
    f = lambda t, x: strong(t, x, subscripts=("ij", "ik", "kj"))  # noqa: E731
    with np.errstate(all="ignore"):
        terms = t[:, None, :] * x[:, :, None]
        expected = np.where(t[:, None, :] == 0, 0, terms).sum(axis=0)
        found, reference = wg.jit(f)(t, x), f(t, x)
    tolerance = {"rtol": 50 * np.finfo(dtype).eps, "atol": 50 * np.finfo(dtype).eps}
    np.testing.assert_allclose(found, expected, **tolerance)
    np.testing.assert_allclose(reference, expected, **tolerance)
    assert not found[:, 5].any()
    compiled = wg.jit(f).lower(t, x)
    assert ("@infinite" in compiled.llvm_ir) and ("@undefined" in compiled.llvm_ir)


def test_a_strong_product_reads_its_result_again_only_if_a_factor_is_not_finite():
    strong = lookup("strong_einsum")
    f = lambda t, x: strong(t, x, subscripts=("ij", "jk", "ik"))  # noqa: E731
    compiled = wg.jit(f).lower(np.ones((64, 64)), np.ones((64, 64)))
    assert "@infinite" not in compiled.llvm_ir  # the factor is as large as the result
    assert "@undefined" in compiled.llvm_ir
