"""A program of a checkout of NPBench: its function, its arguments and its results.

A program is described by a file in ``bench_info``: the module, the function, the arguments and how
they are made.  ``size`` is one of NPBench's (S, M, L, paper), or "tiny", at which NumPy takes
milliseconds.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

TINY = {
    "N": 16, "M": 20, "NI": 12, "NJ": 13, "NK": 14, "NL": 15, "NM": 11, "NR": 8, "NQ": 9, "NP": 10,
    "TSTEPS": 3, "TMAX": 3, "NX": 12, "NY": 14, "W": 28, "H": 28, "nx": 11, "ny": 11, "nt": 3,
    "nit": 3, "I": 8, "J": 9, "K": 7, "npt": 10, "nnz": 40, "XN": 12, "YN": 12, "maxiter": 10,
    "S0": 30, "S1": 20, "S2": 20, "SM": 8, "tEnd": 0.5,
}  # fmt: skip
# Parameters that the tiny size leaves as they are in size S.
KEPT = {"lenet": ("H", "W"), "sthamfft": ("R", "K"), "conv2d": ("K",), "sselfeng": ()}


def checkout() -> Path:
    """The checkout of NPBench, which NPBENCH names."""
    path = os.environ.get("NPBENCH")
    if not path or not (Path(path) / "bench_info").is_dir():
        raise SystemExit("set NPBENCH to a checkout of github.com/spcl/npbench")
    return Path(path).resolve()


def names() -> list[str]:
    """The names of all programs."""
    return sorted(p.stem for p in (checkout() / "bench_info").glob("*.json"))


def parameters(info: dict[str, Any], size: str) -> dict[str, Any]:
    """The sizes of a program by name."""
    values = dict(info["parameters"]["S" if size == "tiny" else size])
    if size == "tiny":
        kept = KEPT.get(info["short_name"], ())
        values.update({k: v for k, v in TINY.items() if k in values and k not in kept})
        if info["short_name"] == "sthamfft":
            values["K"] = 6
    return values


@dataclass(frozen=True)
class Program:
    """A program with its arguments."""

    name: str
    module: str  # the module of NPBench, without the suffix of an implementation
    info: dict[str, Any]
    arguments: dict[str, Any]

    @property
    def stated_limit(self) -> float:
        """The relative error that NPBench accepts."""
        return float(self.info.get("norm_error", SINGLE))

    def implementation(self, suffix: str) -> Any:
        """The function of the implementation in ``module_suffix.py``."""
        module = importlib.import_module(f"{self.module}_{suffix}")
        return getattr(module, self.info["func_name"])

    def has(self, suffix: str) -> bool:
        """Whether NPBench has an implementation."""
        return importlib.util.find_spec(f"{self.module}_{suffix}") is not None

    def copied(self) -> list[Any]:
        """Arguments that a call may modify."""
        return [a.copy() if isinstance(a, np.ndarray) else a for a in self.arguments.values()]


def program(name: str, size: str) -> Program:
    """The program of a name, with its arguments at a size."""
    root = checkout()
    info = json.loads((root / "bench_info" / f"{name}.json").read_text())["benchmark"]
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    module = f"npbench.benchmarks.{info['relative_path'].replace('/', '.')}.{info['module_name']}"
    values = parameters(info, size)
    if info.get("init"):
        init = getattr(importlib.import_module(module), info["init"]["func_name"])
        made = init(*[values[a] for a in info["init"]["input_args"]])
        made = made if isinstance(made, tuple) else (made,)
        values.update(zip(info["init"]["output_args"], made, strict=True))
    return Program(name, module, info, {a: values[a] for a in info["input_args"]})


def listed(out: Any) -> list[Any]:
    """What a function returned, as a list."""
    return list(out) if isinstance(out, tuple | list) else [] if out is None else [out]


def results(fun: Any, args: list[Any]) -> list[Any]:
    """The arrays and numbers that a function returns, and its arguments, which it may modify."""
    out = listed(fun(*args))
    return [
        x for x in [*out, *args] if isinstance(x, np.ndarray | np.generic | float | complex | int)
    ]


# NPBench accepts a relative error of 1e-5 whatever the dtype, 84 units of the last place in single
# precision, and more in programs that enlarge rounding errors (`norm_error` in its descriptions).
# In double precision results have to be ten times nearer.
SINGLE, STRICTER = 1e-5, 10.0


def limit(wanted: Any, stated: float = SINGLE) -> float:
    """The largest difference from a result of NumPy that is accepted, by its dtype.

    Parameters
    ----------
    stated : float
        NPBench's limit for the program.
    """
    dtype = np.result_type(wanted)
    is_single = dtype.kind in "fc" and np.finfo(dtype).bits < 64
    return stated if is_single else stated / STRICTER


def difference(a: Any, b: Any) -> float:
    """The largest difference of two arrays, relative to the largest element."""
    a, b = np.atleast_1d(a), np.atleast_1d(b)
    if a.shape != b.shape:
        return float("inf")
    if not a.size:
        return 0.0
    if a.dtype == bool:
        return float((a != b).any())
    with np.errstate(all="ignore"):
        gap = np.abs(a - b)
        gap[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
        return float(gap.max() / max(np.abs(b[np.isfinite(b)]).max(initial=0), 1e-300))


def agrees(found: list[Any], wanted: list[Any], stated: float = SINGLE) -> bool:
    """Whether each result differs from NumPy's by less than the limit of its dtype."""
    pairs = zip(found, wanted, strict=True)
    return len(found) == len(wanted) and all(difference(a, b) < limit(b, stated) for a, b in pairs)
