"""Loops that the host runs step by step: values, checkpoints, and where the host waits."""

import numpy as np
import pytest
from wengert.backends import emulated_device

import wengert as wg
from wengert._engine.backends.cuda import EmulatedDevice, library_calls
from wengert._engine.backends.cuda.current_device import using

A = np.random.default_rng(0).normal(size=(4, 4))


def layers(x):
    return wg.fori_loop(0, 23, lambda i, s: np.tanh(s @ A * 0.5) + 0.01 * i, x)


def kept(x):
    return wg.fori_loop(0, 23, lambda i, s: np.tanh(s @ A * 0.5) + 0.01 * i, x, memory=4)


def ending(x):
    return wg.while_loop(
        lambda s: s[1] < 19, lambda s: (np.tanh(s[0] @ A * 0.5), s[1] + 1), (x, 0), memory=3
    )[0]


def series(x):
    s, y = wg.scan(
        lambda s, t: (np.tanh(s @ A * 0.5) + t, np.sum(s) * t),
        x,
        np.linspace(0.0, 1.0, 17),
        memory=3,
        reverse=True,
    )
    return s + np.sum(y)


@pytest.fixture
def no_host_callbacks(monkeypatch):
    """An error instead of a host callback, or of a loop on the host."""

    def refuse(*args):
        raise AssertionError("computed on the host")

    monkeypatch.setattr(library_calls, "_on_host", refuse)
    monkeypatch.setattr(library_calls, "backend", refuse)


@pytest.mark.parametrize("function", [layers, kept, ending, series])
def test_values_and_gradients(function, no_host_callbacks):
    both = wg.value_and_grad(lambda x: np.sum(np.sin(function(x))))
    wanted = both(A)
    with emulated_device():
        got = wg.device_get(wg.jit(both, backend="cuda")(A))
    assert np.allclose(got[0], wanted[0], rtol=1e-13)
    assert np.allclose(got[1], wanted[1], rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("function", [kept, ending, series])
def test_checkpoints_are_those_of_the_host(function):
    graph = wg.trace(wg.grad(lambda x: np.sum(function(x))))(A)
    stored = [n for n in graph.nodes if getattr(n.spec, "dtype", None) == np.uint8]
    part = wg.Graph(*stored, inputs=graph.inputs)
    wanted = np.asarray(wg.computation(part, backend="interpret")(A)).view(float)
    with emulated_device():
        got = wg.device_get(wg.computation(part, backend="cuda")(A)).view(float)
    assert wanted.size
    assert np.allclose(got, wanted, rtol=1e-13, atol=0)


class Counting(EmulatedDevice):
    """A device that counts copies between it and the host."""

    def __init__(self):
        super().__init__()
        self.waits = self.uploads = 0

    def get(self, x):
        self.waits += 1
        return super().get(x)

    def put(self, x):
        self.uploads += not self.owns(x)
        return super().put(x)


def copies(function, *args):
    """The copies of a run, without those of the first one."""
    run = wg.jit(function, backend="cuda")
    with using(Counting()) as device:
        run(*args)
        device.waits = device.uploads = 0
        run(*args)
    return device.waits, device.uploads


def steps(n):
    def f(x, table):
        def step(i, s):
            y, t = s
            return np.tanh(y @ A) + table[i % 3] + t, t * 0.5

        return wg.fori_loop(0, n, step, (x, 1.0))[0]

    return f


@pytest.mark.parametrize("make", [steps, lambda n: wg.grad(lambda x, t: np.sum(steps(n)(x, t)))])
def test_the_host_does_not_wait_in_each_step(make):
    table = np.linspace(0.0, 1.0, 3)
    assert copies(make(5), A, table) == copies(make(50), A, table)


def test_a_condition_is_one_number_for_each_step():
    def f(n):
        return lambda x: wg.while_loop(
            lambda s: s[1] < n, lambda s: (np.tanh(s[0] @ A), s[1] + 1), (x, 0)
        )[0]

    waits = [copies(f(n), A)[0] for n in (5, 50)]
    assert waits[1] - waits[0] == 45


def test_an_index_out_of_range_in_a_step():
    f = wg.jit(lambda x, k: wg.fori_loop(0, 9, lambda i, s: np.tanh(s @ A) + x[k + i // 3], x),
               backend="cuda")  # fmt: skip
    with emulated_device():
        f(A, 1)
        with pytest.raises(IndexError, match="index 4 is out of bounds"):
            f(A, 2)


def test_an_index_out_of_range_in_a_loop_with_a_condition():
    def f(x, k):
        def step(s):
            return np.tanh(s[0] @ A) + x[k + s[1]], s[1] + 1

        return wg.while_loop(lambda s: s[1] < 4, step, (x, 0))[0]

    run = wg.jit(f, backend="cuda")
    with emulated_device():
        run(A, 0)
        with pytest.raises(IndexError, match="index 4 is out of bounds"):
            run(A, 1)
