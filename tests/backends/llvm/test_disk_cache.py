"""Object files on disk: found again; damaged files and files of other users are ignored."""

import concurrent.futures
import ctypes
import errno
import os
import signal
import stat
import subprocess
import sys
import time

import pytest

import wengert as wg
from wengert._engine.backends.llvm import cache
from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder
from wengert._engine.cache import disk_cache
from wengert._engine.cache import private_directory as folders

posix = pytest.mark.skipif(os.name != "posix", reason="needs the owners and modes of POSIX")
KEY = bytes(range(32))


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """An empty cache of the test's own, that is not made yet."""
    path = tmp_path / "cache"
    monkeypatch.setenv("WENGERT_CACHE", str(path))
    for name, value in (("enabled", None), ("limit", 512 << 20), ("written_bytes", 0)):
        monkeypatch.setattr(disk_cache._CacheState, name, value)
    for name, value in (("hits", 0), ("misses", 0), ("problem", "")):
        monkeypatch.setattr(disk_cache._CacheState, name, value)
    return path


def text_of(number):
    """A module with a function that returns a number."""
    module = ModuleBuilder()
    f = Function(module, "answer", [], "i64", linkage="")
    f.body.write(f"ret i64 {number}")
    module.add(f)
    return module.text(execution_engine.heading())


def answer(image):
    code = execution_engine.Code(image, {})
    return ctypes.CFUNCTYPE(ctypes.c_int64)(code.address("answer"))()


def only(folder):
    (path,) = folder.iterdir()
    return path


def test_what_is_written_is_read():
    assert disk_cache.read(KEY) is None
    for payload in (b"", b"x", os.urandom(100_000)):
        disk_cache.write(KEY, payload)
        assert disk_cache.read(KEY) == payload
    info = wg.cache.info()
    assert (info.hits, info.misses, info.files, info.problem) == (3, 1, 1, "")
    assert info.bytes == only(info.directory).stat().st_size


def test_a_second_compilation_does_not_happen(monkeypatch):
    image = cache.cached_object(text_of(42))
    assert answer(image) == 42

    def refuse(text, quick):
        raise AssertionError("compiled once more")

    monkeypatch.setattr(execution_engine, "object_of", refuse)
    assert cache.cached_object(text_of(42)) == image
    with pytest.raises(AssertionError):
        cache.cached_object(text_of(43))


def test_an_object_file_of_another_processor_is_not_used(monkeypatch):
    keys = set()
    for name in ("cpu", "features", "heading"):
        monkeypatch.setattr(execution_engine, name, lambda: "another")
        cache.compiler_fingerprint.cache_clear()
        keys.add(cache.key_of("text"))
        monkeypatch.undo()
    cache.compiler_fingerprint.cache_clear()
    keys.add(cache.key_of("text"))
    monkeypatch.setattr(cache.llvm, "llvm_version_info", (1, 2, 3))
    cache.compiler_fingerprint.cache_clear()
    keys.add(cache.key_of("text"))
    monkeypatch.undo()
    cache.compiler_fingerprint.cache_clear()
    keys |= {cache.key_of("texts"), cache.key_of("")}
    assert len(keys) == 7


def test_every_byte_counts(folder):
    payload = b"object file"
    disk_cache.write(KEY, payload)
    path = only(folder)
    whole = path.read_bytes()
    for index in range(len(whole)):
        for change in (1, 0x80):
            damaged = bytearray(whole)
            damaged[index] ^= change
            path.write_bytes(damaged)
            assert disk_cache.read(KEY) is None
            assert not path.exists()
            path.touch(0o600)
    path.write_bytes(whole)
    assert disk_cache.read(KEY) == payload


def test_every_length_counts(folder):
    payload = b"object file"
    disk_cache.write(KEY, payload)
    path = only(folder)
    whole = path.read_bytes()
    for damaged in [whole[:length] for length in range(len(whole))] + [whole + b"\0", whole * 2]:
        path.write_bytes(damaged)
        path.chmod(0o600)
        assert disk_cache.read(KEY) is None
        assert not path.exists()
    disk_cache.write(KEY, payload)
    assert disk_cache.read(KEY) == payload


