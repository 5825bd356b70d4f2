"""Versions: writing into a large array in place keeps every state it has had, in linear time."""

import gc
import sys
import tracemalloc

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core import array_states


@pytest.fixture
def large(monkeypatch):
    """Every array counts as large."""
    monkeypatch.setattr(array_states, "LIMIT", -1)


def value(x):
    return np.array(x.node.value)


def test_an_array_of_ones_own_is_written_to_in_place(large):
    x = wg.tensor(np.zeros(4)) + 0.0
    memory = x.node.value.ctypes.data
    for i in range(4):
        x[i] = float(i)
    assert x.node.value.ctypes.data == memory
    np.testing.assert_array_equal(x.numpy(), [0.0, 1.0, 2.0, 3.0])


def test_old_states_are_put_together_again_in_any_order(large, rng):
    x = wg.tensor(np.zeros(6), requires_grad=True) * 1.0
    nodes, states = [x.node], [value(x)]
    mask = np.array([True, False] * 3)
    indices = [0, slice(1, 4), [5, 5, 0], mask, Ellipsis, (slice(None, None, -1),)]
    for k, index in enumerate(indices * 3):
        x[index] = float(k) + rng.normal()
        nodes.append(x.node)
        states.append(value(x))
    orders = [range(len(nodes)), reversed(range(len(nodes))), rng.permutation(len(nodes))]
    for order in orders:
        for k in order:
            np.testing.assert_array_equal(nodes[k].value, states[k])
            assert nodes[k].spec.shape == (6,)
    held = [node.value for node in reversed(nodes)]  # a state somebody looks at is not taken apart
    for got, want in zip(held, reversed(states), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "watch", ["numpy", "data", "view", "row", "detach", "copy", "flat", "user"]
)
def test_nothing_that_somebody_holds_is_overwritten(large, watch):
    x = wg.tensor(np.zeros((4, 8))) + 1.0
    held = {
        "numpy": lambda: x.numpy(),
        "data": lambda: x.data[1:],
        "view": lambda: x.T.node.value,
        "row": lambda: x[0].node.value,
        "detach": lambda: x.detach(),
        "copy": lambda: x.copy(),
        "flat": lambda: x.ravel().node.value,
        "user": lambda: x.node.value,
    }[watch]()
    x[...] = 7.0
    x[0, 0] = 8.0
    np.testing.assert_array_equal(wg.tensor(held).numpy(), 1.0)
    assert x.numpy()[0, 0] == 8.0 and x.numpy()[1, 1] == 7.0


def test_a_read_only_or_borrowed_array_is_copied(large):
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    assert wg.grad(lambda x: _write(x))(frozen)[0] == 0.0
    np.testing.assert_array_equal(frozen, 0.0)
    mine = np.zeros(3)
    wg.grad(lambda x: _write(x))(mine)
    np.testing.assert_array_equal(mine, 0.0)


def _write(x):
    x[0] = 5.0
    x[1] = 6.0
    return np.sum(x)


def test_a_write_that_fails_leaves_the_array_as_it_was(large):
    x = wg.tensor(np.zeros(3)) + 1.0
    for index, bad in ((slice(None), [1.0, 2.0]), (7, 1.0), (0, 1j), ([0, 9], 2.0)):
        with pytest.raises((ValueError, IndexError, TypeError)):
            x[index] = bad
        np.testing.assert_array_equal(x.numpy(), 1.0)


def test_values_used_before_a_write_keep_their_derivative(large):
    def f(x):
        y = x * 1.0
        square = y * y  # needs y as it is now
        y[0] = 10.0
        y[1] = y[0] * y[2]
        return np.sum(square) + np.sum(np.sin(y))

    x = np.array([0.5, 1.0, 1.5])
    want = 2 * x + np.array([0.0, 0.0, np.cos(1.5) + 10.0 * np.cos(15.0)])
    np.testing.assert_allclose(wg.grad(f)(x), want)
    hessian = wg.jacobian(wg.grad(f))(x)
    np.testing.assert_allclose(
        hessian, np.diag([2.0, 2.0, 2.0 - np.sin(1.5) - 100.0 * np.sin(15.0)]), atol=1e-12
    )


def test_an_interrupt_in_the_middle_of_a_write_loses_nothing(large, monkeypatch):
    x = wg.tensor(np.zeros(4)) + 1.0
    y = x * x
    monkeypatch.setattr(
        "wengert._engine.core.dispatch.next_serial", _interrupt
    )  # right after the write
    with pytest.raises(KeyboardInterrupt):
        x[1] = 9.0
    monkeypatch.undo()
    np.testing.assert_array_equal(x.numpy(), 1.0)
    np.testing.assert_array_equal(y.numpy(), 1.0)


def _interrupt():
    raise KeyboardInterrupt


# ---- cost --------------------------------------------------------------------------------------


def fill(x):
    y = np.zeros_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = 0.5 * y[i - 1] + x[i]
    return y[-1] * 1.0


def rows(x):
    y = np.zeros((len(x), 4), like=x)
    for i in range(1, len(x)):
        y[i] = 0.5 * y[i - 1] + x[i]
        y[i] += 0.25 * y[i - 1]
        y[i, :2] *= 0.5
    return np.sum(y[-1])


def columns(x):
    y = np.zeros((3, len(x)), like=x)
    for i in range(1, len(x)):
        y[:, i] = 0.5 * y[:, i - 1] + x[i]
    return np.sum(y[:, -1])


def read(x):
    total = 0.0
    for i in range(len(x) - 1):
        total = total + x[i] * x[i + 1]
    return total


def peak(f, *args):
    gc.collect()
    tracemalloc.start()
    f(*args)
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return size


@pytest.mark.sample(2)
@pytest.mark.parametrize("program", [fill, rows, columns, read], ids=lambda f: f.__name__)
@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_loops_take_memory_in_proportion_to_their_length(program, mode):
    def run(n):
        x = np.cos(np.arange(float(n)))
        if mode == "reverse":
            wg.grad(program)(x)
        else:
            wg.jvp(program, (x,), (x,))

    run(10)
    small, big = peak(run, 200), peak(run, 600)
    assert big < 3.6 * small, (small, big)


def test_ten_thousand_reads():
    x = np.cos(np.arange(10_000.0))
    want = np.zeros_like(x)
    want[:-1] += x[1:]
    want[1:] += x[:-1]
    np.testing.assert_allclose(wg.grad(read)(x), want)


def test_a_long_history_is_freed_without_recursion():
    x = wg.tensor(np.zeros(2000), requires_grad=True) * 1.0
    depth = sys.getrecursionlimit() * 20
    for i in range(depth):
        x[i % 2000] = 1.0
    first = x.node
    while first.args and type(first.args[0]) is type(first):
        first = first.args[0]
    assert np.sum(first.value) == 0.0
    del x, first
    gc.collect()


def test_a_constant_that_nobody_differentiates_keeps_no_history():
    x = wg.tensor(np.zeros(2000)) + 0.0

    def write(n):
        for i in range(n):
            x[i % 2000] = 1.0

    write(10)
    assert peak(write, 4000) < 200_000
