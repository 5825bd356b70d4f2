"""All saved results as sections of cases, whatever suite wrote them.

A suite of _suite.py writes sections itself; of the scripts eager.py, vmap.py and distributed.py,
what can be compared is brought into the same form.  A new file under results appears on the page
and in the plots without a line of code here.

    Section      one workload of one suite on so many threads
    everything   all of them, and the results as they were saved
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _harness import RESULTS
from native import page

Times = dict[str, float]  # seconds, by contestant


@dataclass(frozen=True)
class Section:
    """One workload.

    cases : times of all contestants, by case; a contestant without a time is left out.
    silent : cases and contestants without a time, and the reason.
    """

    suite: str
    name: str
    title: str
    threads: int
    cases: Mapping[str, Times]
    peers: Sequence[str] | None = None
    silent: Mapping[tuple[str, str], str] = field(default_factory=dict)
    target: str = ""

    def chosen(self, pattern: str) -> dict[str, Times]:
        """Cases whose name the pattern finds."""
        return {name: times for name, times in self.cases.items() if re.search(pattern, name)}

    def ratios(
        self, of: str, pattern: str = "", peers: Sequence[str] | None = None
    ) -> dict[str, float]:
        """Time of "C", or of the best "peer" (of some), over wengert's, by case.

        Of C in several ways ("C, closed form") that counts which has the plain name, if one has.
        """
        found = {}
        for name, times in self.chosen(pattern).items():
            if of == "C" and "C" in times:
                times = {n: t for n, t in times.items() if n == "C" or page.kind(n) != "C"}
            found[name] = page.over(times, of, peers)
        return {n: ratio for n, ratio in found.items() if ratio is not None}


def of_suite(suite: str, results: Mapping[str, Any]) -> list[Section]:
    """Sections as a suite of _suite.py writes them."""
    made = []
    for section in results["sections"]:
        cases, silent = {}, {}
        for case in section["cases"]:
            found = case["contestants"]
            cases[case["case"]] = {n: c["median"] for n, c in found.items() if "median" in c}
            for name, c in found.items():
                reason = next((r for r in ("cannot", "skipped", "failed", "wrong") if r in c), None)
                if reason and "median" not in c:
                    silent[case["case"], name] = f"{reason}: {c[reason]}"
        made.append(
            Section(
                suite,
                section["name"],
                section["title"],
                section["threads"],
                cases,
                section.get("peers"),
                silent,
                section.get("target", ""),
            )
        )
    return made


def of_eager(results: Mapping[str, Any]) -> list[Section]:
    """The chains of eager.py, and its imports."""
    chains = {
        f"{size} element{'s' * (size != '1')}": {
            name.replace("numpy", "NumPy"): c["total"]["median"] * 1e-6 for name, c in found.items()
        }
        for size, found in results["chain"].items()
    }
    imports = {"import": {n: t["median"] * 1e-3 for n, t in results["imports"].items()}}
    imports["import"]["NumPy"] = imports["import"].pop("numpy")
    return [
        Section("eager", "chain", "Eager: a chain of small operations, a step", 1, chains),
        Section("eager", "import", "Import", 1, imports),
    ]


def of_vmap(results: Mapping[str, Any]) -> list[Section]:
    """Gradients of a batch."""
    names = {"by hand": "NumPy", "jax, vmap": "JAX, eager", "jax, vmap and jit": "JAX",
             "torch, vmap": "torch", "wengert, loop": "wengert, loop"}  # fmt: skip
    cases = {
        case: {names.get(name, name): t["median"] * 1e-3 for name, t in found.items()}
        for case, found in results["gradients"].items()
    }
    return [Section("vmap", "gradients", "vmap: the gradient of every row", 1, cases)]


def of_distributed(results: Mapping[str, Any]) -> list[Section]:
    """A sum over data on one process and on two."""
    found = results["sum_over_data"]
    names = {"one process": "one process", "two processes": "wengert"}
    times = {ours: found[name]["least"] for name, ours in names.items()}
    title = "Value and gradient of a sum over data, two processes"
    return [Section("distributed", "sum", title, 1, {"logistic regression": times})]


def sections(suite: str, results: Mapping[str, Any]) -> list[Section]:
    """What can be compared in the results of a suite."""
    if "sections" in results:
        return of_suite(suite, results)
    if "chain" in results and "imports" in results:
        return of_eager(results)
    if "sum_over_data" in results:
        return of_distributed(results)
    return of_vmap(results) if "gradients" in results else []


@dataclass(frozen=True)
class Everything:
    """All results: as they were saved, and as sections."""

    raw: Mapping[str, Any]
    sections: Sequence[Section]

    def section(self, suite: str, name: str, threads: int = 1) -> Section | None:
        """One of them, if it was measured."""
        for s in self.sections:
            if (s.suite, s.name, s.threads) == (suite, name, threads):
                return s
        return None

    def of(self, suite: str) -> list[Section]:
        """Those of a suite."""
        return [s for s in self.sections if s.suite == suite]


def everything(folder: Path = RESULTS) -> Everything:
    """Read all that is under results."""
    raw = {p.stem: json.loads(p.read_text()) for p in sorted(folder.glob("*.json"))}
    return Everything(raw, [s for name, results in raw.items() for s in sections(name, results)])
