"""fit: training, compiled and eager; accumulation, averages, callbacks, errors."""

import importlib
import io
import os
import signal
import sys
import threading
import typing
import warnings

import numpy as np
import pytest

import wengert as wg
from wengert import errors, nn, optim
from wengert.data import DataLoader
from wengert.nn.progress import Progress
from wengert.nn.training import (
    Callback,
    EarlyStopping,
    History,
    OnPlateau,
    accuracy,
    evaluate,
)

from .small_models import Net, course, loader, points, same, training, values


def by_hand(model, epochs, rate=0.02):
    """The training loop that fit replaces."""
    optimizer, loss_fn, batches = (
        optim.Adam(model.parameters(), lr=rate),
        nn.CrossEntropyLoss(),
        loader(),
    )
    losses = []
    for _ in range(epochs):
        for x, y in batches:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def test_fit_is_the_loop_by_hand():
    model, twin = Net(), Net()
    losses = by_hand(model, 3)
    history = training(twin, 3)
    assert history.steps["loss"] == losses and same(values(model), values(twin))
    assert len(losses) == 21 and history.stopped == "done" and len(history) == 3
    means = [np.average(losses[k : k + 7], weights=[8] * 6 + [2]) for k in (0, 7, 14)]
    np.testing.assert_allclose(history["loss"], means, rtol=1e-14)
    x, y = points(20, 1)
    twin.eval()
    assert history["validation accuracy"][-1] == accuracy(twin(x).numpy(), y)
    assert all(m.training for m in Net().modules()) and model.training


@pytest.mark.sample(1)
@pytest.mark.parametrize("options", [{}, {"accumulate": 3, "clip_norm": 0.1, "ema": 0.9}])
def test_compiled_training_is_the_same_training(options):
    eager, compiled = Net(), Net()
    expected = training(eager, 2, **options)
    found = training(compiled, 2, compile=True, **options)
    np.testing.assert_allclose(found.steps["loss"], expected.steps["loss"], rtol=1e-9)
    np.testing.assert_allclose(found["validation loss"], expected["validation loss"], rtol=1e-9)
    for name, value in values(eager).items():
        np.testing.assert_allclose(values(compiled)[name], value, rtol=1e-8, atol=1e-10)


class Plain(nn.Module):
    def __init__(self, dtype="float64"):
        self.layer = nn.Linear(4, 2, rng=0, dtype=dtype)

    def forward(self, x):
        return self.layer(x)


@pytest.mark.parametrize("sizes", [[8, 8, 8], [8, 8, 3]])
def test_several_batches_make_the_step_of_one_large_one(sizes):
    x, y = points(sum(sizes))
    ends = np.cumsum(sizes)[:-1]
    parts = list(zip(np.split(x, ends), np.split(y, ends), strict=True))
    model, twin = Plain(), Plain()
    options = {"loss": nn.CrossEntropyLoss(), "progress": False, "compile": False}
    whole = nn.fit(model, [(x, y)], optimizer=optim.SGD(model.parameters(), 0.5), **options)
    steps = nn.fit(
        twin, parts, optimizer=optim.SGD(twin.parameters(), 0.5), accumulate=3, **options
    )
    np.testing.assert_allclose(steps.steps["loss"], whole.steps["loss"], rtol=1e-14)
    for name, value in values(model).items():
        np.testing.assert_allclose(values(twin)[name], value, rtol=1e-13)
    more = nn.fit(twin, parts, optimizer=optim.SGD(twin.parameters(), 0.5), accumulate=2, **options)
    assert len(more.steps["loss"]) == 2  # the rest of an epoch is a step, too


@pytest.mark.parametrize("compile", [False, True])
def test_an_optimizer_that_searches(compile):
    model, twin = Plain(), Plain()
    x, y = points()
    y = np.where(np.arange(50) % 10, y, 1 - y)  # not linearly separable
    loss, options = nn.CrossEntropyLoss(), {"progress": False, "compile": compile, "epochs": 3}
    history = nn.fit(model, [(x, y)], loss, optim.LBFGS(model.parameters()), **options)
    optimizer = optim.LBFGS(twin.parameters())

    def closure():
        optimizer.zero_grad()
        value = loss(twin(x), y)
        value.backward()
        return value

    expected = [float(np.asarray(optimizer.step(closure).detach())) for _ in range(3)]
    np.testing.assert_allclose(history.steps["loss"], expected, rtol=1e-6)
    for more in ({"accumulate": 2}, {"clip_norm": 1.0}):
        with pytest.raises(errors.ArgumentError, match="not supported with LBFGS"):
            nn.fit(model, [(x, y)], loss, optim.LBFGS(model.parameters()), **more)


