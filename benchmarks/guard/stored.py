"""The stored figures, and what deviates from them.

The file has one entry for each kind of figure and for what the figure belongs to:

    bytecodes      a minor version of Python                      exact, so 1.25 times is too much
    instructions   minor version of Python and kind of processor  1.25 times is too much
    ratios         the same, and name, family and model of the processor: NumPy's tanh, a
                   yardstick, takes twice the time on one "AMD EPYC" than on the next;
                   1.3 times is too much

Ratios of another model of processor are compared with a wide margin, 2.5 times; counts of another
version of Python, and ratios where no entry is of this version, not at all: that is said, and
`make guard-update` adds an entry.  A path that has become much faster is named too, as a later
slowdown would hide behind the old figure.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _harness import generation, processor

FILE = Path(__file__).resolve().parents[2] / "tests" / "guard" / "stored.json"
MARGINS = {"bytecodes": 1.25, "instructions": 1.25, "ratios": 1.3}
ELSEWHERE = 2.5  # for ratios of another model of processor
SLACK = {"bytecodes": 10.0, "instructions": 150.0, "ratios": 0.0}  # so small a count may move
FASTER = 0.7


def belongs(kind: str) -> str:
    """What figures of a kind belong to, here."""
    python = f"{platform.python_implementation()} {sys.version_info[0]}.{sys.version_info[1]}"
    if kind == "bytecodes":
        return python
    if kind == "instructions":
        return f"{python}, {platform.machine()}"
    return f"{python}, {platform.machine()}, {processor()} {generation()}".strip()


@dataclass(frozen=True)
class Standard:
    """Figures to compare with, and by how much they may be exceeded."""

    kind: str
    figures: Mapping[str, float]
    margin: float
    of: str  # what they belong to

    def limit(self, name: str) -> float:
        """What a path may cost."""
        return self.figures[name] * self.margin + SLACK[self.kind]

    def slow(self, found: Mapping[str, float]) -> list[str]:
        """Names of paths that cost too much."""
        return [n for n in found if n in self.figures and found[n] > self.limit(n)]

    def fast(self, found: Mapping[str, float]) -> list[str]:
        """Names of paths that cost much less than the stored figure."""
        return [n for n in found if n in self.figures and found[n] < FASTER * self.figures[n]]

    def unknown(self, found: Mapping[str, float]) -> list[str]:
        """Names of paths without a stored figure."""
        return [n for n in found if n not in self.figures]


def load(file: Path = FILE) -> dict[str, dict[str, dict[str, float]]]:
    """All stored figures, by kind, what they belong to, and path."""
    text = file.read_text(encoding="utf-8") if file.exists() else "{}"
    everything: dict[str, dict[str, dict[str, float]]] = json.loads(text)
    return everything


def standard(kind: str, file: Path = FILE) -> Standard | None:
    """What figures of a kind are compared with here, if there is anything."""
    entries = load(file).get(kind, {})
    here = belongs(kind)
    if here in entries:
        return Standard(kind, entries[here], MARGINS[kind], here)
    machine = belongs("instructions")
    others = {of: figures for of, figures in entries.items() if of.startswith(machine)}
    if kind != "ratios" or not others:
        return None
    names = {name for figures in others.values() for name in figures}
    most = {n: max(f[n] for f in others.values() if n in f) for n in names}
    return Standard(kind, most, ELSEWHERE, "another processor")


def update(kind: str, found: Mapping[str, float], file: Path = FILE, some: bool = False) -> None:
    """Write down what was found; the figures of other paths stay if it is `some` of them."""
    everything = load(file)
    rounded: dict[str, Any] = {n: float(f"{value:.4g}") for n, value in found.items()}
    known = everything.setdefault(kind, {})
    before = known.get(belongs(kind), {}) if some else {}
    known[belongs(kind)] = {**before, **rounded}
    ordered = {k: dict(sorted(everything[k].items())) for k in MARGINS if k in everything}
    file.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
