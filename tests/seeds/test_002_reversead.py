"""What was wrong in the Julia tape, one test for each fault (SEED_SYSTEMS 002.4)."""

import dataclasses

import numpy as np
import pytest

import wengert as wg
from wengert.errors import NotDifferentiableError
from wengert.extend import primitive, vjp
from wengert.testing import check_grads


@pytest.fixture
def times():
    @primitive
    def times(x, y):
        return x * y

    vjp[times] = lambda g, p, x, y: (g * y, g * x)
    return times


def test_a_repeated_operand_counts_once_for_each_occurrence(times):
    """1: d/dx (2 x)(2 x) at 3 was 48."""

    def f(x):
        y = 2.0 * x
        return times(y, y)

    assert float(wg.grad(f)(3.0)) == 24.0
    assert float(wg.grad(lambda x: (2.0 * x) * (2.0 * x))(3.0)) == 24.0
    x = wg.tensor(3.0, requires_grad=True)
    y = x * 2.0
    (y * y).backward()
    assert x.grad.item() == 24.0
    assert float(wg.grad(lambda x: np.sum(np.tanh(x) * np.tanh(x)))(0.5)) == pytest.approx(
        2 * np.tanh(0.5) / np.cosh(0.5) ** 2
    )


def test_the_sigmoid_multiplies_the_adjoint_in(rng):
    """2: dropped it, and forgot to broadcast."""
    sigmoid = primitive(lambda x: 1.0 / (1.0 + np.exp(-x)), name="tests.seeds.sigmoid")
    vjp[sigmoid] = lambda g, p, x: (g * p * (1.0 - p),)
    x, w = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    for f in (sigmoid, wg.nn.functional.sigmoid):
        check_grads(lambda x, f=f: np.sum(w * f(x)), (x,), order=2, entries=False)


def test_reading_an_element_twice_counts_twice():
    """2: the rule of getindex assigned instead of accumulating."""
    x = np.array([1.0, 2.0, 3.0])
    got = wg.grad(lambda x: x[1] * x[1] + x[np.array([0, 0, 1])].sum() + x[1:].sum())(x)
    np.testing.assert_array_equal(got, [2.0, 4.0 + 1.0 + 1.0, 1.0])


def test_batched_products_are_differentiable(rng):
    """2: bmm had no rule."""
    a, b = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4, 2))
    check_grads(lambda a, b: np.sum(np.matmul(a, b) ** 2), (a, b), order=2, entries=False)
    check_grads(lambda a, b: np.sum((a @ b[0]) ** 2), (a, b), order=2, entries=False)


def test_higher_orders(times):
    """3: a design only."""
    f = lambda x: times(x, times(x, np.exp(x)))  # noqa: E731
    third = wg.grad(wg.grad(wg.grad(f)))(0.0)
    assert float(third) == pytest.approx(6.0)


def test_arguments_are_left_alone():
    """4: the caller's objects were wrapped in place; keywords were not supported."""

    @dataclasses.dataclass(frozen=True)
    class Model:
        w: np.ndarray
        name: str

    model = Model(np.array([1.0, 2.0]), "m")
    w = model.w
    got = wg.grad(lambda model, *, x: np.sum(model.w * x) ** 2)(model, x=3.0)
    assert model.w is w and model == model and type(w) is np.ndarray
    np.testing.assert_array_equal(got.w, [54.0, 54.0])

    def fails(model):
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        wg.grad(fails)(model)
    assert type(model.w) is np.ndarray and wg.is_recording()


def test_the_backward_pass_is_linear_and_deep_graphs_work(calls):
    """5: quadratic, and recursion overflowed; adjoints were always Float64."""

    def chain(n):
        def f(x):
            for _ in range(n):
                x = x * 1.0
            return x

        return lambda: wg.grad(f)(2.0)

    assert float(chain(40_000)()) == 1.0
    calls(chain(10))
    assert calls(chain(4_000)) < 9 * calls(chain(500))  # quadratic would be 64
    assert wg.grad(lambda x: np.sum(x * x))(np.ones(3, np.float32)).dtype == np.float32


def test_many_outputs_and_a_clear_message_for_a_missing_rule():
    """6: one scalar output only; a missing rule surfaced as a dispatch error."""
    j = wg.jacobian(lambda x: np.stack([x[0] * x[1], x[0] + x[1]]))(np.array([2.0, 3.0]))
    np.testing.assert_array_equal(j, [[3.0, 2.0], [1.0, 1.0]])

    @primitive
    def ruleless(x):
        return x

    with pytest.raises(NotDifferentiableError, match=r"ruleless.*Register a rule"):
        wg.grad(ruleless)(1.0)


def test_the_branch_taken_is_the_one_differentiated():
    """7: control flow was frozen in the trace."""
    f = wg.grad(lambda x: x * x if x > 0 else -x)
    assert [float(f(3.0)), float(f(-3.0))] == [6.0, -1.0]
