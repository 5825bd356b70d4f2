"""The page of benchmarks/cuda.py.

render    the page of results, whole or in parts
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from _harness import machine_line, table

TARGETS = "at most 1.2 times the best of the others; 85 % of the bandwidth of a copy"
_HEAD = [
    "workload", "wengert, ms", "PyTorch, ms", "JAX, ms", "wengert / best", "bandwidth", "first, ms",
]  # fmt: skip


def render(results: Mapping[str, Any]) -> str:
    """The page."""
    if results["card"] is None:
        return f"# Benchmarks: graphics cards\n\n{_unmeasured()}\n"
    parts = [
        "# Benchmarks: graphics cards",
        "Written by `python benchmarks/cuda.py`. A ratio below one: wengert is faster. A cell is "
        "the median of the time between two moments at which the card has nothing to do; arrays "
        "are on it before. *Bandwidth* is that of the bytes that a run must move, of the speed of "
        f"a copy on the card. Targets: {TARGETS}.",
        f"Card: {results['card']}{_copy(results)}. {machine_line(results['machine'])}",
        *_checks(results["checks"]),
        *_speed(results["speed"]),
    ]
    left = results.get("pending") or []
    if left:
        parts.append(f"Not run, as time was over: {', '.join(left)}.")
    return "\n\n".join(parts) + "\n"


def _unmeasured() -> str:
    """What is said before the first run."""
    from .workloads import WORKLOADS

    listed = "\n".join([f"* {name}" for name in WORKLOADS])
    return (
        "**No run on a card has been made yet**: there are no times, and no claims about them. "
        "`python benchmarks/cuda.py` compares all operations and random programs with "
        "eager execution on a card, measures the programs below beside PyTorch and JAX, if they "
        "have CUDA, and writes this page; it needs a card, its driver, and CuPy. Until then "
        "kernels are tested as [graphics cards](gpu.md) says.\n\n"
        f"{listed}\n\nTargets: {TARGETS}."
    )


def _copy(results: Mapping[str, Any]) -> str:
    return "" if not results.get("copy") else f", copies at {results['copy'] / 1e9:.0f} GB/s"


def _checks(checks: Mapping[str, Any]) -> list[str]:
    from .correctness import SIGNS

    if not checks:
        return []
    differing = {name: x["crash"] if isinstance(x, dict) else x for name, x in checks.items() if x}
    others = {n: x for n, x in differing.items() if n in SIGNS}
    programs = sum(name.startswith("program ") for name in checks)
    text = (
        f"{len(checks) - programs} operations were compared with eager execution in all dtypes, "
        f"shapes and layouts, and {programs} random programs; {len(differing) - len(others)} "
        "differ."
    )
    if others:
        text += f" With other signs or phases than LAPACK's: {', '.join(sorted(others))}."
    lines = [f"* {name}: {x}" for name, x in differing.items() if name not in SIGNS]
    return ["## Correctness", text, *(["\n".join(lines)] if lines else [])]


def _speed(speed: Mapping[str, Any]) -> list[str]:
    if not speed:
        return []
    rows, notes = [], []
    for name, row in speed.items():
        if "crash" in row:
            notes.append(f"* {name}: {row['crash']}")
            continue
        peers = [row[k] for k in ("torch", "jax") if row[k] is not None]
        is_known = row["ours"] is not None and peers
        rows.append([
            name, row["ours"], row["torch"], row["jax"],
            f"{row['ours'] / min(peers):.2f}" if is_known else None,
            None if row["share"] is None else f"{100 * row['share']:.0f} %", row["first"],
        ])  # fmt: skip
        notes += [f"* {name}: {k}: {row[k]}" for k in ("torch_error", "jax_error") if k in row]
    return ["## Speed", table(_HEAD, rows), *(["\n".join(notes)] if notes else [])]
