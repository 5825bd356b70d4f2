"""What has no derivative is refused by name: integers, objects, text, times; never a zero.

Captured by a function they are constants, as far as NumPy can compute with them.
"""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import DtypeError, NotDifferentiableError, WengertError

X = np.array([1.0, 2.0, 3.0])
WHOLE = [np.array([1, 2, 3]), np.array([1, 2, 3], np.uint8), np.array([True, False, True]), 3, True]
ODD = {
    "objects": np.array([1.0, 2, None], object),
    "text": np.array(["a", "b", "c"]),
    "bytes": np.array([b"a", b"b", b"c"]),
    "dates": np.array(["2020-01-01"] * 3, "M8[D]"),
    "times": np.array([1, 2, 3], "m8[s]"),
    "records": np.zeros(3, [("a", float), ("b", int)]),
}
TRANSFORMS = {
    "grad": lambda f, x: wg.grad(f)(x),
    "jit of grad": lambda f, x: wg.jit(wg.grad(f))(x),
    "jvp": lambda f, x: wg.jvp(f, (x,), (x,)),
    "hessian": lambda f, x: wg.hessian(f)(x),
    "jacobian": lambda f, x: wg.jacobian(f)(x),
}


@pytest.mark.parametrize("way", TRANSFORMS)
@pytest.mark.parametrize("x", WHOLE, ids=lambda x: str(np.asarray(x).dtype))
def test_derivatives_with_respect_to_integers(way, x):
    with pytest.raises(NotDifferentiableError, match="Cast it first"):
        TRANSFORMS[way](lambda x: np.sum(x * 2.0), x)


@pytest.mark.parametrize("way", TRANSFORMS)
@pytest.mark.parametrize("name", ODD)
def test_derivatives_by_what_is_no_number(way, name):
    with pytest.raises((NotDifferentiableError, DtypeError)) as caught:
        TRANSFORMS[way](lambda x: np.sum(x * 2.0), ODD[name])
    assert str(ODD[name].dtype) in str(caught.value) or "object" in str(caught.value)
    assert __file__ in str(caught.value)


@pytest.mark.parametrize("name", ODD)
def test_tensors_and_graphs_of_what_is_no_number(name):
    with pytest.raises(DtypeError):
        wg.tensor(ODD[name])
    with pytest.raises(DtypeError):
        wg.trace(lambda x: x)(ODD[name])


@pytest.mark.parametrize("name", ["text", "bytes", "dates", "records"])
@pytest.mark.parametrize("make", [lambda f: f, wg.jit], ids=["eager", "native"])
def test_what_cannot_be_computed_with_is_named(name, make):
    with pytest.raises(WengertError) as caught:
        make(wg.grad(lambda x: np.sum(x * ODD[name])))(X)
    assert "multiply" in str(caught.value) and __file__ in str(caught.value)


@pytest.mark.parametrize("make", [lambda f: f, wg.jit], ids=["eager", "native"])
def test_integers_that_are_captured_are_constants(make):
    n, mask = np.array([1, 2, 3]), np.array([True, False, True])
    g = make(wg.grad(lambda x: np.sum(x * n + x * mask + x**n)))(X)
    np.testing.assert_array_equal(g, n + mask + n * X ** (n - 1))
    by_x = make(wg.grad(lambda x, n: np.sum(x**n)))
    np.testing.assert_array_equal(by_x(X, n), n * X ** (n - 1))


def test_integers_in_containers_are_refused_too():
    with pytest.raises(NotDifferentiableError):
        wg.grad(lambda p: np.sum(p["x"]) * p["n"])({"x": X, "n": 3})


def test_a_result_of_integers_has_no_gradient():
    with pytest.raises(WengertError):
        wg.grad(lambda x: np.sum(x > 1))(X)
    with pytest.raises(WengertError):
        wg.grad(lambda x: np.argmax(x))(X)
