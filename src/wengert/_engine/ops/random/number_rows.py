"""Tables of numbers in files beside this module, read when they are first used.

    NumberRows    rows of numbers; `s.rows(table, row)` in a body reads one

Files are those of `numpy.save`: the bytes of little-endian numbers, float64 or float32, with axes
for the column, the byte and the row. Archives compress bytes of equal position better than numbers.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np


class NumberRows:
    """Rows of numbers.

    Parameters
    ----------
    name : str
        Of the file, without its suffix, and of the constant in native code.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @functools.cached_property
    def columns(self) -> Any:
        """The numbers, with one row of the array for each column of the table; read-only."""
        parts = np.load(Path(__file__).with_name(f"{self.name}.npy"), allow_pickle=False)
        numbers = np.ascontiguousarray(parts.transpose(0, 2, 1)).view(f"<f{parts.shape[1]}")
        columns = np.ascontiguousarray(numbers[..., 0], numbers.dtype.newbyteorder("="))
        columns.flags.writeable = False
        return columns

    @property
    def count(self) -> int:
        """The number of rows, a power of two."""
        return int(self.columns.shape[1])
