"""An ONNX node as the functions that read it see it.

NodeView    name, attributes, version; what it was given, as static numbers; errors
lengths     a value as a list of lengths: integers, or symbolic sizes
settled     a list of lengths as an array or tensor
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import size_value
from wengert.errors import BackendError, at, user_line

from ..onnx_library import dtype_of, onnx
from .memory_limit import Room


class NodeView:
    """A node on its way to operations.

    Parameters
    ----------
    proto : onnx.NodeProto
    opset : int
        The version of the operators in the file.
    room : Room
        What arrays of known values may take.
    inside : callable
        Runs a graph that is an attribute, with what stands outside: ``inside(graph, inputs)``.
    """

    def __init__(self, proto: Any, opset: int, room: Room, inside: Any = None) -> None:
        self.room = room
        self.inside = inside
        self.kind = proto.op_type
        self.name = proto.name
        self.opset = opset
        self.outputs = list(proto.output)
        helper = onnx().helper
        self._attributes = {a.name: helper.get_attribute_value(a) for a in proto.attribute}

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute, texts as str."""
        value = self._attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def refused(self, why: str) -> BackendError:
        """The error for what is not supported."""
        return BackendError(f"onnx.load: {self.label} {why}{at(user_line())}.")

    @property
    def label(self) -> str:
        """How to call it in a message."""
        return f"{self.kind} {self.name!r}" if self.name else self.kind

    def need(self, shape: Any, dtype: Any) -> None:
        """Refuse to make an array of that shape if it is too large."""
        self.room.need(self.label, shape, dtype)

    def only(self, name: str, *allowed: Any) -> None:
        """Refuse an attribute of other values than these; the first is its default."""
        value = self.get(name, allowed[0])
        if value not in allowed:
            raise self.refused(f"with {name}={value!r} is not supported")

    def dtype(self, code: int) -> np.dtype[Any]:
        """The dtype of a number of ONNX."""
        found = dtype_of(code)
        if found is None:
            kind = onnx().TensorProto.DataType.Name(code)
            raise self.refused(f"has elements of type {kind}, which NumPy does not have")
        return found

    def whole(self, x: Any, what: str) -> list[Any]:
        """Integers that must be known now: axes, a shape, bounds."""
        found = lengths(x)
        if found is None:
            raise self.refused(
                f"takes its {what} from values that are known only when it runs, so the shape of "
                f"its result is not known. Give them to onnx.load by `given`"
            )
        return [int(v) if not isinstance(v, Dim) else v for v in found.ravel()]

    def number(self, x: Any, what: str) -> Any:
        """One number that must be known now."""
        if isinstance(x, Handle):
            raise self.refused(
                f"takes its {what} from values that are known only when it runs. Give them to "
                f"onnx.load by `given`"
            )
        return np.asarray(x).reshape(-1)[0]

    def axes(self, given: Any, ndim: int) -> list[int]:
        """Axes from an attribute or, since opset 13 or 18, from an input; none of them negative."""
        found = self.get("axes") if given is None else self.whole(given, "axes")
        return [int(a) % ndim if ndim else 0 for a in found or []]


def lengths(x: Any) -> Any:
    """A value as an array of integers and symbolic sizes; None if it is not known."""
    return None if isinstance(x, Handle) else np.asarray(x)


def settled(x: Any) -> Any:
    """A list of lengths as an array, or as a tensor if there are names in it."""
    if not isinstance(x, np.ndarray) or x.dtype.kind != "O":
        return x
    if not any(isinstance(v, Dim) for v in x.ravel()):
        return x.astype(np.int64)
    parts = [size_value(v) if isinstance(v, Dim) else np.int64(v) for v in x.ravel()]
    return np.stack(parts).reshape(x.shape) if x.shape else parts[0]


def listed(values: Any) -> Any:
    """Lengths as an array: of integers if all of them are."""
    values = list(values)
    if any(isinstance(v, Dim) for v in values):
        out = np.empty(len(values), object)
        out[:] = values
        return out
    return np.array(values, np.int64)
