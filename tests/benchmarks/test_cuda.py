"""The benchmark of graphics cards runs with an emulated device: its checks, workloads and page."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPT = BENCHMARKS / "cuda.py"
SOME = [
    *("exp", "program 100: values", "1e6 systems of 3 equations", "elementwise chain, 1e3"),
    "two convolutions, value and gradient",
]


def run(folder, *options):
    """The results and the page of an emulated run."""
    paths = folder / "cuda.json", folder / "page.md"
    command = [sys.executable, str(SCRIPT), "--emulate", "--quick", *options]
    command += ["--results", str(paths[0]), "--page", str(paths[1])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(paths[0].read_text()), paths[1].read_text()


def test_some_of_it_in_one_process(tmp_path):
    results, page = run(tmp_path, "--jobs", "0", "--only", *SOME)
    assert set(results["checks"]) == set(SOME[:2])
    assert set(results["speed"]) == set(SOME[2:])
    assert results["pending"] == []
    assert "1 operations were compared with eager execution" in page
    assert "1 random programs; 0 differ" in page
    assert page.count("| 1e6 systems of 3 equations") == 1
    assert "emulated by the processor" in page
    assert sorted(os.listdir(tmp_path)) == ["cuda.json", "page.md"]


@pytest.mark.slow
def test_all_of_it_in_parts(tmp_path):
    results, page = run(tmp_path, "--part", "checks", "--jobs", "2")
    assert len(results["checks"]) == 9
    assert results["speed"] == {}
    results, page = run(tmp_path, "--part", "speed", "--minutes", "0")  # no time
    assert results["speed"] == {}
    assert "Not run, as time was over: elementwise chain, 1e7" in page
    results, page = run(tmp_path, "--resume", "--jobs", "2")
    assert len(results["checks"]) == 9
    assert len(results["speed"]) == 20
    assert "Not run" not in page
    assert "0 differ" in page


def test_the_page_before_the_first_run(tmp_path):
    stored = BENCHMARKS / "results" / "cuda.json"
    page = tmp_path / "page.md"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--part", "page", "--page", str(page)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    written = (BENCHMARKS.parent / "docs" / "benchmarks-cuda.md").read_text()
    assert page.read_text() == written
    assert ("No run on a card has been made yet" in written) == (not stored.exists())


@pytest.fixture
def workers(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from cuda_cases import workers

    return workers


WORKER = """
import sys, os
from cuda_cases.workers import serve
def work(name):
    if name == "crash":
        os._exit(7)
    if name == "silent":
        import time
        time.sleep(60)
    print("other output")
    return name.upper()
serve(work)
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_crash_of_a_worker_is_a_result(workers, monkeypatch, jobs):
    from time import monotonic

    monkeypatch.setenv("PYTHONPATH", f"{BENCHMARKS}")
    found = {}
    names = ["a", "crash", "b", "c"]
    workers.run([sys.executable, "-c", WORKER], names, jobs, monotonic() + 60.0, found.__setitem__)
    assert {name: found[name] for name in "abc"} == {"a": "A", "b": "B", "c": "C"}
    assert "status 7" in found["crash"]["crash"]


def test_a_silent_worker_is_ended(workers, monkeypatch):
    from time import monotonic

    monkeypatch.setenv("PYTHONPATH", f"{BENCHMARKS}")
    monkeypatch.setattr(workers, "_SILENT", 3.0)
    found = {}
    command = [sys.executable, "-c", WORKER]
    workers.run(command, ["silent", "a"], 1, monotonic() + 60.0, found.__setitem__)
    assert found["a"] == "A"
    assert "crash" in found["silent"]


def test_nothing_is_left_running_after_the_deadline(workers, monkeypatch):
    from time import monotonic

    monkeypatch.setenv("PYTHONPATH", f"{BENCHMARKS}")
    found = {}
    command = [sys.executable, "-c", WORKER]
    workers.run(command, ["silent", "a"], 1, monotonic() + 1.0, found.__setitem__)
    assert found == {}


def test_the_page_of_a_run_on_a_card(workers):
    from cuda_cases.page import render

    row = {"first": 30.0, "ours": 1.1, "torch": 1.0, "jax": 2.0, "share": 0.9}
    results = {
        "machine": {
            "date": "2027-01-01", "cpu": "a processor", "cores": 16, "system": "Linux",
            "python": "3.12", "packages": {"wengert": "0.1.0", "jax": None},
        },
        "card": "a card", "copy": 4e12, "pending": ["another"],
        "checks": {"exp": None, "eigh": "signs", "sum": "AssertionError: 1 is not 2"},
        "speed": {"chain": row, "solves": {"crash": "the process ended with status 1."},
                  "sums": {**row, "torch": None, "torch_error": "RuntimeError: no"}},
    }  # fmt: skip
    page = render(results)
    assert "a card, copies at 4000 GB/s" in page
    assert "3 operations were compared" in page
    assert "1 differ. With other signs or phases than LAPACK's: eigh." in page
    assert "* sum: AssertionError: 1 is not 2" in page
    assert "1.10 |      90 %" in page
    assert "* solves: the process ended with status 1." in page
    assert "* sums: torch_error: RuntimeError: no" in page
    assert "Not run, as time was over: another." in page
