"""What README.md says of times: the table of native.json, and the sentence of loops.json.

A row has all cases of one workload on one thread: the least and the greatest ratio of the best peer
library's time over wengert's, and the same for C by hand.  It stands between two marks, and
`python benchmarks/native.py --render` writes it; nobody types a number.  The sentence about
Lorenz's equations is written by `python benchmarks/loops.py --render`: C as written, JAX in the
better one of its modes, whose name is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from _harness import machine_line, table
from native.page import duration, kind, over

BEGIN, END = "<!-- native.json: begin -->", "<!-- native.json: end -->"
Replaced = Callable[[str, "dict[str, Any] | None"], str]
LOOPS = "<!-- loops.json: begin -->", "<!-- loops.json: end -->"


def block(results: dict[str, Any] | None) -> str:
    """What stands between the marks: table and machine, or that nothing is measured yet."""
    if results is None:
        return "(Not measured yet: `make bench` does.)"
    rows = [_row(section) for section in results["sections"] if section["threads"] == 1]
    head = ["workload, on one thread", "best peer / wengert", "C by hand / wengert"]
    more = "All cases and times: [docs/benchmarks-native.md](docs/benchmarks-native.md)."
    return "\n\n".join([table(head, rows), f"{machine_line(results['machine'])} {more}"])


def _row(section: dict[str, Any]) -> list[str]:
    ratios = []
    for of in ("peer", "C"):
        found = []
        for case in section["cases"]:
            times = {n: c["median"] for n, c in case["contestants"].items() if "median" in c}
            ratio = over(times, of, section.get("peers"))
            found += [] if ratio is None else [ratio]
        ratios.append(_between(found))
    count = len(section["cases"])
    return [f"{section['title']} ({count} case{'s' if count > 1 else ''})", *ratios]


def _between(found: Sequence[float]) -> str:
    if not found:
        return "-"
    ends = [f"{x:.2g}" if x < 10 else f"{x:.0f}" for x in (min(found), max(found))]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def sentence(results: dict[str, Any] | None) -> str:
    """Lorenz's equations with three numbers as state: value and gradient, C, JAX."""
    if results is None:
        return "(Loops are not measured yet: `make bench` does.)"
    (cases,) = (s["cases"] for s in results["sections"] if s["name"] == "lorenz")
    found: dict[str, list[str]] = {}
    for what in ("value", "gradient"):
        (case,) = (c for c in cases if c["case"] == f"{what}, state as numbers")
        times = {n: c["median"] for n, c in case["contestants"].items() if "median" in c}
        for who in ("wengert", "C", "JAX"):
            modes = {name: t for name, t in times.items() if name == who or kind(name) == who}
            if who == "C":
                modes.pop("C -ffast-math", None)
            name = min(modes, key=lambda name: modes[name])
            mode = name.partition(", ")[2] if what == "gradient" else ""
            words = duration(modes[name]) + (f" ({mode} mode)" if mode else "")
            found.setdefault(who, []).append(words)
    (value, gradient), c, jax = found["wengert"], found["C"], found["JAX"]
    return (
        f"A thousand Runge-Kutta steps of Lorenz' equations: {value}, with the gradient "
        f"{gradient}; C by hand {c[0]} and {c[1]}, JAX {jax[0]} and {jax[1]} "
        "([measured](docs/benchmarks-loops.md))."
    )


def replaced(text: str, results: dict[str, Any] | None) -> str:
    """The text of a page with the table between its marks made anew."""
    return _between_marks(text, (BEGIN, END), block(results))


def said(text: str, results: dict[str, Any] | None) -> str:
    """The text of a page with the sentence of loops made anew."""
    return _between_marks(text, LOOPS, sentence(results))


def _between_marks(text: str, marks: tuple[str, str], made: str) -> str:
    begin, end = marks
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n{made}\n\n{end}{after}"


def write(page: Path, results: dict[str, Any] | None, of: Replaced = replaced) -> None:
    """Write the table (or, `said`, the sentence) into a page."""
    page.write_text(of(page.read_text(encoding="utf-8"), results), encoding="utf-8")
