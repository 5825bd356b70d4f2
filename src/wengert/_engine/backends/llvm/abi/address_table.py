"""The table of an entry point: addresses of this process, which its code reads at each call.

The code of an entry point holds no address, so its object file can be cached and used by another
process.  Addresses are in a table of 8-byte words that belongs to the function object: functions of
CPython and NumPy, types and dtypes, the callables for failed checks, constants.

    TableLayout    the position of each word, for code generation and for filling the table
    WORDS          the words at the beginning of every table
    canonical      a dtype as the object that arrays share
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import cpython_layout
from .ports import CallInterface

OWN = ("miss", "failed", "callback_error", "handler", "gate")  # callables of each entry point
SHARED = (
    "new",
    "drop",
    "several",
)  # functions that all entries use: backends/llvm/abi/shared_routines.py
_FIRST = (*OWN, *SHARED, *cpython_layout.PYTHON, *cpython_layout.NUMPY, *cpython_layout.OBJECTS)
WORDS = {name: k for k, name in enumerate(_FIRST)}  # their positions in every table


def canonical(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The one object that NumPy has for a dtype: that of most arrays."""
    return np.dtype(dtype.str)


class TableLayout:
    """Which word is where.

    Attributes
    ----------
    words : dict from str to int
        The place of each word, by name.
    dtypes : list of numpy.dtype
        Those of inputs and outputs.
    """

    def __init__(self, program: CallInterface) -> None:
        ports = (*program.inputs, *program.outputs)
        self.dtypes = list(dict.fromkeys(canonical(port.spec.dtype) for port in ports))
        names = list(WORDS)
        for dtype in self.dtypes:
            names += [f"{what}.{dtype.str}" for what in ("dtype", "scalar", "allocate")]
        names += [f"constant.{slot}" for slot, _ in program.constants]
        self.words = {name: k for k, name in enumerate(names)}

    def filled(self, given: Mapping[str, int], program: CallInterface) -> tuple[Any, list[Any]]:
        """The table as an array, and the objects that its addresses are good for.

        Parameters
        ----------
        given : mapping from str to int
            The words of `OWN` and `SHARED`.
        """
        found = {**cpython_layout.addresses(), **given}
        kept: list[Any] = []
        for dtype in self.dtypes:
            scalar = dtype.type
            kept += [dtype, scalar]
            found[f"dtype.{dtype.str}"] = id(dtype)
            found[f"scalar.{dtype.str}"] = id(scalar)
            found[f"allocate.{dtype.str}"] = cpython_layout.allocator(scalar)
        for slot, array in program.constants:
            kept.append(array)
            found[f"constant.{slot}"] = array.ctypes.data
        table = np.array([found[name] for name in self.words], np.uint64)
        table.flags.writeable = False  # it can be reached from the function object
        return table, kept
