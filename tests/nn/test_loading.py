"""Loaders: resuming, threads, samplers, views, collation."""

import collections
import copy
import gc
import pickle
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import wengert as wg
from wengert import errors
from wengert.data import (
    ArrayDataset,
    ConcatDataset,
    DataLoader,
    MapDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    filtered,
    pad_items,
    random_split,
    stack_items,
)
from wengert.data.transforms import GaussianNoise

from .loading_datasets import Noise, Squares

ROOT = Path(__file__).resolve().parents[2]


def flat(batches):
    """All elements of batches, as one list."""
    return [float(v) for b in batches for part in b for v in np.asarray(part).reshape(-1)]


# ---- resuming ----------------------------------------------------------------------------------


def generators():
    return [
        np.random.default_rng(3),
        np.random.Generator(np.random.MT19937(3)),
        np.random.Generator(np.random.Philox(3)),
    ]


@pytest.mark.sample(15)
@pytest.mark.parametrize("kind", [0, 1, 2], ids=["PCG64", "MT19937", "Philox"])
@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("stop", [0, 1, 3, 4, 5, 7])
def test_loader_resumes_from_the_state_of_another(kind, prefetch, stop):
    def make():
        return DataLoader(Noise(), 3, shuffle=True, rng=generators()[kind], prefetch=prefetch)

    whole = make()
    expected = [list(whole) for _ in range(3)]  # epochs of 4 batches
    first, seen = make(), []
    passes = iter(first)
    while len(seen) < stop:
        try:
            seen.append(next(passes))
        except StopIteration:
            passes = iter(first)
    if stop == 4:  # after the last batch of a pass
        assert not list(passes)
    file_like = pickle.loads(pickle.dumps(first.state_dict()))
    assert first.state_dict().keys() == file_like.keys()
    second = make()
    second.rng.normal(size=5)  # any other state
    second.load_state_dict(file_like)
    assert second.state_dict()["batch"] == file_like["batch"]
    rest = []
    while len(seen) + len(rest) < 12:
        rest += list(second)
    assert flat(seen + rest) == flat([b for p in expected for b in p])


def test_state_of_a_loader_can_be_saved(tmp_path):
    for rng in generators():
        loader = DataLoader(np.arange(10), 2, shuffle=True, rng=rng)
        passing = iter(loader)
        next(passing), next(passing)
        wg.save(loader.state_dict(), tmp_path / "state")
        twin = DataLoader(np.arange(10), 2, shuffle=True, rng=copy.deepcopy(loader.rng))
        twin.rng.normal(size=3)
        twin.load_state_dict(wg.load(tmp_path / "state"))
        np.testing.assert_array_equal(np.concatenate(list(twin)), np.concatenate(list(passing)))
        np.testing.assert_array_equal(
            np.concatenate(list(twin)), np.concatenate(list(loader))
        )  # and the next pass


def test_pickled_loader_keeps_its_position():
    loader = DataLoader(np.arange(9), 2, shuffle=True, rng=0)
    passing = iter(loader)
    seen = [next(passing) for _ in range(2)]
    twin = pickle.loads(pickle.dumps(loader))
    rest = list(twin)
    assert sorted(np.concatenate(seen + rest)) == list(range(9)) and len(rest) == 3
    assert len(list(twin)) == 5


def test_order_of_an_iterable_sampler_is_saved():
    calls = []

    class Once:
        def __iter__(self):
            calls.append(1)
            return iter([4, 2, 0] if len(calls) == 1 else [1, 1, 1])

        def __len__(self):
            return 3

    loader = DataLoader(np.arange(5), 1, sampler=Once())
    next(iter(loader))
    twin = DataLoader(np.arange(5), 1, sampler=Once())
    twin.load_state_dict(loader.state_dict())
    assert [int(b[0]) for b in twin] == [2, 0] and [int(b[0]) for b in twin] == [1, 1, 1]


def test_random_items_differ_between_epochs_and_positions():
    loader = DataLoader(Noise(), 4, rng=0)
    values = flat(b[1:] for _ in range(3) for b in loader)
    assert len(set(values)) == 33
    one = Subset(Noise(), [5, 5, 5])
    assert len(set(flat(b[1:] for b in DataLoader(one, 2, rng=0)))) == 3


# ---- threads -----------------------------------------------------------------------------------


def waiting_threads():
    return [t for t in threading.enumerate() if t.name == "wengert-prefetch"]


@pytest.mark.parametrize("prefetch", [1, 3, 100])
def test_thread_makes_the_same_batches(prefetch):
    plain = list(DataLoader(Noise(), 3, shuffle=True, rng=1))
    assert flat(DataLoader(Noise(), 3, shuffle=True, rng=1, prefetch=prefetch)) == flat(plain)
    assert not waiting_threads()


def test_thread_makes_batches_in_advance():
    asked = []
    data = MapDataset(range(20), lambda i: asked.append(i) or i)
    passing = iter(DataLoader(data, 2, prefetch=2))
    next(passing)
    for _ in range(200):
        if len(asked) >= 6:
            break
        time.sleep(0.005)
    assert 6 <= len(asked) <= 8
    del passing
    gc.collect()
    assert not waiting_threads()


