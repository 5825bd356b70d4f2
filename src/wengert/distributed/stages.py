"""The stages of a pipeline: layers of one process, their messages, and orders of microbatches.

    PipelineStage    the layers of one process
    divided          the stages of a model
    balanced         consecutive groups with the smallest greatest cost
    layers_traced    the costs and the devices of layers
    StageMessages    the messages of one process
    SCHEDULES        the names
    passes           the passes of one stage, in order
    messages         its messages, for the simulator
    stored           the greatest number of microbatches whose values a stage stores

Sends are begun and waited for at the end of a batch, so a stage computes meanwhile, and no order of
the passes makes two stages wait for each other.  An activation comes with its shape and dtype; the
receiver of a cotangent knows those of the activation that it has sent.

A stage runs the forward and the backward pass of each microbatch.  With ``"gpipe"`` all forward
passes come first.  With ``"1f1b"`` (one forward, one backward) a stage begins the backward pass of
a microbatch as early as possible, so that stage s of S stages stores the values of at most S - s
microbatches.  Both add the gradients in the order of the microbatches.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.handle import describe
from wengert._engine.core.spec import Spec
from wengert._engine.graphs import trace
from wengert._engine.ops.cost_model import flops_of
from wengert.errors import ArgumentError, DtypeError, StructureError, TraceError, at, user_line

from .arguments import message
from .communicators import Communicator
from .message_simulator import Receive, Send, Step


class PipelineStage(NamedTuple):
    """The layers of one process.

    rank : the rank of the process.
    start, stop : the layers, as a range of their indices.
    cost : the sum of their costs.
    """

    rank: int
    start: int
    stop: int
    cost: float


def divided(
    layers: Sequence[Any],
    size: int,
    devices: Sequence[int] | None,
    costs: Sequence[float] | None,
    example: Any,
) -> list[PipelineStage]:
    """The stages of a model, in the order of the layers.

    Parameters
    ----------
    layers : sequence of callable
    size : int
        The number of processes.
    devices : sequence of int, optional
        For each layer the rank of its process.
    costs : sequence of float, optional
        The costs of the layers; by default the number of parameters, or with an `example` that of
        floating-point operations.
    example : array, spec or None
        A batch. With it layers with scopes of devices are on these.

    Raises
    ------
    ArgumentError
        The model has no layers, there is not one device or cost for each layer, a device is not a
        process, or the layers of a process are not consecutive.
    """
    if not layers:
        raise ArgumentError(
            f"pipeline: the model has no layers. Give a wengert.nn.Sequential{at(user_line())}."
        )
    if example is not None:
        flops, found = layers_traced(layers, example)
        devices = _filled(found) if devices is None else devices
        costs = flops if costs is None else costs
    elif costs is None:
        costs = [_parameter_count(layer) for layer in layers]
    for name, values in (("devices", devices), ("costs", costs)):
        if values is not None and len(values) != len(layers):
            raise ArgumentError(
                f"pipeline: {len(values)} {name} for {len(layers)} layers. Give one for each layer"
                f"{at(user_line())}."
            )
    costs = [max(float(c), 1.0) for c in costs]  # so that layers without parameters count
    if devices is None:
        ends = balanced(costs, size)
        ranks = list(range(len(ends)))
    else:
        ranks, ends = _runs(devices, size)
    starts = [0, *ends[:-1]]
    return [
        PipelineStage(r, a, b, sum(costs[a:b])) for r, a, b in zip(ranks, starts, ends, strict=True)
    ]


def balanced(costs: Sequence[float], groups: int) -> list[int]:
    """The ends of consecutive groups of costs, such that the greatest sum is as small as possible.

    There are as many groups as costs if more were asked for. No group is empty.

    Examples
    --------
    >>> from wengert.distributed.stages import balanced
    >>> balanced([1.0, 1.0, 4.0, 1.0, 1.0], 3)
    [2, 3, 5]
    """
    n, groups = len(costs), min(groups, len(costs))
    sums = np.concatenate([[0.0], np.cumsum(costs)])
    # greatest[g, k]: the smallest possible greatest sum of g + 1 groups of the first k costs.
    greatest = np.full((groups, n + 1), np.inf)
    greatest[0, 1:] = sums[1:]
    cuts = np.zeros((groups, n + 1), int)
    for g in range(1, groups):
        for k in range(g + 1, n + 1):
            candidates = [max(greatest[g - 1, j], sums[k] - sums[j]) for j in range(g, k)]
            best = int(np.argmin(candidates))
            greatest[g, k], cuts[g, k] = candidates[best], g + best
    ends = [n]
    for g in range(groups - 1, 0, -1):
        ends.append(int(cuts[g, ends[-1]]))
    return ends[::-1]


def layers_traced(layers: Sequence[Any], example: Any) -> tuple[list[float], list[int | None]]:
    """The floating-point operations of each layer, and the device of its scopes.

    Raises
    ------
    TraceError
        A layer has scopes of several devices.
    """
    spec = example if isinstance(example, Spec) else describe(np.asarray(example))
    costs: list[float] = []
    devices: list[int | None] = []
    for k, layer in enumerate(layers):
        graph = trace(layer)(spec)
        counts = [flops_of(n, [a.spec for a in n.inputs], n.spec) for n in graph.nodes]
        costs.append(float(sum([c for c in counts if c])))
        found = {n.metadata.get("device") for n in graph.nodes if not n.is_leaf} - {None}
        if len(found) > 1:
            raise TraceError(
                f"pipeline: layer {k} has scopes of the devices {sorted(map(repr, found))}, and a "
                "layer is computed by one process. Divide the layer, or use "
                f"wengert.distributed.placed{at(user_line())}."
            )
        devices.append(next(iter(found), None))
        spec = output_of(graph, f"layer {k}").spec
    return costs, devices


def output_of(graph: Any, what: str) -> Any:
    """The only output of a graph."""
    if len(graph.outputs) != 1:
        raise StructureError(
            f"pipeline: {what} returns {len(graph.outputs)} arrays, and one is sent from stage to "
            f"stage. Stack them, or use wengert.distributed.placed{at(user_line())}."
        )
    return graph.outputs[0]


def _filled(devices: Sequence[int | None]) -> list[int] | None:
    """The devices, where layers without one follow the layer before; None if there are none."""
    known = [d for d in devices if d is not None]
    if not known:
        return None
    filled, last = [], known[0]
    for device in devices:
        last = last if device is None else device
        filled.append(last)
    return filled


def _runs(devices: Sequence[int], size: int) -> tuple[list[int], list[int]]:
    """The ranks of consecutive layers with the same device, and the ends of these."""
    ranks: list[int] = []
    ends: list[int] = []
    for k, device in enumerate(devices):
        try:
            rank = operator.index(device)
        except TypeError:
            rank = -1
        if not 0 <= rank < size:
            raise ArgumentError(
                f"pipeline: the device {device!r} of layer {k} is not a process, which are 0 to "
                f"{size - 1}{at(user_line())}."
            )
        if ranks and ranks[-1] == rank:
            ends[-1] = k + 1
        elif rank in ranks:
            raise ArgumentError(
                f"pipeline: layer {k} is on process {rank}, and so are earlier layers, with others "
                "in between. Layers of one process must follow each other; for other orders use "
                f"wengert.distributed.placed{at(user_line())}."
            )
        else:
            ranks.append(rank)
            ends.append(k + 1)
    return ranks, ends


def _parameter_count(layer: Any) -> float:
    parameters: Callable[[], Any] | None = getattr(layer, "parameters", None)
    return float(sum(np.size(p.numpy()) for p in parameters())) if parameters else 0.0


_HEADER, _ACTIVATION, _COTANGENT = 0, 1, 2  # tags
_MOST_AXES = 30


class StageMessages:
    """The messages of one process with the stages before and after its own.

    Parameters
    ----------
    comm : Communicator
        All its processes make one.
    ranks : sequence of int
        The ranks of the processes of the stages.
    """

    def __init__(self, comm: Communicator, ranks: Sequence[int]) -> None:
        self._mpi = comm.mpi.Dup() if comm.size > 1 else comm.mpi
        number = ranks.index(comm.rank) if comm.rank in ranks else None
        self._before = ranks[number - 1] if number else None
        is_last = number is None or number + 1 == len(ranks)
        self._after = None if number is None or is_last else ranks[number + 1]
        self._requests: list[Any] = []

    def send_forward(self, y: Any) -> None:
        """Begin to send an activation to the next stage."""
        y = np.ascontiguousarray(message(y, "pipeline"))
        if y.ndim > _MOST_AXES:
            raise DtypeError(
                f"pipeline: an activation with {y.ndim} axes; at most {_MOST_AXES} can be sent"
                f"{at(user_line())}."
            )
        header = np.zeros(_MOST_AXES + 2, np.int64)
        header[:2] = y.dtype.num, y.ndim
        header[2 : 2 + y.ndim] = y.shape
        self._begin(header, self._after, _HEADER)
        self._begin(y, self._after, _ACTIVATION)

    def receive_forward(self) -> np.ndarray[Any, Any]:
        """The next activation of the stage before."""
        header = np.empty(_MOST_AXES + 2, np.int64)
        self._mpi.Recv(header, self._before, _HEADER)
        number, ndim = header[:2]
        received = np.empty(tuple(map(int, header[2 : 2 + ndim])), _DTYPES[int(number)])
        self._mpi.Recv(received, self._before, _ACTIVATION)
        return received

    def send_backward(self, t: Any) -> None:
        """Begin to send the cotangent of an activation to the stage before."""
        self._begin(np.ascontiguousarray(t), self._before, _COTANGENT)

    def receive_backward(self, spec: Spec) -> np.ndarray[Any, Any]:
        """The cotangent of the next activation, from the next stage."""
        received = np.empty(spec.shape, spec.dtype)
        self._mpi.Recv(received, self._after, _COTANGENT)
        return received

    def _begin(self, x: np.ndarray[Any, Any], rank: int | None, tag: int) -> None:
        self._requests = [r for r in self._requests if not r[0].Test()]  # frees what has arrived
        self._requests.append((self._mpi.Isend(x, rank, tag), x))

    def wait(self) -> None:
        """Wait until everything has been sent."""
        for request, _ in self._requests:
            request.Wait()
        self._requests = []


_DTYPES: dict[int, np.dtype[Any]] = {
    np.dtype(code).num: np.dtype(code) for code in "? i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 c8 c16".split()
}


SCHEDULES = "1f1b", "gpipe"
FORWARD, BACKWARD = "forward", "backward"
Pass = tuple[str, int]  # FORWARD or BACKWARD, and the number of the microbatch


def passes(schedule: str, stage: int, stages: int, microbatches: int) -> list[Pass]:
    """The passes of one stage, in order.

    Parameters
    ----------
    schedule : {"1f1b", "gpipe"}
    stage, stages : int
        The number of the stage, and of all stages.
    microbatches : int
    """
    ahead = microbatches if schedule == "gpipe" else min(stages - 1 - stage, microbatches)
    order = [(FORWARD, k) for k in range(ahead)]
    for k in range(microbatches):
        if ahead + k < microbatches:
            order.append((FORWARD, ahead + k))
        order.append((BACKWARD, k))
    return order


def messages(schedule: str, stage: int, stages: int, microbatches: int) -> list[Step]:
    """The messages of one stage; those that are sent are begun, and waited for at the end."""
    steps: list[Step] = []
    for direction, k in passes(schedule, stage, stages, microbatches):
        before, after = (stage - 1, stage + 1) if direction == FORWARD else (stage + 1, stage - 1)
        if 0 <= before < stages:
            steps.append(Receive(before, (direction, k)))
        if 0 <= after < stages:
            steps.append(Send(after, (direction, k), begun=True))
    return steps


def stored(schedule: str, stage: int, stages: int, microbatches: int) -> int:
    """The greatest number of microbatches whose values a stage stores at the same time."""
    count = most = 0
    for direction, _ in passes(schedule, stage, stages, microbatches):
        count += 1 if direction == FORWARD else -1
        most = max(most, count)
    return most
