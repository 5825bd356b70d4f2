"""EMA: an exponential moving average of the parameters.

    a <- decay a + (1 - decay) p        after each step of the optimizer

The averages are variables, so `update` can be part of a compiled step.  `applied` replaces the
parameters by their averages in a block, for evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, value_of
from wengert._engine.core.recording import current_trace, no_grad
from wengert._engine.graphs.built_by_hand import variable
from wengert.errors import ArgumentError, ShapeError, StructureError, at, user_line

from .state import as_like, write

__all__ = ["EMA"]


class EMA:
    """Exponential moving averages of parameters.

    Parameters
    ----------
    parameters : iterable of Tensor
        Their current values are the initial averages.
    decay : float, default 0.999
        Weight of the old average in an update, in [0, 1).
    warmup : bool, default False
        Use the decay ``min(decay, (1 + n) / (10 + n))`` in update n, which reduces the weight of
        the initial values.

    Raises
    ------
    ArgumentError
        No parameters, something that is not a tensor, or a decay outside its range.

    References
    ----------
    .. [1] B. T. Polyak and A. B. Juditsky, "Acceleration of stochastic approximation by
       averaging", SIAM J. Control Optim. 30 (1992) 838-855, doi:10.1137/0330046.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import optim
    >>> p = wg.tensor([0.0], requires_grad=True)
    >>> average = optim.EMA([p], decay=0.5)
    >>> for value in (4.0, 8.0):
    ...     p.data = np.array([value])
    ...     average.update()
    >>> with average.applied():
    ...     print(p.numpy())
    [5.]
    >>> p.numpy()
    array([8.])
    """

    def __init__(
        self, parameters: Iterable[Any], decay: float = 0.999, warmup: bool = False
    ) -> None:
        given: list[Any] = [parameters] if isinstance(parameters, Handle) else list(parameters)
        self.parameters = given
        if not self.parameters:
            raise ArgumentError(
                f"EMA was given no parameters. Pass model.parameters(){at(user_line())}."
            )
        for p in self.parameters:
            if not isinstance(p, Handle):
                raise ArgumentError(
                    f"EMA was given a {type(p).__name__} as a parameter. Pass model.parameters()"
                    f"{at(user_line())}."
                )
        if not 0 <= decay < 1:
            raise ArgumentError(
                f"EMA(decay={decay}): decay must be in [0, 1). Change it{at(user_line())}."
            )
        self.decay, self.warmup = float(decay), bool(warmup)
        self.averages = [_variable(value_of(p)) for p in self.parameters]
        self.count = _variable(0)

    @no_grad()
    def update(self) -> None:
        """Update the averages with the current parameters."""
        keep: Any = self.decay
        if self.warmup:
            n = value_of(self.count)
            keep = np.minimum(self.decay, (1.0 + n) / (10.0 + n))
        for average, p in zip(self.averages, self.parameters, strict=True):
            a = value_of(average)
            share = as_like(1.0 - keep, a.real) if self.warmup else 1.0 - keep
            write(average, a + share * (value_of(p) - a))
        write(self.count, value_of(self.count) + 1)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Context manager that sets the parameters to their averages, and restores them."""
        if current_trace() is not None:
            raise StructureError(
                "EMA.applied() was called while a graph is built, where parameters have no values "
                f"to replace. Call the compiled function inside the block{at(user_line())}."
            )
        before = [np.array(value_of(p)) for p in self.parameters]
        try:
            self.copy_to()
            yield
        finally:
            for p, value in zip(self.parameters, before, strict=True):
                p.data = value

    def copy_to(self) -> None:
        """Set the parameters to their averages."""
        for p, average in zip(self.parameters, self.averages, strict=True):
            p.data = np.array(value_of(average))

    def state_dict(self) -> dict[str, Any]:
        """The averages, in order, and the number of updates."""
        averages = [np.array(value_of(a)) for a in self.averages]
        return {"averages": averages, "count": int(value_of(self.count))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load what `state_dict` returned.

        Raises
        ------
        StructureError
            The number of parameters differs. Nothing is changed.
        ShapeError
            A shape differs. Nothing is changed.
        """
        averages = list(state["averages"])
        if len(averages) != len(self.averages):
            raise StructureError(
                f"EMA.load_state_dict: the state has {len(averages)} parameters, this EMA has "
                f"{len(self.averages)}. Load the state of the same model{at(user_line())}."
            )
        for number, (mine, other) in enumerate(zip(self.averages, averages, strict=True)):
            if np.shape(other) != mine.shape:
                raise ShapeError(
                    f"EMA.load_state_dict: parameter {number} has shape {np.shape(other)} in the "
                    f"state and {mine.shape} here. Load the state of the same model"
                    f"{at(user_line())}."
                )
        with no_grad():
            for mine, other in zip(self.averages, averages, strict=True):
                write(mine, np.asarray(other))
            write(self.count, np.asarray(int(state["count"])))

    def __repr__(self) -> str:
        count = int(value_of(self.count))
        more = ", warmup=True" if self.warmup else ""
        number = len(self.parameters)
        return f"EMA(decay={self.decay}{more}, {number} parameters, {count} updates)"


def _variable(value: Any) -> Any:
    return variable(np.array(value), "average", differentiable=False)