def test_thread_ends_when_the_loop_is_left():
    loader = DataLoader(Squares(), 2, prefetch=2)
    for _ in loader:
        break
    assert not waiting_threads()
    with pytest.raises(RuntimeError, match="mine"):
        for _ in loader:
            raise RuntimeError("mine")
    gc.collect()
    assert not waiting_threads()


@pytest.mark.parametrize("prefetch", [0, 2])
def test_exceptions_of_items_are_raised_by_the_loop(prefetch):
    loader = DataLoader(Squares(fails=5), 2, prefetch=prefetch)
    seen = []
    with pytest.raises(KeyError, match="item 5 is not there") as found:
        for batch in loader:
            seen.append(batch)
    assert len(seen) == 2 and found.value.__notes__ == ["This was item 5 of Squares."]
    assert not waiting_threads()


# ---- samplers ----------------------------------------------------------------------------------


def test_weighted_sampling_frequencies():
    sampler = WeightedRandomSampler([1.0, 0.0, 3.0], 8000)
    items = np.concatenate(list(DataLoader(np.arange(3), 1000, sampler=sampler, rng=0)))
    counts = np.bincount(items, minlength=3)
    assert counts[1] == 0 and abs(counts[2] / 8000 - 0.75) < 0.03
    rare = WeightedRandomSampler([1, 0, 1], 2, replacement=False)
    assert sorted(rare.order(np.random.default_rng(0))) == [0, 2]


def test_other_samplers():
    rng = np.random.default_rng(0)
    assert list(SequentialSampler("abc").order(rng)) == [0, 1, 2]
    assert sorted(SubsetRandomSampler([7, 1, 4]).order(rng)) == [1, 4, 7]
    twice = RandomSampler("abc", num_samples=7).order(rng)
    assert sorted(twice[:3]) == sorted(twice[3:6]) == [0, 1, 2] and len(twice) == 7
    assert len(set(RandomSampler(range(50), replacement=True).order(rng))) < 50
    assert len(DataLoader(np.arange(9), 2, sampler=SubsetRandomSampler([1, 2, 3]))) == 2
    assert list(DataLoader([], 2, shuffle=True)) == [] and len(DataLoader([], 2)) == 0
    seen = np.concatenate(list(DataLoader(np.arange(9), 2, sampler=[3, 1, 1])))
    assert list(seen) == [3, 1, 1]


# ---- views -------------------------------------------------------------------------------------


def test_views_of_views():
    x, y = np.arange(10), np.arange(10) % 2
    data = TensorDataset(x, y)
    odd = data.filter(lambda item: item[1] == 1)
    more = ConcatDataset([odd, Subset(data, [0, 2])]).map(lambda v: 10 * v, field=0)
    assert [int(a) for a, _ in more] == [10, 30, 50, 70, 90, 0, 20] and len(more) == 7
    assert int(more[-1][0]) == 20 and int(odd[-1][0]) == 9
    with pytest.raises(IndexError):
        more[7]
    batch = next(iter(DataLoader(odd, 3)))  # arrays: one index for the batch
    np.testing.assert_array_equal(batch[0], [1, 3, 5])
    mask = np.arange(10) > 7
    assert [int(a) for a, _ in data.subset(mask)] == [8, 9] and len(data.subset([])) == 0
    named = collections.namedtuple("Named", "x y")
    items = [named(1, 2), named(3, 4)]
    mapped = MapDataset(items, lambda v: -v, field=1)
    assert mapped[1] == named(3, -4)
    batch = next(iter(DataLoader(items, 2)))
    assert type(batch) is named and list(batch.y) == [2, 4]
    keyed = MapDataset([{"a": 1, "b": 2}], str, field="b")
    assert keyed[0] == {"a": 1, "b": "2"}
    assert repr(odd).startswith("Subset(5 of TensorDataset((int64[10], int64[10]))")
    assert "str" in repr(keyed) and "ConcatDataset" in repr(ConcatDataset(["a"]))


def test_splits_are_disjoint_and_depend_on_the_seed():
    parts = random_split(np.arange(11), [0.5, 0.25, 0.25], rng=4)
    assert [len(p) for p in parts] == [6, 3, 2]
    assert sorted(int(v) for p in parts for v in p) == list(range(11))
    again = random_split(np.arange(11), [6, 3, 2], rng=4)
    assert [[int(v) for v in p] for p in parts] == [[int(v) for v in p] for p in again]
    assert [len(p) for p in random_split("abc", [3, 0])] == [3, 0]


