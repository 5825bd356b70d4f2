"""Pipelines on several processes: loss, gradients and training equal the serial ones."""

from __future__ import annotations

import numpy as np
from tests.distributed.sampling import by_turns

import wengert as wg
from wengert import distributed as d
from wengert import nn, optim
from wengert.errors import ArgumentError, CommunicationError


def _model():
    rng = np.random.default_rng(0)
    return nn.Sequential(
        nn.Linear(3, 16, rng=rng), nn.Tanh(), nn.Linear(16, 16, rng=rng), nn.Tanh(),
        nn.Linear(16, 8, rng=rng), nn.Tanh(), nn.Linear(8, 2, rng=rng),
    )  # fmt: skip


def _batch(n):
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, 3)), rng.normal(size=(n, 2))


def _serial(model, loss, x, y):
    for p in model.parameters():
        p.grad = None
    value = loss(model(x), y)
    value.backward()
    return float(value.detach()), {n: p.grad.numpy() for n, p in model.named_parameters()}


def _agrees(pipe, model, loss, x, y):
    value, gradients = pipe.value_and_grad(x, y)
    expected, reference = _serial(model, loss, x, y)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for name, g in gradients.items():
        np.testing.assert_allclose(g, reference[name], rtol=1e-10, atol=1e-14, err_msg=name)
    every = pipe.comm.mpi.allgather(list(gradients))
    assert sorted(n for names in every for n in names) == sorted(reference)
    return gradients


def check_loss_and_gradients_equal_the_serial_ones(comm):
    loss = nn.MSELoss()
    bits = []
    for schedule in ("1f1b", "gpipe"):
        for count, n in by_turns(0, ((3, 8), (6, 4), (5, 13))):
            model = _model()
            pipe = d.pipeline(model, loss, comm, count, schedule)
            gradients = _agrees(pipe, model, loss, *_batch(n))
            bits.append((schedule, count, [g.tobytes() for g in gradients.values()]))
            np.testing.assert_allclose(
                pipe(_batch(n)[0]), model(_batch(n)[0]).detach().numpy(), rtol=1e-12
            )
    half = len(bits) // 2
    assert [b[1:] for b in bits[:half]] == [b[1:] for b in bits[half:]]  # of both schedules


def check_parameters_are_in_one_process_each(comm):
    pipe = d.pipeline(_model(), nn.MSELoss(), comm)
    names = comm.mpi.allgather([n for n, _ in pipe.named_parameters()])
    assert sorted(n for own in names for n in own) == sorted(
        n for n, _ in _model().named_parameters()
    )
    state = pipe.state_dict(root=comm.size - 1)
    if comm.rank == comm.size - 1:
        np.testing.assert_equal(
            {n: state[n] for n in sorted(state)}, dict(sorted(_model().state_dict().items()))
        )
    else:
        assert state == {}


