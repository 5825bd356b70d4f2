"""What a compiled function writes to variables again and again, while others write too."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ShapeError


def counter(value):
    w = wg.variable(np.array(value, float), "w")

    @wg.jit
    def grow(x):
        w[...] = w + x
        return np.sum(w)

    return w, grow


def test_others_may_write_in_between():
    w, grow = counter([[1.0, 2.0], [3.0, 4.0]])
    for _ in range(3):
        grow(1.0)
    assert w.numpy().tolist() == [[4.0, 5.0], [6.0, 7.0]]
    with wg.no_grad():
        w[...] = 0.0
    for _ in range(2):
        assert grow(1.0).item() in (4.0, 8.0)
    assert w.numpy().tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_views_show_what_is_written():
    w, grow = counter([1.0, 2.0])
    grow(1.0)
    first = w[:1]
    for k in range(3):
        grow(1.0)
        assert first.numpy().tolist() == [3.0 + k]
    del first
    later = w[1:]
    grow(1.0)
    assert later.numpy().tolist() == [7.0]


def test_a_variable_without_axes_stays_an_array():
    w, grow = counter(1.0)
    for k in range(3):
        grow(2.0)
        assert type(w.node.value) is np.ndarray
        assert w.item() == 3.0 + 2.0 * k
    with wg.no_grad():
        w[...] = 10.0
    grow(2.0)
    assert w.item() == 12.0


def test_hooks_and_names_stay():
    p = wg.nn.Parameter(np.array([1.0, 2.0]))
    seen = []

    @wg.jit
    def step():
        p[...] = p - 0.5
        return np.sum(p)

    with wg.no_grad():
        step()
        p.register_hook(seen.append)
        step()
        step()
    assert p.requires_grad
    np.sum(p * p).backward()
    assert len(seen) == 1
    np.testing.assert_allclose(p.grad.numpy(), 2 * np.array([-0.5, 0.5]))


def test_an_old_line_keeps_what_it_saw():
    p = wg.tensor([1.0, 2.0], requires_grad=True)
    before = np.sum(p**2)
    held = p.node

    @wg.jit
    def step():
        p[...] = 0.5 * p

    with wg.no_grad():
        for _ in range(3):
            step()
    assert held.value.tolist() == [1.0, 2.0]
    (bar,) = wg.vjp(lambda x: np.sum(x**2), held.value)[1](1.0)
    assert bar.tolist() == [2.0, 4.0] and before.item() == 5.0
    assert p.numpy().tolist() == [0.125, 0.25]


def test_layout_in_memory_stays():
    w = wg.variable(np.asfortranarray(np.arange(6.0).reshape(2, 3)), "w")
    strides = w.node.value.strides

    @wg.jit
    def grow():
        w[...] = w + 1.0

    for _ in range(12):  # by then there may be a program for this layout
        grow()
        assert w.node.value.strides == strides
    assert w.numpy().tolist() == [[12.0, 13.0, 14.0], [15.0, 16.0, 17.0]]


def test_another_shape_is_refused():
    w = wg.variable(np.zeros(2), "w")
    with pytest.raises(ShapeError):
        wg.computation(w + 0.0, updates={w: np.concatenate([w, w])})()


def test_views_that_a_trace_made_of_a_variable_do_not_slow_later_runs():
    w = wg.variable(np.ones((2, 3)), "w")

    @wg.jit
    def step(x):
        loss = np.sum(x @ w.T)
        w[...] = w * 0.5
        return loss

    for _ in range(3):
        step(np.ones(3))
    assert not w._views  # the quick way to write new values is for variables without views
    view = w[:1]
    step(np.ones(3))
    assert view.tolist() == w.tolist()[:1] == [[0.0625] * 3] and len(w._views) == 1
