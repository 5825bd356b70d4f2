"""Data-parallel training: what the processes of `fit(comm=...)` do together.

Each process computes loss and gradient of its part of a batch; their weighted sums are those of the
whole batch, and all processes make the same update with the same bits.  What happens in a step
(sums of gradients, running statistics, losses and figures) is part of the compiled step.  Between
steps the processes agree on decisions (to stop, to save) by messages of Python objects.

    together     the processes of a communicator, if there are several
    ModelMessages    messages of the model itself, in their order
    Processes    the processes of a training run
    parts_of     the part of a batch that a process takes
    Elsewhere    what a process raises if another one has found a NaN
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert import distributed
from wengert import numpy as wnp
from wengert._engine.core.handle import Handle, shape_of, value_of, wrap
from wengert._engine.core.message_order import advance, current
from wengert._engine.core.pytree import flatten
from wengert._engine.core.pytree import paths as pytree_paths
from wengert._engine.core.recording import no_grad
from wengert._engine.ops.messages import joined, tied
from wengert.data.collate import BatchPart, bounds_of
from wengert.data.dataset import tuple_like
from wengert.distributed import agreement, buckets
from wengert.distributed.communicators import communicator_of
from wengert.errors import ArgumentError, NotFiniteError, ShapeError, at, user_line
from wengert.optim import EMA, Optimizer

from ..module import Module
from ..parameter import write
from .batch_iteration import SHARE, size_of
from .training_state import diverge, put_random_states, values_of

_SIZES = 4  # the length of the weights of a part


class Elsewhere(NotFiniteError):
    """Another process has found the first NaN, while steps were repeated."""


class ModelMessages:
    """The messages of a model in a traced step: before those of its backward pass, then others.

    Eagerly messages are sent as the program runs.
    """

    def __init__(self) -> None:
        latest = current()
        self._before = None if latest is None else latest.node
        self._were_sent = False

    def before_backward(self, loss: Any) -> Any:
        """The loss, whose backward pass sends its messages after those of the model."""
        latest = current()
        self._were_sent = latest is not None and latest.node is not self._before
        if latest is None or not self._were_sent:
            return loss
        return tied(loss, wrap(latest.node))

    def after_backward(self, owners: Sequence[Any]) -> None:
        """Let messages after this wait for all gradients."""
        latest = current()
        if latest is not None and self._were_sent:
            found = [value_of(p.grad) for p in owners if p.grad is not None]
            advance(joined(wrap(latest.node), *found))


class Processes:
    """The processes of a training run.

    Parameters
    ----------
    comm : Communicator
    bucket_bytes : int
        Gradients are sent in messages of at most this size.

    Attributes
    ----------
    rank, size : int
    """

    def __init__(self, comm: Any, bucket_bytes: int) -> None:
        self.comm = communicator_of(comm)
        self.bucket_bytes = buckets.bucket_bytes_of(bucket_bytes, "fit")
        self.rank, self.size = self.comm.rank, self.comm.size
        self._repeats = False  # while steps are repeated to find a NaN
        self._has_met = False  # whether this process has passed `meet` in the repeated step

    # ---- random numbers ------------------------------------------------------------------------

    def take_random(self, state: Mapping[str, Any], model: Module, more: Mapping[str, Any]) -> None:
        """Random numbers of this process, from a checkpoint or derived from those of process 0."""
        saved = state.get("processes")
        if saved is not None and len(saved) == self.size:
            put_random_states(saved[self.rank], model, more)
        else:
            diverge(model, more, self.rank)

    # ---- batches -------------------------------------------------------------------------------

    def part(self, batch: Any, flag: bool = False) -> tuple[Any, np.ndarray[Any, Any]]:
        """The part of this process of a batch, and its weights.

        A process without samples takes the whole batch with weight zero, so that all processes run
        the same program.

        Parameters
        ----------
        batch : pytree or BatchPart
        flag : bool
            Whether this process wants the training to stop.

        Returns
        -------
        own : pytree
        weights : ndarray
            The number of samples of the part, their fraction of the batch, `flag`, and the size of
            the part in bytes.
        """
        if isinstance(batch, BatchPart):
            own, count, total = batch
        else:
            total = size_of(batch)
            start, stop = bounds_of(total, self.rank, self.size)
            count = stop - start
            own = batch if count in (0, total) else parts_of(batch, total, start, stop)
        size = sum(x.nbytes for x in flatten(own)[0] if isinstance(x, np.ndarray))
        return own, np.array([count, count / total, flag, size], np.float64)

    @property
    def place(self) -> tuple[int, int]:
        """The rank of this process, and the number of processes."""
        return self.rank, self.size

    def total(self, batch: Any) -> int:
        """The number of samples of a batch of all processes."""
        return batch.total if isinstance(batch, BatchPart) else size_of(batch)

    # ---- within a step -------------------------------------------------------------------------

    def messages(self) -> ModelMessages:
        """The order of the messages of a model."""
        return ModelMessages()

    def add_gradients(self, owners: Sequence[Any]) -> None:
        """Sum the gradients of all processes; each process has the sums."""
        having = [p for p in owners if p.grad is not None]
        sums = self._sums([value_of(p.grad) for p in having])
        for p, total in zip(having, sums, strict=True):
            p.grad = total

    def _sums(self, arrays: Sequence[Any]) -> list[Any]:
        with no_grad():
            return buckets.sums(arrays, self.comm, self.bucket_bytes)

    def average(self, changed: Sequence[Any], weights: Any) -> None:
        """Replace floating-point buffers by their averages, weighted by numbers of samples."""
        floating = [b for b in changed if b.dtype.kind in "fc"]
        with no_grad():
            own = [value_of(b) for b in floating]
            shares = [x * weights[SHARE].astype(x.real.dtype) for x in own]
            for b, mean in zip(floating, self._sums(shares), strict=True):
                write(b, mean)

    def figures(
        self, loss: Any, figures: Mapping[str, Any], weights: Any
    ) -> tuple[Any, dict[str, Any], Any]:
        """Loss and figures of the whole batch, and the sums of the weights."""
        with no_grad():
            names, share = sorted(figures), weights[SHARE]
            values = [value_of(x) for x in (loss, *(figures[name] for name in names))]
            numbers = [wnp.asarray(x).astype(np.float64) for x in values]
            own = [wnp.where(share > 0.0, x * share, 0.0) for x in numbers]
            sent = wnp.concatenate([weights, wnp.stack(own)])
            sums = distributed.allreduce(sent, "sum", self.comm)
        means = {name: sums[_SIZES + 1 + names.index(name)] for name in figures}
        return sums[_SIZES], means, sums[:_SIZES]

    # ---- repeated steps ------------------------------------------------------------------------

    def repeated(self, act: Callable[..., Any]) -> Callable[..., Any]:
        """A step for `StepReplay.find`: it ends in all processes if one of them finds a NaN."""

        def step(*arguments: Any) -> None:
            self._repeats, self._has_met = True, False
            try:
                act(*arguments)
            except NotFiniteError:
                if not self._has_met:
                    self.meet(True)
                raise
            finally:
                self._repeats = False

        return step

    def meet(self, failed: bool = False) -> None:
        """In a repeated step: raise if another process has found a NaN in its part of the batch.

        After it all processes compute the same.
        """
        if not self._repeats:
            return
        self._has_met = True
        if agreement.sums_of([failed], self.comm)[0] and not failed:
            raise Elsewhere("")

    # ---- between steps -------------------------------------------------------------------------

    def check_sizes(self, count: float, total: int) -> None:
        """Raise unless the parts of all processes, with `count` samples, are the whole data.

        Raises
        ------
        ShapeError
            The data of this process have `total` samples.
        """
        if int(count) != total:
            raise ShapeError(
                f"fit(comm=...): process {self.rank} has {total} samples, but the parts of all "
                f"processes have {int(count)}. Give the same data, batch size and order (rng=) to "
                f"all processes{at(user_line())}."
            )

    def means(self, figures: Mapping[str, float], own: int, total: int) -> dict[str, float]:
        """Means of figures over all processes, weighted by numbers of samples."""
        if not figures:
            return {}
        sums = agreement.sums_of([v * own if own else 0.0 for v in figures.values()], self.comm)
        return {name: float(s) / total for name, s in zip(figures, sums, strict=True)}

    def totals(
        self, sums: Mapping[str, tuple[float, int]], seen: int
    ) -> dict[str, tuple[float, int]]:
        """Sums of figures and weights of all processes, of `seen` samples in all."""
        flat = agreement.sums_of([x for pair in sums.values() for x in pair], self.comm)
        self.check_sizes(flat[1], seen)
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return {n: (float(s), int(w)) for n, (s, w) in zip(sums, pairs, strict=True)}

    def first_of(self, reasons: str) -> str:
        """The text of the first process that has one; empty if none has."""
        if not agreement.sums_of([bool(reasons)], self.comm)[0]:
            return ""
        return next(filter(None, agreement.from_all(reasons, self.comm)), "")

    def located(self, text: str) -> str:
        """As `first_of`, with the rank of the process."""
        return self.first_of(f"Process {self.rank}: {text}" if text else "")

    def from_first(self, x: Any) -> Any:
        """An object of process 0."""
        return agreement.from_first(x, self.comm)

    def from_all(self, x: Any) -> list[Any]:
        """The objects of all processes."""
        return agreement.from_all(x, self.comm)

    def in_first(self, run: Callable[[], Any]) -> Any:
        """What a function returns or raises in process 0."""
        return agreement.in_first(run, self.comm)

    def left(self, error: SystemExit) -> None:
        """End all processes if this one leaves the training by `sys.exit` with an error.

        Other exceptions end them when the program ends.
        """
        if error.code:
            agreement.end_all(f"ended with sys.exit({error.code!r})", self.comm)

    # ---- equality ------------------------------------------------------------------------------

    def check_batch(self, batch: Any, what: str) -> None:
        """Raise unless a batch is the same in all processes."""
        leaves = {f"array {k}": value_of(x) for k, x in enumerate(flatten(batch)[0])}
        remedy = "Give the same data, batch size and order (rng=) to all processes"
        agreement.require_equal(leaves, f"the batches of the {what}", remedy, self.comm)

    def settle(self, model: Module, optimizer: Optimizer, ema: EMA | None) -> None:
        """Take buffers that are not averaged from process 0, and check that all else is equal.

        Raises
        ------
        CommunicationError
            Parameters or the state of the optimizer differ.
        """
        others = [b for _, b in model.named_buffers() if b.dtype.kind not in "fc"]
        values = self.from_first([np.array(value_of(b)) for b in others])
        for b, value in zip(others, values, strict=True):
            b.data = value
        state = values_of(model, optimizer, ema)
        leaves, paths = flatten(state)[0], pytree_paths(state)
        agreement.require_equal(
            dict(zip(paths, leaves, strict=True)),
            "parameters, buffers and optimizers",
            "Change them by operations on values that are the same in all processes only, or set "
            "them in process 0 before fit, which begins with its values",
            self.comm,
        )


def together(comm: Any, bucket_bytes: int = buckets.BUCKET_BYTES) -> Processes | None:
    """The processes of a communicator; None if there is only this one."""
    found = Processes(comm, bucket_bytes)
    return found if found.size > 1 else None


def parts_of(batch: Any, total: int, start: int, stop: int) -> Any:
    """Samples `start` to `stop` of a batch of `total` samples.

    Arrays and lists have the samples along their first axis; other values (numbers, strings) are
    for the whole batch.

    Raises
    ------
    ShapeError
        An array has another number of samples.
    ArgumentError
        A value of another type.
    """

    def part(x: Any) -> Any:
        if isinstance(x, np.ndarray | Handle):
            shape = shape_of(x)
            if shape and shape[0] != total:
                raise ShapeError(
                    f"fit(comm=...): a batch of {total} samples has an array of shape {shape}, "
                    "which cannot be divided among the processes. Give arrays with the samples "
                    f"along the first axis{at(user_line())}."
                )
            return x[start:stop] if shape else x  # type: ignore[index]
        if isinstance(x, Mapping):
            return {key: part(inner) for key, inner in x.items()}
        if isinstance(x, tuple):
            return tuple_like(x, [part(inner) for inner in x])
        if isinstance(x, list):
            has_fields = all(isinstance(f, np.ndarray | Handle | Mapping | tuple) for f in x)
            if has_fields:
                return [part(inner) for inner in x]
            if len(x) == total:  # of items that cannot be stacked
                return x[start:stop]
        elif x is None or isinstance(x, np.generic | bool | int | float | complex | str):
            return x
        raise ArgumentError(
            f"fit(comm=...): a batch of {total} samples has a {type(x).__name__}, which cannot be "
            "divided among the processes. Give arrays, and tuples, dicts and lists of them"
            f"{at(user_line())}."
        )

    return part(batch)
