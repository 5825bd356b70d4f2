"""The table of an entry point: addresses of this process, which the entry point loads.

The code of an entry point contains no addresses, so its object file can be cached and used by
another process.  Addresses are in a table of 8-byte words that the function object owns: functions
of CPython and NumPy, types and dtypes, the callables for failed checks, constants.

    TableLayout    the index of each word, used by code generation and to fill the table
    WORDS          the indices of the words that every table begins with
    canonical      the dtype object that arrays share
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import cpython_layout
from .ports import CallInterface

OWN = ("miss", "failed", "callback_error", "handler", "gate")  # callables of each entry point
# Functions that all entry points call (abi/python_function.py).
SHARED = ("new", "drop", "make_tuple")
_FIRST = (*OWN, *SHARED, *cpython_layout.PYTHON, *cpython_layout.NUMPY, *cpython_layout.OBJECTS)
WORDS = {name: k for k, name in enumerate(_FIRST)}
WORDS = {name: k for k, name in enumerate(_FIRST)}  # their positions in every table


def canonical(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype object that most arrays of this dtype share."""
    return np.dtype(dtype.str)


class TableLayout:
    """The index of each word of the table of a program.

    Attributes
    ----------
    words : dict from str to int
        The index of each word, by name.
    dtypes : list of numpy.dtype
        The dtypes of inputs and outputs.
    """

    def __init__(self, program: CallInterface) -> None:
        ports = (*program.inputs, *program.outputs)
        self.dtypes = list(dict.fromkeys(canonical(port.spec.dtype) for port in ports))
        names = list(WORDS)
        for dtype in self.dtypes:
            names += [f"{field}.{dtype.str}" for field in ("dtype", "scalar", "allocate")]
        names += [f"constant.{slot}" for slot, _ in program.constants]
        self.words = {name: k for k, name in enumerate(names)}

    def filled(self, own_words: Mapping[str, int], program: CallInterface) -> tuple[Any, list[Any]]:
        """The table as an array, and the objects that must outlive it.

        Parameters
        ----------
        own_words : mapping from str to int
            The words of `OWN` and `SHARED`.
        """
        values = {**cpython_layout.addresses(), **own_words}
        owners: list[Any] = []
        for dtype in self.dtypes:
            scalar = dtype.type
            owners += [dtype, scalar]
            values[f"dtype.{dtype.str}"] = id(dtype)
            values[f"scalar.{dtype.str}"] = id(scalar)
            values[f"allocate.{dtype.str}"] = cpython_layout.allocator(scalar)
        for slot, array in program.constants:
            owners.append(array)
            values[f"constant.{slot}"] = array.ctypes.data
        table = np.array([values[name] for name in self.words], np.uint64)
        table.flags.writeable = False  # Python code can reach it through the function object
        return table, owners
