"""Checkpoints: resumed training is bitwise equal to uninterrupted training; kills are safe."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import wengert as wg
from wengert import errors, nn, optim
from wengert.nn.training import Callback, Checkpoint, EarlyStopping, OnPlateau, read_checkpoint

from .small_models import Net, course, loader, points, same, training, values

ROOT = Path(__file__).resolve().parents[3]


def everything(seed=0, compile=False, **options):
    """A model and options of a training run with all kinds of state."""
    model = Net(seed)
    optimizer = optim.AdamW(model.parameters(), lr=0.02)
    plateau = optim.ReduceLROnPlateau(optimizer, factor=0.5, patience=0, threshold=0.2)
    given = {
        "optimizer": optimizer,
        "data": loader(seed),
        "callbacks": [OnPlateau(plateau), EarlyStopping(patience=50)],
        "ema": optim.EMA(model.parameters(), 0.9, warmup=True),
        "clip_norm": 0.5,
        "compile": compile,
    }
    return model, {**given, **options}


class StopsAt(Callback):
    """Stops training after a step, as Ctrl-C does."""

    def __init__(self, step=None):
        self.step = step

    def on_step_end(self, run):
        if run.step == self.step:
            run.stop("interrupted")


def ends(model, options, history):
    average = options["ema"].state_dict()["averages"]
    moments = options["optimizer"].state_dict()["states"]
    return (
        {**values(model), **{f"average {k}": a for k, a in enumerate(average)}},
        [{k: np.asarray(v).tobytes() for k, v in s.items()} for s in moments],
        course(history),
    )


# In the middle of an epoch of 7 batches (4 steps of two), at its end, and in the last epoch.
@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("accumulate", "stop"), [(1, 1), (1, 7), (1, 8), (1, 20), (2, 3), (2, 4), (2, 11)]
)
def test_a_resumed_training_is_the_uninterrupted_one(tmp_path, stop, accumulate):
    def run(steps, resume):
        model, options = everything(accumulate=accumulate)
        options["callbacks"].append(StopsAt(steps))
        if resume:  # the state of this process must not matter
            model, options = everything(seed=5, accumulate=accumulate)
            options["callbacks"].append(StopsAt(None))
            np.random.seed(99), random.seed(99)
        folder = tmp_path / ("whole" if steps is None and not resume else "parts")
        history = training(model, 3, checkpoint=folder, resume=resume, **options)
        return ends(model, options, history)

    np.random.seed(1), random.seed(1)
    whole = run(None, False)
    drawn = np.random.random(), random.random()
    np.random.seed(1), random.seed(1)
    run(stop, False)
    parts = run(None, True)
    assert same(whole[0], parts[0])
    assert whole[1:] == parts[1:]
    assert (np.random.random(), random.random()) == drawn


@pytest.mark.parametrize("stop", [4, pytest.param(9, marks=pytest.mark.slow)])
def test_a_compiled_training_resumes_bit_for_bit(tmp_path, stop):
    found = []
    for steps, resume, seed in ((None, False, 0), (stop, False, 0), (None, True, 3)):
        model, options = everything(seed, compile=True)
        options["callbacks"].append(StopsAt(steps))
        folder = tmp_path / str(not resume and steps is None)
        history = training(model, 2, checkpoint=folder, resume=resume, **options)
        found.append(ends(model, options, history))
    whole, _, parts = found
    assert same(whole[0], parts[0]) and whole[1:] == parts[1:]


def test_a_plain_list_of_batches_resumes_too(tmp_path):
    batches = [tuple(part[k : k + 10] for part in points()) for k in range(0, 50, 10)]
    found = []
    for steps, resume in ((None, False), (7, False), (None, True)):
        model = Net(2)
        history = training(
            model,
            3,
            data=batches,
            callbacks=[StopsAt(steps)],
            checkpoint=tmp_path / str(not resume and steps is None),
            resume=resume,
        )
        found.append((values(model), course(history)))
    assert same(found[0][0], found[2][0]) and found[0][1] == found[2][1]


class Buffered(nn.Module):
    """A model with generators as attributes, and a buffer that is not in the state_dict."""

    def __init__(self, seed):
        self.layer = nn.Linear(4, 2, rng=0)
        self.inner = {"noise": [np.random.default_rng(seed), wg.random.default_rng(seed)]}
        self.count = nn.Buffer(np.zeros(()), persistent=False)

    def forward(self, x):
        plain, ours = self.inner["noise"]
        noise = plain.normal(size=np.shape(x)) + np.asarray(ours.normal(size=np.shape(x)))
        self.count += 1.0
        return self.layer(x + 0.1 * noise)


def test_generators_and_buffers_of_a_model_are_kept(tmp_path):
    own, found = np.random.default_rng(0), []

    def loss(prediction, target):
        return nn.functional.cross_entropy(prediction + 0.1 * own.normal(), target)

    for steps, resume, seed in ((None, False, 1), (5, False, 1), (None, True, 8)):
        model = Buffered(seed)
        own.bit_generator.state = np.random.default_rng(seed).bit_generator.state
        history = training(
            model,
            2,
            loss=loss,
            validation=None,
            callbacks=[StopsAt(steps)],
            checkpoint=tmp_path / str(not resume and steps is None),
            resume=resume,
            state={"noise of the loss": own},
        )
        found.append((values(model), course(history), float(model.count.numpy()), own.normal()))
    assert same(found[0][0], found[2][0]) and found[0][1:] == found[2][1:]
    assert found[0][2] == 14.0


def test_best_and_last_can_be_read(tmp_path):
    class Worse(Callback):
        def on_epoch_end(self, run):
            run.figures["score"] = [1.0, 3.0, 2.0][run.epoch - 1]
            self.kept = [*getattr(self, "kept", []), values(run.model)]

    script = Worse()
    saving = Checkpoint(tmp_path, every_epochs=2, monitor="score", mode="max")
    model = Net()
    training(model, 3, callbacks=[script], checkpoint=saving)
    best, last = read_checkpoint(saving.best_path), read_checkpoint(tmp_path)
    assert same(best["model"], script.kept[1]) and best["epoch"] == 2 and saving.best == 3.0
    assert same(last["model"], script.kept[2]) and last["epoch"] == 3  # always saved
    twin = Net(7)
    twin.load_state_dict(best["model"])
    assert same(values(twin), script.kept[1]) and "best=3.0" in repr(saving)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["best.wengert", "last.wengert"]
    again = Net(3)
    history = training(again, 3, callbacks=[Worse()], checkpoint=tmp_path, resume=True)
    assert same(values(again), script.kept[2]) and len(history) == 3  # no epochs remained
    more = training(Net(3), 3, callbacks=[Worse()], resume=saving.best_path)
    assert len(more) == 3


def test_a_training_that_was_stopped_stays_stopped(tmp_path):
    for resume in (False, True):
        stopping = EarlyStopping("loss", patience=1, min_delta=10.0)
        model = Net()
        history = training(model, 9, callbacks=[stopping], checkpoint=tmp_path, resume=resume)
        assert len(history) == 2 and "not improved" in history.stopped
        found = values(model)
    assert same(found, read_checkpoint(tmp_path)["callbacks"][0][1]["kept"])


def test_checkpoints_by_steps_and_seconds(tmp_path):
    written = []

    class Count(Callback):
        def on_checkpoint(self, run, path):
            written.append((run.step, path.name))

    saving = Checkpoint(tmp_path / "a", every_epochs=None, every_steps=3)
    training(Net(), 1, callbacks=[Count()], checkpoint=saving)
    last, best = "last.wengert", "best.wengert"
    assert written == [(3, last), (6, last), (7, best), (7, last)]
    written.clear()
    saving = Checkpoint(tmp_path / "b", every_epochs=None, every_seconds=1e-9)
    training(Net(), 1, callbacks=[Count()], checkpoint=saving)
    assert [s for s, n in written if n == "last.wengert"] == [1, 2, 3, 4, 5, 6, 7, 7]


def test_ctrl_c_leaves_a_checkpoint(tmp_path):
    class Presses(Callback):
        def on_step_end(self, run):
            if run.step == 4:
                os.kill(os.getpid(), signal.SIGINT)

    history = training(Net(), 2, callbacks=[Presses()], checkpoint=tmp_path)
    assert history.stopped == "interrupted" and read_checkpoint(tmp_path)["step"] == 4
    model, twin = Net(1), Net()
    training(model, 2, callbacks=[Presses()], checkpoint=tmp_path, resume=True)
    training(twin, 2)
    assert same(values(model), values(twin))


# ---- invalid files -----------------------------------------------------------------------------


def test_every_damaged_checkpoint_is_refused(tmp_path, rng):
    training(Net(), 1, checkpoint=tmp_path)
    path = tmp_path / "last.wengert"
    whole = path.read_bytes()
    for k in rng.integers(0, len(whole), 25):
        for data in (whole[:k], whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :]):
            path.write_bytes(data)
            with pytest.raises(errors.FileError, match="last"):
                read_checkpoint(tmp_path)
    wg.save({"kind": "something else"}, path)
    with pytest.raises(errors.FileError, match="has a dict and is not a checkpoint"):
        training(Net(), 1, checkpoint=tmp_path, resume=True)
    wg.save([1, 2], path)
    with pytest.raises(errors.FileError, match="has a list"):
        read_checkpoint(path)
    wg.save({"kind": "wengert training", "version": 2}, path)
    with pytest.raises(errors.FileError, match="install a newer wengert"):
        read_checkpoint(path)
    with pytest.raises(FileNotFoundError):
        training(Net(), 1, resume=tmp_path / "nothing")


def test_checkpoints_of_something_else_are_refused(tmp_path):
    training(Net(), 1, checkpoint=tmp_path)

    class Wider(Net):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(8, 3, rng=0)

    cases = [
        (lambda: training(Net(), 1, checkpoint=tmp_path), errors.ArgumentError, "resume=True"),
        (lambda: resumed(tmp_path, Wider()), errors.ShapeError, r"last\.weight"),
        (lambda: resumed(tmp_path, ema=0.5), errors.StructureError, "moving averages False"),
        (lambda: resumed(tmp_path, callbacks=[EarlyStopping()]), errors.StructureError, r"\[\]"),
        (lambda: resumed(tmp_path, data=[points()]), errors.StructureError, "of another kind"),
        (
            lambda: resumed(tmp_path, state={"x": np.random.default_rng(0)}),
            errors.StructureError,
            "named states",
        ),
        (
            lambda: resumed(tmp_path, data=loader().__class__(points(), 16)),
            errors.StructureError,
            "batches of 8, this loader has 50 in batches of 16",
        ),
        (lambda: Checkpoint(tmp_path, every_steps=0), errors.ArgumentError, "must be .*got 0"),
        (lambda: Checkpoint(tmp_path, mode="x"), errors.ArgumentError, "mode must be .*got 'x'"),
    ]
    for act, error, message in cases:
        with pytest.raises(error, match=message):
            act()


def resumed(folder, model=None, **options):
    return training(model or Net(), 2, checkpoint=folder, resume=True, **options)


# ---- kill -9 -----------------------------------------------------------------------------------


def kill_while_saving(folder, times):
    """Run saving_program.py; return the number of the last checkpoint and of unfinished files."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    program = str(Path(__file__).with_name("saving_program.py"))
    done = subprocess.run(
        [sys.executable, program, str(folder), str(times)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return map(int, done.stdout.split())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_program_that_is_killed_leaves_the_checkpoint_before(tmp_path):
    last, _ = kill_while_saving(tmp_path, 10)
    assert last > 3


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_program_that_is_killed_three_hundred_times(tmp_path):
    last, unfinished = kill_while_saving(tmp_path, 300)
    assert last > 100 and unfinished > 50  # many kills interrupted a write


def trainer(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    program = str(Path(__file__).with_name("training_program.py"))
    return subprocess.Popen(
        [sys.executable, program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


@pytest.mark.slow
def test_a_training_that_is_killed_again_and_again_ends_as_if_it_had_not_been(tmp_path):
    whole, _ = trainer(tmp_path / "whole").communicate(timeout=200)
    rng, kills = np.random.default_rng(0), 0
    while True:
        with trainer(tmp_path / "parts") as running:
            begun = running.stdout.readline()
            if begun.startswith("begun"):
                time.sleep(rng.uniform(0.0, 0.4))
                running.kill()
                kills += 1
            rest, said = running.stdout.read(), running.stderr.read()
            running.wait(timeout=60)
            if running.returncode == 0:
                break
            assert running.returncode == -signal.SIGKILL, said
    parts = begun + rest
    assert kills >= 3 and "stopped done 12" in parts
    assert parts.splitlines()[-1] == whole.splitlines()[-1]


@pytest.mark.slow
def test_ctrl_c_in_a_program(tmp_path):
    with trainer(tmp_path) as running:
        running.stdout.readline()
        os.killpg(running.pid, signal.SIGINT)  # to the process group, as a terminal does
        out, said = running.stdout.read(), running.stderr.read()
        assert running.wait(timeout=60) == 0, said
    assert "stopped interrupted" in out and "Traceback" not in said
    again, _ = trainer(tmp_path).communicate(timeout=200)
    whole, _ = trainer(tmp_path / "whole").communicate(timeout=200)
    assert again.splitlines()[-1] == whole.splitlines()[-1]
