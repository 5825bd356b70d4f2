"""Rewritten code on disk: found by other processes, and only for the same source."""

import importlib.util
import marshal
import sys

import numpy as np
import pytest

import wengert as wg
from wengert._engine.cache import disk_cache
from wengert._engine.frontend import rewritten_functions, source
from wengert._engine.frontend.rewriting import functions as rewriting

SOURCE = '''
import numpy as np

def total(x, n):
    """The sum of some powers."""
    s = 0.0
    for i in range(n):
        if x[i] > 0.5:
            s += x[i] ** POWER
    return s

def failing(x):
    for i in range(20):
        x = x.reshape(3) * i
    return x

def closing(y):
    def inner(x):
        s = x * 0.0
        for i in range(30):
            s = s + x * y
        return s
    return inner

def differences(x):
    s = x[1:] - x[:-1]
    for i in range(30):
        s[1:] = s[:-1] * x[(slice(2, 4), ...)[0]][0]
    return s
'''


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """An empty cache of the test's own."""
    monkeypatch.setenv("WENGERT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(disk_cache._CacheState, "enabled", None)
    monkeypatch.setattr(disk_cache, "STARTED", 1 << 62)  # sources may be new
    disk_cache.library_sources.cache_clear()
    yield tmp_path
    disk_cache.library_sources.cache_clear()


@pytest.fixture
def count(monkeypatch):
    """The functions that are rewritten, and not read from the disk."""
    found = []
    rewritten_code = rewriting.rewritten_code

    def counted(definition, code, whole=True):
        found.append(code.co_name)
        return rewritten_code(definition, code, whole)

    monkeypatch.setattr(rewriting, "rewritten_code", counted)
    return found


def module(folder, power=2, more=""):
    """The module in a file, as another process imports it."""
    path = folder / "program.py"
    path.write_text(SOURCE.replace("POWER", str(power)) + more)
    spec = importlib.util.spec_from_file_location("program", path)
    loaded = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        spec.loader.exec_module(loaded)
    finally:
        sys.dont_write_bytecode = before
    rewritten_functions._codes.clear()
    source._found.clear()
    return loaded


X = np.array([0.2, 0.7, 0.9, 0.4])


def test_other_processes_find_the_code(folder, count):
    expected = wg.jit(wg.grad(module(folder).total))(X, 4)
    np.testing.assert_allclose(expected, np.where(X > 0.5, 2 * X, 0.0))
    assert count.count("total") == 1
    count.clear()
    program = module(folder)
    np.testing.assert_array_equal(wg.jit(wg.grad(program.total))(X, 4), expected)
    graph = wg.trace(program.total)(X, 4)
    assert "scan" in {n.op.name for n in graph} and not count
    rewritten = rewritten_functions.rewritten(program.total)
    assert rewritten.__doc__ == program.total.__doc__ and rewritten.__wrapped__ is program.total


def test_closures_are_those_of_this_process(folder, count):
    for y in (2.0, 3.0):
        np.testing.assert_allclose(wg.jit(module(folder).closing(y))(X), 30 * y * X)
    assert count.count("inner") == 1


def test_code_with_constant_slices_is_kept(folder, count):
    """They are constants of the code since Python 3.14."""
    expected = module(folder).differences(X)
    for _ in range(2):
        np.testing.assert_array_equal(wg.jit(module(folder).differences)(X), expected)
    assert count.count("differences") == 1


def test_another_source_is_rewritten_again(folder, count):
    for power in (2, 3, 2):
        program = module(folder, power)
        np.testing.assert_allclose(
            wg.jit(program.total)(X, 4), np.sum(np.where(X > 0.5, X**power, 0.0))
        )
    assert count.count("total") == 2
    module(folder, 2, more="# the end\n")
    np.testing.assert_allclose(wg.jit(module(folder, 2).total)(X, 4), 0.7**2 + 0.9**2)


def test_a_file_that_changed_after_its_import_is_not_used(folder, count):
    program = module(folder, 2)
    wg.jit(program.total)(X, 4)
    program = module(folder, 2)
    (folder / "program.py").write_text(SOURCE.replace("POWER", "3"))
    assert rewritten_functions.rewritten(program.total) is None
    assert "has changed" in rewritten_functions.why_not(program.total)
    (folder / "program.py").unlink()
    rewritten_functions._codes.clear()
    assert rewritten_functions.rewritten(program.total) is None


def test_lines_of_errors_are_those_of_the_source(folder):
    for _ in range(2):
        with pytest.raises(wg.errors.WengertError, match=r"program\.py:14"):
            wg.trace(module(folder).failing)(X)


def test_calls_alone_are_rewritten_to_other_code(folder, count):
    program = module(folder)
    for whole in (True, False, True, False):
        rewritten_functions._codes.clear()
        source._found.clear()
        names = rewritten_functions.rewritten(program.total, whole).__code__.co_names
        assert any("for" in name for name in names) is whole
    assert count == ["total", "total"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "damage",
    [
        lambda content, other: content[:-5],
        lambda content, other: b"",
        lambda content, other: b"\xff" * 50,
        lambda content, other: marshal.dumps("why not"),
        lambda content, other: other,
    ],
)
def test_a_damaged_record_is_made_again(folder, count, damage):
    program = module(folder)
    expected = wg.jit(program.total)(X, 4)
    wg.jit(program.closing(2.0))(X)
    total, closing = program.total.__code__, program.closing.__code__
    key = source._key(total, True)
    other = disk_cache.read(source._key(closing, True)) or marshal.dumps(closing)
    disk_cache.write(key, damage(disk_cache.read(key), other))
    count.clear()
    assert wg.jit(module(folder).total)(X, 4) == expected and count == ["total"]
    assert wg.jit(module(folder).total)(X, 4) == expected and count == ["total"]


def test_nothing_is_written_without_a_cache(folder, count):
    disk_cache.enabled(False)
    for _ in range(2):
        wg.trace(module(folder).total)(X, 4)
    assert count == ["total", "total"] and not (folder / "cache").exists()
