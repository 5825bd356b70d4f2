"""Readers: small files of every kind made here, and the same damaged, truncated and foreign."""

import gzip
import pickle
import struct

import numpy as np
import pytest

import wengert as wg
from wengert import errors
from wengert.data import (
    CIFAR10,
    CIFAR100,
    MNIST,
    DataLoader,
    ImageFolder,
    TextLines,
    from_bunch,
    from_frame,
    from_npz,
    read_cifar,
    read_idx,
    read_image,
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


def test_every_damaged_idx_file_is_refused(tmp_path):
    whole, path = idx(np.arange(12, dtype=np.uint8).reshape(3, 4)), tmp_path / "file"
    packed = gzip.compress(whole)
    damaged = [whole[:n] for n in range(len(whole))] + [whole + b"x", b"PK\3\4", b"\1" + whole]
    damaged += [packed[:n] for n in range(2, len(packed))] + [packed[:-6] + b"\0" * 6]
    damaged.append(bytes([0, 0, 8, 255]) + b"\xff" * 1020)  # an array larger than any machine
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(errors.FileError, match=r"file: .*Fetch it again"):
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
    data = MNIST(tmp_path, train=False)  # in a folder of the folder
    x, y = next(iter(DataLoader(data, 5)))
    assert x.shape == (5, 1, 28, 28) and y.dtype == np.int64 and len(MNIST(tmp_path / "raw")) == 5
    np.testing.assert_array_equal(x[:, 0], images)
    np.testing.assert_array_equal(y, labels)


def test_mnist_that_does_not_fit_together(tmp_path):
    with pytest.raises(errors.FileError, match=r"no file train-images.*nothing is downloaded"):
        MNIST(tmp_path)
    mnist(tmp_path)
    labels = tmp_path / "train-labels-idx1-ubyte"
    labels.write_bytes(idx(np.zeros(4, np.uint8)))
    with pytest.raises(errors.FileError, match="4 labels, for 5 pictures"):
        MNIST(tmp_path)
    labels.write_bytes(idx(np.zeros((5, 2), np.uint8)))
    with pytest.raises(errors.FileError, match="no labels"):
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
    with pytest.raises(errors.FileError, match=r"labels from . to 10, where there are 10"):
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
    with pytest.raises(errors.FileError, match="not of CIFAR-100"):
        CIFAR100(tmp_path, train=False)


class Evil:
    def __reduce__(self):
        return exec, ("raise SystemExit('it ran')",)


def test_nothing_else_is_unpickled(tmp_path):
    _, rows = cifar_rows(2, 1)
    path = tmp_path / "batch"
    whole = pickle.dumps({b"data": rows, b"labels": [1, 2]})
    damaged = [
        pickle.dumps({b"data": rows, b"labels": [1, 2], b"more": Evil()}),
        pickle.dumps(Evil()),
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
        with pytest.raises(errors.FileError, match=r"batch: .*Fetch it again"):
            read_cifar(path)
    path.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(errors.FileError, match=r"names builtins\.exec, which is refused"):
        read_cifar(path)
    with pytest.raises(errors.ArgumentError, match="labels=3"):
        read_cifar(path, 3)


def test_lines_of_text(tmp_path):
    first, second = tmp_path / "first.txt", tmp_path / "second.txt.gz"
    first.write_bytes("één\r\n\n zwei \nthree".encode())
    second.write_bytes(gzip.compress(b"four\nfive\n"))
    lines = TextLines([first, second])
    assert list(lines) == ["één", "", " zwei ", "three", "four", "five"]
    assert lines[-1] == "five" and repr(lines) == "TextLines(6 lines of first.txt, second.txt.gz)"
    assert list(TextLines(first, skip_empty=True)) == ["één", " zwei ", "three"]
    assert next(iter(DataLoader(lines, 2))) == ["één", ""]
    assert list(pickle.loads(pickle.dumps(lines))) == list(lines)
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    assert list(TextLines(empty)) == [] and list(TextLines([])) == []
    empty.write_bytes(b"\n")
    assert list(TextLines(empty)) == [""]
    assert TextLines(first, encoding="latin-1")[0] == "Ã©Ã©n"


def test_text_that_cannot_be_read(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"good\n\xff\xfe\n")
    lines = TextLines(path)
    assert lines[0] == "good"
    with pytest.raises(errors.FileError, match=r"line 2 \(byte 5\) is not utf-8"):
        lines[1]
    path.write_bytes(b"go")
    with pytest.raises(errors.FileError, match="shorter"):
        lines[0]
    with pytest.raises(errors.ArgumentError, match="utf-16"):
        TextLines(path, "utf-16")
    with pytest.raises(errors.ArgumentError, match="klingon"):
        TextLines(path, "klingon")


def test_many_lines_over_the_ends_of_blocks(tmp_path):
    path = tmp_path / "long"
    expected = [str(k) * (k % 3 + 1) for k in range(300_000)]
    path.write_text("\n".join(expected))
    lines = TextLines(path)
    assert len(lines) == 300_000
    for k in (0, 1, 149_999, 150_000, 299_999):
        assert lines[k] == expected[k]


def test_arrays_in_files(tmp_path):
    path = tmp_path / "points.npz"
    np.savez_compressed(path, x=np.eye(3), y=np.arange(3))
    assert from_npz(path)[2]["y"] == 2 and from_npz(path, ["y"])[1] == (1,)
    np.save(tmp_path / "one.npy", np.eye(4))
    mapped = from_npz(tmp_path / "one.npy", mmap_mode="r")
    assert len(mapped) == 4 and mapped[1].tolist() == [0, 1, 0, 0]
    with pytest.raises(errors.StructureError, match=r"no arrays \['z'\]"):
        from_npz(path, ["z"])
    with pytest.raises(errors.StructureError, match="one array"):
        from_npz(tmp_path / "one.npy", ["x"])
    whole, bad = path.read_bytes(), tmp_path / "bad.npz"
    flipped = bytearray(whole)
    flipped[60] ^= 255
    for data in (b"", b"hello", whole[:50], whole[:-30], bytes(flipped)):
        bad.write_bytes(data)
        with pytest.raises(errors.FileError, match=r"bad\.npz"):
            from_npz(bad)
    np.savez(bad, x=np.array([Evil()], object))
    with pytest.raises(errors.FileError, match="not unpickled"):
        from_npz(bad)


class Column:
    def __init__(self, values):
        self.values = np.asarray(values)

    def to_numpy(self):
        return self.values


class Frame(dict):
    """What is asked of a data frame."""

    @property
    def columns(self):
        return list(self)


def frame():
    return Frame(
        a=Column([1, 2]),
        b=Column(np.array([0.5, 1.5], np.float32)),
        c=Column(["x", "y"]),
        d=Column(np.array([1.0, None], object)),
    )


def test_data_frames():
    data = from_frame(frame(), target="c", columns=["a", "b"])
    assert data[1][0].tolist() == [2.0, 1.5] and data[1][1] == "y"
    both = from_frame(frame(), target=["a", "b"], columns=["d"])
    assert both[0][1].tolist() == [1.0, 0.5] and np.isnan(both[1][0][0])
    assert from_frame(frame(), columns=["b"])[0].dtype == np.float32
    with pytest.raises(errors.DtypeError, match=r"column 'c' is of <U1.*OneHot"):
        from_frame(frame())
    with pytest.raises(errors.ArgumentError, match=r"\['q'\] are not among"):
        from_frame(frame(), target="q")


def test_data_frames_of_pandas():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    table = pandas.DataFrame({"a": [1, 2], "b": [0.5, np.nan], "y": ["u", "v"]})
    table["n"] = pandas.array([3, None], dtype="Int64")
    data = from_frame(table, target="y")
    assert data[0][0].tolist() == [1.0, 0.5, 3.0] and data[1][1] == "v"
    assert np.isnan(data[1][0][2])


def test_sets_of_scikit_learn():
    datasets = pytest.importorskip("sklearn.datasets", reason="needs the extra `demo`")
    digits = from_bunch(datasets.load_digits(), np.float32)
    assert len(digits) == 1797 and digits[0][0].dtype == np.float32
    assert len(from_bunch(datasets.load_iris(return_X_y=True))) == 150


def test_bunches_of_other_things():
    with pytest.raises(errors.StructureError, match="without data and target"):
        from_bunch({"data": np.eye(2)})
    with pytest.raises(errors.DtypeError, match="object"):
        from_bunch((np.array([["a"]], object), [1]))


def test_folders_of_pictures(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="needs the extra `images`")
    colours = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    for name in ("cat", "dog"):
        (tmp_path / name / "inner").mkdir(parents=True)
        image.fromarray(colours).save(tmp_path / name / "one.png")
    image.fromarray(colours[..., 0]).save(tmp_path / "dog" / "inner" / "two.PNG")
    (tmp_path / "dog" / "notes.txt").write_text("nothing")
    data = ImageFolder(tmp_path)
    assert data.classes == ["cat", "dog"] and [y for _, y in data] == [0, 1, 1]
    np.testing.assert_array_equal(data[0][0], np.moveaxis(colours, -1, 0))
    grey = ImageFolder(tmp_path, "L", size=(2, 3))
    x, y = next(iter(DataLoader(grey, 3)))
    assert x.shape == (3, 1, 2, 3) and y.tolist() == [0, 1, 1]
    assert repr(data) == "ImageFolder(3 pictures of 2 classes)"
    whole = (tmp_path / "cat" / "one.png").read_bytes()
    for broken in (whole[:40], b"", b"GIF89a", whole[: len(whole) // 2]):
        (tmp_path / "cat" / "one.png").write_bytes(broken)
        with pytest.raises(errors.FileError, match=r"one\.png: no picture"):
            data[0]


def test_folders_without_pictures(tmp_path, monkeypatch):
    with pytest.raises(errors.FileError, match="no folders"):
        ImageFolder(tmp_path)
    (tmp_path / "cat").mkdir()
    with pytest.raises(errors.FileError, match="cat has no pictures"):
        ImageFolder(tmp_path)
    with pytest.raises(errors.FileError, match="is not a folder"):
        ImageFolder(tmp_path / "nothing")
    with pytest.raises(errors.ArgumentError, match="mode='CMYK'"):
        ImageFolder(tmp_path, "CMYK")
    with pytest.raises(errors.ArgumentError, match="mode='P'"):
        read_image(tmp_path / "x.png", "P")
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    with pytest.raises(errors.ArgumentError, match=r"wengert\[images\]"):
        read_image(tmp_path / "x.png")
    assert wg.data.read_image is read_image
