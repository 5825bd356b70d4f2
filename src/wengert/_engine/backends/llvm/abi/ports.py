"""Ports: the inputs and outputs of a native function, and their slots in the frame.

The frame is the array of 8-byte slots that is passed to the function; see
docs/design/0009-native.md.  Ports and `CallInterface` are all that the function and its callers
share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import Requirement


@dataclass(frozen=True)
class Port:
    """A graph input or output that is passed between Python and native code.

    Attributes
    ----------
    spec : Spec
        Its lengths may be symbolic sizes.
    slot : int
        The frame slot that holds the address of its data.
    strided : bool
        The strides, in bytes, are in the slots that follow; otherwise the data is contiguous.
    fortran : bool
        The data is contiguous in Fortran order, not in C order.
    """

    spec: Spec
    slot: int
    strided: bool = False
    fortran: bool = False


class CallInterface(Protocol):
    """The properties of a program that its callers need; `Program` implements it.

    Attributes
    ----------
    inputs, outputs : sequence of Port
        The graph's inputs, then its variables; its outputs, then the updates of variables.
    sizes : sequence of str
        The symbolic sizes.
    size_slots : sequence of int
        The slot of each of them.
    slots : int
        The length of the frame.
    constants : sequence of (int, numpy.ndarray)
        Slots, with the arrays whose addresses are stored in them.
    requirements : sequence of Requirement
        Conditions of the graph on the sizes.
    """

    @property
    def inputs(self) -> Sequence[Port]: ...

    @property
    def outputs(self) -> Sequence[Port]: ...

    @property
    def sizes(self) -> Sequence[str]: ...

    @property
    def size_slots(self) -> Sequence[int]: ...

    @property
    def slots(self) -> int: ...

    @property
    def constants(self) -> Sequence[tuple[int, Any]]: ...

    @property
    def requirements(self) -> Sequence[Requirement]: ...


def sends_messages(program: Any) -> bool:
    """Whether a run exchanges messages with other processes, and waits for them."""
    return any(name.startswith("mpi.function.") for name in getattr(program, "symbols", ()))
