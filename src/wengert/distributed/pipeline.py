"""Pipelines: the layers of a model on several processes, which work on different microbatches.

Each process has the parameters of its stage only, and compiles its stage.  Activations are sent to
the next stage, and their cotangents back, while the process goes on with another microbatch.

    pipeline    makes a pipeline from a sequential model
    Pipeline    loss and gradients of a batch, predictions
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, describe, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.recording import no_grad
from wengert._engine.core.spec import Spec
from wengert._engine.jit import jit
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .communicators import Communicator, communicator_of
from .stage_programs import LastProgram, TwoPrograms
from .stages import FORWARD, SCHEDULES, PipelineStage, StageMessages, divided, passes


def pipeline(
    model: Any,
    loss: Callable[..., Any],
    comm: Any = None,
    microbatches: int = 4,
    schedule: str = "1f1b",
    *,
    devices: Sequence[int] | None = None,
    costs: Sequence[float] | None = None,
    example: Any = None,
    reduction: str = "mean",
) -> Pipeline:
    """Divide the layers of a model among the processes.

    Parameters
    ----------
    model : wengert.nn.Sequential, or sequence of callables
        The layers; each takes and returns one array. It is the same in all processes when the
        pipeline is made. Afterwards each process refers to the layers of its stage only.
    loss : callable
        ``loss(prediction, target)`` returns one number: the mean (or the sum) over the examples of
        a microbatch.
    comm : Communicator or mpi4py communicator, optional
        By default all processes.
    microbatches : int, default 4
        The number of parts of a batch. Lengths of parts differ by at most one; a batch with fewer
        examples has as many parts as examples.
    schedule : {"1f1b", "gpipe"}
        The order of the passes. "1f1b" stores the values of fewer microbatches; gradients have the
        same bits.
    devices : sequence of int, optional
        For each layer the rank of its process. By default the greatest cost of a stage is as small
        as possible.
    costs : sequence of float, optional
        The cost of each layer; by default its number of parameters, or, with an `example`, of
        floating-point operations.
    example : array or spec, optional
        A batch, of which shape and dtype are used. With it, layers whose operations are in
        ``with wengert.scope(device=rank)`` are on these processes.
    reduction : {"mean", "sum"}
        Whether `loss` returns the mean or the sum over the examples.

    Returns
    -------
    Pipeline

    Raises
    ------
    ArgumentError
        An option is not known, layers of a process do not follow each other, or layers of several
        stages share a parameter.

    Notes
    -----
    *Fewer layers than processes.* Processes without layers get the results, and compute nothing.

    *Values.* Loss and gradients are those of the whole batch, up to the order of additions: layers
    that compute statistics of a batch (`BatchNorm1d`) do so for each microbatch.

    *Cost.* For each microbatch and border of stages one message in each direction, which is sent
    while the process computes. A stage waits at the beginning and the end of a batch: with m
    microbatches and S equal stages it works m / (m + S - 1) of the time.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import distributed, nn
    >>> model = nn.Sequential(nn.Linear(3, 4, rng=0), nn.Tanh(), nn.Linear(4, 1, rng=1))
    >>> pipe = distributed.pipeline(model, nn.MSELoss(), microbatches=2)
    >>> value, gradients = pipe.value_and_grad(np.ones((5, 3)), np.zeros((5, 1)))
    >>> sorted(gradients)
    ['0.bias', '0.weight', '2.bias', '2.weight']
    """
    _check(loss, microbatches, schedule, reduction)
    layers = list(model)
    stages = divided(layers, communicator_of(comm).size, devices, costs, example)
    return Pipeline(
        model, loss, communicator_of(comm), stages, int(microbatches), schedule, reduction
    )


def _check(loss: Any, microbatches: Any, schedule: str, reduction: str) -> None:
    if not callable(loss):
        raise ArgumentError(
            f"pipeline: loss is a {type(loss).__name__}, and must be a function of predictions and "
            f"targets, such as wengert.nn.MSELoss(){at(user_line())}."
        )
    is_integer = isinstance(microbatches, int | np.integer) and not isinstance(microbatches, bool)
    if not is_integer or microbatches < 1:
        raise ArgumentError(
            f"pipeline: microbatches={microbatches!r} must be an integer of at least 1"
            f"{at(user_line())}."
        )
    if schedule not in SCHEDULES:
        raise ArgumentError(
            f"pipeline: schedule={schedule!r} is not one of {', '.join(map(repr, SCHEDULES))}"
            f"{at(user_line())}."
        )
    if reduction not in ("mean", "sum"):
        raise ArgumentError(
            f"pipeline: reduction={reduction!r} is not 'mean' or 'sum'{at(user_line())}."
        )


class Pipeline:
    """The layers of a model on several processes; made by `pipeline`.

    All processes call its methods together, with the same arguments.

    Attributes
    ----------
    comm : Communicator
    stages : list of PipelineStage
        The process and the layers of each stage, and their costs.
    stage : Module, or None
        The layers of this process.
    """

    __module__ = "wengert.distributed"

    def __init__(
        self,
        model: Any,
        loss: Callable[..., Any],
        comm: Communicator,
        stages: list[PipelineStage],
        microbatches: int,
        schedule: str,
        reduction: str,
    ) -> None:
        self.comm, self.stages, self.loss = comm, stages, loss
        self.microbatches, self.schedule, self.reduction = microbatches, schedule, reduction
        _refuse_shared(model, stages)
        mine = [k for k, s in enumerate(stages) if s.rank == comm.rank]
        self._number = mine[0] if mine else None
        self.stage: Any = None
        self._named: list[tuple[str, Any]] = []
        if mine:
            own = stages[mine[0]]
            self.stage = _part(model, own)
            inside = {id(p) for p in _parameters(self.stage)}
            self._named = [(n, p) for n, p in _named_parameters(model) if id(p) in inside]
        self._messages = StageMessages(comm, [s.rank for s in stages])
        self._programs: dict[Any, Any] = {}
        self._predict = None if self.stage is None else jit(_without_history(self.stage))

    # ---- parameters ------------------------------------------------------------------------------

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """The parameters of this process, with their names in the whole model."""
        yield from self._named

    def parameters(self) -> Iterator[Any]:
        """The parameters of this process."""
        return (p for _, p in self._named)

    def state_dict(self, root: int = 0) -> dict[str, np.ndarray[Any, Any]]:
        """The parameters of all processes by name, in the root; empty in the others."""
        own = {name: np.array(p.numpy()) for name, p in self._named}
        parts = self.comm.collective.gather(own, root)
        merged: dict[str, np.ndarray[Any, Any]] = {}
        for part in parts or []:
            merged.update(part)
        return merged

    # ---- training --------------------------------------------------------------------------------

    def value_and_grad(self, x: Any, y: Any) -> tuple[np.floating[Any], dict[str, Any]]:
        """The loss of a batch, and the gradients with respect to the parameters of this process.

        Parameters
        ----------
        x, y : array_like, for `y` also containers of them
            The batch and its targets. Only the first stage uses the values of `x`, and only the
            last one those of `y`.

        Returns
        -------
        value : float
            The same in all processes.
        gradients : dict
            By name; of parameters that require one.
        """
        value, gradients = self._run(x, y)
        trained = [name for name, p in self._named if p.requires_grad]
        return value, dict(zip(trained, gradients, strict=True))

    def backward(self, x: Any, y: Any) -> np.floating[Any]:
        """The loss of a batch; adds the gradients to those of the parameters, ``p.grad``.

        Parameters
        ----------
        x, y
            As for `value_and_grad`.
        """
        value, gradients = self._run(x, y)
        for p, g in zip(self._trained(), gradients, strict=True):
            p.grad = wrap(constant(g)) if p.grad is None else p.grad + g
        return value

    def __call__(self, x: Any) -> Any:
        """The prediction for a batch, in all processes; nothing is recorded."""
        x = np.asarray(x)
        ends = self._parts(len(x))
        self.comm.check("a prediction of a pipeline", x.shape, x.dtype)
        rows = []
        for start, stop in ends if self._number is not None else ():
            received = self._messages.receive_forward() if self._number else x[start:stop]
            assert self._predict is not None
            sent = self._predict(received)
            if self._number == len(self.stages) - 1:
                rows.append(sent)
            else:
                self._messages.send_forward(sent)
        self._messages.wait()
        whole = np.concatenate(rows) if rows else None
        return self.comm.collective.bcast(whole, self.stages[-1].rank)

    def _trained(self) -> list[Any]:
        return [p for _, p in self._named if p.requires_grad]

    def _parts(self, count: int) -> list[tuple[int, int]]:
        if not count:
            raise ShapeError(f"pipeline: the batch has no examples{at(user_line())}.")
        m = min(self.microbatches, count)
        return [(k * count // m, (k + 1) * count // m) for k in range(m)]

    def _run(self, x: Any, y: Any) -> tuple[Any, list[Any]]:
        """The loss and the gradients of a batch."""
        x = np.asarray(x)
        targets, structure = pytree.flatten(y)
        targets = [np.asarray(t) for t in targets]
        if not x.shape or any(not t.shape or len(t) != len(x) for t in targets):
            raise ShapeError(
                f"pipeline: a batch of shape {x.shape} and targets of shapes "
                f"{[t.shape for t in targets]}. The first axes must have the examples"
                f"{at(user_line())}."
            )
        parts = self._parts(len(x))
        signature = [(t.shape, str(t.dtype)) for t in (x, *targets)]
        self.comm.check("a batch of a pipeline", signature, self.schedule, self.microbatches)
        value: Any = np.float64(0.0)
        gradients: list[Any] = []
        if self._number is not None:
            batch = _Batch(self, x, targets, structure, parts)
            for direction, k in passes(self.schedule, self._number, len(self.stages), len(parts)):
                (batch.forward if direction == FORWARD else batch.backward)(k)
            self._messages.wait()
            value, gradients = batch.value, batch.gradients
        return self.comm.collective.bcast(value, self.stages[-1].rank), gradients

    # ---- programs --------------------------------------------------------------------------------

    def program(self, key: Any, make: Callable[[], Any]) -> Any:
        """The program for a key, and the modes and dtypes of the stage; made if there is none."""
        modules = getattr(self.stage, "modules", None)
        modes = tuple([m.training for m in modules()]) if modules is not None else ()
        kinds = tuple([(p.dtype, p.requires_grad) for _, p in self._named])
        full = key, modes, kinds
        if full not in self._programs:
            self._programs[full] = make()
        return self._programs[full]

    def __repr__(self) -> str:
        return (
            f"<Pipeline of {self.stages[-1].stop} layers in {len(self.stages)} stages: process "
            f"{self.comm.rank} of {self.comm.size}, {self.microbatches} microbatches>"
        )

    def __str__(self) -> str:
        lines = [
            f"process {s.rank}: layers {s.start} to {s.stop - 1}, cost {s.cost:g}"
            for s in self.stages
        ]
        idle = sorted(set(range(self.comm.size)) - {s.rank for s in self.stages})
        return "\n".join(lines + [f"process {rank}: no layers" for rank in idle])


class _Batch:
    """The passes of one process over the microbatches of a batch."""

    def __init__(
        self,
        pipe: Pipeline,
        x: np.ndarray[Any, Any],
        targets: Sequence[np.ndarray[Any, Any]],
        structure: Any,
        parts: Sequence[tuple[int, int]],
    ) -> None:
        self.pipe, self.x, self.targets, self.parts = pipe, x, targets, parts
        self.structure = structure
        number = pipe._number
        self.is_first, self.is_last = number == 0, number == len(pipe.stages) - 1
        self.messages = pipe._messages
        self.parameters = pipe._trained()
        self.value: Any = None
        self.gradients: list[Any] = []
        self._stored: dict[int, Any] = {}

    def forward(self, k: int) -> None:
        """The forward pass of a microbatch; of the last stage, also its backward pass."""
        start, stop = self.parts[k]
        x = self.x[start:stop] if self.is_first else self.messages.receive_forward()
        spec = describe(x)
        if not self.is_last:
            program = self.pipe.program(spec, lambda: self._two(spec))
            y, saved = program.forward(x)
            self._stored[k] = program, saved
            self.messages.send_forward(y)
            return
        targets = [t[start:stop] for t in self.targets]
        specs = [describe(t) for t in targets]
        key = spec, *specs, self.structure
        program = self.pipe.program(key, lambda: self._last(spec, specs))
        is_mean = self.pipe.reduction == "mean"
        weight = (stop - start) / len(self.x) if is_mean else 1.0
        value, cotangent, gradients = program.run(x, weight, targets)
        self.value = value if self.value is None else self.value + value
        self._add(gradients)
        self._stored[k] = cotangent

    def backward(self, k: int) -> None:
        """The backward pass of a microbatch."""
        stored = self._stored.pop(k)
        if self.is_last:
            cotangent = stored
        else:
            program, saved = stored
            t = self.messages.receive_backward(program.result) if program.has_cotangent else None
            cotangent, gradients = program.backward(saved, t)
            self._add(gradients)
        if cotangent is not None:
            self.messages.send_backward(cotangent)

    def _two(self, spec: Spec) -> TwoPrograms:
        return TwoPrograms(self.pipe.stage, self.parameters, spec, not self.is_first)

    def _last(self, spec: Spec, targets: Sequence[Spec]) -> LastProgram:
        return LastProgram(
            self.pipe.stage, self.pipe.loss, self.parameters, spec, not self.is_first, targets,
            lambda leaves: pytree.unflatten(self.structure, list(leaves)),
        )  # fmt: skip

    def _add(self, gradients: Sequence[Any]) -> None:
        if not self.gradients:
            self.gradients = list(gradients)
        else:
            self.gradients = [a + b for a, b in zip(self.gradients, gradients, strict=True)]


def _part(model: Any, stage: PipelineStage) -> Any:
    """The layers of a stage, as a function of one array."""
    part = model[stage.start : stage.stop]
    return part if callable(part) else _Chain(part)


class _Chain:
    """Layers that are not in a module, one after the other."""

    def __init__(self, layers: Sequence[Any]) -> None:
        self.layers = list(layers)

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x

    def modules(self) -> Iterator[Any]:
        """The modules among the layers, and those inside them."""
        for layer in self.layers:
            yield from getattr(layer, "modules", lambda: ())()

    def parameters(self) -> Iterator[Any]:
        """The parameters of the layers."""
        for layer in self.layers:
            yield from _parameters(layer)


def _parameters(part: Any) -> list[Any]:
    parameters = getattr(part, "parameters", None)
    return list(parameters()) if parameters is not None else []


def _named_parameters(model: Any) -> Iterator[tuple[str, Any]]:
    named = getattr(model, "named_parameters", None)
    if named is not None:
        yield from named()
        return
    for k, layer in enumerate(model):
        for name, p in getattr(layer, "named_parameters", lambda: ())():
            yield f"{k}.{name}", p


def _refuse_shared(model: Any, stages: Sequence[PipelineStage]) -> None:
    seen: dict[int, int] = {}
    for stage in stages:
        for p in _parameters(_part(model, stage)):
            if seen.setdefault(id(p), stage.rank) != stage.rank:
                raise ArgumentError(
                    "pipeline: layers of the processes "
                    f"{seen[id(p)]} and {stage.rank} share a parameter, which each of them would "
                    "update by itself. Put them into one stage (devices=), or use "
                    f"wengert.distributed.placed{at(user_line())}."
                )


def _without_history(stage: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def predict(x: Any) -> Any:
        with no_grad():
            y = stage(x)
        return y.detach() if isinstance(y, Handle) else y  # type: ignore[attr-defined]

    return predict
