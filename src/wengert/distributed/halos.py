"""The borders of arrays that are divided among processes on a grid.

halo_exchange           fill the borders with the values of the neighbors
halo_exchange_start     start the messages, and compute something else while they travel
halo_exchange_finish    wait for them
map_overlap             a function of an array with borders, whose inside is computed meanwhile
HaloExchange            what `halo_exchange_start` returns

In a graph a message is one operation, with its derivatives.  Compiled code starts it as soon as its
operand is known and waits where the result is needed (the LLVM backend,
lowering/registry.py), in backward passes too.  Arrays outside of traced and differentiated
functions are sent by MPI_Isend and MPI_Irecv here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert import numpy as wnp
from wengert._engine.core.handle import Handle, describe, shape_of
from wengert._engine.core.message_order import current
from wengert._engine.core.op import lookup
from wengert.errors import ArgumentError, ShapeError, at, user_line

from . import operations
from .arguments import message
from .communicators import CartesianCommunicator
from .halo_parts import BorderMessage, Borders, Box
from .mpi_library import mpi
from .point_to_point import sendrecv


def halo_exchange(
    x: Any,
    comm: CartesianCommunicator,
    width: int | Sequence[int] = 1,
    axes: Sequence[int] | None = None,
    corners: bool = True,
) -> Any:
    """Fill the borders of an array with the values of the neighbors on a grid.

    The array of each process has borders of `width` elements at both ends of the divided axes,
    which belong to its neighbors.

    Parameters
    ----------
    x : array_like or Tensor
        Of at least ``3 * width`` elements along each divided axis.
    comm : CartesianCommunicator
    width : int or sequence of int, default 1
        The width of the borders, for each axis of the grid.
    axes : sequence of int, optional
        The axis of `x` that is divided along each axis of the grid; by default the first ones.
    corners : bool, default True
        Whether corners are those of the diagonal neighbors. Without them, which stencils along
        the axes do not need, the messages of all axes travel at the same time.

    Returns
    -------
    array or Tensor
        `x` with new borders. At the ends of the grid they are those of `x`.

    Raises
    ------
    ShapeError
        `x` is too small for its borders.

    Notes
    -----
    The cotangent of a border is sent back, and added to that of the element that it is a copy of.
    With corners, axes are exchanged one after the other: two messages along each.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import distributed
    >>> comm = distributed.world().cartesian(periodic=True)
    >>> distributed.halo_exchange(np.array([0.0, 1.0, 2.0, 3.0, 0.0]), comm)
    array([3., 1., 2., 3., 1.])
    """
    halo = Borders.of(x, comm, width, axes, "halo_exchange")
    y = message(x, "halo_exchange")
    if not corners:
        return halo_exchange_finish(halo_exchange_start(x, comm, width, axes, corners=False))
    for k, (axis, w) in enumerate(zip(halo.axes, halo.widths, strict=True)):
        before, after = comm.neighbors(k)
        y = _exchange_borders(y, comm, axis, w, before, after)
    return y


def _exchange_borders(
    y: Any, comm: CartesianCommunicator, axis: int, w: int, before: int | None, after: int | None
) -> Any:
    def part(start: int | None, stop: int | None) -> Box:
        return (*[slice(None)] * axis, slice(start, stop))

    from_after = sendrecv(y[part(w, 2 * w)], before, after, tag=0, comm=comm)
    from_before = sendrecv(y[part(-2 * w, -w)], after, before, tag=1, comm=comm)
    setitem = lookup("setitem")
    if after is not None:
        y = setitem(y, from_after, index=part(-w, None))
    if before is not None:
        y = setitem(y, from_before, index=part(None, w))
    return y


class HaloExchange:
    """Messages that have been started; made by `halo_exchange_start`.

    Attributes
    ----------
    is_finished : bool
        Whether `halo_exchange_finish` has been called.
    """

    __module__ = "wengert.distributed"

    def __init__(
        self, x: Any, boxes: Sequence[Box], received: Sequence[Any], requests: Any
    ) -> None:
        self._x, self._boxes, self._received, self._requests = x, boxes, received, requests
        self.is_finished = False

    def _finish(self) -> Any:
        token = current()
        is_traced = token is not None and token.node.is_traced
        if self.is_finished:
            raise ArgumentError(
                "halo_exchange_finish: the exchange has been finished already. Use its result, or "
                f"start another one{at(user_line())}."
            )
        if self._requests is not None and is_traced:
            raise ArgumentError(
                "halo_exchange_finish: the exchange was started outside of the function that is "
                "traced, whose graph would have the values of the first call. Start it in the "
                f"function{at(user_line())}."
            )
        self.is_finished = True
        if self._requests is not None:
            self._requests.wait()
        y, setitem = self._x, lookup("setitem")
        for box, values in zip(self._boxes, self._received, strict=True):
            y = setitem(y, values, index=box)
        return y

    def __repr__(self) -> str:
        return f"<HaloExchange, {'finished' if self.is_finished else 'started'}>"

    def __reduce__(self) -> Any:
        raise TypeError("messages that have been started cannot be copied or pickled.")


def halo_exchange_start(
    x: Any,
    comm: CartesianCommunicator,
    width: int | Sequence[int] = 1,
    axes: Sequence[int] | None = None,
    corners: bool = True,
) -> HaloExchange:
    """Start to fill the borders of an array; the messages travel while other work is done.

    Parameters
    ----------
    x, comm, width, axes, corners
        As for `halo_exchange`. Later changes of `x` are not sent.

    Returns
    -------
    HaloExchange
        To be passed to `halo_exchange_finish`, in the same function.

    Raises
    ------
    ShapeError
        `x` is too small for its borders.

    Notes
    -----
    All messages are started at once: with corners one from each of the ``3 ** k - 1`` neighbors
    on a grid with k axes, without them two along each axis.

    *Compiled functions* start messages as early and wait as late as possible in any case, in
    backward passes too. *Eagerly*, values outside of differentiated functions are sent by
    MPI_Isend and MPI_Irecv; in differentiated functions the messages are complete when this
    function returns.

    *Exceptions.* An exchange that is never finished is completed in the background; its memory is
    kept until then.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import distributed
    >>> comm = distributed.world().cartesian(periodic=True)
    >>> x = np.array([0.0, 1.0, 2.0, 3.0, 0.0])
    >>> started = distributed.halo_exchange_start(x, comm)
    >>> inside = x[2:-2] ** 2
    >>> distributed.halo_exchange_finish(started)
    array([3., 1., 2., 3., 1.])
    """
    halo = Borders.of(x, comm, width, axes, "halo_exchange_start")
    y = message(x, "halo_exchange_start")
    parts = halo.parts(corners)
    boxes = [p.received for p in parts if p.source is not None]
    if current() is None and not isinstance(y, Handle):
        arrays, requests = _post(y, comm, parts)
        return HaloExchange(y, boxes, arrays, requests)
    received = []
    for p in parts:
        shape = tuple(len(range(*s.indices(n))) for s, n in zip(p.sent, shape_of(y), strict=True))
        got = operations.exchange.ordered(
            y[p.sent],
            comm=comm,
            dest=p.dest,
            source=p.source,
            tag=p.tag,
            shape=shape,
            dtype=describe(y).dtype,
        )
        if p.source is not None:
            received.append(got)
    return HaloExchange(y, boxes, received, None)


def halo_exchange_finish(started: HaloExchange) -> Any:
    """Wait for messages, and return the array with its new borders.

    Parameters
    ----------
    started : HaloExchange
        From `halo_exchange_start`. It can be finished once.

    Returns
    -------
    array or Tensor
        As that of `halo_exchange`.

    Raises
    ------
    ArgumentError
        It has been finished, or was started outside of a function that is traced.
    CommunicationError
        A neighbor has sent an array of another size.
    """
    if not isinstance(started, HaloExchange):
        raise ArgumentError(
            f"halo_exchange_finish: a {type(started).__name__} was given, and the result of "
            f"halo_exchange_start is needed{at(user_line())}."
        )
    return started._finish()


def map_overlap(
    f: Callable[..., Any],
    x: Any,
    comm: CartesianCommunicator,
    width: int | Sequence[int] = 1,
    axes: Sequence[int] | None = None,
    corners: bool = True,
    others: Sequence[Any] = (),
) -> Any:
    """Apply a stencil to an array with borders, and exchange the borders meanwhile.

    The elements that do not depend on the borders are computed while the messages travel, and then
    the others.

    Parameters
    ----------
    f : callable
        Takes an array with borders (and `others`), and returns one without: shorter by
        ``2 * width`` along each divided axis. It is called for the inside and for the edges, so an
        element of its result depends on the elements at a distance of at most `width` only.
    x, comm, width, axes, corners
        As for `halo_exchange`, with at least ``4 * width + 1`` elements along each divided axis.
    others : sequence of array_like or Tensor
        Further arguments of `f` that are cut as `x` is: arrays whose borders are right already.
        Their last axes are those of `x`.

    Returns
    -------
    array or Tensor
        ``f(halo_exchange(x, comm, width, axes, corners), *others)``.

    Raises
    ------
    ShapeError
        `x` is too small, or `f` returns an array of another shape.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import distributed
    >>> comm = distributed.world().cartesian(periodic=True)
    >>> x = np.array([0.0, 1.0, 4.0, 9.0, 16.0, 0.0])
    >>> distributed.map_overlap(lambda y: y[2:] - y[:-2], x, comm)
    array([-12.,   8.,  12.,  -8.])
    """
    halo = Borders.of(x, comm, width, axes, "map_overlap", 4)

    def of_part(y: Any, ends: dict[int, tuple[Any, Any]]) -> Any:
        box = halo.box_of(ends)
        parts = [o[box[len(box) - len(shape_of(o)) :]] for o in others]
        return _shrunk(f, halo, y[box], parts)

    started = halo_exchange_start(x, comm, width, axes, corners)
    inside = {a: (w, n - w) for a, w, n in halo.divided()}
    result = of_part(message(x, "map_overlap"), inside)
    y = halo_exchange_finish(started)
    # From the inside out: each axis adds its two edges to what is between them.
    for k in reversed(range(len(halo.axes))):
        axis, w, n = halo.divided()[k]
        before = {a: inside[a] for a in halo.axes[:k]}
        low = of_part(y, {**before, axis: (0, 3 * w)})
        high = of_part(y, {**before, axis: (n - 3 * w, n)})
        result = wnp.concatenate([low, result, high], axis=axis)
    return result


def _shrunk(f: Callable[..., Any], halo: Borders, block: Any, others: Sequence[Any]) -> Any:
    """The function of a block, whose shape is checked."""
    result = f(block, *others)
    cut = {a: 2 * w for a, w, _ in halo.divided()}
    expected = tuple(n - cut.get(a, 0) for a, n in enumerate(shape_of(block)))
    if shape_of(result) != expected:
        raise ShapeError(
            f"map_overlap: the function returned shape {tuple(shape_of(result))} for an array of "
            f"shape {tuple(shape_of(block))}, and {expected} is needed: without the borders"
            f"{at(user_line())}."
        )
    return result


# ---- messages of plain arrays ------------------------------------------------------------------


class _Requests:
    """Requests of MPI with their memory, which is kept until they are complete."""

    def __init__(self, comm: CartesianCommunicator) -> None:
        self.comm = comm
        self.requests: list[Any] = []
        self.sent: list[np.ndarray[Any, Any]] = []
        self.received: list[np.ndarray[Any, Any]] = []
        self.sources: list[int] = []

    def wait(self) -> None:
        """Wait for all of them."""
        statuses = [mpi().Status() for _ in self.requests]
        mpi().Request.Waitall(self.requests, statuses)
        _unfinished.discard(self)
        for array, source, status in zip(self.received, self.sources, statuses, strict=False):
            operations.check_count(status, array, self.comm, source)


_unfinished: set[_Requests] = set()


def _post(
    x: np.ndarray[Any, Any], comm: CartesianCommunicator, parts: Sequence[BorderMessage]
) -> tuple[list[np.ndarray[Any, Any]], _Requests]:
    """Start the messages; the arrays that are received, and the requests."""
    for old in list(_unfinished):  # those that were never finished
        if mpi().Request.Testall(old.requests):
            _unfinished.discard(old)
    pending = _Requests(comm)
    _unfinished.add(pending)
    for p in parts:
        if p.source is not None:
            array = np.empty(x[p.received].shape, x.dtype)
            pending.received.append(array)
            pending.sources.append(p.source)
            pending.requests.append(comm.mpi.Irecv(array, p.source, p.tag))
    for p in parts:
        if p.dest is not None:
            pending.sent.append(np.array(x[p.sent], order="C", copy=True))
            pending.requests.append(comm.mpi.Isend(pending.sent[-1], p.dest, p.tag))
    return pending.received, pending
