"""Our files are safetensors to other programs, and theirs are arrays to us."""

import numpy as np
import pytest

import wengert as wg

from .helpers import packed

safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")


def test_the_safetensors_package_reads_our_files(tmp_path, rng):
    arrays = {
        "a": rng.normal(size=(2, 3)),
        "layer.weight": rng.normal(size=4).astype("f4"),
        "b": np.array([True, False]),
        "c": np.arange(5, dtype="u1"),
        "empty": np.zeros((0, 3)),
        "number": np.array(3.5),
        "half": np.ones(3, "f2"),
    }
    wg.save(arrays, tmp_path / "file")
    found = safetensors.load_file(tmp_path / "file")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array)


def test_the_safetensors_package_reads_graphs_with_their_parameters(tmp_path):
    w = wg.variable([1.0, 2.0], "w")
    graph = wg.trace(lambda x: x * w * np.array([3.0, 4.0]))(wg.spec(2))
    data = packed({"graph": graph, "z": np.array([1 + 2j, 3j])})
    found = safetensors.load(data)
    np.testing.assert_array_equal(found["w"], [1.0, 2.0])
    np.testing.assert_array_equal(found["z"], [[1.0, 2.0], [0.0, 3.0]])
    assert len(found) == 3


def test_we_read_files_of_the_safetensors_package(tmp_path, rng):
    arrays = {"x": rng.normal(size=(3, 2)), "y": np.arange(7, dtype="i2"), "z": np.array(True)}
    safetensors.save_file(arrays, tmp_path / "file", metadata={"format": "np", "author": "me"})
    found = wg.load(tmp_path / "file")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
    contents = wg.keep.inspect(tmp_path / "file")
    assert contents.version is None and contents.metadata["author"] == "me"
