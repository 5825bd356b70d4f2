"""Summaries of values in logs.

summary     minimum, maximum and mean of the finite elements, counts of NaN and infinity
histogram   counts of the finite elements in bins
entry       a summary with label, spec, time and the user's line
write_line  writes one line of JSON to a file, atomically, or to a logger
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.spec import spec_of

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand


def summary(x: Operand) -> dict[str, Any]:
    """Summary statistics of an array; for complex arrays, of the magnitudes.

    Returns
    -------
    dict
        ``min``, ``max`` and ``mean`` of the finite elements (None if there are none); ``nan`` and
        ``inf``, the counts of these.
    """
    array = _real(x)
    if array.dtype.kind in "biu":
        finite_values, nans, infinite = array, 0, 0
    else:
        finite = np.isfinite(array)
        nans = int(np.count_nonzero(np.isnan(array)))
        infinite = array.size - int(np.count_nonzero(finite)) - nans
        finite_values = array if nans + infinite == 0 else array[finite]
    if finite_values.size == 0:
        return {"min": None, "max": None, "mean": None, "nan": nans, "inf": infinite}
    with np.errstate(over="ignore"):
        mean = float(np.mean(finite_values, dtype=np.float64))
    return {
        "min": _plain(finite_values.min()),
        "max": _plain(finite_values.max()),
        "mean": mean if np.isfinite(mean) else None,
        "nan": nans,
        "inf": infinite,
    }


def _plain(x: Any) -> Any:
    """A number as JSON can represent it; None if it is outside the range of float64."""
    number = x.item()
    if isinstance(number, int | float):
        return number
    return float(number) if np.isfinite(float(number)) else None


def histogram(x: Any, bins: int) -> dict[str, list[float]]:
    """The histogram of the finite elements; for complex arrays, of the magnitudes.

    Returns
    -------
    dict
        ``counts``, one for each bin, and ``edges``, one more; empty if no element is finite.
    """
    array = _real(x).astype(np.float64)
    values = array[np.isfinite(array)]
    if values.size == 0:
        return {"counts": [], "edges": []}
    low, high = float(values.min()), float(values.max())
    if not np.isfinite(high - low) or high - low < bins * np.spacing(max(abs(low), abs(high))):
        # There are no representable edges in between.
        return {"counts": [values.size], "edges": [low, high]}
    counts, edges = np.histogram(values, bins)
    return {"counts": counts.tolist(), "edges": edges.tolist()}


def _real(x: Operand) -> Any:
    array = np.asarray(x)
    return np.abs(array) if array.dtype.kind == "c" else array


def entry(x: Operand, label: str | None, where: str, bins: int | None = None) -> dict[str, Any]:
    """The log entry of a value."""
    spec = spec_of(x)
    return {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "label": label,
        "dtype": str(spec.dtype),
        "shape": list(spec.shape),
        **summary(x),
        **({} if bins is None else histogram(x, bins)),
        "where": where,
    }


def is_logger(x: object) -> bool:
    """Whether an object is a logger; since Python 3.14 paths too have an attribute ``info``."""
    return callable(getattr(x, "info", None))


def write_line(to: Any, line: dict[str, Any]) -> None:
    """Append a line to a file, given by its path, or send it to a logger.

    A file is opened in append mode and written once, so lines of concurrent threads and processes
    do not interleave.
    """
    text = json.dumps(line, allow_nan=False)
    if is_logger(to):
        to.info(text)
        return
    file = os.open(to, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o666)
    try:
        os.write(file, text.encode() + b"\n")
    finally:
        os.close(file)
