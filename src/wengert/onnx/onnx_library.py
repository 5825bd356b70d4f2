"""The onnx package, imported at first use.

Only this module imports it, so that `wengert.onnx` can be imported and documented without it.

    onnx          the package, or an error that says how to install it
    code_of       the ONNX code of a dtype
    dtype_of      the dtype of an ONNX code
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from wengert.errors import DtypeError, at, user_line

# The codes of element types (TensorProto.DataType), which never change.
_CODES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "complex64": 14,
    "complex128": 15,
}
_DTYPES = {code: np.dtype(name) for name, code in _CODES.items()}


def onnx() -> Any:
    """The onnx package.

    Raises
    ------
    ImportError
        It is not installed.
    """
    try:
        return import_module("onnx")
    except ImportError as error:
        raise ImportError(
            "wengert.onnx needs the packages onnx and, to run files, onnxruntime. Install the "
            "extra: pip install 'wengert[onnx]'."
        ) from error


def code_of(dtype: Any) -> int:
    """The ONNX code of a dtype.

    Raises
    ------
    DtypeError
        ONNX does not have this dtype.
    """
    try:
        return _CODES[np.dtype(dtype).name]
    except KeyError:
        raise DtypeError(
            f"ONNX has no elements of dtype {dtype}. Cast to one of {', '.join(_CODES)}"
            f"{at(user_line())}."
        ) from None


def dtype_of(code: int) -> np.dtype[Any] | None:
    """The dtype of an ONNX code; None if NumPy does not have it (bfloat16, strings)."""
    return _DTYPES.get(code)
