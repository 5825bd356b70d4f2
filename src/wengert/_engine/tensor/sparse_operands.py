"""Operators of tensors and objects of other libraries: SciPy's sparse arrays, pandas.

``A @ x`` calls SciPy's method first.  It converts an operand that it does not know by
``np.asanyarray``, and returns NotImplemented if that is an array of one object, for which NumPy
makes it "if all else fails"; Python then calls ``x.__rmatmul__(A)``.  A tensor is converted to such
an array there, and the operator is that of wengert's sparse arrays (wengert.scipy.sparse).

    OPERATORS        the full name of the module that has them, set by wengert/__init__.py
    not_an_array     what `Tensor.__array__` returns in SciPy's operators
    with_tensor      the result of an operator of a tensor and such an object
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from wengert._engine.core.labelled_arrays import beside_tensors, is_of_pandas
from wengert.errors import ConversionError, at, user_line

OPERATORS: list[str] = []
_CONVERTING = {"_matmul_dispatch", "_divide", "multiply", "_multiply_2d_with_broadcasting"}


def not_an_array(x: object) -> np.ndarray[Any, Any] | None:
    """An array of one object if an operator of a sparse array converts `x`; None elsewhere.

    Raises
    ------
    ConversionError
        The method `multiply` was called, which cannot leave the work to `x`.
    """
    frame: Any = sys._getframe(2)
    name = frame.f_code.co_name
    if name not in _CONVERTING or not _is_scipys(frame):
        return None
    while "multiply" in name and frame.f_back is not None and _is_scipys(frame.f_back):
        frame, name = frame.f_back, frame.f_back.f_code.co_name
    if "multiply" in name:
        raise ConversionError(
            "A.multiply(x) of a sparse array of SciPy and a tensor, or an array of one: use the "
            f"operator, A * x, or wengert.scipy.sparse.as_sparse(A).multiply(x){at(user_line())}."
        )
    found = np.empty((), object)
    found[()] = x
    return found


def _is_scipys(frame: Any) -> bool:
    return bool(frame.f_globals.get("__name__", "").startswith("scipy.sparse."))


def with_tensor(run: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """``run(x, y)`` if one operand is a sparse array of SciPy, a Series or a DataFrame.

    NotImplemented for other objects.
    """
    for other in (x, y):
        if is_of_pandas(other):
            return run(*[beside_tensors(a) if a is other else a for a in (x, y)])
        if OPERATORS and type(other).__module__.startswith("scipy.sparse."):
            converted = import_module(OPERATORS[0]).as_sparse
            return run(*[a if converted(a) is None else converted(a) for a in (x, y)])
    return NotImplemented