def test_float32_stays_float32():
    model = Plain("float32")
    x, y = points()
    nn.fit(
        model,
        (x.astype(np.float32), y),
        nn.CrossEntropyLoss(),
        ema=0.9,
        accumulate=2,
        clip_norm=1.0,
        compile=False,
        progress=False,
    )
    assert {v.dtype.name for v in values(model).values()} == {"float32"}


def test_validation_is_by_the_averages():
    model = Net()
    average = optim.EMA(model.parameters(), 0.5)
    history = training(model, 1, ema=average)
    last = values(model)
    average.copy_to()
    assert not same(values(model), last)
    found = evaluate(model, points(20, 1), nn.CrossEntropyLoss(), "accuracy", compile=False)
    assert found["loss"] == pytest.approx(history["validation loss"][0], rel=1e-14)


def test_an_objective_takes_batches_of_any_kind():
    model = Plain()
    x, y = points()

    def objective(model, batch):
        loss = nn.functional.cross_entropy(model(batch["x"]), batch["y"])
        return loss, {"twice": 2.0 * loss}

    for compile in (False, True):
        history = nn.fit(
            model, {"x": x, "y": y}, objective=objective, rng=0, progress=False, compile=compile
        )
        assert history["twice"][0] == pytest.approx(2 * history["loss"][0], rel=1e-6)

    class Two(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(4, 2, rng=0)

        def forward(self, a, b):
            return self.layer(a) - self.layer(b)

    both = nn.fit(Two(), (x, -x, y), nn.CrossEntropyLoss(), progress=False, compile=False)
    assert np.isfinite(both["loss"][0])


def test_points_of_callbacks_come_in_their_order():
    said = []

    class Say(Callback):
        def __getattribute__(self, name):
            if name.startswith("on_"):
                return lambda run, *more: said.append((name, run.epoch, run.step))
            return super().__getattribute__(name)

    training(Net(), 1, callbacks=[Say()], data=[points(4), points(4)])
    assert said == [
        ("on_train_begin", 0, 0),
        ("on_epoch_begin", 1, 0),
        ("on_step_end", 1, 1),
        ("on_step_end", 1, 2),
        ("on_validation_begin", 1, 2),
        ("on_validation_end", 1, 2),
        ("on_epoch_end", 1, 2),
        ("on_train_end", 1, 2),
    ]
    said.clear()
    with pytest.raises(errors.ArgumentError):
        training(Net(), 1, callbacks=[Say()], data=[(points(4)[0], np.full(4, 9))])
    assert said[-1][0] == "on_train_end"


class Scripted(Callback):
    """Adds a figure from a list to each epoch."""

    def __init__(self, figures):
        self.figures = figures

    def on_epoch_end(self, run):
        run.figures["score"] = self.figures[run.epoch - 1]
        self.kept = getattr(self, "kept", [])
        self.kept.append(values(run.model))


def test_early_stopping_gives_the_best_values_back():
    script = Scripted([3.0, 1.0, 2.0, float("nan"), 1.0, 9.0])
    stopping = EarlyStopping("score", patience=3)
    model = Net()
    history = training(model, 6, callbacks=[script, stopping])
    assert len(history) == 5 and "not improved since epoch 2" in history.stopped
    assert same(values(model), script.kept[1]) and stopping.best_epoch == 2
    assert history.best("score")["epoch"] == 2
    script = Scripted([1.0, 2.0, 1.5])
    kept = EarlyStopping("score", patience=1, mode="max", restore_best=False)
    model = Net()
    training(model, 3, callbacks=[script, kept])
    assert kept.best == 2.0 and same(values(model), script.kept[-1])


def test_the_rate_falls_on_a_plateau_and_along_a_schedule():
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    plateau = optim.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    script = Scripted([1.0, 2.0, 0.5])
    history = training(
        model, 3, optimizer=optimizer, callbacks=[script, OnPlateau(plateau, "score")]
    )
    assert history["lr"] == [0.5, 0.5, 0.25]
    model = Net()
    rate = optim.schedules.Linear(0.2, 0.0, 14)
    history = training(model, 2, optimizer=lambda p: optim.SGD(p, lr=1.0), schedule=rate)
    np.testing.assert_allclose(history.steps["lr"][:3], [rate(1), rate(2), rate(3)])
    own = optim.SGD(model.parameters(), lr=0.1)
    training(model, 1, optimizer=own, callbacks=[optim.ReduceLROnPlateau(own)])


def test_a_callback_can_stop_it():
    class Enough(Callback):
        def on_step_end(self, run):
            if run.step == 3:
                run.stop("enough")

    history = training(Net(), 5, callbacks=[Enough()])
    assert history.stopped == "enough" and len(history.steps["loss"]) == 3


def test_modes_of_modules_stay():
    model = Net()
    model.drop.eval()  # the user's choice
    seen = []

    class Look(Callback):
        def on_step_end(self, run):
            seen.append((run.model.training, run.model.drop.training))

    training(model, 2, callbacks=[Look()])
    assert set(seen) == {(True, False)}
    model.eval()
    training(model, 1, callbacks=[Look()])
    assert seen[-1] == (True, True) and not model.training


# ---- interrupts --------------------------------------------------------------------------------


class PressesCtrlC(Callback):
    def __init__(self, step, times=1):
        self.step, self.times = step, times

    def on_step_end(self, run):
        if run.step == self.step:
            for _ in range(self.times):
                os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_ends_it_after_the_step(capsys):
    before = signal.getsignal(signal.SIGINT)
    history = training(Net(), 5, callbacks=[PressesCtrlC(9)])
    assert history.stopped == "interrupted" and len(history.steps["loss"]) == 9
    assert len(history) == 1 and "Ctrl-C again" in capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt):
        training(Net(), 5, callbacks=[PressesCtrlC(2, times=2)])
    assert signal.getsignal(signal.SIGINT) is before


