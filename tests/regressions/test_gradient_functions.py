"""Faults of hooks, of `grad_fn` called by hand, and of the types of derivatives."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.kinds.opaque import Opaque

X = np.array([1.0, 2.0])


@pytest.mark.parametrize("shape", [(3,), (4, 2), (1, 2)])
def test_what_a_hook_returned_was_summed_to_the_shape_of_the_gradient(shape):
    w = wg.tensor(X, requires_grad=True)

    def spread(gradient):
        return np.ones(shape)

    handle = w.register_hook(spread)
    with pytest.raises(wg.errors.RuleError, match=r"spread returned shape .*test_gradient_func"):
        np.sum(w * w).backward()
    handle.remove()
    np.sum(w * w).backward()
    assert w.grad.tolist() == [2.0, 4.0]


def test_a_hook_may_return_one_number_for_all():
    w = wg.tensor(X, requires_grad=True)
    w.register_hook(lambda gradient: 3.0)
    np.sum(w * w).backward()
    assert w.grad.tolist() == [3.0, 3.0]


def test_grad_fn_of_one_output_of_several():
    a = wg.tensor(np.diag([3.0, 2.0]), requires_grad=True)
    _, s, _ = np.linalg.svd(a)
    ((u_bar, s_bar, v_bar),) = s.grad_fn(X)
    assert u_bar is None and v_bar is None and s_bar.tolist() == [1.0, 2.0]
    ((svd, _),) = s.grad_fn.next_functions
    (a_bar,) = svd((u_bar, s_bar, v_bar))
    np.sum(s * X).backward()
    assert np.allclose(a_bar.numpy(), a.grad.numpy())


def test_grad_fn_of_an_operation_with_a_forward_rule_only():
    op = Opaque(lambda x: 3.0 * x, name="thrice", jvp=lambda dots, out, x: 3.0 * dots[0])
    y = op(wg.tensor(X, requires_grad=True))
    assert y.grad_fn(X)[0].tolist() == [3.0, 6.0]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.reshape(x, 1)),
        lambda x: np.sum(np.ravel(x)),
        lambda x: np.sum(np.tile(x, 3)),
        lambda x: np.sum(np.expand_dims(x, 0)),
        np.sin,
    ],
)
@pytest.mark.parametrize("x", [2.0, np.float32(2.0), np.array(2.0)])
def test_derivatives_without_axes_are_scalars_of_numpy(f, x):
    kind = np.asarray(x).dtype.type
    assert type(wg.grad(f)(x)) is type(wg.jit(wg.grad(f))(x)) is kind
    assert type(wg.vjp(f, x)[1](kind(1.0))[0]) is kind
    assert [type(y) for y in wg.jvp(f, (x,), (x,))] == [kind, kind]
