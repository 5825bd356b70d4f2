"""Readers of datasets: small generated files; damaged, truncated and foreign ones."""

import gzip
import pickle
import struct

import numpy as np
import pytest

from wengert import errors
from wengert.data import (
    CIFAR10,
    CIFAR100,
    MNIST,
    DataLoader,
    read_cifar,
    read_idx,
)

CODES = {"uint8": 8, "int8": 9, "int16": 11, "int32": 12, "float32": 13, "float64": 14}


def idx(array):
    head = bytes([0, 0, CODES[array.dtype.name], array.ndim])
    lengths = struct.pack(f">{array.ndim}I", *array.shape)
    return head + lengths + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.mark.parametrize("dtype", sorted(CODES))
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (0, 5)])
def test_idx_files(tmp_path, rng, dtype, shape):
    array = rng.integers(0, 100, size=shape).astype(dtype)
    for name, data in (("plain", idx(array)), ("packed", gzip.compress(idx(array)))):
        (tmp_path / name).write_bytes(data)
        found = read_idx(tmp_path / name)
        assert found.dtype == array.dtype and found.dtype.isnative
        np.testing.assert_array_equal(found, array)


def test_damaged_idx_files_are_rejected(tmp_path):
    whole, path = idx(np.arange(12, dtype=np.uint8).reshape(3, 4)), tmp_path / "file"
    packed = gzip.compress(whole)
    damaged = [whole[:n] for n in range(len(whole))] + [whole + b"x", b"PK\3\4", b"\1" + whole]
    damaged += [packed[:n] for n in range(2, len(packed))] + [packed[:-6] + b"\0" * 6]
    damaged.append(bytes([0, 0, 8, 255]) + b"\xff" * 1020)  # an array larger than any memory
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(errors.FileError, match=r"file: .*Download it again"):
            read_idx(path)
    with pytest.raises(FileNotFoundError):
        read_idx(tmp_path / "nothing")


def mnist(folder, dots="-", end="", count=5):
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    pack = gzip.compress if end else bytes
    for part in ("train", "t10k"):
        images = rng.integers(0, 256, (count, 28, 28)).astype(np.uint8)
        labels = rng.integers(0, 10, count).astype(np.uint8)
        (folder / f"{part}-images{dots}idx3-ubyte{end}").write_bytes(pack(idx(images)))
        (folder / f"{part}-labels{dots}idx1-ubyte{end}").write_bytes(pack(idx(labels)))
    return images, labels


@pytest.mark.parametrize(("dots", "end"), [("-", ""), ("-", ".gz"), (".", "")])
def test_mnist(tmp_path, dots, end):
    images, labels = mnist(tmp_path / "raw", dots, end)
    data = MNIST(tmp_path, train=False)  # in a subfolder
    x, y = next(iter(DataLoader(data, 5)))
    assert x.shape == (5, 1, 28, 28) and y.dtype == np.int64 and len(MNIST(tmp_path / "raw")) == 5
    np.testing.assert_array_equal(x[:, 0], images)
    np.testing.assert_array_equal(y, labels)


def test_inconsistent_mnist_files_are_rejected(tmp_path):
    with pytest.raises(errors.FileError, match=r"no file train-images.*nothing is downloaded"):
        MNIST(tmp_path)
    mnist(tmp_path)
    labels = tmp_path / "train-labels-idx1-ubyte"
    labels.write_bytes(idx(np.zeros(4, np.uint8)))
    with pytest.raises(errors.FileError, match="4 labels for 5 images"):
        MNIST(tmp_path)
    labels.write_bytes(idx(np.zeros((5, 2), np.uint8)))
    with pytest.raises(errors.FileError, match="not labels"):
        MNIST(tmp_path)