def test_it_trains_in_other_threads():
    found = []
    thread = threading.Thread(target=lambda: found.append(training(Net(), 1)))
    thread.start()
    thread.join()
    assert len(found[0]) == 1


# ---- NaN and infinities ------------------------------------------------------------------------


class Breaks(nn.Module):
    """A model with a logarithm whose argument may become negative."""

    def __init__(self):
        self.level = nn.Parameter([0.3])

    def forward(self, x):
        return np.log(self.level) + x


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_operation_that_gives_the_first_nan_is_named(compile, accumulate):
    model = Breaks()
    x = np.zeros((12, 1))
    with np.errstate(all="ignore"), pytest.raises(errors.NotFiniteError) as found:
        nn.fit(
            model,
            [(x, x - 5.0)] * 10,
            nn.MSELoss(),
            optim.SGD(model.parameters(), lr=0.01),
            compile=compile,
            accumulate=accumulate,
            progress=False,
        )
    text = str(found.value)
    assert "is nan. log gives nan at index (0,)" in text and "test_fitting.py" in text
    assert "The model has the values from before" in text
    assert np.isfinite(model.level.numpy()).all() or compile


def test_a_bad_batch_is_named():
    x, y = points()
    x[17, 2] = np.nan
    with pytest.raises(errors.NotFiniteError, match=r"the loss of step 3 \(epoch 1\) is nan"):
        training(Plain(), 1, data=DataLoader((x, y), 8))
    history = training(Plain(), 1, data=DataLoader((x, y), 8), check_finite=False, validation=None)
    assert np.isnan(history["loss"][0])


def test_an_infinite_loss_is_found():
    class Steep(Plain):
        def forward(self, x):
            return np.exp(1000.0 * (1.0 + np.abs(self.layer(x))))

    x, _ = points()
    with np.errstate(all="ignore"), pytest.raises(errors.NotFiniteError, match="exp gives inf"):
        training(
            Steep(),
            1,
            data=[(x, np.zeros((50, 2)))],
            loss=nn.MSELoss(),
            metrics=None,
            validation=None,
        )


# ---- figures -----------------------------------------------------------------------------------


