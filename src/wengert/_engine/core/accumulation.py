"""The interface of `Op.vjp_into` and `Op.jvp_into` to the arrays of a derivative pass.

An operation on a few elements of a large array adds to the cotangent of its operand instead of
returning one of the array's size; `autodiff.accumulation_buffers` implements both.
"""

from __future__ import annotations

from typing import Any, Protocol

from .node import Node
from .types import Array


class CotangentBuffers(Protocol):
    """The cotangents of one backward pass."""

    def wants(self, a: Any) -> bool: ...
    def own(self, a: Node) -> Any: ...
    def add(self, a: Node, bar: Array) -> None: ...
    def taken(self, node: Node, t: Array) -> Any: ...
    def give(self, a: Node, t: Array) -> None: ...


class TangentBuffers(Protocol):
    """The tangents of one forward pass."""

    def taken(self, a: Node, reader: Node) -> Any: ...
