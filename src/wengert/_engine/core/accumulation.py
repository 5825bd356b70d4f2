"""The buffers of a derivative pass, as `Op.vjp_into` and `Op.jvp_into` use them.

An operation on a few elements of a large array adds to the cotangent of that array in place: a
separate contribution would be as large as the array, and mostly zeros.  The two protocols are
implemented in `autodiff.accumulation_buffers`.
"""

from __future__ import annotations

from typing import Any, Protocol

from .node import Node
from .types import Array


class CotangentBuffers(Protocol):
    """The cotangents of one backward pass."""

    def wants(self, a: Any) -> bool:
        """Whether this operand takes part in the derivative."""

    def writable(self, a: Node) -> Any:
        """The cotangent of `a` as an array to add into; zeros if it has no contributions yet."""

    def add(self, a: Node, bar: Array) -> None:
        """Add a contribution, which the caller must not write to afterwards."""

    def take(self, node: Node, t: Array) -> Any:
        """The complete cotangent `t` of `node` as an array that the caller may write to."""

    def donate(self, a: Node, t: Array) -> None:
        """Add a contribution whose memory the pass may use."""


class TangentBuffers(Protocol):
    """The tangents of one forward pass."""

    def take(self, a: Node, reader: Node) -> Any:
        """The tangent of `a` as an array that its reader may write to."""
