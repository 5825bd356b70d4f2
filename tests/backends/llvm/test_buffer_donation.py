"""Updates in place change nothing but the speed.

A compiled step may write to the arrays of variables instead of giving them new ones; whoever holds
an old value keeps it, a run that fails has changed nothing, and Ctrl-C finds all or nothing.
"""

import copy
import threading

import numpy as np
import pytest

import wengert as wg
from wengert import errors, nn, optim
from wengert._engine.backends.variable_updates import VariableWriter

N = 96  # a square of numbers is too large to be left apart


def stepping(optimizer, weight, result=lambda loss: loss.detach()):
    @wg.jit
    def step(x, labels):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(np.tanh(x @ weight), labels)
        loss.backward()
        optimizer.step()
        return result(loss)

    return step


@pytest.fixture
def weight():
    return nn.Parameter(np.random.default_rng(0).normal(size=(N, N)) / 9)


@pytest.fixture
def batch():
    rng = np.random.default_rng(1)
    return rng.normal(size=(5, N)), rng.integers(0, N, size=5)


def address(weight):
    return weight.node.value.ctypes.data


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (lambda p: optim.SGD([p], lr=0.1, momentum=0.9, nesterov=True), np.float64),
        (lambda p: optim.AdamW([p], lr=0.01), np.float32),
        (lambda p: optim.RMSprop([p], lr=0.01, momentum=0.5, centered=True), np.float64),
    ],
)
def test_steps_are_taken_in_place_and_are_those_of_eager_ones(make, dtype, weight, batch):
    weight = nn.Parameter(weight.numpy().astype(dtype))
    twin = nn.Parameter(weight.numpy())
    optimizer = make(twin)
    step = stepping(make(weight), weight)
    x, labels = batch[0].astype(dtype), batch[1]
    places = []
    for _ in range(4):
        loss = step(x, labels)
        optimizer.zero_grad()
        expected = nn.functional.cross_entropy(np.tanh(x @ twin), labels)
        expected.backward()
        optimizer.step()
        places.append(address(weight))
        np.testing.assert_allclose(loss, expected.detach(), rtol=1e-5)
    tolerance = 1e-10 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(weight.numpy(), twin.numpy(), rtol=tolerance, atol=tolerance)
    assert len(set(places[1:])) == 1  # the first time a graph knows the array


@pytest.mark.parametrize(
    "moved",
    [
        lambda x: x[::-1],
        lambda x: x.T,
        lambda x: np.roll(x, 1, axis=0),
        lambda x: np.concatenate([x[:1], x[:-1]]),
    ],
    ids=["reversed", "transposed", "rolled", "shifted"],
)
def test_elements_that_are_read_elsewhere_are_not_written_before(moved):
    expected = np.random.default_rng(2).normal(size=(N, N))
    held = wg.variable(expected.copy())

    @wg.jit
    def step():
        held[...] = moved(held) * 0.5 + held

    for _ in range(4):
        step()
        expected = moved(expected) * 0.5 + expected
    np.testing.assert_allclose(held.numpy(), expected, rtol=1e-14)


def test_whoever_holds_a_value_keeps_it(weight, batch):
    step = stepping(optim.Adam([weight], lr=0.01), weight)
    step(*batch)
    before = weight.numpy().copy()
    held = [weight.detach(), weight.numpy(), np.asarray(weight.detach()), weight.T]
    state = {"w": weight.node.value}
    square = np.sum(weight * weight)
    step(*batch)
    assert not np.array_equal(weight.numpy(), before)
    for x in held[:3]:
        np.testing.assert_array_equal(np.asarray(x), before)
    np.testing.assert_array_equal(state["w"], before)
    np.testing.assert_array_equal(held[3].numpy(), weight.numpy().T)  # a view: it follows
    weight.grad = None
    square.backward()
    np.testing.assert_array_equal(weight.grad.numpy(), 2 * before)


def test_results_that_can_be_differentiated_keep_what_they_were_computed_from(weight, batch):
    step = stepping(optim.SGD([weight], lr=0.1), weight, result=lambda loss: loss)
    step(*batch)
    twin = nn.Parameter(weight.numpy())
    loss = step(*batch)
    step(*batch)
    weight.grad = None
    loss.backward()
    nn.functional.cross_entropy(np.tanh(batch[0] @ twin), batch[1]).backward()
    np.testing.assert_allclose(weight.grad.numpy(), twin.grad.numpy(), rtol=1e-10)


def test_a_run_that_fails_changes_nothing(weight, batch):
    optimizer = optim.Adam([weight], lr=0.01)
    step = stepping(optimizer, weight)
    step(*batch)
    before, state = weight.numpy().copy(), copy.deepcopy(optimizer.state_dict())
    with pytest.raises(errors.ArgumentError, match="classes"):
        step(batch[0], batch[1] + N)
    np.testing.assert_array_equal(weight.numpy(), before)
    for a, b in zip(state["states"], optimizer.state_dict()["states"], strict=True):
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])


def test_ctrl_c_after_the_run_finds_all_written(weight, batch, monkeypatch):
    optimizer = optim.Adam([weight], lr=0.01)
    step = stepping(optimizer, weight)
    step(*batch)
    twin, other = copy.deepcopy((weight, optimizer))
    step(*batch)
    write = VariableWriter.__call__
    calls = []

    def interrupted(self, values):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        write(self, values)

    monkeypatch.setattr(VariableWriter, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        step(*batch)
    monkeypatch.undo()
    again = stepping(other, twin)
    again(*batch)
    again(*batch)
    np.testing.assert_allclose(weight.numpy(), twin.numpy(), rtol=1e-12)
    assert optimizer.state_dict()["states"][0]["step"] == 3


def test_compiled_functions_of_other_threads_see_one_moment():
    """Two variables that are always equal are seen equal, however long the run takes."""
    a, b = (nn.Parameter(np.zeros((300, 300))) for _ in range(2))

    @wg.jit
    def difference():
        return np.max(np.abs(a.detach() - b.detach()))

    def moved():
        a.grad = b.grad = np.full((300, 300), -1.0)
        optimizer.step()
        return a.detach()[0, 0] * 0.0

    optimizer = optim.SGD([a, b], lr=1.0)
    step = wg.jit(moved)
    step(), difference()
    found, stop = [], threading.Event()

    def look():
        while not stop.is_set():
            found.append(float(difference()))

    looking = threading.Thread(target=look)
    looking.start()
    for _ in range(60):
        step()
    stop.set()
    looking.join()
    assert found and set(found) == {0.0}
    assert a.numpy()[0, 0] == 61.0
