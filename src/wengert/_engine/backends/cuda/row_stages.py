"""Stages of loops by rows: what a thread does for one row.

The kinds of arrays, for one body:

    SHARED     not written by the loop: read anywhere
    ROWS       the first axis is the batch: a row reads and writes its own row
    STACK      results of the steps of a loop inside: the second axis is the batch
    PRIVATE    no batch axis (a counter, a time): a copy for each row
    PARTIAL    a sum over rows: for each row its own part, which are added after the loop
    LONGEST    the largest number of steps of all rows: for each row its own number

A partial array is a sum over the batch (the gradient with respect to a parameter that all rows
share), and what is linear in such sums. A number of steps of all rows may only be that of a loop
which changes nothing of rows that take fewer steps (row_conditions.py).

    Sharing    these kinds
    RowBody    a body: its stages, the kind of each array
    RowGroup   a loop group; RowLoop a loop; RowBranch a branch (row_memory.py: a store)
    NotByRows  the reason why a loop has no kernel
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from wengert._engine.core.graph_classes import Body

from ..llvm.ir.index_analysis import Length
from ..llvm.lowering.loop_ir import Expr
from ..llvm.schedule.fusion import LoopGroup
from ..llvm.schedule.scheduling import Schedule


class Sharing(enum.Enum):
    """How rows share an array; see above."""

    SHARED = enum.auto()
    ROWS = enum.auto()
    STACK = enum.auto()
    PRIVATE = enum.auto()
    PARTIAL = enum.auto()
    LONGEST = enum.auto()


COMBINED = (Sharing.PARTIAL, Sharing.LONGEST)  # results of steps that are combined after the loop
OWN = (Sharing.PRIVATE, Sharing.PARTIAL, Sharing.LONGEST)  # one for each row


class NotByRows(Exception):
    """The rows of a loop depend on each other, or a stage has no code for one row."""


@dataclass(frozen=True)
class RowGroup:
    """A loop group.

    Attributes
    ----------
    group : LoopGroup
    by_rows : bool
        Whether its first axis is the batch, of which a thread takes its row.
    """

    group: LoopGroup
    by_rows: bool


@dataclass(frozen=True)
class RowBranch:
    """A branch: a selector and bodies."""

    stage: Expr
    branches: tuple[RowBody, ...]


@dataclass(frozen=True)
class RowLoop:
    """A loop.

    Attributes
    ----------
    stage : Expr or None
        None for the loop of the kernel itself.
    params : mapping
    body : RowBody
    condition : RowBody or None
        Of a loop that ends when its condition is false.
    """

    stage: Expr | None
    params: Any
    body: RowBody
    condition: RowBody | None


@dataclass(frozen=True)
class RowBody:
    """The analysis of one body.

    Attributes
    ----------
    plan : Schedule
    stages : tuple
        Of RowGroup, RowLoop, RowBranch and RowStore, in order.
    kinds : dict from Expr to Sharing
        Of everything in memory.
    body : Body
        What is scheduled, which must outlive the schedule.
    """

    plan: Schedule
    stages: tuple[Any, ...]
    kinds: dict[Expr, Sharing]
    body: Body

    def outputs(self) -> list[Sharing]:
        """The kinds of its results."""
        return [self.kinds[x] for x in self.plan.outputs]


def has_rows(x: Expr, rows: Length) -> bool:
    """Whether the first axis is the batch."""
    return bool(x.shape) and bool(x.shape[0] == rows)
