"""The borders of an array that is divided among processes on a grid, and their messages.

Borders          the borders of an array of one shape, with checked arguments
BorderMessage    what is sent, to which process, and where what arrives belongs
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .arguments import grid_of
from .communicators import CartesianCommunicator

Box = tuple[slice, ...]


class BorderMessage(NamedTuple):
    """One message: what is sent, to which process, and where what arrives belongs."""

    sent: Box
    received: Box
    dest: int | None
    source: int | None
    tag: int


class Borders:
    """The borders of an array of one shape."""

    def __init__(
        self,
        comm: CartesianCommunicator,
        shape: tuple[Any, ...],
        widths: Sequence[int],
        axes: Sequence[int],
    ) -> None:
        self.comm, self.shape, self.widths, self.axes = comm, shape, widths, axes

    @staticmethod
    def of(x: Any, comm: Any, width: Any, axes: Any, what: str, least: int = 3) -> Borders:
        """Check the arguments; at least `least` widths are needed along each axis."""
        comm = grid_of(comm, what)
        count, shape = len(comm.shape), shape_of(x)
        widths = [width] * count if isinstance(width, int | np.integer) else list(width)
        divided = list(range(count)) if axes is None else list(axes)
        if len(widths) != count or len(divided) != count:
            raise ArgumentError(
                f"{what}: width={width!r} and axes={axes!r} for a grid with {count} axes. Give "
                f"one of each for every axis of the grid{at(user_line())}."
            )
        for axis, w in zip(divided, widths, strict=True):
            is_axis = -len(shape) <= axis < len(shape)
            if not is_axis or w < 1 or shape[axis] < least * w + (least > 3):
                raise ShapeError(
                    f"{what}: axis {axis} of shape {tuple(shape)} is too short for borders of {w} "
                    f"elements, which need at least {least * w + (least > 3)}{at(user_line())}."
                )
        divided = [a % len(shape) for a in divided]
        if len(set(divided)) < count:
            raise ArgumentError(
                f"{what}: axes={axes!r} divide an axis of the array twice{at(user_line())}."
            )
        return Borders(comm, tuple(shape), [int(w) for w in widths], divided)

    def divided(self) -> list[tuple[int, int, Any]]:
        """For each axis of the grid the axis of the array, the width, and the length."""
        return [(a, w, self.shape[a]) for a, w in zip(self.axes, self.widths, strict=True)]

    def box_of(self, ends: dict[int, tuple[Any, Any]]) -> Box:
        """The part of the array with these ends along some axes."""
        whole = ((0, n) for n in self.shape)
        return tuple([slice(*ends.get(a, all_of)) for a, all_of in enumerate(whole)])

    def parts(self, corners: bool) -> list[BorderMessage]:
        """The messages, one in each direction."""
        found = []
        for tag, direction in enumerate(itertools.product((-1, 0, 1), repeat=len(self.axes))):
            distance = sum(map(abs, direction))
            if distance == 0 or (distance > 1 and not corners):
                continue
            dest = self._neighbor(direction)
            source = self._neighbor(tuple(-step for step in direction))
            if dest is None and source is None:
                continue
            sent, received = {}, {}
            for k, (axis, w, n) in enumerate(self.divided()):
                step = direction[k]
                before, after = self.comm.neighbors(k)
                inside = 0 if before is None else w, n if after is None else n - w
                sent[axis] = {-1: (w, 2 * w), 0: inside, 1: (n - 2 * w, n - w)}[step]
                received[axis] = {-1: (n - w, n), 0: inside, 1: (0, w)}[step]
            found.append(BorderMessage(self.box_of(sent), self.box_of(received), dest, source, tag))
        return found

    def _neighbor(self, direction: Sequence[int]) -> int | None:
        """The rank of the neighbor in a direction; None outside of the grid."""
        place = [c + step for c, step in zip(self.comm.coordinates, direction, strict=True)]
        lengths, periodic = self.comm.shape, self.comm.periodic
        for c, n, wraps in zip(place, lengths, periodic, strict=True):
            if not wraps and not 0 <= c < n:
                return None
        wrapped = [c % n for c, n in zip(place, lengths, strict=True)]
        return int(self.comm.mpi.Get_cart_rank(wrapped))
