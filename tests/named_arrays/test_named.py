"""Named axes: matched by name in any order, and refused where names do not say enough."""

import copy
import pickle

import numpy as np
import pytest
from wengert.axes import Named, concatenate, dot, stack, where

import wengert as wg
from wengert.errors import OperandError, ShapeError
from wengert.testing import check_grads


@pytest.fixture
def x(rng):
    return wg.named(rng.normal(size=(2, 3)), "batch feature")


@pytest.fixture
def w(rng):
    return wg.named(rng.normal(size=(4, 3)), ("hidden", "feature"))


def test_axes_meet_by_name_in_any_order(x):
    turned = x.ordered("feature batch")
    assert turned.axes == ("feature", "batch") and turned.values.shape == (3, 2)
    for f in (np.add, np.subtract, np.multiply, np.maximum, np.arctan2):
        both = f(x, turned)
        assert both.axes == ("batch", "feature")
        np.testing.assert_array_equal(both.values, f(x.values, x.values))
        np.testing.assert_array_equal(f(turned, x).array("batch feature"), both.values)


def test_axes_that_one_operand_lacks(x):
    scale = wg.named(np.array([1.0, 10.0, 100.0]), "feature")
    row = wg.named(np.array([5.0, 7.0]), "batch")
    np.testing.assert_array_equal((x * scale).values, x.values * [1.0, 10.0, 100.0])
    np.testing.assert_array_equal((scale * x).array(x.axes), (x * scale).values)
    np.testing.assert_array_equal((x + row).values, x.values + np.array([[5.0], [7.0]]))
    outer = row * scale
    assert outer.sizes == {"batch": 2, "feature": 3}
    np.testing.assert_array_equal(outer.values, np.outer([5.0, 7.0], [1.0, 10.0, 100.0]))
    three = x * wg.named(np.ones(5), "time") + row
    assert three.sizes == {"batch": 2, "feature": 3, "time": 5}


def test_operators(x):
    v = x.values
    for got, want in [
        (2.0 - x, 2.0 - v),
        (x**2, v**2),
        (1.0 / x, 1.0 / v),
        (-x, -v),
        (abs(x), abs(v)),
        (x > 0, v > 0),
        (np.exp(x), np.exp(v)),
        (x // 0.3, v // 0.3),
        (x == x, v == v),
    ]:
        np.testing.assert_array_equal(got.values, want)
        assert got.axes == x.axes


def test_reductions(x):
    for name in "sum mean prod min max var std argmax".split():
        f = getattr(np, name)
        np.testing.assert_allclose(getattr(x, name)("batch").values, f(x.values, axis=0))
        assert getattr(x, name)("batch").axes == ("feature",)
        np.testing.assert_allclose(f(x, axis="feature").values, f(x.values, axis=1))
    assert x.sum() == np.sum(x) == x.values.sum() and not isinstance(x.sum(), Named)
    np.testing.assert_allclose(x.sum(keep="batch").values, x.values.sum(1))
    np.testing.assert_allclose(x.sum("batch feature"), x.values.sum())
    assert x.sum(keep=("feature", "batch")) is x
    with pytest.raises(ShapeError, match="no axis 'time'"):
        x.sum("time")


def test_dot(x, w):
    product = dot(x, w)
    assert product.axes == ("batch", "hidden")
    np.testing.assert_allclose(product.values, x.values @ w.values.T)
    np.testing.assert_allclose(dot(w, x).array("batch hidden"), product.values)
    np.testing.assert_allclose(dot(x, x, over="feature").values, np.sum(x.values**2, 1))
    np.testing.assert_allclose(dot(x, x), np.sum(x.values**2))
    with pytest.raises(ShapeError, match="no common axis"):
        dot(x, wg.named(np.ones(2), "other"))
    with pytest.raises(ShapeError, match="no axis 'hidden'"):
        dot(x, w, over="hidden")


def test_taking_turning_joining(x):
    np.testing.assert_array_equal(x.take(feature=1).values, x.values[:, 1])
    assert x.take(batch=0, feature=2) == x.values[0, 2]
    np.testing.assert_array_equal(x.take(feature=slice(1, None)).values, x.values[:, 1:])
    np.testing.assert_array_equal(x.take(feature=np.array([2, 0])).values, x.values[:, [2, 0]])
    flat = x.flatten("feature batch", "all")
    np.testing.assert_array_equal(flat.values, x.values.T.ravel())
    back = flat.unflatten("all", feature=3, batch=2)
    np.testing.assert_array_equal(back.array("batch feature"), x.values)
    assert x.spread(time=4).sizes == {"time": 4, "batch": 2, "feature": 3}
    assert x.rename(batch="row").axes == ("row", "feature")
    both = concatenate([x, x.ordered("feature batch")], "batch")
    assert both.sizes == {"batch": 4, "feature": 3}
    assert stack([x, x], "copy").axes == ("copy", "batch", "feature")
    np.testing.assert_array_equal(where(x > 0, x, 0.0).values, np.maximum(x.values, 0.0))
    with pytest.raises(ShapeError, match="has length 2 in one array and 1"):
        concatenate([x, x.take(batch=slice(0, 1))], "feature")


def test_what_names_do_not_say_is_refused(x):
    with pytest.raises(ShapeError, match="'feature' has length 3 in one operand and 4"):
        x + wg.named(np.ones(4), "feature")
    with pytest.raises(ShapeError, match="its axes have no names"):
        x + np.ones(3)
    with pytest.raises(ShapeError, match="two axes named 'a'"):
        wg.named(np.ones((2, 2)), "a a")
    with pytest.raises(ShapeError, match="Give one name per axis"):
        wg.named(np.ones((2, 2)), "a")
    with pytest.raises(ShapeError, match="must be an identifier"):
        wg.named(np.ones(2), ["2"])
    with pytest.raises(ShapeError, match="two axes named"):
        x.rename(batch="feature").values  # noqa: B018
    with pytest.raises(OperandError, match="not defined for named axes"):
        np.cumsum(x)
    with pytest.raises(OperandError, match="not defined for named axes"):
        np.add.reduce(x)
    with pytest.raises(ShapeError, match="must have each axis"):
        x.array("batch")


def test_derivatives(x, w):
    def loss(w, x):
        hidden = np.tanh(dot(x, w))
        return (hidden * hidden).mean()

    bar = wg.grad(loss)(w, x)
    assert isinstance(bar, Named) and bar.axes == w.axes
    plain = wg.grad(lambda w: np.mean(np.tanh(x.values @ w.T) ** 2))(w.values)
    np.testing.assert_allclose(bar.values, plain, rtol=1e-12)
    check_grads(lambda w: loss(Named(w, "hidden feature"), x), (w.values,), order=2)


def test_graphs(x, w):
    graph = wg.trace(lambda w, b: dot(Named(b, "batch feature"), w).sum("batch"))(
        w, wg.spec(("n", 3))
    )
    out = graph(w, x.values)
    assert isinstance(out, Named) and out.axes == ("hidden",)
    np.testing.assert_allclose(out.values, (x.values @ w.values.T).sum(0))
    np.testing.assert_allclose(graph(w, np.ones((5, 3))).values, 5 * w.values.sum(1))


def test_it_is_an_ordinary_object(x):
    for twin in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert twin.axes == x.axes
        np.testing.assert_array_equal(twin.values, x.values)
    assert repr(wg.named([1, 2], "a")) == "Named(a=2: array([1, 2]))"
    assert len(x) == 2 and x.dtype == float and bool(wg.named(True, ""))
