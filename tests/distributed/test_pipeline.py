"""Pipelines without MPI: schedules, stages, the programs of a stage, one process, bad input."""

import itertools

import numpy as np
import pytest

import wengert as wg
from wengert import distributed, nn
from wengert._engine.core.handle import describe
from wengert.distributed.message_simulator import Send, unfinished
from wengert.distributed.stage_programs import TwoPrograms
from wengert.distributed.stages import SCHEDULES, balanced, divided, messages, passes, stored
from wengert.errors import ArgumentError, NotScalarError, ShapeError, StructureError, TraceError


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("stages", range(1, 9))
def test_schedules_do_not_wait_forever(schedule, stages):
    for count in range(1, 12):
        programs = [messages(schedule, s, stages, count) for s in range(stages)]
        assert unfinished(programs) == {}
        for s in range(stages):
            order = passes(schedule, s, stages, count)
            assert sorted(order) == sorted(itertools.product(("forward", "backward"), range(count)))
            assert all(
                order.index(("forward", k)) < order.index(("backward", k)) for k in range(count)
            )
            most = count if schedule == "gpipe" else min(stages - s, count)
            assert stored(schedule, s, stages, count) == most


def test_a_schedule_whose_sends_wait_would_wait_forever():
    """So sends are begun only (distributed/stages.py)."""
    programs = [messages("1f1b", s, 2, 3) for s in range(2)]
    waiting = [[s._replace(begun=False) if isinstance(s, Send) else s for s in p] for p in programs]
    assert set(unfinished(waiting)) == {0, 1}


def test_stages_have_the_smallest_greatest_cost():
    rng = np.random.default_rng(0)
    for _ in range(40):
        costs = rng.integers(1, 9, size=rng.integers(1, 8)).astype(float)
        groups = int(rng.integers(1, 6))
        ends = balanced(list(costs), groups)
        assert ends[-1] == len(costs)
        assert len(ends) == min(groups, len(costs))

        def greatest(ends, costs=costs):
            return max(costs[a:b].sum() for a, b in zip([0, *ends], ends, strict=False))

        every = itertools.combinations(range(1, len(costs)), len(ends) - 1)
        assert greatest(ends) == min(greatest([*inner, len(costs)]) for inner in every)


def layers():
    return [
        nn.Linear(4, 8, rng=0),
        nn.Tanh(),
        nn.Linear(8, 8, rng=1),
        nn.Tanh(),
        nn.Linear(8, 2, rng=2),
    ]


def test_layers_are_divided_by_devices_costs_and_scopes():
    assert [s[:3] for s in divided(layers(), 2, None, None, None)] == [(0, 0, 2), (1, 2, 5)]
    assert [s[:3] for s in divided(layers(), 9, None, None, None)] == [
        (k, k, k + 1) for k in range(5)
    ]
    by_device = divided(layers(), 3, [2, 2, 0, 0, 1], None, None)
    assert [s[:3] for s in by_device] == [(2, 0, 2), (0, 2, 4), (1, 4, 5)]
    by_cost = divided(layers(), 2, None, [9, 1, 1, 1, 1], None)
    assert [s[:3] for s in by_cost] == [(0, 0, 1), (1, 1, 5)]

    def second(x):
        with wg.scope(device=1):
            return np.sin(x)

    model = [nn.Linear(4, 4, rng=0), second, np.cos]
    by_scope = divided(model, 2, None, None, wg.spec((3, 4)))
    assert [s[:3] for s in by_scope] == [(1, 0, 3)]
    model[0] = lambda x: first(x)
    assert [s[:3] for s in divided(model, 2, None, None, wg.spec((3, 4)))] == [(0, 0, 1), (1, 1, 3)]


def first(x):
    with wg.scope(device=0):
        return x * 2.0


def test_stages_that_are_not_possible_are_refused():
    with pytest.raises(ArgumentError, match="no layers"):
        divided([], 2, None, None, None)
    with pytest.raises(ArgumentError, match="2 devices for 5 layers"):
        divided(layers(), 2, [0, 1], None, None)
    with pytest.raises(ArgumentError, match="2 costs for 5 layers"):
        divided(layers(), 2, None, [0, 1], None)
    with pytest.raises(ArgumentError, match="device 2 of layer 4 is not a process"):
        divided(layers(), 2, [0, 0, 1, 1, 2], None, None)
    with pytest.raises(ArgumentError, match="must follow each other"):
        divided(layers(), 2, [0, 0, 1, 1, 0], None, None)

    def both(x):
        return np.cos(named(x, 0)) + named(x, 1)

    def named(x, k):
        with wg.scope(device=k):
            return np.sin(x)

    with pytest.raises(TraceError, match="layer 0 has scopes of the devices"):
        divided([both], 2, None, None, wg.spec((3, 4)))
    with pytest.raises(StructureError, match="layer 0 returns 2 arrays"):
        divided([lambda x: (x, x)], 2, None, None, wg.spec((3, 4)))


def stage():
    rng = np.random.default_rng(0)
    return nn.Sequential(
        nn.Linear(4, 3, rng=rng), nn.BatchNorm1d(3), nn.Tanh(), nn.GRU(3, 3, rng=rng), Outputs(),
        nn.Dropout(0.5, rng=wg.random.Stream(3)), nn.Linear(3, 2, rng=rng),
    )  # fmt: skip


