"""Loops and branches that the host runs step by step; a step is one run of the body's program.

A step is started while the card still computes the steps before. The host waits only where it needs
a number: the condition of a loop, the selector of a branch, a number of steps. Whether an index was
out of range is seen at the end, or where a loop with a condition waits anyway.

    scan, while_, choice     the operations
    checkpointed, replay     a loop that stores some of its states, and its backward pass
    BodyRuns                 what they need of a run
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from wengert._engine.control_flow.checkpoint_schedule import (
    OperandGroups,
    blocks_of,
    offsets_of,
    reversal,
    stored_by_count,
)
from wengert._engine.core.spec import Spec
from wengert.errors import GuardError

from .device import Device, number_of
from .host_callbacks import CallbackLog

Step = Callable[[Sequence[Any]], list[Any]]
Visit = Callable[[int, Sequence[Any]], None]
_CHECKPOINTS = ("loop", "slots", "block")


class BodyRuns(Protocol):
    """The run of the program that a loop is part of.

    Attributes
    ----------
    device : Device
    callbacks : CallbackLog
        Where operations that run on the host are noted.
    """

    device: Device
    callbacks: CallbackLog

    def body_run(self, body: Any, sizes: Mapping[str, int]) -> Step:
        """A function that runs the body of a loop or branch once, with arrays of the device."""

    @property
    def status(self) -> Any:
        """Where kernels say that they have failed."""

    def check(self) -> None:
        """Wait, and raise an error if a kernel has failed."""


class _LoopOperands:
    """The operands of a loop, on the device."""

    def __init__(self, run: BodyRuns, operands: Sequence[Any], params: Mapping[str, Any]) -> None:
        device = run.device
        carried, stacked = params["carried"], params.get("stacked", 0)
        self.count = params["length"]
        if params.get("counted"):
            self.count, operands = max(number_of(device, operands[0]), 0), operands[1:]
        given = [device.put(x) for x in operands]
        first = len(given) - carried - stacked
        self.consts, self.carry = given[:first], given[first : first + carried]
        self.xs = given[first + carried :]


class _StepResults:
    """The results of steps, one behind the other."""

    def __init__(self, device: Device, spec: Spec, count: int) -> None:
        self._device, self._spec, self._count = device, spec, count
        self._array: Any = None

    def put(self, k: int, value: Any) -> None:
        """Store the result of a step."""
        if self._array is None:
            self._array = self._device.empty((self._count, *value.shape), self._spec.dtype)
        self._array[k] = value

    def array(self) -> Any:
        """The results; without steps there are none."""
        if self._array is None:
            shape = [n if type(n) is int else 0 for n in self._spec.shape]
            self._array = self._device.empty((self._count, *shape), self._spec.dtype)
        return self._array


def scan(
    run: BodyRuns,
    operands: Sequence[Any],
    params: Mapping[str, Any],
    sizes: Mapping[str, int],
    visit: Visit | None = None,
) -> tuple[Any, ...]:
    """A loop of known length; `visit` is called before each step with its number and the carry."""
    body, carried, device = params["body"], params["carried"], run.device
    loop = _LoopOperands(run, operands, params)
    step, carry = run.body_run(body, sizes), loop.carry
    stacks = [_StepResults(device, n.spec, loop.count) for n in body.outputs[carried:]]
    for i in range(loop.count):
        k = loop.count - 1 - i if params["reverse"] else i
        if visit is not None:
            visit(i, carry)
        out = step([*loop.consts, *carry, *[device.contiguous(x[k]) for x in loop.xs]])
        carry = out[:carried]
        for stack, value in zip(stacks, out[carried:], strict=True):
            stack.put(k, value)
    return (*carry, *[stack.array() for stack in stacks])


def while_(
    run: BodyRuns,
    operands: Sequence[Any],
    params: Mapping[str, Any],
    sizes: Mapping[str, int],
    visit: Visit | None = None,
) -> tuple[Any, ...]:
    """A loop with a condition, for which the host waits in each step."""
    body, carried, limit, device = params["body"], params["carried"], params["limit"], run.device
    loop = _LoopOperands(run, operands, {**params, "length": None})
    goes_on, step = run.body_run(params["condition"], sizes), run.body_run(body, sizes)
    carry, count = loop.carry, 0
    results: list[list[Any]] = [[] for _ in body.outputs[carried:]]
    while number_of(device, goes_on([*loop.consts, *carry])[0]):
        run.check()
        if limit is not None and count >= limit:
            raise GuardError(
                f"a while_loop did not end within max_steps={limit} steps. Allow more steps, "
                "or check why its condition stays true."
            )
        if visit is not None:
            visit(count, carry)
        out = step([*loop.consts, *carry])
        carry = out[:carried]
        for values, value in zip(results, out[carried:], strict=True):
            values.append(value)
        count += 1
    stacks = []
    for values, node in zip(results, body.outputs[carried:], strict=True):
        stack = _StepResults(device, node.spec, count)
        stacks.append(np.stack(values) if values else stack.array())
    return (*carry, np.int64(count), *stacks)


def choice(
    run: BodyRuns, operands: Sequence[Any], params: Mapping[str, Any], sizes: Mapping[str, int]
) -> tuple[Any, ...]:
    """One of several bodies."""
    which, branches = number_of(run.device, operands[0]), params["branches"]
    body = branches[min(max(which, 0), len(branches) - 1)]
    return tuple(run.body_run(body, sizes)([run.device.put(x) for x in operands[1:]]))


# ---- checkpointed loops --------------------------------------------------------------------------


def checkpointed(
    run: BodyRuns, operands: Sequence[Any], params: Mapping[str, Any], sizes: Mapping[str, int]
) -> tuple[Any, ...]:
    """A loop that stores some of its states (control_flow/checkpointed_loop.py)."""
    device, slots, block = run.device, params["slots"], params["block"]
    plain = {k: x for k, x in params.items() if k not in _CHECKPOINTS}
    is_scan = params["loop"] == "scan"
    loop = _LoopOperands(run, operands, params)
    stored = stored_by_count(loop.count, slots, block) if is_scan else None
    snapshots = _Snapshots(device, loop.carry, (slots, block), stored)
    if is_scan:
        return (*scan(run, operands, plain, sizes, snapshots.visit), snapshots.rows)
    return (*while_(run, operands, plain, sizes, snapshots.visit), snapshots.rows)


class _Snapshots:
    """The states of one run, as bytes on the device."""

    def __init__(
        self,
        device: Device,
        carry: Sequence[Any],
        sizes: tuple[int, int],
        stored: Sequence[int] | None,
    ) -> None:
        slots, self.distance = sizes
        self.device, self.stored, self.count = device, stored, 0
        self.offsets: Any = offsets_of([Spec(x.shape, x.dtype) for x in carry])
        size: Any = self.offsets[-1]
        self.rows = device.empty((slots, size), np.dtype(np.uint8))
        self.rows[...] = 0

    def visit(self, k: int, carry: Sequence[Any]) -> None:
        """Store the state before a step, if the schedule requires it."""
        if self.stored is None:
            if k == self.count * self.distance and self.count == len(self.rows):
                self.count = blocks_of(self.count, 2)
                self.rows[: self.count] = self.rows[::2].copy()
                self.distance *= 2
            if k != self.count * self.distance:
                return
        elif self.count == len(self.stored) or k != self.stored[self.count]:
            return
        for x, start in zip(carry, self.offsets, strict=False):
            if x.size:
                data = self.device.contiguous(x).reshape(-1).view(np.uint8)
                self.rows[self.count, start : start + data.size] = data
        self.count += 1


def replay(
    run: BodyRuns, operands: Sequence[Any], params: Mapping[str, Any], sizes: Mapping[str, int]
) -> tuple[Any, ...]:
    """The backward pass of a checkpointed loop (control_flow/checkpointed_loop.py)."""
    device = run.device
    parts = OperandGroups([*operands], params)
    count = params["length"]
    if params["counted"]:
        count = max(number_of(device, parts.count[0]), 0)
    bodies = [run.body_run(params[k], sizes) for k in ("step", "keep", "back")]
    put: Any = device.put
    groups = [list(map(put, x)) for x in (parts.consts, parts.more, parts.xs, parts.rows)]
    replayed = _Replay(device, params, count, bodies, groups)
    carried = replayed.run(list(map(put, parts.carry)), list(map(put, parts.starts)))
    return (*carried, *[stack.array() for stack in replayed.stacks])


class _Replay:
    """The backward pass: steps are computed again, and reversed."""

    def __init__(
        self,
        device: Device,
        params: Mapping[str, Any],
        count: int,
        bodies: Sequence[Step],
        groups: Sequence[Sequence[Any]],
    ) -> None:
        self.device, self.params, self.count = device, params, count
        self.step, self.keep, self.back = bodies
        self.consts, self.more, self.xs, self.rows = groups
        outs = [n.spec for n in params["back"].outputs]
        self.stacks = [_StepResults(device, s, count) for s in outs[params["pulled"] :]]

    def _at(self, arrays: Sequence[Any], k: int) -> list[Any]:
        return [self.device.contiguous(x[k]) for x in arrays]

    def _row(self, k: int) -> int:
        return self.count - 1 - k if self.params["reverse"] else k

    def run(self, start: list[Any], cotangents: list[Any]) -> list[Any]:
        """The carried cotangents, from the carry before the first step."""
        carried, states = self.params["carried"], [start]
        for action in reversal(self.count, self.params["slots"], self.params["block"]):
            del states[action.slot + 1 :]
            state = states[action.slot]
            middle = action.begin + action.steps
            for k in range(action.begin, middle):
                state = self.step([*self.consts, *state, *self._at(self.xs, self._row(k))])
            if not action.backwards:
                states.append(state)
                continue
            residuals = []
            for k in range(middle, middle + action.backwards):
                out = self.keep([*self.consts, *state, *self._at(self.xs, self._row(k))])
                state = out[:carried]
                residuals.append(out[carried:])
            for k in reversed(range(middle, middle + action.backwards)):
                cotangents = self._reversed(self._row(k), cotangents, residuals.pop())
        return cotangents

    def _reversed(self, row: int, cotangents: list[Any], residuals: list[Any]) -> list[Any]:
        pulled = self.params["pulled"]
        xs = self._at([self.xs[k] for k in self.params["read"]], row)
        cots = self._at(self.rows, row)
        results = self.back([*self.consts, *self.more, *cotangents, *xs, *residuals, *cots])
        for stack, value in zip(self.stacks, results[pulled:], strict=True):
            stack.put(row, value)
        return results[:pulled]
