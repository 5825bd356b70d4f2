"""Value infos: names, dtypes and shapes of inputs and outputs.

    value_info    the ONNX description of a value

A symbolic size is written as the text of its expression, so that readers of the file see which
lengths are equal.
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.symbolic.dim import Dim

from ..onnx_library import code_of, onnx
from .graph_writer import Outside


def value_info(name: str, spec: Any, outside: Outside) -> Any:
    """The ONNX description of a value: name, dtype and shape."""
    shape = [str(n) if isinstance(n, Dim) else int(n) for n in spec.shape]
    return onnx().helper.make_tensor_value_info(name, code_of(spec.dtype), shape)
