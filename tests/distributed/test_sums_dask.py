"""Sums over the partitions of Dask collections, by a cluster of two processes and without one."""

import itertools
import logging
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

import wengert as wg
from wengert.distributed import sum_over
from wengert.errors import ArgumentError, PartitionError

dask = pytest.importorskip("dask", reason="needs the extra `dask`")
distributed = pytest.importorskip("distributed", reason="needs the extra `dask`")
array = pytest.importorskip("dask.array")
bag = pytest.importorskip("dask.bag")

BOUNDS = [0, 7, 14, 30, 41, 52, 59, 60]


def loss(w, x, y):
    return np.sum(np.log1p((x @ w - y) ** 2))


@pytest.fixture(scope="module")
def client():
    settings = {
        "distributed.scheduler.allowed-failures": 1,
        "distributed.worker.multiprocessing-method": "spawn",
    }
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as started,
    ):
        yield started


@pytest.fixture
def x(rng):
    return rng.normal(size=(60, 4))


@pytest.fixture
def y(rng):
    return rng.normal(size=60)


@pytest.fixture
def w(rng):
    return rng.normal(size=4)


@pytest.fixture
def parts(x, y):
    return [(x[a:b], y[a:b]) for a, b in itertools.pairwise(BOUNDS)]


def same(a, b):
    return a[0] == b[0] and np.array_equal(a[1], b[1])


def arrays(x, y):
    """Dask arrays; the features are chunked along both axes, the targets in another way."""
    chunks = tuple(np.diff(BOUNDS).tolist())
    return array.from_array(x, chunks=(chunks, 3)), array.from_array(y, chunks=20)


# ---- the same bits as without Dask ---------------------------------------------------------------


def test_arrays(client, x, y, w, parts):
    expected = sum_over(loss, parts, split_every=3).value_and_grad(w)
    for executor in (client, None):  # None: threads of this process
        total = sum_over(loss, arrays(x, y), executor=executor, split_every=3)
        assert len(total.partitions) == 7
        assert same(total.value_and_grad(w), expected)
    product = sum_over(loss, parts, split_every=3).hvp(w, x[0])
    assert np.array_equal(total.hvp(w, x[0]), product)
    with client.as_current():
        assert same(total.value_and_grad(w), expected)
        assert np.array_equal(wg.grad(total)(w), expected[1])


def test_one_array(client, x, w):
    def squares(w, x):
        return np.sum((x @ w) ** 2)

    expected = sum_over(squares, np.array_split(x, 3)).value_and_grad(w)
    total = sum_over(squares, array.from_array(x, chunks=(20, 2)), executor=client)
    assert same(total.value_and_grad(w), expected)


def test_a_persisted_collection(client, x, w):
    def squares(w, x):
        return np.sum((x @ w) ** 2)

    expected = sum_over(squares, np.array_split(2.0 * x, 3)).value_and_grad(w)
    with client.as_current():
        total = sum_over(squares, 2.0 * array.from_array(x, chunks=(20, 4)).persist())
        assert same(total.value_and_grad(w), expected)
        assert same(total.value_and_grad(w), expected)


def test_sequences_by_a_client(client, parts, w):
    expected = sum_over(loss, parts).value_and_grad(w)
    functions = [lambda part=part: part for part in parts]
    values = [dask.delayed(part) for part in parts]
    delayed = [dask.delayed(lambda k: parts[k])(k) for k in range(len(parts))]
    futures = client.scatter(parts)
    for partitions in (parts, functions, values, delayed, futures):
        total = sum_over(loss, partitions, executor=client)
        assert same(total.value_and_grad(w), expected)


def test_bags(client, x):
    def decay(w, t):
        return np.sum(np.exp(-w * t))

    items = x[:, 0].tolist()
    pieces = bag.from_sequence(items, partition_size=9)
    expected = sum_over(decay, [np.array(items[k : k + 9]) for k in range(0, 60, 9)])
    assert same(
        sum_over(decay, pieces, executor=client).value_and_grad(0.5), expected.value_and_grad(0.5)
    )
    few = pieces.filter(lambda t: t > 1.5)  # some partitions are empty
    assert min(few.map_partitions(lambda p: [len(list(p))]).compute(scheduler="sync")) == 0
    positive = [t for t in items if t > 1.5]
    total = sum_over(decay, few, executor=client)
    assert total(0.5) == pytest.approx(np.sum(np.exp(-0.5 * np.array(positive))))
    none = sum_over(decay, pieces.filter(lambda t: t > 1e9), executor=client)
    assert none.value_and_grad(0.5) == (0.0, 0.0)
    pairs = bag.from_sequence([(t, 2.0) for t in items], npartitions=4)
    weighted = sum_over(lambda w, t, c: np.sum(c * np.exp(-w * t)), pairs, executor=client)
    assert weighted(0.5) == pytest.approx(2.0 * expected(0.5))


def test_data_frames(client, x):
    try:
        import dask.dataframe as frames
        import pandas
    except ImportError:
        pytest.skip("needs pandas and pyarrow")
    frame = pandas.DataFrame({"a": x[:, 0], "b": x[:, 1]})

    def residuals(p, d):
        return np.sum((d["b"] - p["slope"] * d["a"]) ** 2)

    pieces = frames.from_pandas(frame, npartitions=4)
    total = sum_over(residuals, pieces, executor=client)
    value, gradient = total.value_and_grad({"slope": 0.5})
    columns = {"a": x[:, 0], "b": x[:, 1]}
    expected = wg.grad(residuals)({"slope": 0.5}, columns)
    assert value == pytest.approx(residuals({"slope": 0.5}, columns))
    assert gradient["slope"] == pytest.approx(expected["slope"])
    slope = sum_over(lambda w, a, b: np.sum((b - w * a) ** 2), (pieces["a"], pieces["b"]))
    assert slope.grad(0.5) == pytest.approx(expected["slope"])