def test_evaluation_learns_nothing_and_weighs_by_samples():
    model = Net()
    before, x, y = values(model), *points()
    found = evaluate(
        model, DataLoader((x, y), 8), nn.CrossEntropyLoss(), ["accuracy"], compile=False
    )
    model.eval()
    logits = model(x)
    assert found["accuracy"] == accuracy(logits.numpy(), y)
    assert found["loss"] == pytest.approx(nn.CrossEntropyLoss()(logits, y).item(), rel=1e-13)
    assert same(values(model), before) and all(p.grad is None for p in model.parameters())
    pair = evaluate(
        model, (x, np.ones((50, 2))), nn.MSELoss(), {"a": "mae", "b": "mse"}, compile=False
    )
    assert pair["b"] == pytest.approx(pair["loss"])


def test_accuracy_of_its_layouts():
    logits = np.array([[0.1, 0.9], [0.8, 0.2]])
    assert accuracy(logits, np.array([1, 1])) == 0.5
    assert accuracy(logits, np.array([[0.0, 1.0], [1.0, 0.0]])) == 1.0
    assert accuracy(np.array([0.5, -0.5]), np.array([1, 1])) == 0.5
    assert accuracy(np.array([[0.5], [-0.5]]), np.array([[1.0], [0.0]])) == 1.0
    with pytest.raises(errors.ArgumentError, match="classes on the last axis"):
        accuracy(logits, np.array([1, 1, 1]))


def test_a_history_can_be_asked(tmp_path):
    history = training(Net(), 2)
    assert history.names()[:3] == ["epoch", "loss", "accuracy"]
    twin = History.from_dict(history.to_dict())
    assert course(twin) == course(history) and repr(twin) == repr(history)
    assert repr(history).splitlines()[0].split()[:2] == ["epoch", "loss"]
    assert repr(History()) == "History(no epoch, 0 steps)"
    with pytest.raises(errors.ArgumentError, match="does not exist"):
        history["nothing"]
    pytest.importorskip("matplotlib", reason="needs the extra `show`")
    history.picture(tmp_path / "curves.png", title="small")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    History().picture(tmp_path / "empty.png")


