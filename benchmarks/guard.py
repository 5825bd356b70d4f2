"""Hot paths compared with stored figures: fails where one is slower by 1.5.

    python benchmarks/guard.py                  Python's instructions, and ratios to plain Python
                                                and NumPy in the same process: what CI runs
    python benchmarks/guard.py --instructions   machine instructions too, where valgrind is
                                                (a minute)
    python benchmarks/guard.py --update         store what is found: tests/guard/stored.json
    python benchmarks/guard.py --only PATH      some paths only (may be repeated)
    python benchmarks/guard.py --slowed         three calls for two: every path must be reported

Returns 1 if a path is slow.  What is compared with what, and how wide the margins are, is said in
guard/stored.py.  Update after a change that makes a path faster or, with a reason, slower; on a
quiet machine, for the ratios.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from _harness import table
from guard import bytecodes, instructions, ratios, stored

ENVIRONMENT = {  # read when libraries are imported
    "OPENBLAS_NUM_THREADS": "1",
    "WENGERT_THREADS": "1",
    "WENGERT_CACHE": "0",
    "PYTHONHASHSEED": "0",
}
if __name__ == "__main__" and not ENVIRONMENT.items() <= os.environ.items():
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ENVIRONMENT)

from guard.paths import PATHS  # noqa: E402

PROCESSES = 3  # more, for what looks slow in one
KINDS = ("bytecodes", "ratios", "instructions")


def thrice(path: Callable[[], Any]) -> Callable[[], Any]:
    """A path that is called three times; its cost is halved, so it is slower by a half."""

    def run() -> None:
        path()
        path()
        path()

    return run


def halved(found: Mapping[str, float]) -> dict[str, float]:
    """Half of each."""
    return {name: value / 2.0 for name, value in found.items()}


def measured(kind: str, names: list[str], slowed: bool, thorough: bool) -> dict[str, float]:
    """Figures of one kind, by path; `thorough`: as many attempts as a path that looks slow gets."""
    if kind == "instructions":
        found = {n: c for n, c in instructions.measure(slowed).items() if n in names}
    elif kind == "bytecodes":
        found = bytecodes.measure(made(names, slowed), "import" in names and not slowed)
    else:
        found = {n: median(v) for n, v in attempts(names, slowed, thorough).items()}
    return halved(found) if slowed else found


@functools.cache
def path(name: str) -> Callable[[], Any]:
    """A path, made once."""
    return PATHS[name].make()


def made(names: list[str], slowed: bool) -> dict[str, Callable[[], Any]]:
    """The paths of these names."""
    paths = {n: path(n) for n in names if n in PATHS}
    return {n: thrice(called) for n, called in paths.items()} if slowed else paths


def attempts(
    names: list[str], slowed: bool, thorough: bool, alone: bool = False
) -> dict[str, list[float]]:
    """All ratios found: one for what looks well, more in this process and in new ones for others.

    A new process, because where code and arrays lie in memory can slow a whole one.
    """
    paths, standard = made(names, slowed), stored.standard("ratios")
    yardsticks = {n: hot.yardstick for n, hot in PATHS.items()}

    def suspects(found: Mapping[str, Sequence[float]]) -> list[str]:
        if thorough:
            return list(found)
        middle = {n: median(values) for n, values in found.items()}
        return standard.slow(halved(middle) if slowed else middle) if standard else []

    first = {n: [value] for n, value in ratios.measure(paths, yardsticks).items()}
    if alone:
        return first
    found = ratios.again(first, suspects, paths, yardsticks)
    for _ in range(0 if slowed else PROCESSES):
        if slow := suspects(found):
            for n, values in elsewhere(slow).items():
                found[n] += values
    return found


def elsewhere(names: list[str]) -> dict[str, list[float]]:
    """One ratio of each, found in a new process."""
    command = [sys.executable, __file__, "--alone"]
    command += [word for name in names for word in ("--only", name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def report(kind: str, found: Mapping[str, float]) -> bool:
    """Print figures beside the stored ones; whether all are well."""
    standard = stored.standard(kind)
    if standard is None:
        print(f"{kind}: there are no stored figures for {stored.belongs(kind)} to compare with")
        return True
    slow, fast, unknown = standard.slow(found), standard.fast(found), standard.unknown(found)
    says = (
        dict.fromkeys(fast, "faster") | dict.fromkeys(unknown, "new") | dict.fromkeys(slow, "SLOW")
    )
    rows = [
        [n, f"{value:.4g}", figure, figure and f"{value / figure:.2f}", says.get(n, "")]
        for n, value in found.items()
        for figure in [standard.figures.get(n)]
    ]
    print(f"{kind}, of {standard.of}; {standard.margin:g} times the stored figure is too much")
    print(table(["path", "found", "stored", "times", ""], rows))
    if fast or unknown:
        print(f"`make guard-update` stores: {', '.join([*fast, *unknown])}")
    return not slow


def main() -> int:
    """Measure and compare; 1 if something is slow."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--instructions", action="store_true", help="machine instructions too")
    parser.add_argument("--update", action="store_true", help="store what is found")
    parser.add_argument("--only", action="append", help="some paths only")
    parser.add_argument("--kind", action="append", choices=KINDS, help="some kinds only")
    parser.add_argument("--slowed", action="store_true", help="three calls for two: must fail")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        print(json.dumps(attempts(options.only, options.slowed, False, alone=True)))
        return 0
    names = options.only or [*PATHS, "import"]
    kinds = options.kind or list(KINDS if options.instructions else KINDS[:2])
    well = True
    for kind in kinds:
        if kind == "instructions" and (reason := instructions.missing()):
            print(f"instructions: not counted, {reason}")
            continue
        found = measured(kind, names, options.slowed, options.update or options.slowed)
        if options.update:
            stored.update(kind, found, some=options.only is not None)
        well &= report(kind, found)
    return not well


if __name__ == "__main__":
    sys.exit(main())
