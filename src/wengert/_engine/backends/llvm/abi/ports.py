"""Ports: the inputs and outputs of a native function, and their slots in the frame.

The frame is the array of 8-byte slots that the function is called with; see
docs/design/0009-native.md.  Ports and `CallInterface` are all that the function and its callers
agree on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import Requirement


@dataclass(frozen=True)
class Port:
    """A value that crosses the border.

    Attributes
    ----------
    spec : Spec
        Its lengths may be named sizes.
    slot : int
        Which slot of the frame holds the address of its data.
    strided : bool
        Its strides, in bytes, are in the slots that follow; else the data is contiguous.
    fortran : bool
        It is contiguous in Fortran's order of axes, and not in C's.
    """

    spec: Spec
    slot: int
    strided: bool = False
    fortran: bool = False


class CallInterface(Protocol):
    """What the callers of a native function need; `Program` implements it.

    Attributes
    ----------
    inputs, outputs : sequence of Port
        Of the graph's inputs and then its variables; of its outputs and then the updates.
    sizes : sequence of str
        The named sizes.
    size_slots : sequence of int
        For each of them the slot that holds it.
    slots : int
        The length of the frame.
    constants : sequence of (int, numpy.ndarray)
        Arrays whose addresses stand in these slots.
    requirements : sequence of Requirement
        What the sizes have to satisfy, as the graph has it.
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
