"""Learning rate schedules: values, step counts of optimizers, compiled steps, saving."""

import copy
import pickle

import numpy as np
import pytest

import wengert as wg
from wengert import errors, nn, optim
from wengert.optim import schedules

P0 = np.array([1.0, -2.0, 0.5])
ALL = [
    schedules.Linear(1.0, 0.1, 6),
    schedules.Cosine(0.5, 6, end=0.1),
    schedules.Cosine(0.5, 3, restarts=True),
    schedules.Exponential(0.5, 0.9),
    schedules.Exponential(0.5, 0.5, every=3),
    schedules.Steps(0.5, {2: 0.1, 5: 2.0}),
    schedules.InverseRoot(0.5, 3),
    schedules.OneCycle(0.5, 8),
    schedules.Warmup(3, 0.5),
    schedules.Warmup(3, schedules.Cosine(0.5, 4)),
    schedules.Joined([schedules.Linear(0.0, 1.0, 3), schedules.Exponential(1.0, 0.5)], [3]),
    lambda k: 0.3 / (1.0 + k),
]
EACH = pytest.mark.parametrize("schedule", ALL, ids=[str(i) for i in range(len(ALL))])


def train(schedule, steps=9, compiled=False, make=optim.SGD):
    p = nn.Parameter(P0)
    optimizer = make([p], lr=schedule)

    def step():
        optimizer.zero_grad()
        loss = np.sum(p * p) / 4.0
        loss.backward()
        optimizer.step()
        return loss

    run = wg.jit(step) if compiled else step
    positions = []
    for _ in range(steps):
        run()
        positions.append(p.numpy().copy())
    return np.array(positions), optimizer


@EACH
def test_optimizer_follows_its_schedule(schedule):
    p, want = P0, []
    for k in range(9):
        p = p - float(schedule(k)) * p / 2.0
        want.append(p)
    got, optimizer = train(schedule)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert optimizer.lr == pytest.approx(float(schedule(9)))


@pytest.mark.sample(10)
@EACH
@pytest.mark.parametrize("make", [optim.SGD, optim.Adam], ids=["sgd", "adam"])
def test_compiled_steps_follow_the_schedule(schedule, make):
    got, compiled = train(schedule, compiled=True, make=make)
    want, eager = train(schedule, make=make)
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-15)
    assert compiled.lr == pytest.approx(eager.lr)
    assert compiled.state_dict()["groups"][0]["taken"] == 9


def test_step_with_a_schedule_is_compiled_once():
    built = []
    p = nn.Parameter(P0)
    optimizer = optim.SGD([p], lr=schedules.Cosine(0.1, 10))

    @wg.jit
    def step():
        built.append(None)
        optimizer.zero_grad()
        np.sum(p * p).backward()
        optimizer.step()

    for _ in range(5):
        step()
    assert len(built) == 1
    optimizer.lr = schedules.Linear(0.1, 0.0, 5)
    before = p.numpy().copy()
    step()  # the sixth step: the schedule has reached 0
    np.testing.assert_array_equal(p.numpy(), before)
    assert len(built) == 2


def test_schedules_and_numbers_replace_each_other():
    p = nn.Parameter(P0)
    optimizer = optim.SGD([p], lr=schedules.Linear(1.0, 0.0, 4))
    optimizer.lr = 0.25
    p.grad = np.ones(3)
    optimizer.step()
    np.testing.assert_allclose(p.numpy(), P0 - 0.25)
    optimizer.lr = lambda k: 0.5
    optimizer.step()
    np.testing.assert_allclose(p.numpy(), P0 - 0.75)


def test_state_includes_the_step_count_of_the_schedule():
    schedule = schedules.Linear(1.0, 0.0, 20)
    want, _ = train(schedule, 8)
    first, optimizer = train(schedule, 5)
    state = pickle.loads(pickle.dumps(optimizer.state_dict()))
    p = nn.Parameter(first[-1])
    other = optim.SGD([p], lr=schedule)
    other.load_state_dict(state)
    for _ in range(3):
        p.grad = p.numpy() / 2.0
        other.step()
    np.testing.assert_allclose(p.numpy(), want[-1], rtol=1e-14)


def test_copies_continue_the_schedule():
    _, optimizer = train(schedules.Linear(1.0, 0.0, 20), 5)
    for twin in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert twin.lr == optimizer.lr == 0.75
        assert "lr=Linear(start=1.0, end=0.0, steps=20)" in repr(twin)


def test_parameter_groups_have_their_own_schedules():
    a, b = nn.Parameter(P0), nn.Parameter(P0)
    groups = [{"params": [a], "lr": schedules.Linear(1.0, 0.0, 2)}, {"params": [b]}]
    optimizer = optim.SGD(groups, lr=0.5)
    for _ in range(2):
        a.grad = b.grad = np.ones(3)
        optimizer.step()
    np.testing.assert_allclose(a.numpy(), P0 - 1.5)
    np.testing.assert_allclose(b.numpy(), P0 - 1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: schedules.Linear(1.0, 0.0, 0),
        lambda: schedules.Cosine(1.0, -1),
        lambda: schedules.Exponential(1.0, 0.0),
        lambda: schedules.OneCycle(1.0, 10, rising=1.0),
        lambda: schedules.Joined([schedules.Linear(1.0, 0.0, 2)], [2]),
        lambda: schedules.Warmup(0, 1.0),
    ],
)
def test_errors(make):
    with pytest.raises(errors.ArgumentError) as caught:
        make()
    assert "test_schedules.py" in str(caught.value)
