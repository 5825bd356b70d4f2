"""Which cases of a parametrised test are run: `sample` and `--quick`, and how long tests take.

    sample(n)    mark of a test function: n of its cases are in every run, the rest are `slow`;
                 sample(1) takes another case in each function, sample(1, first=0) the first
    --quick      two cases of each function, none of a function whose cases take long
    spread       the choice: cases that differ in as many parameters as can be
    Durations    processor seconds of files and functions, for tests/run.py

A choice depends on nothing but the parameters, so the same commit runs the same cases everywhere.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
QUICK = 2  # cases of a function
QUICK_LAWS = 12  # operations for a law
LONG = 0.08  # seconds of a case that --quick leaves out
PLAIN = (str, int, float, complex, type(None))
RECORDED = 0.04  # seconds of a function below which it is not in tests/durations.json


def sampled(items: Sequence[Any], quick: bool) -> None:
    """Mark as slow what a run leaves out; to be called before pytest chooses by marks."""
    functions: dict[Any, list[Any]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow") is None:
            functions[item.path, getattr(item, "cls", None), item.originalname].append(item)
    durations = json.loads((TESTS / "durations.json").read_text()) if quick else {}
    for (path, _, name), cases in functions.items():
        mark = cases[0].get_closest_marker("sample")
        count = len(cases) if mark is None else mark.args[0]
        if quick:
            file = durations.get(path.relative_to(TESTS).as_posix(), {})
            seconds = file.get("functions", {}).get(name, 0.0)
            most = QUICK_LAWS if path.parent.name == "laws" else QUICK
            count = min(count, most) if seconds / len(cases) < LONG else 0
        # Functions with the same parameters (methods, dtypes) do not all take the first.
        first = zlib.crc32(name.encode()) if count == 1 and mark is not None else 0
        first = first if mark is None else mark.kwargs.get("first", first)
        chosen = {cases[k] for k in spread([parameters(case) for case in cases], count, first)}
        for case in cases:
            if case not in chosen:
                case.add_marker(pytest.mark.slow)


def parameters(item: Any) -> tuple[Hashable, ...]:
    """The values of a case: as they are where they are plain, else which objects they are.

    Not their positions, as in a list of (shape, dtype) every case has a position of its own, and
    pytest numbers the cases of several marks in one row.
    """
    call = getattr(item, "callspec", None)
    given = {} if call is None else call.params
    return tuple(
        (name, repr(value) if isinstance(value, PLAIN) else id(value))
        for name, value in sorted(given.items())
    )


def spread(cases: Sequence[tuple[Hashable, ...]], count: int, first: int = 0) -> list[int]:
    """Positions of `count` cases.

    The first is the case number `first`, counted around.  Each next case is one with the most
    values that no earlier one has; of equal ones the first and the last come before those between,
    which are halved again and again.
    """
    order = _halving(len(cases))
    if count >= len(cases):
        return order
    order.insert(0, order.pop(order.index(first % len(cases))))
    seen: set[Hashable] = set()
    chosen: list[int] = []
    for _ in range(count):
        left = [k for k in order if k not in chosen]
        best = max(left, key=lambda k: sum(value not in seen for value in cases[k]))
        chosen.append(best)
        seen.update(cases[best])
    return chosen


def _halving(count: int) -> list[int]:
    """0, count - 1, the middle, the middles of both halves, ..."""
    order = dict.fromkeys([0, count - 1] if count else [])
    step = 1.0
    while len(order) < count:
        step /= 2
        order.update(dict.fromkeys(round(k * step * (count - 1)) for k in range(int(1 / step) + 1)))
    return list(order)


class Durations:
    """Processor seconds, of this process and its children, of files and of functions."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.files: Counter[str] = Counter()
        self.functions: dict[str, Counter[str]] = defaultdict(Counter)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Measure one test with its fixtures."""
        before = sum(os.times()[:4])
        result = yield
        taken = sum(os.times()[:4]) - before
        name = item.path.relative_to(TESTS).as_posix()
        self.files[name] += taken
        self.functions[name][item.originalname] += taken
        return result

    def pytest_sessionfinish(self) -> None:
        """Write them, where tests/run.py looks for them."""
        found = {
            name: {
                "seconds": round(seconds, 1),
                "functions": {
                    function: round(each, 2)
                    for function, each in sorted(self.functions[name].items())
                    if each >= RECORDED
                },
            }
            for name, seconds in self.files.items()
        }
        self.path.write_text(json.dumps(found))