def check_devices_in_another_order(comm):
    ranks = [comm.size - 1 - k * comm.size // 7 for k in range(7)]
    model = _model()
    pipe = d.pipeline(model, nn.MSELoss(), comm, 3, devices=ranks)
    _agrees(pipe, model, nn.MSELoss(), *_batch(7))


def check_fewer_layers_than_processes(comm):
    model = nn.Sequential(nn.Linear(3, 2, rng=0))
    pipe = d.pipeline(model, nn.MSELoss(), comm, 3)
    assert (pipe.stage is None) == (comm.rank > 0)
    _agrees(pipe, model, nn.MSELoss(), *_batch(7))


def check_integers_buffers_and_random_numbers(comm):
    """One microbatch, so that a batch normalization has the statistics of the batch."""

    def make():
        rng = np.random.default_rng(1)
        return nn.Sequential(
            lambda x: x + 1, nn.Embedding(9, 4, rng=rng), nn.BatchNorm1d(4), nn.Tanh(),
            nn.Dropout(0.5, rng=wg.random.Stream(5)), nn.Linear(4, 3, rng=rng),
        )  # fmt: skip

    loss, model, other = nn.CrossEntropyLoss(), make(), make()
    devices = [min(k, comm.size - 1) for k in range(6)]
    pipe = d.pipeline(model, loss, comm, 1, devices=devices)
    rng = np.random.default_rng(3)
    for _ in range(3):
        _agrees(pipe, other, loss, rng.integers(8, size=6), rng.integers(3, size=6))
    own = {id(b) for b in ([] if pipe.stage is None else pipe.stage.buffers())}
    for a, b in zip(model.buffers(), other.buffers(), strict=True):
        if id(a) in own:
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def check_targets_in_containers(comm):
    model = _model()

    def loss(z, target):
        return np.mean((z[:, 0] - target["a"]) ** 2 * target["weight"])

    pipe = d.pipeline(model, loss, comm, 2)
    x, y = _batch(6)
    _agrees(pipe, model, loss, x, {"a": y[:, 0], "weight": np.ones(6)})


def check_activations_that_wait_for_their_receivers(comm):
    """MPI sends arrays of this size only when the receiver is ready."""
    rng = np.random.default_rng(0)
    model = nn.Sequential(
        nn.Linear(2, 3000, rng=rng),
        nn.Tanh(),
        nn.Linear(3000, 4, rng=rng),
        nn.Linear(4, 1, rng=rng),
    )
    x, y = rng.normal(size=(60, 2)), rng.normal(size=(60, 1))
    for schedule in ("1f1b", "gpipe"):
        devices = [k * comm.size // 4 for k in range(4)]
        pipe = d.pipeline(model, nn.MSELoss(), comm, 3, schedule, devices=devices)
        _agrees(pipe, model, nn.MSELoss(), x, y)


def check_training_equals_serial_training(comm):
    loss, serial = nn.MSELoss(), _model()
    pipe = d.pipeline(_model(), loss, comm, 4)
    theirs = optim.Adam(serial.parameters(), lr=0.02)
    own = list(pipe.parameters())
    ours = optim.Adam(own, lr=0.02) if own else None
    for step in range(8):
        x, y = _batch(10 + step)
        value, _ = _serial(serial, loss, x, y)
        theirs.step()
        for p in own:
            p.grad = None
        np.testing.assert_allclose(pipe.backward(x, y), value, rtol=1e-10)
        if ours is not None:
            ours.step()
    reference = dict(serial.named_parameters())
    for name, p in pipe.named_parameters():
        np.testing.assert_allclose(p.numpy(), reference[name].numpy(), rtol=1e-8, atol=1e-10)


def check_single_precision_stays(comm):
    model = _model().float()
    pipe = d.pipeline(model, nn.MSELoss(), comm, 2)
    x, y = (a.astype(np.float32) for a in _batch(5))
    value, gradients = pipe.value_and_grad(x, y)
    assert value.dtype == np.float32
    assert all(g.dtype == np.float32 for g in gradients.values())


def check_processes_that_disagree_are_refused(comm):
    if comm.size == 1:
        return
    pipe = d.pipeline(_model(), nn.MSELoss(), comm)
    try:
        pipe.value_and_grad(*_batch(4 + comm.rank))
    except CommunicationError as error:
        assert "a batch of a pipeline" in str(error)
    else:
        raise AssertionError("nothing was raised")


def check_shared_parameters_are_refused(comm):
    if comm.size == 1:
        return
    first = nn.Linear(3, 3, rng=0)
    model = nn.Sequential(first, nn.Tanh(), first)
    try:
        d.pipeline(model, nn.MSELoss(), comm, devices=[0, 0, 1])
    except ArgumentError as error:
        assert "share a parameter" in str(error)
    else:
        raise AssertionError("nothing was raised")
    d.pipeline(model, nn.MSELoss(), comm, devices=[1, 1, 1])
