"""Files are written whole or not at all; of snapshots the newest that is sound comes back."""

import errno
import io
import os
import re
import signal
import stat
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest
from wengert.keep import DamagedWarning, latest, snapshot, snapshots

import wengert as wg
from wengert._engine.serialization import atomic_files
from wengert.errors import ArgumentError, FileError


def test_paths_and_files_of_all_kinds(tmp_path):
    for file in (tmp_path / "a", str(tmp_path / "b"), os.fspath(tmp_path / "ünïcode name")):
        wg.save({"x": np.arange(3)}, file)
        np.testing.assert_array_equal(wg.load(file)["x"], np.arange(3))
    with open(tmp_path / "c", "wb") as stream:
        wg.save(1.5, stream)
    with open(tmp_path / "c", "rb") as stream:
        assert wg.load(stream) == 1.5
    buffer = io.BytesIO(b"before")
    buffer.seek(6)
    wg.save([1, 2], buffer)
    buffer.seek(6)
    assert wg.load(buffer) == [1, 2]
    assert wg.keep.inspect(tmp_path / "a").version == 1


def test_what_is_no_file_is_said(tmp_path):
    with pytest.raises(ArgumentError, match="the first argument is the object"):
        wg.save(tmp_path / "a", {"x": 1})
    with pytest.raises(ArgumentError, match="int is not a file"):
        wg.save({"x": 1}, 3)
    with pytest.raises(ArgumentError, match="int is not a file"):
        wg.load(3)
    with pytest.raises(ArgumentError, match="'wb'"):
        wg.save({"x": 1}, io.StringIO())
    with pytest.raises(ArgumentError, match="'rb'"):
        wg.load(io.StringIO("text"))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        wg.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"nowhere.file"):
        wg.save(1, tmp_path / "nowhere" / "file")
    with pytest.raises(IsADirectoryError, match="name of a file in it"):
        wg.save(1, tmp_path)
    assert list(tmp_path.iterdir()) == []


class FullDisk:
    """Writes a few pieces, then there is no space."""

    def __init__(self, stream):
        self.stream, self.left = stream, 2

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.stream.close()

    def write(self, piece):
        if not self.left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "other name")
        self.left -= 1
        return self.stream.write(piece)

    def __getattr__(self, name):
        return getattr(self.stream, name)


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    wg.save({"x": 1}, path)
    monkeypatch.setattr(atomic_files, "open", lambda *a: FullDisk(open(*a)), raising=False)  # noqa: SIM115
    with pytest.raises(OSError, match=r"No space left.*file'") as info:
        wg.save({"x": np.zeros(100)}, path)
    assert info.value.filename == str(path)
    monkeypatch.undo()
    assert wg.load(path) == {"x": 1}
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, SystemExit])
def test_an_interrupt_leaves_the_old_file(tmp_path, monkeypatch, error):
    path = tmp_path / "file"
    wg.save({"x": 1}, path)

    def interrupted(_):
        raise error

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(error):
        wg.save({"x": 2}, path)
    monkeypatch.undo()
    assert wg.load(path) == {"x": 1}
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_modes_and_links_stay(tmp_path):
    path = tmp_path / "file"
    wg.save(1, path)
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    path.chmod(0o640)
    (tmp_path / "link").symlink_to(path)
    wg.save(2, tmp_path / "link")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert (tmp_path / "link").is_symlink() and wg.load(path) == 2


def test_a_folder_that_may_not_be_written_to(tmp_path, monkeypatch):
    def forbidden(path, mode):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(atomic_files, "open", forbidden, raising=False)
    with pytest.raises(PermissionError, match=r"Permission denied.*file'"):
        wg.save(1, tmp_path / "file")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.slow
def test_a_killed_process_leaves_a_sound_file(tmp_path):
    """Killed at any moment: what is there is what was, or what is new, and never half of it."""
    path = tmp_path / "file"
    wg.save(np.full(1000, -1.0), path)
    code = """
        import sys, numpy as np, wengert as wg
        print("ready", flush=True)
        for k in range(10**6):
            wg.save(np.full(1_000_000, float(k)), sys.argv[1])
    """
    for delay in (0.01, 0.03, 0.07, 0.11):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), path], stdout=subprocess.PIPE
        )
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        array = wg.load(path)
        assert (array == array[0]).all()


def test_files_are_replaced_while_they_are_read(tmp_path):
    path = tmp_path / "file"
    wg.save(np.zeros(1000), path)
    with open(path, "rb") as stream:
        wg.save(np.ones(1000), path)
        np.testing.assert_array_equal(wg.load(stream), np.zeros(1000))
    np.testing.assert_array_equal(wg.load(path), np.ones(1000))


