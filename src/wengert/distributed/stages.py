"""The stages of a pipeline: consecutive layers of a model, one stage for each process.

PipelineStage  the layers of one process
divided        the stages of a model
balanced       consecutive groups with the smallest greatest cost
layers_traced  the costs and the devices of layers
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
from wengert.errors import ArgumentError, StructureError, TraceError, at, user_line


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
