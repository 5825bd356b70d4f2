"""Style 003: decorated methods, and gradients by name."""

import numpy as np
import pytest

import wengert as wg
from wengert.extend import as_operation, backward, grad_compute, gradients, in_class
from wengert.testing import check_grads


@pytest.fixture(scope="module")
def tensor_class():
    class Tensor(wg.Tensor):
        @backward("MatMul")
        def __matmul__(self, other):
            other = other if isinstance(other, wg.Tensor) else Tensor(other)
            return Tensor(self.data @ other.data)

        @backward("add")
        def __add__(self, other):
            return self.data + other.data

        __radd__ = __add__

        @backward("mul")
        def __mul__(self, other):
            return self.data * other.data

        __rmul__ = __mul__

        @backward("neg")
        def __neg__(self):
            return -self.data

        @backward("Mean")
        def mean(self, *, axis=None):
            return np.mean(self.data, axis=axis)

    gradients["MatMul"] = lambda grad, out, x, y: (grad @ y.T, x.T @ grad)

    def mean(grad, out, x, *, axis=None):
        kept = np.expand_dims(grad, axis) if axis is not None else grad
        return (np.ones(np.shape(x)) * kept / (np.size(x) // np.size(out)),)

    gradients["Mean"] = mean
    yield Tensor
    del gradients["MatMul"], gradients["Mean"]


def test_parents_grad_fn_and_its_name(tensor_class):
    x = tensor_class(np.eye(2), requires_grad=True)
    w = tensor_class(np.ones((2, 2)), requires_grad=True)
    y = x @ w
    assert type(y) is tensor_class
    assert (y.grad_fn_name, repr(y.grad_fn)) == ("MatMulBackward", "<MatMulBackward>")
    assert y.parents == (x, w)
    assert not y.is_leaf and y.requires_grad
    assert (x @ x).parents == (x,)
    assert [type(p) for p in (y + 1.0).parents] == [wg.Tensor]
    assert ((-y).grad_fn_name, y.mean().grad_fn_name) == ("negBackward", "MeanBackward")


def test_constants_are_not_recorded(tensor_class):
    y = tensor_class([1.0]) * 2.0
    assert type(y) is tensor_class and y.grad_fn is None


def test_gradients_of_decorated_methods(tensor_class, rng):
    x, w = rng.normal(size=(3, 2)), rng.normal(size=(2, 4))

    def f(x, w):
        x, w = in_class(x, tensor_class), in_class(w, tensor_class)
        y = x @ w
        return (y * y + 2.0 * (-y) + y.mean(axis=0)).mean()

    check_grads(f, (x, w), order=2, modes=("fwd", "rev"))


def test_rule_is_looked_up_when_needed(tensor_class):
    x = tensor_class([1.0, 2.0], requires_grad=True)
    y = (-x).sum()
    before = gradients["neg"]
    gradients["neg"] = lambda grad, out, x: (7.0 * grad,)
    try:
        y.backward()
    finally:
        gradients["neg"] = before
    np.testing.assert_array_equal(x.grad.numpy(), [7.0, 7.0])


def test_class_with_its_own_grad_compute():
    class Loss:
        def grad_compute(self, name, grad, out, y, y_hat):
            assert name == "tests.Squared"
            return None, grad * 2.0 * (y_hat - y) / y_hat.size

    class Squared(Loss):
        @backward("tests.Squared")
        def forward(self, y, y_hat):
            return np.mean((y_hat.data - y.data) ** 2)

    y_hat = wg.tensor([1.0, 2.0], requires_grad=True)
    loss = Squared().forward(np.array([0, 1]), y_hat)
    assert loss.grad_fn_name == "tests.SquaredBackward"
    (10.0 * loss).backward()
    np.testing.assert_array_equal(y_hat.grad.numpy(), [10.0, 10.0])


def test_methods_accept_plain_arrays():
    class Sign:
        @backward("tests.Sign")
        def forward(self, x):
            return np.sign(x.data)

    assert Sign().forward(-2.0) == -1.0
    np.testing.assert_array_equal(Sign().forward(np.array([1.0, -3.0])), [1.0, -1.0])
    assert as_operation(Sign().forward).label == "tests.Sign"


def test_table_of_gradients():
    assert grad_compute("mul", 2.0, 12.0, 3.0, 4.0) == (8.0, 6.0)
    assert {"add", "sub", "neg", "mul", "truediv"} <= set(gradients)
    assert "add" in gradients and len(gradients) == len(list(gradients))

    @gradients("tests.once")
    def _(grad, out, x):
        return (grad,)

    @gradients("tests.once")
    def second(grad, out, x):
        return (2.0 * grad,)

    assert gradients["tests.once"] is second
    del gradients["tests.once"]
    assert "tests.once" not in gradients
