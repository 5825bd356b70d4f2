"""The table of README.md: for each workload how often wengert fits into the time of the others.

A row has all cases of one workload on one thread: the least and the greatest ratio of the best peer
library's time over wengert's, and the same for C by hand.  It stands between two marks, and
`python benchmarks/native.py --render` writes it; nobody types a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _harness import machine_line, table
from native.page import over

BEGIN, END = "<!-- native.json: begin -->", "<!-- native.json: end -->"


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


def replaced(text: str, results: dict[str, Any] | None) -> str:
    """The text of a page with the block between its marks made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{block(results)}\n\n{END}{after}"


def write(page: Path, results: dict[str, Any] | None) -> None:
    """Write the block into a page."""
    page.write_text(replaced(page.read_text(encoding="utf-8"), results), encoding="utf-8")