# ---- snapshots ---------------------------------------------------------------------------------


def test_snapshots_are_numbered_dated_and_limited(tmp_path):
    folder = tmp_path / "runs" / "first"
    made = [snapshot(folder, {"epoch": k}, keep=3) for k in range(5)]
    assert [p.name for p in snapshots(folder)] == [p.name for p in made[2:]]
    pattern = r"snapshot-\d{6}-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.wengert"
    assert all(re.fullmatch(pattern, p.name) for p in made)
    assert latest(folder) == {"epoch": 4}
    snapshot(folder, {"epoch": 5}, keep=None)
    assert len(snapshots(folder)) == 4


def no_link(*_):
    raise OSError(errno.EPERM, "no links here")


def test_snapshots_on_a_file_system_without_links(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", no_link)
    for k in range(3):
        snapshot(tmp_path, k, keep=2)
    assert latest(tmp_path) == 2 and len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("links", [True, False])
def test_a_snapshot_replaces_no_file(tmp_path, monkeypatch, links):
    """Of two processes that choose the same name one gets an error, and takes the next number."""
    if not links:
        monkeypatch.setattr(os, "link", no_link)
    atomic_files.write(tmp_path / "file", [b"first"], exclusive=True)
    with pytest.raises(FileExistsError, match="file'"):
        atomic_files.write(tmp_path / "file", [b"second"], exclusive=True)
    assert (tmp_path / "file").read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["file"]


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    (tmp_path / "snapshot-notes.txt").write_text("mine")
    (tmp_path / "snapshot-000001.wengert").write_text("mine")
    for k in range(3):
        snapshot(tmp_path, k, keep=1)
    assert {p.name for p in tmp_path.iterdir()} - {snapshots(tmp_path)[0].name} == {
        "snapshot-notes.txt",
        "snapshot-000001.wengert",
    }


def test_the_newest_sound_snapshot_is_restored(tmp_path):
    for k in range(4):
        snapshot(tmp_path, {"epoch": k})
    *_, third, fourth = snapshots(tmp_path)
    fourth.write_bytes(fourth.read_bytes()[:-1] + b"?")
    third.write_bytes(b"")
    with pytest.warns(DamagedWarning) as caught:
        assert latest(tmp_path) == {"epoch": 1}
    assert [third.name in str(w.message) or fourth.name in str(w.message) for w in caught] == [1, 1]
    assert all(w.filename == __file__ for w in caught)
    # A new one is numbered after the damaged ones.
    snapshot(tmp_path, {"epoch": 9})
    assert latest(tmp_path) == {"epoch": 9}


def test_folders_without_a_sound_snapshot(tmp_path):
    with pytest.raises(FileError, match="none of the 0 snapshots"):
        latest(tmp_path)
    with pytest.raises(FileNotFoundError):
        latest(tmp_path / "nowhere")
    path = snapshot(tmp_path, 1)
    path.write_bytes(b"")
    with warnings.catch_warnings(), pytest.raises(FileError, match="none of the 1 snapshots"):
        warnings.simplefilter("ignore", DamagedWarning)
        latest(tmp_path)
    with pytest.raises(ArgumentError, match="keep=0"):
        snapshot(tmp_path, 1, keep=0)


def test_a_failed_snapshot_removes_nothing(tmp_path):
    snapshot(tmp_path, 1, keep=1)
    with pytest.raises(wg.errors.StructureError):
        snapshot(tmp_path, {"f": print}, keep=1)
    assert latest(tmp_path) == 1 and len(list(tmp_path.iterdir())) == 1


def test_training_goes_on_where_it_stopped(tmp_path, rng):
    """Restored, it takes the same steps, bit by bit."""
    from wengert import nn, optim

    x, y = rng.normal(size=(20, 3)), rng.normal(size=(20, 1))

    def start():
        model = nn.Sequential(nn.Linear(3, 4, rng=0), nn.Tanh(), nn.Linear(4, 1, rng=1))
        return model, optim.Adam(model.parameters(), lr=0.01)

    def steps(model, optimizer, count):
        for _ in range(count):
            optimizer.zero_grad()
            np.mean((model(x) - y) ** 2).backward()
            optimizer.step()

    model, optimizer = start()
    steps(model, optimizer, 3)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    snapshot(tmp_path, state)
    steps(model, optimizer, 3)
    other, other_optimizer = start()
    kept = latest(tmp_path)
    other.load_state_dict(kept["model"])
    other_optimizer.load_state_dict(kept["optimizer"])
    steps(other, other_optimizer, 3)
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(other.state_dict()[name], value)