def test_arrays_in_nested_containers():
    data = ArrayDataset({"x": np.eye(4), "y": (np.arange(4), [1.0, 2.0, 3.0, 4.0])})
    batch = next(iter(DataLoader(data, 3)))
    assert batch["x"].shape == (3, 4) and list(batch["y"][1]) == [1.0, 2.0, 3.0]
    assert repr(data) == "ArrayDataset({'x': float64[4, 4], 'y': (int64[4], float64[4])})"
    by_item = next(iter(DataLoader(data, 3, collate=stack_items)))
    assert wg._engine.core.pytree.flatten(batch)[1] == wg._engine.core.pytree.flatten(by_item)[1]
    whole = next(iter(DataLoader({"x": np.ones((2, 3))}, 2)))
    assert whole["x"].shape == (2, 3)


def test_sequences_of_different_lengths_are_padded():
    items = [(np.ones((2, 3)), 1), (np.full((4, 2), 2.0), 5)]
    x, n = pad_items(items)
    assert x.shape == (2, 4, 3) and list(n) == [1, 5]
    assert x[0].sum() == 6.0 and x[1].sum() == 16.0
    with pytest.raises(errors.ShapeError, match=r"\(2,\), \(3,\).*pad_items"):
        next(iter(DataLoader([np.ones(2), np.ones(3)], 2)))


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda: DataLoader(iter([1])), errors.StructureError, "of a list_iterator"),
        (lambda: DataLoader([1], prefetch=-1), errors.ArgumentError, "prefetch=-1"),
        (lambda: DataLoader([1], rng="x"), errors.ArgumentError, "rng='x'"),
        (lambda: DataLoader([1], shuffle=True, sampler=[0]), errors.ArgumentError, "both define"),
        (lambda: DataLoader([1]).load_state_dict({}), errors.StructureError, "has no"),
        (
            lambda: DataLoader([1]).load_state_dict(DataLoader([1, 2]).state_dict()),
            errors.StructureError,
            "for 2 samples",
        ),
        (
            lambda: DataLoader([1], rng=generators()[1]).load_state_dict(
                DataLoader([1]).state_dict()
            ),
            errors.FileError,
            "PCG64 cannot be loaded into a MT19937",
        ),
        (lambda: Subset("abc", [3]), errors.ArgumentError, "from 3 to 3"),
        (lambda: Subset("abc", [0.5]), errors.ArgumentError, "float64"),
        (lambda: ConcatDataset([]), errors.ArgumentError, "no datasets"),
        (lambda: MapDataset("abc", 1), errors.ArgumentError, "not callable"),
        (lambda: MapDataset([(1,)], abs, field=1)[0], errors.StructureError, "field=1"),
        (lambda: random_split("abc", [1, 1]), errors.ArgumentError, "sum to 2"),
        (lambda: random_split("abc", [0.5, 0.1]), errors.ArgumentError, "must sum to 1"),
        (lambda: random_split("abc", [4, -1]), errors.ArgumentError, "at least 0"),
        (lambda: WeightedRandomSampler([0.0], 1), errors.ArgumentError, "not all 0"),
        (lambda: WeightedRandomSampler([1.0, 0.0], 2, False), errors.ArgumentError, "=2"),
        (lambda: RandomSampler("a", num_samples=0), errors.ArgumentError, "num_samples=0"),
        (lambda: len(Sampler()), errors.StructureError, "no length"),
        (lambda: Sampler().order(None), errors.StructureError, "no order"),
        (lambda: stack_items([{"a": 1}, {"b": 1}]), errors.StructureError, "'b'"),
        (lambda: stack_items([(1, 2), (1,)]), errors.StructureError, "1 fields"),
        (lambda: filtered(5, bool), TypeError, "len"),
    ],
)
def test_errors(act, error, message):
    with pytest.raises(error, match=message):
        act()


@pytest.mark.parametrize("size", [1, 2, 5])
def test_parts_of_batches_are_those_of_the_whole_batches(size):
    """Also random transforms, which depend on the position of an item in the epoch."""
    x = np.arange(26.0).reshape(13, 2)
    dataset = TensorDataset(x, np.arange(13)).map(GaussianNoise(0.1), field=0)
    whole = list(DataLoader(dataset, 4, shuffle=True, rng=0))
    every = [list(DataLoader(dataset, 4, shuffle=True, rng=0).parts(k, size)) for k in range(size)]
    for number, batch in enumerate(whole):
        parts = [one[number] for one in every]
        if number == 0:
            assert all(np.array_equal(p[0], batch[0]) for p in parts)
            continue
        assert sum(p.own for p in parts) == len(batch[0])
        assert all(p.total == len(batch[0]) for p in parts)
        for field in range(2):
            joined = np.concatenate([p.batch[field] for p in parts if p.own])
            np.testing.assert_array_equal(joined, batch[field])
            empty = [p.batch[field] for p in parts if not p.own]
            assert all(np.array_equal(e, batch[field]) for e in empty)


def test_only_items_of_the_part_are_read():
    read = []

    class Noted:
        def __len__(self):
            return 12

        def __getitem__(self, k):
            read.append(k)
            return float(k)

    list(DataLoader(Noted(), 4).parts(1, 2))
    assert read == [0, 1, 2, 3, 6, 7, 10, 11]
    collated = DataLoader(Noted(), 4, collate=np.array).parts(1, 2)
    assert [len(batch) for batch in collated] == [4, 4, 4]
