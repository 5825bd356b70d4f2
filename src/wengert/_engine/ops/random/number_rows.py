"""Tables of numbers in files beside this module, read when they are first used.

    NumberRows    rows of numbers; `s.rows(table, row)` in a body reads one

Files are those of `numpy.save`, float64 or float32.
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
        found = np.load(Path(__file__).with_name(f"{self.name}.npy"), allow_pickle=False)
        columns = np.ascontiguousarray(found.T)
        columns.flags.writeable = False
        return columns

    @property
    def count(self) -> int:
        """The number of rows, a power of two."""
        return int(self.columns.shape[1])
