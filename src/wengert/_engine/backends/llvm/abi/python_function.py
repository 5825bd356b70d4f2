"""The Python function object of an entry point.

The function object holds a tuple: the table of addresses (abi/address_table.py), the machine code,
and the callables of the slow paths.  The garbage collector does not clear tuples, so these live as
long as the function can be called.
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

FASTCALL = 0x80 | 0x02  # METH_FASTCALL | METH_KEYWORDS, methodobject.h

_OPEN = np.zeros(1, np.int64)
_OPEN.flags.writeable = False


class Definition(ctypes.Structure):
    """PyMethodDef of CPython's C API."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def is_available() -> bool:
    """Whether entry points can be made for this interpreter: CPython with the GIL, NumPy 2."""
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
    """A Python function that runs a program with the overhead of one C call.

    Parameters
    ----------
    program : CallInterface
        The one passed to `entry_text`, or one with the same text.
    code : Code
        The module with the entry point, in memory.
    miss : callable
        Called with the same arguments, including keywords, if they are not those that the program
        was compiled for; its result or exception is that of the call. May be another entry point.
    failed : callable
        Called with the same arguments if the run has no result (status 1 or an unknown status).
    callback_error : callable, optional
        Called without arguments if a host callback has stored an exception (status 2), to raise
        it; by default `failed` is called.
    handler : capsule, optional
        NumPy memory handler (NEP 49) that allocates large results.
    gate : numpy.ndarray, optional
        One int64. While it is nonzero all calls go to `miss`: this disables the entry point while
        operations are recorded, or permanently.
    symbol : str
        The name of the entry point in the module.
    name, doc : str
        Of the function object.

    Returns
    -------
    builtin_function_or_method
        Takes one positional argument for each of ``program.inputs``; other calls go to `miss`.

    Raises
    ------
    BackendError
        The interpreter is not supported; `is_available` can be asked beforehand.

    Notes
    -----
    Thread-safe and reentrant. Exceptions are raised only by the given callables, and by NumPy if
    results cannot be allocated.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.backends import backend
    >>> graph = wg.trace(np.square)(wg.spec("n"))
    >>> square = backend("llvm").entry(graph, single=True, otherwise=print)
    >>> square(np.array([1.0, 2.0, 3.0]))
    array([1., 4., 9.])
    >>> square([1.0, 2.0])  # a list takes the slow path, here print
    [1.0, 2.0]
    """
    if not is_available():
        raise BackendError(
            "native entry points require CPython with the GIL, 64 bits, and NumPy 2; the objects "
            "of this interpreter have another memory layout. Call the program through Python"
            f"{at(user_line())}."
        )
    callables = {
        "miss": miss, "failed": failed, "callback_error": callback_error, "handler": handler
    }  # fmt: skip
    own = {name: 0 if x is None else id(x) for name, x in callables.items()}
    gate = _OPEN if gate is None else gate
    if gate.dtype != np.int64 or not gate.flags.aligned or gate.size != 1:
        raise ArgumentError(
            f"a gate must be an array of one int64; {gate.dtype}{list(gate.shape)} was given. "
            f"Use np.zeros(1, np.int64){at(user_line())}."
        )
    own["gate"] = gate.ctypes.data
    table, owners = TableLayout(program).filled({**own, **shared()}, program)
    definition = Definition(
        name.encode(), code.address(symbol), FASTCALL, doc.encode() if doc is not None else None
    )
    # The entry point looks for the table in the first item.
    owned = (table, definition, code, *callables.values(), gate, *owners)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return new(ctypes.addressof(definition), owned, None)  # type: ignore[no-any-return]