def test_a_damaged_file_is_compiled_anew(folder):
    cache.cached_object(text_of(7))
    path = only(folder)
    path.write_bytes(path.read_bytes()[:-1])
    assert answer(cache.cached_object(text_of(7))) == 7
    assert answer(cache.cached_object(text_of(7))) == 7
    assert wg.cache.info().hits == 1


def test_a_file_under_another_key_is_not_taken(folder):
    other = bytes(32)
    disk_cache.write(KEY, b"mine")
    disk_cache.write(other, b"another")
    os.replace(folder / f"{other.hex()}.object", folder / f"{KEY.hex()}.object")
    assert disk_cache.read(KEY) is None


def test_off(folder, monkeypatch):
    wg.cache.enabled(False)
    assert answer(cache.cached_object(text_of(1))) == 1
    assert not folder.exists() and not wg.cache.info().enabled
    wg.cache.enabled(True)
    cache.cached_object(text_of(1))
    assert wg.cache.info().files == 1
    monkeypatch.setattr(disk_cache._CacheState, "enabled", None)
    for word, on in (("0", False), ("off", False), ("1", True), ("", True), ("/x", True)):
        monkeypatch.setenv("WENGERT_CACHE", word)
        assert wg.cache.enabled() is on
    with pytest.raises(wg.errors.ArgumentError, match="give True to store"):
        wg.cache.enabled(1)


def test_where_it_is(monkeypatch, tmp_path):
    monkeypatch.setenv("WENGERT_CACHE", str(tmp_path / "x"))
    assert wg.cache.directory() == tmp_path / "x"
    monkeypatch.setenv("WENGERT_CACHE", "~/x")
    assert wg.cache.directory() == type(tmp_path).home() / "x"
    monkeypatch.setenv("WENGERT_CACHE", "relative")
    assert wg.cache.directory().is_absolute()
    if sys.platform == "linux":
        monkeypatch.setenv("WENGERT_CACHE", "1")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert wg.cache.directory() == tmp_path / "wengert"
        for empty in ("", "relative"):
            monkeypatch.setenv("XDG_CACHE_HOME", empty)
            assert wg.cache.directory() == type(tmp_path).home() / ".cache" / "wengert"


def test_clear_deletes_what_is_the_caches_and_nothing_else(folder):
    assert wg.cache.clear() == 0
    for number in range(3):
        disk_cache.write(bytes([number]) * 32, b"x")
    (folder / "notes.txt").write_text("the user's")
    (folder / "abc.unfinished").write_text("half")
    assert wg.cache.clear() == 3
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


# ---- the limit ---------------------------------------------------------------------------------


def test_what_was_used_longest_ago_is_deleted(folder):
    wg.cache.limit(20_000)
    keys = [bytes([number]) * 32 for number in range(30)]
    for number, key in enumerate(keys):
        disk_cache.write(key, bytes(1000))
        os.utime(folder / f"{key.hex()}.object", (1000 + number, 1000 + number))
        assert disk_cache.read(keys[0]) is not None  # used all the time
    info = wg.cache.info()
    assert info.bytes <= 20_000 + 2 * 1100
    assert info.files > 12
    left = {path.name.split(".")[0] for path in folder.iterdir()}
    newest = {key.hex() for key in keys[-(len(left) - 1) :]}
    assert left == newest | {keys[0].hex()}


def test_there_are_not_too_many_files(monkeypatch):
    monkeypatch.setattr(disk_cache, "_MAX_FILES", 32)
    for number in range(256):  # one in 64 measures the folder
        disk_cache.write(bytes([number]) * 32, b"x")
    assert 30 <= wg.cache.info().files <= 30 + 64


def test_many_small_writes_stay_within_a_sixteenth_of_the_limit():
    wg.cache.limit(100_000)
    for number in range(300):
        disk_cache.write(number.to_bytes(32, "big"), bytes(900))
    assert wg.cache.info().bytes <= 100_000 * 17 // 16


def test_what_is_larger_than_the_limit_is_not_kept():
    wg.cache.limit(1000)
    disk_cache.write(KEY, bytes(1000))
    assert wg.cache.info().files == 0
    wg.cache.limit(0)
    assert answer(cache.cached_object(text_of(5))) == 5
    for wrong in (-1, 0.5, "1", None, True):
        with pytest.raises(wg.errors.ArgumentError, match="number of bytes"):
            wg.cache.limit(wrong)


