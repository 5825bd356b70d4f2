"""Reading the entries of a pattern from the diagonals of the outputs, in order.

Diagonals are joined so that the entries of a row follow each other, and sliced or gathered.  Where
neighbors are far apart, or many derivatives belong to one entry, each is added to its entry
(entry_sums.py).

    read    the entries at some rows and columns
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup

from .dependency_sets import Numbers
from .diagonal_entries import Piece, middle
from .entry_sums import summed_at
from .node_derivatives import Diagonal, Scattered

TIMES = 4  # diagonals that may be summed for an entry
RUNS = 32  # slices of consecutive entries; more are gathered one by one
CONSECUTIVE = 8  # mean length of runs of elements, below which each is added to its entry


def read(found: Sequence[Piece], rows: Numbers, columns: Numbers, width: int) -> Any:
    """The entries at some rows and columns, all of which are in the pattern.

    Parameters
    ----------
    found : sequence of Piece
    rows, columns : ndarray
        Positions of the entries; rows are numbered through all outputs.
    width : int
        The number of columns.

    Returns
    -------
    tensor, or None if there are no derivatives
    """
    if any(isinstance(d, Scattered) for piece in found for d in piece.diagonals):
        return _read_one_by_one(found, rows * width + columns, width)
    parts, keys, places = [], [], []
    down = start = 0
    for size, of_one in found:
        if not of_one:
            down += size
            continue
        ordered = sorted([d for d in of_one if isinstance(d, Diagonal)], key=middle)
        by = np.stack([d.by.ravel() for d in ordered], axis=-1)
        wide = lookup("stack")(*[d.dot for d in ordered], axis=-1)
        parts.append(lookup("reshape")(wide, shape=(-1,)))
        inside = np.flatnonzero(by.ravel() >= 0)
        keys.append((inside // len(ordered) + down) * width + by.ravel()[inside])
        places.append(inside + start)
        down, start = down + size, start + by.size
    if not parts:
        return None
    wanted = rows * width + columns
    values = _gathered(parts, np.concatenate(keys), np.concatenate(places), wanted)
    return _read_one_by_one(found, wanted, width) if values is None else values


def _read_one_by_one(found: Sequence[Piece], wanted: Numbers, width: int) -> Any:
    """The entries with some keys, as sums of all derivatives that have them."""
    parts = []
    down = 0
    for size, of_one in found:
        for d in of_one:
            at = np.arange(size) if isinstance(d, Diagonal) else d.at
            by = d.by.ravel()
            keys = np.where((by >= 0) & (at >= 0), (at + down) * width + by, -1)
            parts.append((keys, lookup("reshape")(d.dot, shape=(by.size,))))
        down += size
    return summed_at(parts, wanted)


def _gathered(parts: Sequence[Any], keys: Numbers, places: Numbers, wanted: Numbers) -> Any:
    """For each wanted key the sum of the elements that have it; None if another way is better."""
    order = np.argsort(keys, kind="stable")
    keys, places = keys[order], places[order]
    begin = np.searchsorted(keys, wanted, side="left")
    count = np.searchsorted(keys, wanted, side="right") - begin
    if count.min() < 1 or count.max() > TIMES:
        return None
    runs = np.count_nonzero(np.diff(places[begin]) != 1)
    if runs > RUNS and runs * CONSECUTIVE > len(wanted):
        return None
    values = _taken(parts, places[begin])
    several = np.flatnonzero(count > 1)
    if not several.size:
        return values
    total = values[several]
    for k in range(1, TIMES):
        more = np.flatnonzero(count[several] > k)
        if more.size:
            extra = _taken(parts, places[begin[several[more]] + k])
            if more.size < several.size:
                padded = np.zeros(several.size, np.int64)
                padded[more] = np.arange(more.size)
                extra = np.where(count[several] > k, extra[padded], 0.0)
            total = total + extra
    values = values.copy()
    values[several] = total
    return values


def _taken(parts: Sequence[Any], places: Numbers) -> Any:
    """The elements at some positions of concatenated arrays: slices, if they are few."""
    ends = np.cumsum([p.shape[0] for p in parts])
    part = np.searchsorted(ends, places, side="right")
    cuts = np.flatnonzero((np.diff(places) != 1) | (np.diff(part) != 0)) + 1
    if len(cuts) >= RUNS:
        return _joined(parts)[places]
    runs = []
    for run in np.split(places, cuts):
        k = int(np.searchsorted(ends, run[0], side="right"))
        first = int(run[0] - ends[k]) + parts[k].shape[0]
        whole = len(run) == parts[k].shape[0]
        runs.append(parts[k] if whole else parts[k][first : first + len(run)])
    return _joined(runs)


def _joined(parts: Sequence[Any]) -> Any:
    return lookup("concatenate")(*parts, axis=0) if len(parts) > 1 else parts[0]
