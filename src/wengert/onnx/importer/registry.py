"""The registry of importers by ONNX operator, and the view of a node that they get.

    imports       the decorator
    reader_of     the function for an operator, or None
    imported      the names of all supported operators
    NodeView      name, attributes, opset; known values of inputs; errors
    lengths       a value as an array of integers and symbolic sizes
    as_value      an array of lengths as an integer array or tensor
    as_lengths    a list of lengths as an array

A function ``read(n, *inputs) -> value`` (or a tuple of values, for several results) is registered
for the name of an operator.  `n` is the node with its attributes and opset (registry.py).  An
input is an array if it is known during the import, else a tensor; None if it is omitted; and, for
functions registered with ``lengths=True``, possibly an array of symbolic sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.handle import Handle
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import size_value
from wengert.errors import BackendError, at, user_line

from ..onnx_library import dtype_of, onnx
from .memory_limit import MemoryLimit

Read = Callable[..., Any]


class Entry(NamedTuple):
    """A registered importer."""

    function: Read
    lengths: bool  # whether it accepts arrays of symbolic sizes
    static: tuple[int, ...]  # the inputs that must be known during the import
    grows: bool  # whether attributes or static inputs determine the size of the result


_BY_NAME: dict[str, Entry] = {}


def imports(
    *names: str, lengths: bool = False, static: tuple[int, ...] = (), grows: bool = False
) -> Callable[[Read], Read]:
    """Register a function for operators of these names (a decorator)."""

    def enter(function: Read) -> Read:
        _BY_NAME.update(dict.fromkeys(names, Entry(function, lengths, static, grows)))
        return function

    return enter


def reader_of(name: str) -> Entry | None:
    """The importer of an operator, or None."""
    return _BY_NAME.get(name)


def imported() -> list[str]:
    """The names of all supported operators."""
    return sorted(_BY_NAME)


def static_inputs(name: str) -> tuple[int, ...]:
    """The inputs of an operator that must be known during the import: shapes, axes, counts."""
    entry = _BY_NAME.get(name)
    return () if entry is None else entry.static


class NodeView:
    """An ONNX node.

    Parameters
    ----------
    proto : onnx.NodeProto
    opset : int
        The version of the operators in the file.
    memory : MemoryLimit
        Limit of the memory of computed constants.
    run_body : callable
        ``run_body(graph, inputs)`` returns the results of a graph that is an attribute.
    """

    def __init__(self, proto: Any, opset: int, memory: MemoryLimit, run_body: Any = None) -> None:
        self.memory = memory
        self.run_body = run_body
        self.kind = proto.op_type
        self.name = proto.name
        self.opset = opset
        self.outputs = list(proto.output)
        helper = onnx().helper
        self._attributes = {a.name: helper.get_attribute_value(a) for a in proto.attribute}

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute; bytes become str."""
        value = self._attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def unsupported(self, why: str) -> BackendError:
        """The error for an unsupported node."""
        return BackendError(f"onnx.load: {self.label} {why}{at(user_line())}.")

    @property
    def label(self) -> str:
        """The name of the node in messages."""
        return f"{self.kind} {self.name!r}" if self.name else self.kind

    def need(self, shape: Any, dtype: Any) -> None:
        """Raise if an array of this shape exceeds the memory limit."""
        self.memory.need(self.label, shape, dtype)

    def only(self, name: str, *allowed: Any) -> None:
        """Raise if an attribute has another value than these; the first is its default."""
        value = self.get(name, allowed[0])
        if value not in allowed:
            raise self.unsupported(f"with {name}={value!r} is not supported")

    def dtype(self, code: int) -> np.dtype[Any]:
        """The dtype of an ONNX code."""
        found = dtype_of(code)
        if found is None:
            kind = onnx().TensorProto.DataType.Name(code)
            raise self.unsupported(f"has elements of type {kind}, which NumPy does not have")
        return found

    def integers(self, x: Any, what: str) -> list[Any]:
        """Integers that must be known during the import: axes, a shape, bounds."""
        found = lengths(x)
        if found is None:
            raise self.unsupported(
                f"takes its {what} from values that are unknown during the import, so the shape of "
                f"its result is unknown. Pass the values to onnx.load as `given`"
            )
        return [int(v) if not isinstance(v, Dim) else v for v in found.ravel()]

    def number(self, x: Any, what: str) -> Any:
        """A number that must be known during the import."""
        if isinstance(x, Handle):
            raise self.unsupported(
                f"takes its {what} from values that are unknown during the import. Pass the values "
                f"to onnx.load as `given`"
            )
        return np.asarray(x).reshape(-1)[0]

    def axes(self, given: Any, ndim: int) -> list[int]:
        """Nonnegative axes, from an attribute or, since opset 13 or 18, from an input."""
        found = self.get("axes") if given is None else self.integers(given, "axes")
        return [int(a) % ndim if ndim else 0 for a in found or []]


def lengths(x: Any) -> Any:
    """A value as an array of integers and symbolic sizes; None if it is unknown."""
    return None if isinstance(x, Handle) else np.asarray(x)


def as_value(x: Any) -> Any:
    """An array of lengths as an integer array, or as a tensor if some are symbolic."""
    if not isinstance(x, np.ndarray) or x.dtype.kind != "O":
        return x
    if not any(isinstance(v, Dim) for v in x.ravel()):
        return x.astype(np.int64)
    parts = [size_value(v) if isinstance(v, Dim) else np.int64(v) for v in x.ravel()]
    return np.stack(parts).reshape(x.shape) if x.shape else parts[0]


def as_lengths(values: Any) -> Any:
    """Lengths as an array, of integers if none is symbolic, else of objects."""
    values = list(values)
    if any(isinstance(v, Dim) for v in values):
        out = np.empty(len(values), object)
        out[:] = values
        return out
    return np.array(values, np.int64)
