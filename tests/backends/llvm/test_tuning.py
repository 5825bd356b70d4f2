"""Thresholds: one table; the file of a machine is checked, and programs are kept by its values."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm import cache, compiled_programs, tuning
from wengert._engine.backends.llvm.program import Program
from wengert._engine.cache import disk_cache
from wengert.cli import main, tune

NAME = "parallel_loop_work"
DEFAULT = tuning.describe(NAME).default
BACKEND = Path(tuning.__file__).parents[1]


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """An empty cache folder, and the defaults before and after."""
    monkeypatch.setenv("WENGERT_CACHE", str(tmp_path))
    monkeypatch.setattr(disk_cache._CacheState, "enabled", None)
    tuning.install({})
    yield tmp_path
    tuning.install({})


def stored(folder, **changes):
    """A file with changes of what is in it."""
    content = {"format": 1, "machine": cache.machine(), "thresholds": {NAME: 1234}}
    (folder / cache.NAME).write_text(json.dumps(content | changes))


# ---- the table ---------------------------------------------------------------------------------


def test_the_table_is_complete():
    for name in tuning.names():
        about = tuning.describe(name)
        assert about.unit and about.decides and about.found and about.command, name
        assert tuning.problem_of(name, about.default) is None
        assert getattr(tuning.thresholds, name) == about.default
    assert tuning.key() == ""


def test_every_threshold_is_used():
    text = "".join(p.read_text(encoding="utf-8") for p in BACKEND.rglob("*.py"))
    unused = [n for n in tuning.names() if f"thresholds.{n}" not in text]
    assert not unused


def test_what_wengert_tune_measures_says_so():
    measured = [n for n in tuning.names() if tuning.describe(n).command == tuning.TUNE]
    assert sorted(measured) == sorted(tune.WORKLOADS)


def test_values_of_a_block_end_with_it():
    with pytest.raises(KeyError), tuning.using(no_such_threshold=1):
        pass
    with tuning.using(inline_work=7), tuning.using(**{NAME: 5000}):
        assert tuning.key() == f"[('inline_work', 7), ('{NAME}', 5000)]"
    assert tuning.key() == ""


def test_programs_of_other_thresholds_are_not_reused(monkeypatch):
    monkeypatch.setattr(compiled_programs, "library_sources", lambda: b"")

    def f(x):
        return np.sum(np.exp(x) * x)

    def program():
        return compiled_programs.program_of(wg.trace(f)(np.ones(400_000)).simplify(), 2)

    first = program()
    assert isinstance(first, Program) and isinstance(program(), compiled_programs.CachedProgram)
    with tuning.using(**{NAME: 10 * DEFAULT}):
        other = program()
        assert isinstance(other, Program) and other.text != first.text
    assert isinstance(program(), compiled_programs.CachedProgram)


# ---- the file ----------------------------------------------------------------------------------


def test_values_are_saved_and_loaded(folder):
    assert cache.load() == {}
    cache.save({NAME: 1234})
    tuning.install({})
    assert cache.load() == {NAME: 1234} and tuning.thresholds.parallel_loop_work == 1234
    assert [p.name for p in folder.iterdir()] == [cache.NAME]
    wg.cache.clear()
    assert cache.load() == {NAME: 1234}
    assert cache.remove() and not cache.remove()
    assert tuning.key() == "" and cache.load() == {}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "it is damaged"),
        ("[1]", "it is damaged"),
        ('{"format": 1, "machine": {}, "thresholds": 3}', "it is damaged"),
        (b"\xff\xfe\x00", "it is damaged"),
        ("x" * 100_000, "larger than"),
    ],
)
def test_a_damaged_file_is_ignored(folder, content, why):
    data = content if isinstance(content, bytes) else content.encode()
    (folder / cache.NAME).write_bytes(data)
    with pytest.warns(UserWarning, match=why):
        assert cache.load() == {}
    assert tuning.key() == ""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"format": 2}, "another version"),
        ({"thresholds": {"no_such_threshold": 1}}, "'no_such_threshold' is not a threshold"),
        ({"thresholds": {NAME: 1e6}}, "an integer is needed"),
        ({"thresholds": {NAME: True}}, "an integer is needed"),
        ({"thresholds": {NAME: 0}}, "it must be from 1000"),
        ({"thresholds": {NAME: 1 << 60}}, "it must be from 1000"),
    ],
)
def test_a_file_with_other_content_is_ignored(folder, change, why):
    stored(folder, **change)
    with pytest.warns(UserWarning, match=why):
        assert cache.load() == {}
    assert tuning.key() == ""


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("processor", "another machine"),
        ("cores", "another machine"),
        ("defaults", "other defaults"),
    ],
)
def test_a_file_of_another_machine_is_ignored(folder, part, why):
    stored(folder)
    assert cache.load() == {NAME: 1234}
    stored(folder, machine=cache.machine() | {part: "other"})
    with pytest.warns(UserWarning, match=why):
        assert cache.load() == {}
    assert tuning.key() == ""


def test_a_file_that_others_can_write_to_is_ignored(folder):
    if not hasattr(disk_cache.os, "geteuid"):
        pytest.skip("the system protects the folder")
    stored(folder)
    (folder / cache.NAME).chmod(0o666)
    with pytest.warns(UserWarning, match="cannot be read"):
        assert cache.load() == {}


def test_without_a_cache_there_are_the_defaults(folder, monkeypatch, capsys):
    stored(folder)
    monkeypatch.setenv("WENGERT_CACHE", "off")
    assert cache.load() == {}
    assert main(["tune"]) == 1
    assert "disabled by WENGERT_CACHE" in capsys.readouterr().err


def test_a_value_out_of_range_is_not_written(folder):
    with pytest.raises(ValueError, match="it must be from 1000"):
        cache.save({NAME: 1})
    assert not list(folder.iterdir())


# ---- the command -------------------------------------------------------------------------------


def times(best):
    """A measuring function: programs are faster the nearer the value is to the best one."""

    def measure(name, value):
        distance = abs(np.log2(value / best[name]))
        return [1.0 + distance, 2.0 + 2.0 * distance]

    return measure


def test_the_fastest_candidate_is_chosen():
    measure = times({NAME: 4 * DEFAULT, "gemm_block_bytes": 1 << 19})
    lines = []
    found = tune.best_values(measure, [NAME, "gemm_block_bytes"], lines.append)
    assert found == {NAME: 4 * DEFAULT}
    assert "(67% faster)" in lines[0] and "unchanged" in lines[1]


def test_a_small_gain_changes_nothing():
    def measure(name, value):
        return [1.0 - 0.9 * tune.MIN_GAIN * (value != DEFAULT)]

    assert tune.best_values(measure, [NAME]) == {}


def test_a_gain_that_does_not_repeat_changes_nothing():
    seen = []

    def measure(name, value):
        seen.append(value)
        return [0.5 if value == 2 * DEFAULT and seen.count(value) == 1 else 1.0]

    assert tune.best_values(measure, [NAME]) == {} and seen.count(2 * DEFAULT) == 2


def test_tune_writes_what_it_measured(monkeypatch, capsys, folder):
    monkeypatch.setattr(tune, "seconds", times({NAME: DEFAULT // 2}))
    monkeypatch.setattr(tune, "WORKLOADS", {NAME: None})
    monkeypatch.setattr(tune, "get_threads", lambda: 2)
    assert main(["tune"]) == 0
    assert f"{NAME}: {DEFAULT} -> {DEFAULT // 2} work (50% faster)" in capsys.readouterr().out
    assert cache.load() == {NAME: DEFAULT // 2}
    assert main(["tune", "--show"]) == 0
    assert f"* {NAME} = {DEFAULT // 2} work" in capsys.readouterr().out
    assert main(["tune", "--reset"]) == 0
    assert "deleted" in capsys.readouterr().out and not list(folder.iterdir())
    assert main(["tune", "--reset"]) == 0
    assert "does not exist" in capsys.readouterr().out


def test_on_one_thread_thresholds_of_threads_are_not_measured(monkeypatch):
    monkeypatch.setattr(tune, "get_threads", lambda: 1)
    assert tune._measurable() == ["gemm_cached_bytes", "gemm_block_bytes", "gemm_packed_rows"]


def test_programs_are_measured_with_the_value(monkeypatch):
    """Each workload compiles and runs; the clock is replaced."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(tune.time, "perf_counter", lambda: float(next(ticks)))
    monkeypatch.setattr(tune, "_REPEATS", 1)
    monkeypatch.setitem(tune.WORKLOADS, NAME, lambda: [(np.sin, (np.ones(4),))])
    seen = []
    jit = wg.jit
    monkeypatch.setattr(
        wg, "jit", lambda f, **o: seen.append((tuning.thresholds.parallel_loop_work, o)) or jit(f)
    )
    assert tune.seconds(NAME, 5000) == [1.0]
    assert seen == [(5000, {"threads": None})] and tuning.key() == ""


def test_a_valid_file_warns_of_nothing(folder):
    stored(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.load() == {NAME: 1234}


def test_values_that_are_installed_in_a_block_are_used_after_it():
    """The backend reads the file of this machine when it is first used, which may be in a block."""
    try:
        with tuning.using(unrolled_terms=7):
            with tuning.using(unrolled_terms=8, unrolled_work=9):
                tuning.install({"unrolled_terms": 300, "unrolled_elements": 30})
                assert tuning.thresholds.unrolled_terms == 8
                assert tuning.thresholds.unrolled_elements == 30
            assert tuning.thresholds.unrolled_terms == 7
            assert tuning.thresholds.unrolled_work == tuning.describe("unrolled_work").default
        assert tuning.thresholds.unrolled_terms == 300
    finally:
        tuning.install({})
