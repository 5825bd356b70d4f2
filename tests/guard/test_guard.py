"""Hot paths cost what they did: benchmarks/guard.py compares, and it can fail.

A path that is slower by a half is reported: every one of them is called three times for two in
`test_every_path_slowed_is_reported` (two of them in the default run).  Ratios that were written
down on a machine busier than now may spare one; counts of instructions spare none.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
KINDS = ("bytecodes", "ratios", "instructions")


def guard(*options):
    """Exit status of the command, and what it printed."""
    command = [sys.executable, str(BENCHMARKS / "guard.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1) and not done.stderr, done.stderr
    return done.returncode, done.stdout


def verdicts(printed, kind):
    """Path and verdict of each row of the table of one kind."""
    _, found, rest = printed.partition(f"{kind}, of ")
    assert found, printed
    lines = rest.partition("too much\n")[2].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    table = []
    for row in rows[2:]:
        if len(row) != 5:
            break
        table.append((row[0], row[-1]))
    return dict(table)


@pytest.fixture
def stored(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from guard import stored

    return stored


def test_no_hot_path_executes_more():
    status, printed = guard("--kind", "bytecodes")
    assert status == 0, f"\n{printed}\n(`make guard-update` stores the present figures)"


def test_a_path_slower_by_a_half_is_reported():
    status, printed = guard(
        "--slowed", "--kind", "bytecodes", "--only", "eager add", "--only", "trace"
    )
    if "there are no stored figures" in printed:
        pytest.skip("no figures of this version of Python: `make guard-update` adds them")
    assert status == 1, printed
    assert set(verdicts(printed, "bytecodes").values()) == {"SLOW"}, printed


@pytest.mark.slow
@pytest.mark.timeout(1800)  # minutes, where others wait for the processors too
def test_every_path_slowed_is_reported():
    """By one of the two measures that CI runs at least, and by counts of instructions."""
    status, printed = guard("--slowed", "--instructions")
    assert status == 1
    slow = {kind: set() for kind in KINDS}
    for kind in KINDS:
        if f"{kind}, of " in printed:
            found = verdicts(printed, kind)
            assert len(found) >= 20
            slow[kind] = {n for n, verdict in found.items() if verdict == "SLOW"}
    if not slow["ratios"] or "another processor" in printed:
        pytest.skip("no ratios of this processor: `make guard-update` adds them")
    assert set(found) == slow["bytecodes"] | slow["ratios"], printed
    assert len(slow["ratios"]) >= 20, printed
    if slow["instructions"]:
        assert slow["instructions"] == set(found), printed


@pytest.mark.slow
@pytest.mark.timeout(1800)  # minutes, where others wait for the processors too
def test_no_hot_path_has_more_instructions():
    status, printed = guard("--kind", "instructions")
    assert status == 0, printed


# ---- what is compared with what ----------------------------------------------------------------


@pytest.fixture
def file(stored, tmp_path):
    path = tmp_path / "stored.json"
    for kind in KINDS:
        stored.update(kind, {"a": 100_000.0, "b": 2e5}, path)
    return path


def test_a_margin_lies_between_noise_and_a_half(stored, file):
    for kind in KINDS:
        found = stored.standard(kind, file)
        assert found.slow({"a": 120_000.0, "b": 2.4e5}) == []
        assert found.slow({"a": 150_000.0, "b": 2e5}) == ["a"]


def test_what_is_faster_or_new_is_named(stored, file):
    found = stored.standard("ratios", file)
    assert found.fast({"a": 60_000.0, "b": 2e5}) == ["a"]
    assert found.unknown({"c": 1.0}) == ["c"]
    assert found.slow({"c": 1e9}) == []


def test_ratios_of_another_processor_have_a_wide_margin(stored, file):
    entries = json.loads(file.read_text())
    here = stored.belongs("ratios")
    entries["ratios"] = {here.rpartition(",")[0] + ", another": entries["ratios"][here]}
    file.write_text(json.dumps(entries))
    found = stored.standard("ratios", file)
    assert found.slow({"a": 240_000.0}) == [] and found.slow({"a": 260_000.0}) == ["a"]


def test_processors_of_one_name_and_two_generations_have_figures_of_their_own(
    stored, file, monkeypatch
):
    monkeypatch.setattr(stored, "generation", lambda: "family 1 model 2")
    assert stored.standard("ratios", file).margin == stored.ELSEWHERE
    assert stored.standard("instructions", file).margin == stored.MARGINS["instructions"]


def test_nothing_is_compared_with_another_python(stored, file):
    text = file.read_text().replace(stored.belongs("bytecodes"), "CPython 2.7")
    file.write_text(text)
    assert [stored.standard(kind, file) for kind in KINDS] == [None] * 3


def test_an_update_keeps_what_others_wrote(stored, file):
    entries = json.loads(file.read_text())
    entries["bytecodes"]["CPython 2.7"] = {"a": 1}
    file.write_text(json.dumps(entries))
    stored.update("bytecodes", {"a": 7.0}, file)
    entries = json.loads(file.read_text())["bytecodes"]
    assert entries == {"CPython 2.7": {"a": 1}, stored.belongs("bytecodes"): {"a": 7.0}}