def test_files_that_were_never_finished_are_deleted_after_an_hour(folder):
    disk_cache.write(KEY, b"x")
    old, new = folder / "old.unfinished", folder / "new.unfinished"
    for path, age in ((old, 7200), (new, 60)):
        path.touch()
        os.utime(path, (time.time() - age,) * 2)
    wg.cache.limit(1 << 20)
    disk_cache.write(KEY, b"y")
    assert new.exists() and not old.exists()


# ---- what a disk may do ------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777], ids=oct)
def test_a_folder_that_others_may_write_to_is_refused(folder, mode):
    folder.mkdir()
    folder.chmod(mode)
    assert answer(cache.cached_object(text_of(3))) == 3
    assert list(folder.iterdir()) == []
    assert "others may write" in wg.cache.info().problem
    folder.chmod(0o755)
    cache.cached_object(text_of(3))
    assert wg.cache.info().files == 1 and wg.cache.info().problem == ""


@posix
def test_a_folder_of_somebody_else_is_refused(folder, monkeypatch):
    disk_cache.write(KEY, b"x")
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(folder).st_uid + 1)
    assert disk_cache.read(KEY) is None
    disk_cache.write(bytes(32), b"y")
    assert "another user" in wg.cache.info().problem
    assert len(list(folder.iterdir())) == 1


@posix
def test_a_file_that_others_may_write_to_is_refused(folder):
    disk_cache.write(KEY, b"x")
    path = only(folder)
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    path.chmod(0o622)
    assert disk_cache.read(KEY) is None
    disk_cache.write(KEY, b"y")  # replaces it
    assert disk_cache.read(KEY) == b"y"


@posix
def test_links_are_not_followed(folder, tmp_path):
    disk_cache.write(KEY, b"x")
    path = only(folder)
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert disk_cache.read(KEY) is None
    disk_cache.write(KEY, b"y")
    assert disk_cache.read(KEY) == b"y" and not path.is_symlink()
    assert elsewhere.exists()
    folder.rename(tmp_path / "real")
    folder.symlink_to(tmp_path / "real")
    assert disk_cache.read(KEY) is None and wg.cache.info().problem


@posix
def test_no_file_at_all_under_the_name(folder):
    disk_cache.write(KEY, b"x")
    path = only(folder)
    path.unlink()
    os.mkfifo(path)  # which would keep a reader waiting for ever
    assert disk_cache.read(KEY) is None
    path.unlink()
    path.mkdir()
    assert disk_cache.read(KEY) is None
    disk_cache.write(KEY, b"y")
    assert disk_cache.read(KEY) is None and wg.cache.info().problem


def test_a_file_in_the_place_of_the_folder(folder):
    folder.write_text("not a folder")
    assert answer(cache.cached_object(text_of(3))) == 3
    assert wg.cache.info().problem and wg.cache.clear() == 0
    assert folder.read_text() == "not a folder"


def test_a_folder_that_cannot_be_made(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("WENGERT_CACHE", str(tmp_path / "file" / "cache"))
    assert answer(cache.cached_object(text_of(3))) == 3
    assert wg.cache.info().problem


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to(folder):
    folder.mkdir(0o500)
    assert answer(cache.cached_object(text_of(3))) == 3
    assert "Permission" in wg.cache.info().problem


@pytest.mark.parametrize("call", ["write", "open", "replace", "mkdir"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT], ids=os.strerror)
def test_a_disk_that_is_full_or_cannot_be_written_to(folder, monkeypatch, call, number):
    """Stands in for the system's call, which fails: nothing is left over, nothing raises."""

    def fail(*arguments, **options):
        raise OSError(number, os.strerror(number))

    class Full:
        """An open file on a full disk."""

        def __init__(self, handle):
            self.handle = handle

        def __enter__(self):
            return self

        def __exit__(self, *error):
            os.close(self.handle)

        write = staticmethod(fail)

    if call == "write":
        monkeypatch.setattr(os, "fdopen", lambda handle, *rest, **options: Full(handle))
    else:
        monkeypatch.setattr(os, call, fail)
    disk_cache.write(KEY, b"x")
    monkeypatch.undo()
    assert not folder.exists() or list(folder.iterdir()) == []


# ---- several processes -------------------------------------------------------------------------

WORKER = """
import os, random, sys
from wengert._engine.cache import disk_cache as cache
generator = random.Random(int(sys.argv[1]))
def payload(key): return key * (100 + 7 * key[0])
print("ready", flush=True)
for _ in range(int(sys.argv[2])):
    key = bytes([generator.randrange(8)]) * 32
    found = cache.read(key)
    assert found is None or found == payload(key), key
    cache.write(key, payload(key))
    if generator.random() < 0.02: cache.clear()
    if generator.random() < 0.05: cache.limit(generator.choice([1 << 14, 1 << 20]))
assert cache.info().problem == "", cache.info().problem
"""


def start(*arguments):
    command = [sys.executable, "-W", "error", "-c", WORKER, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


TEAMS = pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.slow)])


