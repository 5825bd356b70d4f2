"""What was wrong in Nervana Graph, one test for each fault (SEED_SYSTEMS 004.4)."""

import gc
import weakref

import numpy as np
import pytest

import wengert as wg
from wengert.errors import NotDifferentiableError, UnconnectedError
from wengert.extend import Op, deriv, make_transformer, placeholder
from wengert.extend.op_classes.library import Exp, Log, Maximum, Sum
from wengert.extend.op_classes.op import ordered_ops
from wengert.nn import functional
from wengert.testing import check_grads

numpy = make_transformer("numpy")


def test_an_op_without_adjoints_is_never_silently_zero():
    """1: the base method was an empty body."""

    class Silent(Op):
        def transform(self, transformer, x):
            return transformer.exp(x)

    x = placeholder("x")
    assert float(numpy.computation(Silent(x), x)(0.0)) == 1.0
    with pytest.raises(NotDifferentiableError, match="Silent has no generate_adjoints"):
        deriv(Silent(x) + x, x)


def test_an_unreachable_variable_is_reported():
    """1: deriv was a silent constant 0."""
    x, y = placeholder("x"), placeholder("y")
    with pytest.raises(UnconnectedError, match="<Placeholder y>"):
        deriv(Exp(x), y)
    with pytest.raises(UnconnectedError, match="does not depend on the argument"):
        wg.grad(lambda x, y: x * 2.0, 1, unconnected="raise")(1.0, 2.0)


def test_the_remainder_has_its_derivative():
    """1: Mod was silently 0."""
    assert [float(g) for g in wg.grad(np.remainder, (0, 1))(7.5, 2.0)] == [1.0, -3.0]


def test_ties_of_maximum_and_minimum_are_shared():
    """2: 0 to both sides."""
    for f in (np.maximum, np.minimum):
        assert [float(g) for g in wg.grad(f, (0, 1))(2.0, 2.0)] == [0.5, 0.5]
    x, y = placeholder(), placeholder()
    both = numpy.computation(deriv(Maximum(x, y), [x, y]), x, y)
    assert [float(v) for v in both(2.0, 2.0)] == [0.5, 0.5]
    assert [float(v) for v in both(2.0, 1.0)] == [1.0, 0.0]


def test_ties_of_max_and_min_over_axes_are_shared():
    """2: every tie got the full gradient."""
    x = np.array([1.0, 3.0, 3.0, 0.0])
    np.testing.assert_array_equal(wg.grad(np.max)(x), [0.0, 0.5, 0.5, 0.0])
    np.testing.assert_array_equal(wg.grad(lambda x: np.min(-x))(x), [0.0, -0.5, -0.5, 0.0])


def test_power_with_a_constant_exponent():
    """2: y * self / x and log(x): NaN at 0 and for negative bases."""
    x = placeholder()
    for power in (0, 1, 2, 3):
        grad = numpy.computation(deriv(x**power, x), x)
        for base in (-2.0, 0.0, 2.0):
            want = 0.0 if power == 0 else power * base ** (power - 1)
            assert float(grad(base)) == want
            assert float(wg.grad(lambda x, n=power: x**n)(base)) == want
    np.testing.assert_array_equal(wg.grad(lambda x: np.sum(x**2.0))(np.array([-1.0, 0.0])), [-2, 0])


def test_softmax_along_any_axis(rng):
    """2: summed over the default axes instead of its own."""
    x, w = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    for axis in (0, 1, -1):
        np.testing.assert_allclose(functional.softmax(x, axis).sum(axis), 1.0, rtol=1e-14)
        check_grads(
            lambda x, a=axis: np.sum(w * functional.softmax(x, a)), (x,), order=2, entries=False
        )


def test_random_numbers_pass_no_gradient():
    """2: the op passed the gradient through to its input."""
    x = np.ones(3)

    def noisy(x):
        return np.sum(x * np.random.default_rng(0).normal(size=x.shape))

    np.testing.assert_array_equal(wg.grad(noisy)(x), np.random.default_rng(0).normal(size=3))


def test_the_sigmoid():
    """2: its method lacked a parameter."""
    for x in (-800.0, -1.0, 0.0, 2.0, 800.0):
        s = float(functional.sigmoid(x))
        assert 0.0 <= s <= 1.0
        slope = float(wg.grad(functional.sigmoid)(x))
        assert slope == pytest.approx(s * (1 - s), rel=1e-12, abs=1e-300)


def test_cross_entropy_is_not_clipped_and_targets_need_not_sum_to_one(rng):
    """2: the value was clipped at 50, and the gradient assumed that targets sum to one."""
    assert float(functional.cross_entropy(np.array([[0.0, 200.0]]), np.array([0]))) == 200.0
    logits, target = rng.normal(size=(3, 4)), rng.uniform(size=(3, 4))
    check_grads(lambda z: functional.cross_entropy(z, target), (logits,), order=2, entries=False)


def test_one_graph_serves_several_transformers_and_computations():
    """3: passes changed the user's graph; nothing could be added after the first computation."""
    x = placeholder()
    f = x * 1.0 + x * 0.0
    before = [(op, op.args) for op in ordered_ops([f])]
    assert numpy.computation(f, x)(3.0) == 3.0
    assert make_transformer("python").computation(f, x)(3.0) == 3.0
    later = deriv(f * f, x)
    assert float(numpy.computation(later, x)(3.0)) == 6.0
    assert [(op, op.args) for op in ordered_ops([f])] == before


def test_nothing_is_rewritten_at_the_price_of_nan():
    """4: x * 0 became 0, whatever x; log(a / b) had a shortcut that depended on types."""
    x, y = placeholder(), placeholder()
    assert np.isnan(numpy.computation(x * 0.0, x)(np.nan))
    log = numpy.computation([Log(x / y), *deriv(Log(x / y), [x, y])], x, y)
    np.testing.assert_allclose(log(6.0, 3.0), [np.log(2.0), 1 / 6, -1 / 3], rtol=1e-14)


def test_modes_are_given_back_after_an_error():
    """5: modes were globals without try/finally."""
    with pytest.raises(ZeroDivisionError), wg.no_grad():
        raise ZeroDivisionError
    assert wg.is_recording()


def test_graphs_are_freed():
    """5: unbounded caches kept every op alive."""
    x = placeholder()
    op = Sum(Exp(x) * x)
    slope = deriv(op, x)
    numpy.computation(slope, x)(np.ones(3))
    wg.grad(numpy.computation(op, x))(np.ones(3))
    gone = [weakref.ref(o) for o in ordered_ops([slope])]
    del x, op, slope
    gc.collect()
    assert not [ref() for ref in gone if ref() is not None]


def test_shapes_do_not_merge_silently():
    """7: differently named axes took an outer product."""
    with pytest.raises(wg.errors.ShapeError):
        wg.grad(lambda x: np.sum(x + np.ones(4)))(np.ones(3))
    with pytest.raises(wg.errors.ShapeError):
        functional.mse_loss(np.ones((3, 1)), np.ones(3))
