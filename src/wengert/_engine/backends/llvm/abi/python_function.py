"""The Python function object of an entry point.

The function object holds a tuple: the table of addresses (abi/address_table.py), the machine code,
and the callables of the slow paths.  The garbage collector does not clear tuples, so all of it
lives as long as the function can be called.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, BackendError, at, user_line

from ..ir.execution_engine import Code
from . import cpython_layout
from .address_table import TableLayout
from .ports import CallInterface
from .shared_routines import shared

FASTCALL = 0x80 | 0x02  # METHFASTCALL, METH_KEYWORDS: methodobject.h

_OPEN = np.zeros(1, np.int64)
_OPEN.flags.writeable = False


class Definition(ctypes.Structure):
    """PyMethodDef: what makes a C function known to Python."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def is_available() -> bool:
    """Whether entries can be made for this interpreter: CPython with its lock, NumPy 2."""
    return cpython_layout.is_known()


def make_entry(
    program: CallInterface,
    code: Code,
    miss: Callable[..., Any],
    failed: Callable[..., Any],
    callback_error: Callable[[], Any] | None = None,
    *,
    handler: Any = None,
    gate: Any = None,
    symbol: str = "entry",
    name: str = "entry",
    doc: str | None = None,
) -> Callable[..., Any]:
    """A function of Python that runs a program at the cost of a call.

    Parameters
    ----------
    program : CallInterface
        The one that `entry_text` was given, or one with the same text.
    code : Code
        The module that has the entry, in memory.
    miss : callable
        Called with the same arguments, keywords among them, when they are not as the program was
        made for; what it returns or raises is the outcome. It may be another entry.
    failed : callable
        Called with the same arguments when the run found that there is no result (status 1, or any
        that is not known).
    callback_error : callable, optional
        Called without arguments when a host callback has set an exception aside (status 2), to
        raise it; by default `failed` is called.
    handler : capsule, optional
        Of NumPy's memory (NEP 49): where the memory of large results comes from.
    gate : numpy.ndarray, optional
        One int64. While it is not zero all calls go to `miss`: so entries are closed as long as
        something is recorded, or for good.
    symbol : str
        The name of the entry in the module.
    name, doc : str
        Of the function object.

    Returns
    -------
    builtin_function_or_method
        Takes one positional argument for each of ``program.inputs``; other calls are for `miss`.

    Raises
    ------
    BackendError
        This interpreter is another than entries are made for; `is_available` says so beforehand.

    Notes
    -----
    Safe to call from several threads and from itself. An exception is raised only by the callables
    given, and by NumPy when there is no memory for results.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.backends import backend
    >>> graph = wg.trace(np.square)(wg.spec("n"))
    >>> square = backend("llvm").entry(graph, single=True, otherwise=print)
    >>> square(np.array([1.0, 2.0, 3.0]))
    array([1., 4., 9.])
    >>> square([1.0, 2.0])  # a list: that is for the slow path, here print
    [1.0, 2.0]
    """
    if not is_available():
        raise BackendError(
            "native entries are made for CPython with its global lock, 64 bits, and NumPy 2; this "
            "interpreter keeps its objects in another way. Call the program through Python"
            f"{at(user_line())}."
        )
    given = {"miss": miss, "failed": failed, "callback_error": callback_error, "handler": handler}
    own = {name: 0 if x is None else id(x) for name, x in given.items()}
    gate = _OPEN if gate is None else gate
    if gate.dtype != np.int64 or not gate.flags.aligned or gate.size != 1:
        raise ArgumentError(
            f"a gate is one int64, for an entry to look at; {gate.dtype}{list(gate.shape)} was "
            f"given. Use np.zeros(1, np.int64){at(user_line())}."
        )
    own["gate"] = gate.ctypes.data
    table, kept = TableLayout(program).filled({**own, **shared()}, program)
    definition = Definition(
        name.encode(), code.address(symbol), FASTCALL, doc.encode() if doc is not None else None
    )
    # The table comes first, where the entry point looks for it.
    owned = (table, definition, code, *given.values(), gate, *kept)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return new(ctypes.addressof(definition), owned, None)  # type: ignore[no-any-return]