@TEAMS
def test_readers_and_writers_at_once(count):
    """Each sees whole files or none, while the others write, clear and delete."""
    team = [start(seed, 150) for seed in range(count)]
    for process in team:
        _, complaint = process.communicate(timeout=60)
        assert process.returncode == 0, complaint


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@TEAMS
def test_a_writer_that_is_killed_in_the_middle(folder, rng, count):
    team = [start(seed, 10**9) for seed in range(count)]
    for process in team:
        assert process.stdout.readline() == "ready\n"
    for process in team:
        time.sleep(float(rng.uniform(0.01, 0.05)))
        process.kill()
        process.communicate()
    process = start(100, 100)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 0, complaint
    assert all(path.suffix in (".object", ".unfinished") for path in folder.iterdir())


@pytest.mark.parametrize("written", [0, 1, 40, 80, 85, 86], ids=str)
def test_what_a_killed_writer_leaves_is_never_read(folder, monkeypatch, written):
    """A writer that dies after so many of 86 bytes, before the file has its name."""

    class Killed(BaseException):
        pass

    def die(*arguments, **options):
        raise Killed

    def partly(handle, content):
        if os.fstat(handle).st_size == written:
            raise Killed
        return os.write(handle, content[:written])

    class Slow:
        """An open file, written to in pieces."""

        def __init__(self, handle, *rest, **options):
            self.handle = handle

        def __enter__(self):
            return self

        def __exit__(self, *error):
            os.close(self.handle)

        def write(self, content):
            return partly(self.handle, content)

    disk_cache.write(bytes(32), b"other")
    with monkeypatch.context() as patch:
        patch.setattr(folders.Folder, "delete", lambda self, name: False)
        patch.setattr(os, "replace", die)
        patch.setattr(os, "fdopen", Slow)
        with pytest.raises(Killed):
            disk_cache.write(KEY, b"object")
    (left,) = set(folder.iterdir()) - {folder / f"{bytes(32).hex()}.object"}
    assert left.stat().st_size == written
    assert disk_cache.read(KEY) is None
    assert wg.cache.info().files == 1
    disk_cache.write(KEY, b"object")
    assert disk_cache.read(KEY) == b"object"


def test_threads_at_once():
    def work(seed):
        return [cache.cached_object(text_of(number)) for number in range(seed % 3, 8)][-1]

    with concurrent.futures.ThreadPoolExecutor(6) as team:
        images = list(team.map(work, range(12)))
    assert {answer(image) for image in images} == {7}
    assert wg.cache.info().files == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_another_thread_compiles():
    """The child compiles too, though the thread that held the compiler's lock is not in it."""
    program = """
import itertools, os, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from wengert._engine.backends.llvm.ir import execution_engine as engine
from wengert._engine.backends.llvm import cache as objects
def text(n): return engine.heading() + f"\\ndefine i64 @answer() {{ ret i64 {n} }}\\n"
stop = []
def work():
    for n in itertools.count():
        if stop: return
        objects.cached_object(text(n))
        time.sleep(0.001)  # the lock is not fair, and the fork waits for it
thread = threading.Thread(target=work)
thread.start()
for n in range(5):
    child = os.fork()
    if not child:
        objects.cached_object(text(-n - 1))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.append(1)
thread.join()
print("done")
"""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == "done\n", done.stderr


def test_a_hit_is_quick(calls):
    """One that compiled instead would make many times as many calls."""
    payload = os.urandom(100_000)
    disk_cache.write(KEY, payload)
    assert calls(disk_cache.read, KEY) < 200