# ---- workers -------------------------------------------------------------------------------------


def test_a_worker_compiles_a_function_once(client, parts, w):
    marker = object.__hash__(parts)  # so that other tests have other functions

    def f(w, x, y):
        return loss(w, x, y) + 0.0 * marker

    def compiled():
        from wengert.distributed import partition_programs

        return {key: len(p._programs) for key, p in partition_programs.programs._objects.items()}

    before = client.run(compiled)
    total = sum_over(f, parts, executor=client)
    for k in range(3):
        total.value_and_grad(k * w)
    after = client.run(compiled)
    assert set(before) == set(after)
    for worker, programs in after.items():
        new = {key: count for key, count in programs.items() if key not in before[worker]}
        assert list(new.values()) in ([1], [])  # one program, for partitions of all lengths


def test_workers_use_one_thread_and_restore_the_number(client, parts, w):
    def threads():
        import wengert

        return wengert.get_threads()

    before = client.run(threads)
    total = sum_over(lambda w, x, y: w[0] * threads(), parts, executor=client, compiled=False)
    assert total(np.ones(1)) == len(parts)
    assert client.run(threads) == before


def test_large_parameters_are_sent_once(client, recwarn):
    w = np.ones(2_000_000)
    total = sum_over(lambda w, x: np.sum(w * x), [2.0, 3.0, 4.0], executor=client)
    assert total.grad(w)[-1] == 9.0
    assert not recwarn.list


def test_pickling(client, x, y, w):
    total = sum_over(loss, arrays(x, y), executor=client)
    copy = pickle.loads(pickle.dumps(total))
    assert copy.executor is None
    assert same(copy.value_and_grad(w), total.value_and_grad(w))


def test_an_error_names_the_partition(client, parts, w):
    def fails(w, x, y):
        if x.shape[0] == 16:
            raise ValueError("wrong data")
        return loss(w, x, y)

    for f in (sum_over(fails, parts, executor=client), wg.grad(sum_over(fails, arrays_of(parts)))):
        with pytest.raises(PartitionError, match="partition 2 of 7: ValueError: wrong") as caught:
            f(w)
        assert caught.value.index == 2 and isinstance(caught.value.error, ValueError)


def arrays_of(parts):
    return arrays(*[np.concatenate(column) for column in zip(*parts, strict=True)])


def test_refusals(x, y, w):
    with pytest.raises(ArgumentError, match="partitioned together have 60 and 59"):
        sum_over(loss, (array.from_array(x), array.from_array(y[:59])))
    frames = bag.from_sequence(range(6), npartitions=3)
    with pytest.raises(ArgumentError, match=r"have \[1, 3\] partitions"):
        sum_over(loss, (array.from_array(x), frames))
    with pytest.raises(ArgumentError, match="has no axes"):
        sum_over(loss, array.from_array(np.array(1.0)))
    with pytest.raises(ArgumentError, match="partitions is one Delayed"):
        sum_over(loss, dask.delayed(x))
    with pytest.raises(ArgumentError, match=r"Give a distributed\.Client"):
        from concurrent.futures import ThreadPoolExecutor

        sum_over(loss, array.from_array(x), executor=ThreadPoolExecutor)


def test_without_dask(monkeypatch, x):
    import builtins

    imported = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] in ("dask", "distributed"):
            raise ImportError(f"no module named {name}")
        return imported(name, *args, **kwargs)

    collection = array.from_array(x)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'wengert\[dask\]'"):
        sum_over(loss, collection)


# ---- interrupts and lost workers; the last tests, because the cluster has to recover -------------


def tasks_of(client):
    def names(dask_scheduler=None):
        return [k for k in dask_scheduler.tasks if str(k).startswith("wengert-partition")]

    return client.run_on_scheduler(names)


def test_an_interrupt_cancels_the_tasks(client):
    def slow():
        time.sleep(0.5)
        return np.ones(2)

    total = sum_over(lambda w, x: np.sum(w * x), [slow] * 200, executor=client)
    interrupt = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        total(1.0)
    interrupt.join()
    deadline = time.monotonic() + 20.0
    while tasks_of(client) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not tasks_of(client)


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(client, parts, w, tmp_path):
    expected = sum_over(loss, parts, split_every=2).value_and_grad(w)

    def partition(k):
        def load():
            marker = tmp_path / "killed"
            if k == 4 and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return parts[k]

        return load

    data = [partition(k) for k in range(len(parts))]
    total = sum_over(loss, data, executor=client, split_every=2)
    assert same(total.value_and_grad(w), expected)
    assert (tmp_path / "killed").exists()


@pytest.mark.slow
def test_a_partition_that_ends_its_workers_is_named(client, parts, w):
    data = [lambda part=part: part for part in parts]
    data[3] = lambda: os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(distributed.KilledWorker) as caught:
        sum_over(loss, data, executor=client)(w)
    assert 3 in caught.value.partitions
    assert "partition" in caught.value.__notes__[0] and "3" in caught.value.__notes__[0]


@pytest.mark.slow
def test_all_workers_are_killed(parts, w, tmp_path):
    """What the only worker had (partial sums, parameters) is computed again by its successor."""
    expected = sum_over(loss, parts).value_and_grad(w)

    def partition(k):
        def load():
            marker = tmp_path / "killed"
            if k == 4 and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return parts[k]

        return load

    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        total = sum_over(loss, [partition(k) for k in range(len(parts))], executor=client)
        assert same(total.value_and_grad(w), expected)
    assert (tmp_path / "killed").exists()
