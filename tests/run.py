"""Run the tests in several processes: files are divided among them by the time that they take.

    python tests/run.py                   all tests, in two processes
    python tests/run.py -n 4 tests/nn     a folder, in four
    python tests/run.py --quick           a few cases of each function (`make quick`)
    python tests/run.py --record          also write tests/durations.json
    python tests/run.py -m "" -k solve    whatever else pytest takes

Each process runs pytest on files of its own.  pytest-xdist, which sends one test at a time, spends
5 ms on each and collects all files in every process: a quarter of the time of this suite, whose
tests are many and short.  Seconds are those of a processor, not of the clock.

Compiled modules are kept, those of tests with their rewritten assertions too: a hundred tests start
processes, which import them again.  Where PYTHONDONTWRITEBYTECODE is set they are in a folder of
the user's cache, and not beside their sources.  BLAS has one thread unless OPENBLAS_NUM_THREADS is
set: small products do not gain from threads, and are slow with them on busy cores.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent
DURATIONS = TESTS / "durations.json"
TOGETHER = "repo_rules"  # a folder whose files share the syntax trees of all modules
UNKNOWN = 2.0  # seconds of a file that was never measured, in a folder of which none was
NO_TESTS = 5  # pytest's exit status where nothing was collected


def main(argv: Sequence[str]) -> int:
    """The exit status of pytest: 0, or the largest of the processes'."""
    parser = argparse.ArgumentParser(description="Run the tests in several processes.")
    parser.add_argument("-n", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--record", action="store_true", help="write tests/durations.json")
    options, rest = parser.parse_known_args(argv)
    # An empty argument (-m "") is not the current folder.
    paths = [arg for arg in rest if arg and Path(arg.partition("::")[0]).exists()]
    arguments = [arg for arg in rest if arg not in paths]
    folder = tempfile.mkdtemp(prefix="wengert-tests-")
    try:
        parts = divided(targets(paths or [str(TESTS)]), options.n)
        runs = [Run(k, part, arguments, folder) for k, part in enumerate(parts)]
        status = finish(runs)
        if options.record:
            record(Path(folder))
        return status
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def targets(paths: Iterable[str]) -> list[str]:
    """Files of tests, and tests named one by one."""
    found: dict[str, None] = {}
    for path in paths:
        if Path(path).is_dir():
            found.update(dict.fromkeys(map(str, sorted(Path(path).rglob("test_*.py")))))
        else:
            found[path] = None
    return list(found)


def divided(names: Sequence[str], count: int) -> list[list[str]]:
    """Lists that take about the same time: each name, longest first, joins the shortest list."""
    known = {name: each["seconds"] for name, each in json.loads(DURATIONS.read_text()).items()}
    folders: dict[str, list[float]] = {}
    for file, seconds in known.items():
        folders.setdefault(file.rpartition("/")[0], []).append(seconds)
    cost = {name: expected(relative(name.partition("::")[0]), known, folders) for name in names}
    groups: dict[str, list[str]] = {}
    for name in names:
        folder = str(Path(name).parent)
        groups.setdefault(folder if folder.endswith(TOGETHER) else name, []).append(name)
    costs = {group: sum(cost[name] for name in members) for group, members in groups.items()}
    parts: list[list[str]] = [[] for _ in range(min(count, len(groups)))]
    total = [0.0] * len(parts)
    for group in sorted(groups, key=lambda g: -costs[g]):
        least = total.index(min(total))
        parts[least].extend(groups[group])
        total[least] += costs[group]
    return [sorted(part) for part in parts]


def expected(file: str, known: dict[str, float], folders: dict[str, list[float]]) -> float:
    """Seconds of a file: as measured, or the mean of those that were measured in its folder."""
    others = folders.get(file.rpartition("/")[0], [UNKNOWN])
    return known.get(file, sum(others) / len(others))


def relative(name: str) -> str:
    """A path as tests/durations.json has it: from tests/, with slashes."""
    path = Path(name).resolve()
    return path.relative_to(TESTS.resolve()).as_posix() if path.is_relative_to(TESTS) else name


def keeping_bytecode(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables with which Python keeps compiled modules."""
    kept = dict(environment)
    if kept.pop("PYTHONDONTWRITEBYTECODE", None) and "PYTHONPYCACHEPREFIX" not in kept:
        cache = kept.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        kept["PYTHONPYCACHEPREFIX"] = str(Path(cache, "wengert-tests", "bytecode"))
    return kept


class Run:
    """A process of pytest, and what it prints: progress at once, the rest when it is done."""

    _printing = threading.Lock()

    def __init__(self, number: int, names: Sequence[str], arguments: Sequence[str], folder: str):
        environment = {
            "OPENBLAS_NUM_THREADS": "1",
            **keeping_bytecode(os.environ),
            "WENGERT_CACHE": str(Path(folder, "cache")),
            "WENGERT_TESTS_DURATIONS": str(Path(folder, f"durations-{number}.json")),
        }
        command = [sys.executable, "-m", "pytest", "-q", *arguments, *names]
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.report: list[str] = []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if self.report or not re.match(r"[.\w ]*\[ *\d+%\]$", line):  # not progress any more
                self.report.append(line)
                continue
            with self._printing:
                print(line, end="", flush=True)


def finish(runs: Sequence[Run]) -> int:
    """Wait for all processes, print their reports and the sum; the exit status."""
    try:
        for run in runs:
            run.thread.join()
    except KeyboardInterrupt:  # they have it too, and end by themselves
        for run in runs:
            run.thread.join()
    total: Counter[str] = Counter()
    for run in runs:
        print("".join(run.report), end="")
        last = run.report[-1] if run.report else ""
        for number, what in re.findall(r"(\d+) (\w+)", last.partition(" in ")[0]):
            total[what.removesuffix("s") if what == "errors" else what] += int(number)
    print("all processes:", ", ".join(f"{n} {what}" for what, n in total.items()) or "no tests")
    for line in shortfalls(line for run in runs for line in run.report):
        print(f"!!! {line}")
    found = [run.process.wait() for run in runs]
    if all(status == NO_TESTS for status in found):
        return NO_TESTS
    return max(abs(status) for status in found if status != NO_TESTS)


def shortfalls(lines: Iterable[str]) -> list[str]:
    """What the processes say of whole subjects that they have not tested (tests/conftest.py)."""
    return [line.rstrip() for line in lines if line.startswith("BROWSER TESTS SKIPPED")]


def record(folder: Path) -> None:
    """Write what each file took, and each function of a quarter of a second and more."""
    known = json.loads(DURATIONS.read_text())
    for part in folder.glob("durations-*.json"):
        known.update(json.loads(part.read_text()))
    kept = {name: each for name, each in sorted(known.items()) if (TESTS / name).exists()}
    DURATIONS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