def test_lines_of_progress(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    training(Net(), 2, progress=True)
    lines = out.getvalue().splitlines()
    assert 5 <= len(lines) <= 10 and lines[-1].startswith("training  14/14  loss 0.")
    assert "accuracy 0." in lines[0] and "samples/s" in lines[0] and "s left" in lines[0]


class Unsized:
    """An iterable of batches without a length."""

    def __iter__(self):
        yield points(8)
        yield points(8, 1)


def test_progress_where_the_length_is_not_known(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    training(Net(), 3, data=Unsized(), progress=True)
    lines = out.getvalue().splitlines()
    assert [line.split()[1] for line in lines] == ["1/3", "2/3", "3/3"]


def refusals():
    x, y = points()
    other, model = Plain(), Plain()
    frozen = Plain().requires_grad_(False)
    loss = nn.CrossEntropyLoss()
    fit = nn.fit
    quiet = {"progress": False, "compile": False}
    A, S = errors.ArgumentError, errors.StructureError
    return [
        (lambda: fit(lambda x: x, (x, y), loss), S, "must be a wengert.nn.Module, got function"),
        (lambda: fit(nn.ReLU(), (x, y), loss), A, "ReLU has no parameters to train: there are no"),
        (lambda: fit(frozen, (x, y), loss), A, "they are all frozen"),
        (lambda: fit(model, (x[:0], y[:0]), loss), A, "the data have no batches: it has no samp"),
        (
            lambda: fit(model, DataLoader((x, y), 64, drop_last=True), loss),
            A,
            "fewer samples than a batch",
        ),
        (lambda: fit(model, [], loss), A, "the iterable is empty"),
        (lambda: fit(model, iter([(x, y)]), loss, epochs=2, **quiet), A, "only once"),
        (lambda: fit(model, (x, y), loss, validation=(x[:0], y[:0])), A, "validation data have no"),
        (lambda: fit(model, 5, loss), S, "the data must be .*got int"),
        (lambda: fit(model, x, loss, **quiet), S, "got ndarray"),
        (lambda: fit(model, (x, y + 1), loss, **quiet), A, "classes from 1 to 2"),
        (lambda: fit(model, (x, y + 1), loss, progress=False), A, "number 2 of 2 classes"),
        (lambda: fit(model, (x, y), "mse"), A, "the loss must be .*got 'mse'"),
        (lambda: fit(model, (x, y), **quiet), A, "give either a loss"),
        (lambda: fit(model, (x, y), loss, objective=loss), A, "or an objective"),
        (lambda: fit(model, (x, y), objective=loss, metrics="mae"), A, "objective"),
        (
            lambda: fit(model, (x, y), nn.CrossEntropyLoss(reduction="none"), **quiet),
            errors.NotScalarError,
            r"got shape \(32,\)",
        ),
        (lambda: fit(model, (x, y), lambda p, t: 1.0, **quiet), S, "does not depend"),
        (lambda: fit(model, (x, y), loss, optim.Adam(other.parameters())), A, "none of the par"),
        (lambda: fit(model, (x, y), loss, 0.1), A, "must be an Optimizer.*got 0.1"),
        (lambda: fit(model, (x, y), loss, epochs=-1), A, "epochs must be .*got -1"),
        (lambda: fit(model, (x, y), loss, epochs=1.5), A, "epochs must be .*got 1.5"),
        (lambda: fit(model, (x, y), loss, accumulate=0), A, "accumulate must be .*got 0"),
        (lambda: fit(model, (x, y), loss, metrics="f1"), A, "metrics must be .*got 'f1'"),
        (lambda: fit(model, (x, y), loss, metrics={"a": 3}), A, "'a' must be .*got int"),
        (lambda: fit(model, (x, y), loss, callbacks=[print]), A, "callbacks must be .*<built-in"),
        (lambda: fit(model, (x, y), loss, clip_norm=-1.0, **quiet), A, "max_norm=-1.0"),
        (lambda: fit(model, (x, y), loss, ema=2.0), A, "decay=2.0"),
        (lambda: fit(model, (x, y), loss, resume=True), A, "needs a folder"),
        (lambda: EarlyStopping(patience=0), A, "patience=0"),
        (
            lambda: fit(model, (x, y), loss, callbacks=[EarlyStopping("f1")], **quiet),
            A,
            "monitor='f1'",
        ),
    ]


@pytest.mark.sample(13)
@pytest.mark.parametrize("case", range(30))
def test_refusals(case):
    act, error, message = refusals()[case]
    with pytest.raises(error, match=message):
        act()


def test_wrong_shapes_are_named_in_compiled_steps_too():
    x, y = points()
    for compile in (False, True):
        with pytest.raises(errors.ShapeError, match="4"):
            nn.fit(Plain(), (x[:, :3], y), nn.CrossEntropyLoss(), compile=compile, progress=False)
    assert wg.nn.fit is nn.fit


class RecordedBar:
    """A bar with the interface of tqdm."""

    made: typing.ClassVar = []

    def __init__(self, total, desc):
        self.total, self.desc, self.done, self.figures, self.closed = total, desc, 0, "", False
        self.made.append(self)

    def update(self, n):
        self.done += n

    def set_postfix_str(self, text, refresh):
        self.figures = text

    def close(self):
        self.closed = True


def test_progress_in_a_given_bar(capsys):
    RecordedBar.made.clear()
    training(Net(), 2, progress=RecordedBar)
    (bar,) = RecordedBar.made
    assert (bar.total, bar.done, bar.desc, bar.closed) == (14, 14, "training", True)
    assert "loss 0." in bar.figures and "samples/s" in bar.figures
    plain = Progress(3, bar=lambda total, desc: RecordedBar(total, desc))
    plain.update(2)  # also without a block
    assert RecordedBar.made[-1].done == 2
    assert capsys.readouterr().err == ""
    with pytest.raises(errors.ArgumentError, match=r"tqdm\.tqdm"):
        training(Net(), 2, progress="bar")


@pytest.mark.parametrize("name", ["tqdm", "tqdm.rich"])
def test_progress_in_bars_of_tqdm(name, capsys):
    pytest.importorskip("tqdm")
    pytest.importorskip("rich")
    module = importlib.import_module(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tqdm.rich is called experimental
        training(Net(), 2, progress=module.tqdm)
    out, err = capsys.readouterr()
    assert "training" in out + err and "14/14" in out + err


def test_progress_of_solvers_in_a_bar():
    """What docs/training.md shows: callbacks of solvers advance a bar."""
    bar = RecordedBar(None, "minimize")

    def objective(x):
        return np.sum((x - 1.0) ** 4)

    optim.minimize(objective, np.zeros(3), callback=lambda x: bar.update(1))
    assert bar.done > 2
    bar = RecordedBar(None, "nlp")
    found = optim.nlp(objective, np.zeros(2), callback=lambda state: bar.update(1))
    assert bar.done in (found.nit, found.nit + 1)
