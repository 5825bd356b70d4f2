"""Value infos: names, dtypes and shapes of inputs and outputs.

A length without a number is written as text, so that axes of one length have one name, and a
reader can tell what fits together.
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.symbolic.dim import Dim

from ..onnx_library import code_of, onnx
from .graph_writer import Outside


def described(name: str, spec: Any, outside: Outside) -> Any:
    """A value's name, dtype and shape as ONNX writes them.

    A length that is an expression of names is written as its text; so readers see that two lengths
    are the same.
    """
    shape = [str(n) if isinstance(n, Dim) else int(n) for n in spec.shape]
    return onnx().helper.make_tensor_value_info(name, code_of(spec.dtype), shape)
