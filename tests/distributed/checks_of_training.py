"""Training with several processes: `fit(comm=...)` against `fit` of one process.

Checks with an argument `compile` are run again by checks_of_compiled_training.py, compiled.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import tempfile
from pathlib import Path

import numpy as np

import wengert as wg
from wengert import distributed as d
from wengert import nn, optim
from wengert.data import DataLoader, TensorDataset
from wengert.data.transforms import GaussianNoise
from wengert.errors import ArgumentError, CommunicationError, NotFiniteError, ShapeError
from wengert.nn.training import Callback, Checkpoint, read_checkpoint


class Net(nn.Module):
    """Two layers; a third gets no gradient."""

    def __init__(self, seed=0, dtype="float64", norm=False, drop=None):
        rng = np.random.default_rng(seed)
        self.first = nn.Linear(4, 8, rng=rng, dtype=dtype)
        self.norm = nn.BatchNorm1d(8) if norm else None
        self.drop = None if drop is None else nn.Dropout(0.25, drop)
        self.last = nn.Linear(8, 2, rng=rng, dtype=dtype)
        self.unused = nn.Linear(2, 2, rng=rng, dtype=dtype)

    def forward(self, x):
        x = self.first(x)
        x = np.tanh(x if self.norm is None else self.norm(x))
        return self.last(x if self.drop is None else self.drop(x))


def points(count=29, dtype=float):
    x = np.random.default_rng(3).normal(size=(count, 4)).astype(dtype)
    return x, (x.sum(axis=1) > 0).astype(np.int64)


def train(comm, model=None, data=None, loss=None, **options):
    """A short training run: the model and the history; the last batch has one sample."""
    model = Net() if model is None else model
    optimizer = options.pop("optimizer", lambda p: optim.Adam(p, lr=0.03))
    given = {"epochs": 2, "batch_size": 7, "rng": 0, "progress": False, "compile": False}
    if "objective" not in options:
        loss = loss or nn.CrossEntropyLoss()
    data = points() if data is None else data
    history = nn.fit(model, data, loss, optimizer, comm=comm, **{**given, **options})
    return model, history


def values(model):
    return {name: np.array(v) for name, v in model.state_dict().items()}


def is_same(a, b):
    return a.keys() == b.keys() and all(a[n].tobytes() == b[n].tobytes() for n in a)


def assert_same_bits(comm, model):
    bits = b"".join(v.tobytes() for v in values(model).values())
    assert len(set(comm.mpi.allgather(bits))) == 1


def assert_near(model, other, tolerance=1e-12):
    mine, theirs = values(model), values(other)
    for name in mine:
        np.testing.assert_allclose(
            mine[name], theirs[name], rtol=tolerance, atol=tolerance, err_msg=name
        )


def assert_equals_serial(comm, tolerance=1e-12, make=Net, **options):
    model, history = train(comm, make(), **options)
    assert_same_bits(comm, model)
    other, expected = train(None, make(), **options)
    assert_near(model, other, tolerance)
    assert history.names() == expected.names()
    for name in history.names():
        if name != "seconds":
            np.testing.assert_allclose(
                np.array(history[name], float), np.array(expected[name], float), rtol=tolerance
            )
    np.testing.assert_allclose(history.steps["loss"], expected.steps["loss"], rtol=tolerance)


@contextlib.contextmanager
def shared_folder(comm):
    """A folder that all processes see."""
    name = tempfile.mkdtemp() if comm.rank == 0 else None
    path = Path(comm.mpi.bcast(name))
    try:
        yield path
    finally:
        comm.mpi.Barrier()
        if comm.rank == 0:
            shutil.rmtree(path)


def objective(model, batch):
    x, y = batch["x"], batch["y"]
    weights = sum(np.sum(p * p) for p in model.parameters())
    loss = np.mean((model(x)[:, 0] - y) ** 2) * batch["scale"]
    return loss + 1e-3 * weights, {"weights": weights, "mean": np.mean(x)}


def check_equal_to_one_process(comm, compile=False):
    held_out = points(11)
    assert_equals_serial(
        comm, compile=compile, validation=held_out, metrics=["accuracy"], clip_norm=0.2
    )
    assert_equals_serial(comm, compile=compile, accumulate=3, ema=0.9, validation=held_out)
    assert_equals_serial(comm, compile=compile, clip_value=0.01, bucket_bytes=100)
    assert_equals_serial(comm, compile=True, bucket_bytes=1)


def check_other_dtypes_optimizers_and_batches(comm, compile=False):
    def make():
        return Net(dtype="float32")

    data = points(dtype=np.float32)
    assert_equals_serial(comm, 1e-5, make, data=data, validation=data, compile=compile)
    batches = [
        {"x": x, "y": y * 1.0, "scale": 0.5, "names": ["a"] * len(x)}
        for x, y in (points(n) for n in (1, 2, 9))
    ]
    assert_equals_serial(
        comm,
        compile=compile,
        data=[{k: v for k, v in b.items() if k != "names"} for b in batches],
        objective=objective,
    )
    assert_equals_serial(comm, data=batches, objective=objective)
    assert_equals_serial(
        comm, 1e-8, compile=compile, optimizer=lambda p: optim.LBFGS(p, max_iter=2)
    )


def check_begins_with_the_values_of_the_first(comm):
    """Parameters, buffers, options of the optimizer and the order of the data are its own."""
    seeds = np.random.default_rng(comm.rank)
    model = Net(seed=comm.rank, norm=True)
    model.norm.running_mean = seeds.normal(size=8)

    def optimizer(p):
        return optim.SGD(p, lr=0.1 + comm.rank, momentum=0.5)

    model, history = train(
        comm,
        model,
        data=points(24),
        batch_size=8,
        optimizer=optimizer,
        rng=comm.rank,
        metrics="accuracy",
    )
    assert_same_bits(comm, model)
    losses = comm.mpi.allgather((history.steps, history.to_dict()["epochs"]))
    assert all(x == losses[0] for x in losses)
    assert history["lr"] == [0.1, 0.1]


class Noted(nn.Dropout):
    """Dropout that keeps what it returned eagerly."""

    def forward(self, x):
        y = super().forward(x)
        self.kept = [*getattr(self, "kept", []), y]
        return y


def check_random_numbers(comm, compile=False):
    """Processes drop other elements, and draw the same numbers again when it is repeated."""
    make = wg.random.Stream if compile else np.random.default_rng
    runs = []
    for _ in range(2):
        model = Net(drop=make(5))
        model.drop = (nn.Dropout if compile else Noted)(0.5, make(5))
        train(comm, model, data=points(28), epochs=1, compile=compile)
        assert_same_bits(comm, model)
        runs.append(values(model))
    assert is_same(*runs)
    if compile:
        own = model.drop.rng.state_dict()["state"]
    else:
        own = np.asarray(model.drop.kept[1].detach()) == 0.0
    assert len(set(comm.mpi.allgather(own.tobytes()))) == comm.size


def check_running_statistics(comm, compile=False):
    x, y = points(8 * comm.size)
    model = Net(norm=True)
    before = values(model)
    hidden = model.first(x).numpy()
    train(comm, model, data=[(x, y)], epochs=1, compile=compile)
    assert_same_bits(comm, model)
    np.testing.assert_allclose(
        model.norm.running_mean.numpy(), 0.1 * hidden.mean(axis=0), rtol=1e-12
    )
    parts = [part.var(axis=0, ddof=1) for part in np.split(hidden, comm.size)]
    np.testing.assert_allclose(
        model.norm.running_var.numpy(), 0.9 + 0.1 * np.mean(parts, axis=0), rtol=1e-12
    )
    assert int(model.norm.num_batches_tracked) == 1
    assert is_same({"unused": before["unused.weight"]}, {"unused": values(model)["unused.weight"]})


class Counted(nn.Module):
    """Buffers that are not averaged: a number of samples, and a constant."""

    def __init__(self):
        self.layer = nn.Linear(4, 2, rng=0)
        self.samples = nn.Buffer(0)
        self.scale = nn.Buffer(np.array([0.1, 1.0 / 3.0]))

    def forward(self, x):
        self.samples += len(x)
        return self.layer(x) * self.scale


def check_other_buffers(comm, compile=False):
    model, _ = train(comm, Counted(), compile=compile)
    assert_same_bits(comm, model)
    np.testing.assert_array_equal(model.scale.numpy(), Counted().scale.numpy())


def _resumable(comm, folder, epochs, model, compile, count=33, **options):
    """A run with random transforms, averages and a callback that has a state."""
    noisy = TensorDataset(*points(count)).map(GaussianNoise(0.1), field=0)
    return train(
        comm, model, DataLoader(noisy, 8, shuffle=True, rng=1), epochs=epochs, compile=compile,
        checkpoint=folder, ema=0.9, callbacks=[nn.training.EarlyStopping("loss", patience=9)],
        **options,
    )  # fmt: skip


def check_resumes_with_as_many_processes(comm, compile=False):
    """Bit for bit, with random numbers."""
    drop = wg.random.Stream if compile else np.random.default_rng
    with shared_folder(comm) as folder:

        def run(name, epochs, **more):
            model = Net(norm=True, drop=drop(2))
            return _resumable(comm, folder / name, epochs, model, compile, 32, **more)

        whole, expected = run("whole", 4)
        run("parts", 2)
        model, history = run("parts", 4, resume=True)
        assert_same_bits(comm, model)
        assert is_same(values(model), values(whole))
        assert history.steps == expected.steps
        assert not list(folder.glob("*/.*"))


def check_resumes_with_another_number(comm, compile=False):
    """From all processes to one, and from one to all."""
    with shared_folder(comm) as folder:
        alone, expected = _resumable(None, folder / f"own {comm.rank}", 4, Net(), compile)
        for name, first, second in (("fewer", comm, None), ("more", None, comm)):
            if first is not None or comm.rank == 0:
                _resumable(first, folder / name, 2, Net(), compile)
            comm.mpi.Barrier()
            if second is not None or comm.rank == 0:
                model, history = _resumable(second, folder / name, 4, Net(), compile, resume=True)
                assert_near(model, alone)
                np.testing.assert_allclose(
                    history.steps["loss"], expected.steps["loss"], rtol=1e-12
                )


class Stops(Callback):
    """Stops in one process only, and prints."""

    def __init__(self, rank, point, at):
        self.rank, self.at, self.seen = rank, at, 0
        setattr(self, point, self.act)

    def act(self, run):
        self.seen += 1
        print("seen", run.rank)
        if run.rank == self.rank and self.seen == self.at:
            run.stop(f"by process {run.rank}")

    def on_step_end(self, run):
        """Overridden, so that it may stop after a step."""


class StopsFirst(Stops):
    only_first = True


class Interrupted(Callback):
    """Ctrl-C in one process."""

    def __init__(self, rank):
        self.rank = rank

    def on_epoch_begin(self, run):
        if run.rank == self.rank and run.epoch == 2:
            os.kill(os.getpid(), signal.SIGINT)


def check_all_stop_after_the_same_step(comm):
    last = comm.size - 1
    for point, at, steps in (
        ("on_step_end", 3, 3),
        ("on_epoch_end", 1, 5),
        ("on_train_begin", 1, 0),
    ):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            model, history = train(comm, callbacks=[Stops(last, point, at)])
        assert history.stopped == f"by process {last}", (point, history.stopped)
        assert len(history.steps["loss"]) == steps, (point, len(history.steps["loss"]))
        assert_same_bits(comm, model)
        assert ("seen" in out.getvalue()) == (comm.rank == 0)
    callback = StopsFirst(0, "on_step_end", 3)
    _model, history = train(comm, callbacks=[callback])
    assert history.stopped == "by process 0"
    counts = comm.mpi.allgather(len(history.steps["loss"]))
    assert len(set(counts)) == 1 and counts[0] <= 4
    assert callback.seen == (counts[0] if comm.rank == 0 else 0)


def check_ctrl_c_in_one_process(comm):
    with shared_folder(comm) as folder:
        with contextlib.redirect_stderr(io.StringIO()):
            model, history = train(
                comm, epochs=4, callbacks=[Interrupted(comm.size - 1)], checkpoint=folder
            )
        assert history.stopped == "interrupted"
        counts = comm.mpi.allgather(len(history.steps["loss"]))
        assert len(set(counts)) == 1 and 5 < counts[0] <= 7, counts
        saved = read_checkpoint(folder)
        assert is_same({n: np.array(v) for n, v in saved["model"].items()}, values(model))
        whole, _ = train(comm, epochs=4)
        resumed, _ = train(
            comm, epochs=4, checkpoint=folder, resume=True, callbacks=[Interrupted(-1)]
        )
        assert is_same(values(whole), values(resumed))


def check_early_stopping(comm, compile=False):
    stop = nn.training.EarlyStopping("loss", patience=1, min_delta=0.05)
    model, history = train(comm, epochs=30, callbacks=[stop], compile=compile)
    assert 1 < len(history) < 30
    assert_same_bits(comm, model)


class Logarithm(nn.Module):
    def __init__(self):
        self.level = nn.Parameter([0.5])

    def forward(self, x):
        return np.log(x * self.level)


def check_nan_of_one_process(comm, compile=False):
    """All raise, with the operation that the process with that part of the batch found."""
    n = 2 * comm.size
    x = np.ones((n, 1))
    bad = x.copy()
    bad[-1] = -1.0
    for accumulate in (1, 2):
        model = Logarithm()
        try:
            with np.errstate(all="ignore"):
                train(
                    comm, model, data=[(x, x)] * 3 + [(bad, x)] * 3, loss=nn.MSELoss(),
                    compile=compile, accumulate=accumulate,
                )  # fmt: skip
        except NotFiniteError as error:
            assert "log gives nan" in str(error), error
            assert f"Process {comm.size - 1}" in str(error) or comm.size == 1, error
        else:
            raise AssertionError("no error")
        assert_same_bits(comm, model)


def _refused(kind, words, run):
    try:
        run()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")


def check_refusals(comm):
    """Errors that all processes raise."""
    if comm.size == 1:
        return
    own = np.random.default_rng(comm.rank)
    x = own.normal(size=(14, 4))
    y = (x.sum(axis=1) > 0).astype(int)
    _refused(CommunicationError, "the batches of the data differ", lambda: train(comm, data=(x, y)))
    _refused(
        CommunicationError,
        "the batches of the validation data differ",
        lambda: train(comm, validation=(x, y)),
    )
    _refused(
        CommunicationError,
        "the arguments of fit differ between the processes of the world: epochs",
        lambda: train(comm, epochs=2 + comm.rank),
    )
    _refused(
        CommunicationError,
        "parameter first.weight",
        lambda: train(comm, Net(dtype="float32" if comm.rank else "float64")),
    )
    _refused(
        ShapeError,
        "cannot be divided",
        lambda: train(comm, data=[(np.ones((4, 4)), np.zeros(4, int), np.ones(3))]),
    )
    _refused(ArgumentError, "bucket_bytes", lambda: train(comm, bucket_bytes=0))

    class Changes(Callback):
        def on_step_end(self, run):
            if run.rank:
                run.model.last.bias.data = np.ones(2)

    _refused(
        CommunicationError,
        "['model']['last.bias']",
        lambda: train(comm, callbacks=[Changes()]),
    )
    with shared_folder(comm) as folder:
        train(comm, checkpoint=folder)
        _refused(
            ArgumentError, "already has a training run", lambda: train(comm, checkpoint=folder)
        )
        missing = folder / "missing.wengert"
        _refused(FileNotFoundError, "missing", lambda: train(comm, resume=missing))


def check_files_are_written_once(comm):
    with shared_folder(comm) as folder:
        log = folder / "log.jsonl"
        saving = Checkpoint(folder / "run", every_seconds=1e-9)
        error = io.StringIO()
        with contextlib.redirect_stderr(error):
            train(
                comm, checkpoint=saving, log=[log, folder / "board"], progress=True, batch_size=9,
                validation=points(5),
            )  # fmt: skip
        comm.mpi.Barrier()
        lines = log.read_text().splitlines()
        assert len(lines) == 2 + 2 * (4 + 1), lines
        assert len(list((folder / "board").iterdir())) == 1
        assert sorted(p.name for p in (folder / "run").iterdir()) == [
            "best.wengert",
            "last.wengert",
        ]
        assert ("training" in error.getvalue()) == (comm.rank == 0)


def check_evaluation(comm, compile=False):
    model, data = Net(), points(13)
    given = {"batch_size": 4, "compile": compile}
    found = nn.evaluate(model, data, nn.CrossEntropyLoss(), "accuracy", comm=comm, **given)
    expected = nn.evaluate(model, data, nn.CrossEntropyLoss(), "accuracy", **given)
    assert found.keys() == expected.keys()
    np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-13)


class Centered(nn.Module):
    """Subtracts the mean over the batch, by messages if there are several processes."""

    def __init__(self, comm):
        # A bias would have no effect: Adam divides its gradient, rounding only, by its size.
        self.first = nn.Linear(4, 8, bias=False, rng=0)
        self.last = nn.Linear(8, 1, rng=1)
        self.comm = comm

    def forward(self, x):
        x = self.first(x)
        if self.comm is None:
            mean = np.mean(x, axis=0)
        else:
            count = d.allreduce(float(len(x)), comm=self.comm)
            mean = d.allreduce(np.sum(x, axis=0), comm=self.comm) / count
        return self.last(np.tanh(x - mean))


def check_messages_in_models(comm, compile=False):
    """Losses that depend on all parts, and losses that are the same in all processes."""

    def of_part(model, batch):
        return np.mean((model(batch[0])[:, 0] - batch[1]) ** 2)

    def of_all(model, batch):
        loss = of_part(model, batch)
        return loss if model.comm is None else d.allreduce(loss, "mean", model.comm)

    for objective in (of_part, of_all):
        given = {"objective": objective, "batch_size": 8, "compile": compile}
        model, history = train(comm, Centered(comm), points(24), **given)
        assert_same_bits(comm, model)
        other, expected = train(None, Centered(None), points(24), **given)
        assert_near(model, other)
        np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-12)


def check_one_process(comm, compile=False):
    """A communicator of one process: the bits of a run without one."""
    single = comm.split(comm.rank)
    model, history = train(single, Net(drop=wg.random.Stream(1)), compile=compile)
    other, expected = train(None, Net(drop=wg.random.Stream(1)), compile=compile)
    assert is_same(values(model), values(other)) and history.steps == expected.steps


def check_groups(comm):
    """Two groups of processes train two models."""
    group = comm.split(comm.rank % 2)
    model, _ = train(group, Net(seed=comm.rank % 2))
    assert_near(model, train(None, Net(seed=comm.rank % 2))[0])


def check_bucket_sizes_of_data_parallel(comm):
    params = [np.arange(k, dtype=float) for k in (3, 5, 2)]

    def loss(p, x):
        return np.mean(x * (np.sum(p[0] ** 2) + np.sum(p[1]) + np.prod(p[2])))

    x = np.arange(5.0)
    expected = wg.grad(loss)(params, x)
    for size in (1, 50, 1 << 20):
        parallel = wg.data_parallel(loss, comm, bucket_bytes=size)
        for g in (wg.grad(parallel), wg.jit(wg.grad(parallel))):
            for a, b in zip(g(params, x), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-13)
    assert d.data_parallel is wg.data_parallel