class Outputs(nn.Module):
    def forward(self, x):
        return x[0]


def test_the_programs_of_a_stage_give_the_derivative_of_the_stage():
    """Buffers are updated once, and the same random numbers are used in both directions."""
    rng = np.random.default_rng(1)
    x, t = rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    one, other = stage(), stage()
    programs = TwoPrograms(one, list(one.parameters()), describe(x), True)
    for _ in range(2):
        y, saved = programs.forward(x)
        dx, gradients = programs.backward(saved, t)
        x_recorded = wg.tensor(x, requires_grad=True)
        for p in other.parameters():
            p.grad = None
        expected = other(x_recorded)
        expected.backward(t)
        np.testing.assert_allclose(y, expected.detach().numpy(), rtol=1e-13)
        np.testing.assert_allclose(dx, x_recorded.grad, rtol=1e-11, atol=1e-14)
        for g, p in zip(gradients, other.parameters(), strict=True):
            np.testing.assert_allclose(g, p.grad, rtol=1e-11, atol=1e-14)
    for a, b in zip(one.buffers(), other.buffers(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-13)
    assert programs.residual_bytes > 0


def test_a_stage_of_integers_has_no_cotangents():
    x = np.arange(6).reshape(2, 3)
    programs = TwoPrograms(lambda x: x + 1, [], describe(x), True)
    y, saved = programs.forward(x)
    np.testing.assert_array_equal(y, x + 1)
    assert not programs.has_cotangent
    assert programs.backward(saved, None) == (None, [])


def serial(model, loss, x, y):
    for p in model.parameters():
        p.grad = None
    value = loss(model(x), y)
    value.backward()
    return float(value.detach()), {n: p.grad.numpy() for n, p in model.named_parameters()}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("count", [1, 3, 7, 50])
def test_one_process(schedule, count):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(7, 4)), rng.normal(size=(7, 2))
    model = nn.Sequential(*layers())
    pipe = distributed.pipeline(model, nn.MSELoss(), microbatches=count, schedule=schedule)
    value, gradients = pipe.value_and_grad(x, y)
    expected, reference = serial(model, nn.MSELoss(), x, y)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    assert list(gradients) == list(reference)
    for name, g in gradients.items():
        np.testing.assert_allclose(g, reference[name], rtol=1e-12, atol=1e-15)
    for p in model.parameters():
        p.grad = None
    assert pipe.backward(x, y) == value
    pipe.backward(x, y)
    for name, p in pipe.named_parameters():
        np.testing.assert_allclose(p.grad, 2 * reference[name], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(pipe(x), model(x).detach().numpy(), rtol=1e-13)
    assert str(pipe).startswith("process 0: layers 0 to 4, cost ")
    assert list(pipe.state_dict()) == list(model.state_dict())


def test_layers_in_a_list():
    w = nn.Parameter(np.array([2.0, 3.0]))
    w_of = Scaled(w)
    pipe = distributed.pipeline([np.sin, w_of], lambda z, y: np.sum(z * y), reduction="sum")
    x = np.ones((3, 2))
    value, gradients = pipe.value_and_grad(x, np.ones((3, 2)))
    np.testing.assert_allclose(value, 15 * np.sin(1.0))
    np.testing.assert_allclose(gradients["1.weight"], 3 * np.sin(x[0]))


class Scaled(nn.Module):
    def __init__(self, weight):
        self.weight = weight

    def forward(self, x):
        return x * self.weight


def test_frozen_parameters_have_no_gradient():
    model = nn.Sequential(*layers())
    model[0].freeze()
    pipe = distributed.pipeline(model, nn.MSELoss())
    _, gradients = pipe.value_and_grad(np.ones((4, 4)), np.zeros((4, 2)))
    assert list(gradients) == ["2.weight", "2.bias", "4.weight", "4.bias"]


def test_options_are_checked():
    model = nn.Sequential(*layers())
    loss = nn.MSELoss()
    with pytest.raises(ArgumentError, match="loss is a int"):
        distributed.pipeline(model, 3)
    for count in (0, 1.5, True):
        with pytest.raises(ArgumentError, match=r"microbatches=.* must be an integer"):
            distributed.pipeline(model, loss, microbatches=count)
    with pytest.raises(ArgumentError, match="schedule='zigzag' is not one of '1f1b', 'gpipe'"):
        distributed.pipeline(model, loss, schedule="zigzag")
    with pytest.raises(ArgumentError, match="reduction='max' is not"):
        distributed.pipeline(model, loss, reduction="max")
    pipe = distributed.pipeline(model, loss)
    with pytest.raises(ShapeError, match="first axes must have the examples"):
        pipe.value_and_grad(np.ones((4, 4)), np.ones((3, 2)))
    with pytest.raises(ShapeError, match="no examples"):
        pipe.value_and_grad(np.ones((0, 4)), np.ones((0, 2)))
    with pytest.raises(NotScalarError, match="must be a number"):
        distributed.pipeline(model, lambda z, y: z - y).value_and_grad(
            np.ones((4, 4)), np.ones((4, 2))
        )
