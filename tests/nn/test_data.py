"""Loaders: every sample once, the last batch, shuffling, collation; the progress bar."""

import io
import sys

import numpy as np
import pytest

import wengert as wg
from wengert import errors
from wengert.data import DataLoader, Dataset, TensorDataset
from wengert.nn.progress import Progress, track


@pytest.mark.parametrize("n", [1, 5, 6, 7])
@pytest.mark.parametrize("shuffle", [False, True])
def test_epoch_contains_every_sample_once(n, shuffle):
    loader = DataLoader((np.arange(n), 10 * np.arange(n)), batch_size=3, shuffle=shuffle, rng=0)
    batches = list(loader)
    assert len(batches) == len(loader) == -(-n // 3)
    x = np.concatenate([b[0] for b in batches])
    assert sorted(x) == list(range(n))
    assert all(np.array_equal(b[1], 10 * b[0]) for b in batches)


def test_last_batch_is_dropped_only_with_drop_last():
    loader = DataLoader(np.arange(7), batch_size=3, drop_last=True)
    assert [len(b) for b in loader] == [3, 3] and len(loader) == 2


def test_orders_differ_between_epochs_and_depend_on_the_seed():
    def orders(seed):
        loader = DataLoader(np.arange(50), batch_size=8, shuffle=True, rng=seed)
        return [tuple(np.concatenate(list(loader))) for _ in range(3)]

    assert len(set(orders(1))) == 3
    assert orders(1) == orders(1) and orders(1) != orders(2)
    assert tuple(np.concatenate(list(DataLoader(np.arange(9), 2)))) == tuple(range(9))


def test_two_concurrent_iterations_are_independent():
    loader = DataLoader(np.arange(6), batch_size=2, shuffle=True, rng=0)
    pairs = list(zip(loader, loader, strict=True))
    for k in (0, 1):
        assert sorted(np.concatenate([p[k] for p in pairs])) == list(range(6))


class Squares(Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, i):
        return {"x": np.array([i, i]), "y": (i * i, f"item {i}")}


def test_items_are_stacked_field_by_field():
    first = next(iter(DataLoader(Squares(), batch_size=3)))
    np.testing.assert_array_equal(first["x"], [[0, 0], [1, 1], [2, 2]])
    np.testing.assert_array_equal(first["y"][0], [0, 1, 4])
    assert first["y"][1] == ["item 0", "item 1", "item 2"]
    assert next(iter(DataLoader(Squares(), 2, collate=len))) == 2
    assert [len(b) for b in DataLoader([1.0, 2.0, 3.0], 2)] == [2, 1]


def test_tensors_as_datasets():
    loader = DataLoader((wg.tensor(np.eye(4)), np.arange(4)), batch_size=4)
    x, _ = next(iter(loader))
    assert isinstance(x, np.ndarray) and len(TensorDataset(np.ones(3))) == 3


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: DataLoader(np.ones(3), batch_size=0), errors.ArgumentError, "batch_size=0"),
        (lambda: DataLoader(np.ones(3), batch_size="4"), errors.ArgumentError, "batch_size='4'"),
        (lambda: TensorDataset(), errors.ArgumentError, "no arrays"),
        (lambda: TensorDataset(np.ones(3), np.ones(4)), errors.ShapeError, "first axis"),
        (lambda: TensorDataset(np.float64(3)), errors.ShapeError, "first axis"),
        (lambda: len(DataLoader(Dataset())), errors.StructureError, "no length"),
        (lambda: Dataset()[0], errors.StructureError, "no items"),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ---- progress ----------------------------------------------------------------------------------


def test_progress_without_a_terminal_prints_lines():
    out = io.StringIO()
    with Progress(100, "training", file=out, lines=4) as progress:
        for k in range(100):
            progress.update(loss=1.0 / (k + 1))
    lines = out.getvalue().splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("training  25/100  loss 0.04  ") and "s left" in lines[0]
    assert lines[-1].startswith("training  100/100  loss 0.01") and "0.0 s left" in lines[-1]
    assert progress.done == 100 and progress.left == 0.0


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_bar_on_a_terminal(monkeypatch):
    pytest.importorskip("rich", reason="needs rich (extra: demo)")
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    for x in track([1, 2, 3], "counting", file=out):
        assert x
    assert "counting" in out.getvalue() and "3/3" in out.getvalue()


def test_progress_without_rich_prints_lines(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    out = Terminal()
    list(track(range(3), "counting", file=out, lines=3))
    assert out.getvalue().count("counting") == 3