def cifar_rows(count, labels, seed=0):
    rng = np.random.default_rng(seed)
    tags = rng.integers(0, 10, (count, labels)).astype(np.uint8)
    return tags, rng.integers(0, 256, (count, 3072)).astype(np.uint8)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_cifar_10_in_both_versions(tmp_path, protocol):
    tags, rows = cifar_rows(4, 1)
    (tmp_path / "a.bin").write_bytes(np.concatenate([tags, rows], axis=1).tobytes())
    batch = {b"data": rows, b"labels": [int(t) for t in tags[:, 0]], b"batch_label": b"one"}
    (tmp_path / "b").write_bytes(pickle.dumps(batch, protocol=protocol))
    words = {k.decode(): v for k, v in batch.items()}
    (tmp_path / "c").write_bytes(gzip.compress(pickle.dumps(words, protocol=protocol)))
    for name in ("a.bin", "b", "c"):
        pictures, labels = read_cifar(tmp_path / name)
        np.testing.assert_array_equal(pictures.reshape(4, -1), rows)
        np.testing.assert_array_equal(labels, tags[:, 0])
        assert pictures.shape == (4, 3, 32, 32) and labels.dtype == np.int64


def test_folders_of_cifar(tmp_path):
    for k in range(5):
        tags, rows = cifar_rows(2, 1, k)
        data = np.concatenate([tags, rows], axis=1).tobytes()
        (tmp_path / f"data_batch_{k + 1}.bin").write_bytes(data)
    assert len(CIFAR10(tmp_path)) == 10
    with pytest.raises(errors.FileError, match=r"no file test_batch\.bin or test_batch"):
        CIFAR10(tmp_path, train=False)
    tags[0] = 10
    data = np.concatenate([tags, rows], axis=1).tobytes()
    (tmp_path / "data_batch_5.bin").write_bytes(data)
    with pytest.raises(errors.FileError, match=r"labels range from . to 10, but it has 10"):
        CIFAR10(tmp_path)
    tags, rows = cifar_rows(3, 2)
    (tmp_path / "train.bin").write_bytes(np.concatenate([tags, rows], axis=1).tobytes())
    words = {"data": rows, "coarse_labels": list(tags[:, 0]), "fine_labels": list(tags[:, 1])}
    words = {k: v if k == "data" else [int(t) for t in v] for k, v in words.items()}
    (tmp_path / "test").write_bytes(pickle.dumps(words))
    for train in (True, False):
        fine, coarse = CIFAR100(tmp_path, train), CIFAR100(tmp_path, train, coarse=True)
        assert [int(y) for _, y in fine] == tags[:, 1].tolist()
        assert [int(y) for _, y in coarse] == tags[:, 0].tolist()
    (tmp_path / "test").write_bytes(pickle.dumps({"data": rows, "labels": [0, 1, 2]}))
    with pytest.raises(errors.FileError, match="not those of CIFAR-100"):
        CIFAR100(tmp_path, train=False)


class Malicious:
    def __reduce__(self):
        return exec, ("raise SystemExit('it ran')",)


def test_only_arrays_are_unpickled(tmp_path):
    _, rows = cifar_rows(2, 1)
    path = tmp_path / "batch"
    whole = pickle.dumps({b"data": rows, b"labels": [1, 2]})
    damaged = [
        pickle.dumps({b"data": rows, b"labels": [1, 2], b"more": Malicious()}),
        pickle.dumps(Malicious()),
        pickle.dumps({b"data": rows, b"labels": [1]}),
        pickle.dumps({b"data": rows.astype(float), b"labels": [1, 2]}),
        pickle.dumps({b"data": rows, b"labels": ["a", None]}),
        pickle.dumps({b"labels": [1, 2]}),
        pickle.dumps([1, 2]),
        b"",
        b"\x80",
        b"\x01" * 5000,
        *(whole[:n] for n in range(1, len(whole), 97)),
    ]
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(errors.FileError, match=r"batch: .*Download it again"):
            read_cifar(path)
    path.write_bytes(pickle.dumps(Malicious()))
    with pytest.raises(errors.FileError, match=r"refers to builtins\.exec, which is not allowed"):
        read_cifar(path)
    with pytest.raises(errors.ArgumentError, match="labels=3"):
        read_cifar(path, 3)
