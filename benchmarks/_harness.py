"""What the benchmark scripts share: fair timing, a description of the machine, and tables.

    interleave   run the contestants in turn, in a rotating order, and keep every sample, so that a
                 slow moment of the machine falls on all of them equally
    settle       collect garbage and freeze what the imports left, so that the size of one library's
                 import does not slow another library's allocations
    machine      processor, system and versions, without names or paths of the machine
    spread       median and quartiles of samples
    table        rows as a Markdown table, the form in which results are printed and published
    save, load   results as JSON under benchmarks/results

Only the standard library is imported here: pages are rendered from saved results on machines that
have none of the libraries measured.
"""

from __future__ import annotations

import gc
import importlib.metadata
import json
import os
import platform
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PAGES = HERE.parent / "docs"


def settle() -> None:
    """Collect garbage, then exempt every object now alive from later collections."""
    gc.collect()
    gc.freeze()


def interleave(
    contestants: Mapping[str, Callable[[], Any]], repetitions: int, warmup: int = 3
) -> dict[str, list[Any]]:
    """Call every contestant once per repetition, each repetition starting with the next one."""
    names = list(contestants)
    samples: dict[str, list[Any]] = {name: [] for name in names}
    for _ in range(warmup):
        for name in names:
            contestants[name]()
    for i in range(repetitions):
        start = i % len(names)
        for name in names[start:] + names[:start]:
            samples[name].append(contestants[name]())
    return samples


def spread(samples: Iterable[float], scale: float = 1.0) -> dict[str, float]:
    """Median and quartiles, each multiplied by ``scale``."""
    low, middle, high = statistics.quantiles((scale * s for s in samples), n=4)
    return {"median": middle, "low": low, "high": high}


def machine(packages: Sequence[str]) -> dict[str, Any]:
    """Describe the machine; a package that is not installed is None."""
    versions: dict[str, str | None] = {}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return {
        "date": date.today().isoformat(),
        "cpu": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": versions,
    }


def processor() -> str:
    """The model of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def generation() -> str:
    """The family and model numbers of the processor, as processors of several share a name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    numbers = dict(map(str.strip, line.split(":", 1)) for line in lines if ":" in line)
    found = [f"{key} {numbers[key]}" for key in ("cpu family", "model") if key in numbers]
    return " ".join(found).removeprefix("cpu ")


def machine_line(described: Mapping[str, Any], sections: Iterable[Mapping[str, Any]] = ()) -> str:
    """Return the machine as one sentence, and another for sections measured elsewhere."""
    versions = [f"{name} {v}" for name, v in described["packages"].items() if v]
    missing = [name for name, v in described["packages"].items() if not v]
    line = (
        f"{described['date']}: {described['cpu']}, {described['cores']} cores, "
        f"{described['system']}, Python {described['python']}; {', '.join(versions)}."
    )
    line += f" Not installed, so not measured: {', '.join(missing)}." if missing else ""
    here = [described["date"], described["cpu"]]
    others: dict[tuple[str, ...], list[str]] = {}
    for section in sections:
        measured = section.get("measured", here)
        if measured != here:
            threads = f" on {section['threads']} threads" if section["threads"] > 1 else ""
            others.setdefault(tuple(measured), []).append(section["title"] + threads)
    for (day, cpu), titles in others.items():
        line += f" Measured on another day ({day}, {cpu}): {'; '.join(titles)}."
    return line


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; the first column is aligned left, the others right."""
    cells = [[_cell(value) for value in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = []
    for row in cells:
        padded = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(f"| {' | '.join(padded)} |")
    rule = [("-" * w if i == 0 else "-" * (w - 1) + ":") for i, w in enumerate(widths)]
    lines.insert(1, f"| {' | '.join(rule)} |")
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    return str(value)


def save(name: str, results: Mapping[str, Any]) -> Path:
    """Write results/<name>.json and return its path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    return path


def load(name: str) -> dict[str, Any]:
    """Read results/<name>.json."""
    results: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return results
