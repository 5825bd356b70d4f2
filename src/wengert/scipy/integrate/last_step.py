"""The steps of a solution in a graph, of which only the last is known.

LastStep    the `t` or `y` of a solution whose number of steps is not known

Programs that use the end of a solution, ``sol.y[:, -1]``, so need no `t_eval` in compiled
functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from wengert._engine.core.handle import shape_of
from wengert.errors import TraceError, at, user_line


class LastStep(NDArrayOperatorsMixin):
    """An array with an axis of steps, of which only the last element is known.

    A graph does not know how many steps a solution takes. So ``y[:, -1]``, ``y[0, -1]``,
    ``y[0][-1]``, ``y[:, -1:]``, ``y.T[-1]`` and the rows of `y` are there, and everything else is
    an error.

    Parameters
    ----------
    last : array or Tensor
        The element.
    name : str
        ``sol.y`` or ``sol.t``, for messages.
    is_first : bool
        Whether the steps are the first axis, and not the last one.
    """

    def __init__(self, last: Any, name: str, is_first: bool = False) -> None:
        self._last, self._name, self._is_first = last, name, is_first

    @property
    def T(self) -> LastStep:
        """The transposed array."""
        return LastStep(self._last.T, f"{self._name}.T", not self._is_first)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(shape_of(self._last)) + 1

    def __getitem__(self, index: Any) -> Any:
        """The last element of the axis of steps, or rows of which only this is known."""
        steps, others = self._of_steps(index if isinstance(index, tuple) else (index,))
        if isinstance(steps, slice) and steps == slice(None):
            return LastStep(self._last[others], f"{self._name}[{_spelled(index)}]", self._is_first)
        found = self._last[others] if others else self._last
        if isinstance(steps, slice) and steps == slice(-1, None):
            return found[None] if self._is_first else found[..., None]
        if isinstance(steps, int | np.integer) and not isinstance(steps, bool) and steps == -1:
            return found
        self._refuse(f"{self._name}[{_spelled(index)}]")

    def _of_steps(self, index: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """The index of the axis of steps, and those of the other axes."""
        places = [k for k, x in enumerate(index) if x is Ellipsis]  # x may be an array: no ==
        if len(places) > 1 or any(x is None for x in index):
            self._refuse(f"{self._name}[{_spelled(index)}]")
        missing = (slice(None),) * (self.ndim - len(index) + len(places))
        k, after = (places[0], places[0] + 1) if places else (len(index), len(index))
        index = (*index[:k], *missing, *index[after:])
        if len(index) != self.ndim:
            raise IndexError(f"too many indices for {self._name}, which has {self.ndim} axes")
        return (index[0], index[1:]) if self._is_first else (index[-1], index[:-1])

    def __len__(self) -> int:
        """The number of rows."""
        if self._is_first or self.ndim == 1:
            self._refuse(f"len({self._name})")
        return int(shape_of(self._last)[0])

    def __iter__(self) -> Iterator[LastStep]:
        """The rows."""
        for k in range(len(self)):
            yield self[k]

    def __repr__(self) -> str:
        return f"<{self._name}, of which only the last step is known: {self._last!r}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        self._refuse(f"{self._name}.{name}")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        """An error: the number of steps is not known."""
        self._refuse(self._name)

    def __array_ufunc__(self, ufunc: Any, *args: Any, **kwargs: Any) -> Any:
        """An error: the number of steps is not known."""
        self._refuse(f"{ufunc.__name__} of {self._name}")

    def __array_function__(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """An error: the number of steps is not known."""
        self._refuse(f"{function.__name__} of {self._name}")

    def _refuse(self, what: str) -> NoReturn:
        last = "[-1]" if self._is_first or self.ndim == 1 else "[..., -1]"
        raise TraceError(
            f"solve_ivp: {what}: in a graph the number of steps is not known, and only the last "
            f"one, {self._name}{last}, can be used. Give the times at which the solution is wanted "
            f"(t_eval){at(user_line())}."
        )


def _spelled(index: Any) -> str:
    parts = index if isinstance(index, tuple) else (index,)
    return ", ".join("..." if x is Ellipsis else _slice(x) for x in parts)


def _slice(x: Any) -> str:
    if not isinstance(x, slice):
        return repr(x)
    ends = ["" if e is None else repr(e) for e in (x.start, x.stop)]
    return ":".join([*ends, *([] if x.step is None else [repr(x.step)])])
