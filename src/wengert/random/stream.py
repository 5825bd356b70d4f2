"""Stream: stateful random numbers in eager mode, in traced functions and in graphs built by hand.

A `Stream` is a key and a position, held by a variable.  Each draw uses the next position, so the
numbers depend only on the seed and on the number of previous draws, not on threads or on the order
in which the nodes of a graph run.

In a traced function the graph updates the position: each run draws new numbers, the same as the
eager function.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, value_of
from wengert._engine.core.node import is_variable
from wengert._engine.core.recording import current_trace
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.thread_state import lock
from wengert._engine.graphs.built_by_hand import variable
from wengert._engine.ops.random import bits
from wengert._engine.ops.random import bits as ops

from ..errors import ArgumentError, DtypeError, ShapeError, at, user_line
from .keys import as_dtype, as_floating, as_shape
from .keys import key as key_of

_STEP = np.array([0, 0, 1], np.uint64)

__all__ = ["Stream"]


class Stream:
    """A stream of random numbers.

    Parameters
    ----------
    seed : int or sequence of int
        Seed of the key.
    name : str
        Name of the variable that holds the state.

    Attributes
    ----------
    state : Tensor
        A variable, uint64[3]: the two words of the key, and the position that draws of graphs have
        reached. `state_dict` includes eager draws too.

    Notes
    -----
    The numbers are those of NumPy's `numpy.random.Philox`. Drawing within `wengert.vmap` raises an
    error, because it is ambiguous whether the items of a batch share numbers: draw outside, one
    array for all items or one with a batch axis.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> stream = wg.random.Stream(0)
    >>> noisy = wg.trace(lambda x: x + stream.normal(x.shape))(wg.spec("n"))
    >>> first, second = noisy(np.zeros(3)), noisy(np.zeros(3))
    >>> bool(np.any(first == second))
    False
    >>> again = wg.random.Stream(0)
    >>> bool(np.all(again.normal(3) == first)), bool(np.all(again.normal(3) == second))
    (True, True)
    """

    def __init__(self, seed: Any, name: str = "random") -> None:
        self.state = variable(np.array([*key_of(seed), 0], np.uint64), name)
        self._drawn = variable(np.array(0, np.uint64), f"{name}, drawn")
        self._lock = lock()

    def uniform(
        self, shape: Any = (), low: Any = 0.0, high: Any = 1.0, dtype: Any = "float64"
    ) -> Any:
        """Samples from the uniform distribution on [low, high).

        Parameters
        ----------
        shape : int or tuple of int
            Lengths, which may be symbolic while a graph is built.
        low, high : float, array_like or Tensor
            Differentiable.
        dtype : float64 or float32

        Returns
        -------
        Tensor
        """
        low, high = _number(low, "low"), _number(high, "high")
        unit = self._draw(ops.uniform, shape, as_floating(dtype))
        return unit if _is_number(low, 0.0) and _is_number(high, 1.0) else low + (high - low) * unit

    def normal(
        self, shape: Any = (), mean: Any = 0.0, deviation: Any = 1.0, dtype: Any = "float64"
    ) -> Any:
        """Samples from the normal distribution, differentiable in mean and standard deviation.

        Parameters
        ----------
        shape : int or tuple of int
        mean, deviation : float, array_like or Tensor
        dtype : float64 or float32

        Returns
        -------
        Tensor
        """
        mean, deviation = _number(mean, "mean"), _number(deviation, "deviation")
        unit = self._draw(ops.normal, shape, as_floating(dtype))
        return (
            unit
            if _is_number(mean, 0.0) and _is_number(deviation, 1.0)
            else mean + deviation * unit
        )

    def integers(self, low: int, high: int, shape: Any = (), dtype: Any = "int64") -> Any:
        """Integers uniformly distributed in [low, high).

        Parameters
        ----------
        low, high : int
        shape : int or tuple of int
        dtype : integer dtype

        Returns
        -------
        Tensor
        """
        kind = as_dtype(dtype)
        low, high = _integer(low, "low"), _integer(high, "high")
        if kind.kind not in "iu":
            raise DtypeError(f"dtype={dtype!r} is not an integer dtype{at(user_line())}.")
        if not low < high:
            raise ArgumentError(
                f"integers: there is no integer in [{low}, {high}){at(user_line())}."
            )
        return self._draw(ops.integers, shape, kind, low=low, high=high)

    def key(self) -> Any:
        """A new key, for the functions of keys (wengert.random).

        Returns
        -------
        ndarray, or Tensor while a graph is built
            uint64[2].

        Examples
        --------
        >>> import wengert as wg
        >>> stream = wg.random.Stream(0)
        >>> x, y = (wg.random.gamma(stream.key(), 2.0) for _ in range(2))
        >>> bool(x == y)
        False
        """
        if current_trace() is not None:
            position = self._advance_in_graph()
            return bits.fold(position[:2], position[2])
        number = self._advance()
        state = np.asarray(value_of(self.state))
        return bits.fold(state[:2], state[2] + np.uint64(number))

    def updates(self) -> dict[Any, Any]:
        """Updates that advance the stream in each run of a graph built by hand.

        Examples
        --------
        >>> import wengert as wg
        >>> stream = wg.random.Stream(0)
        >>> f = wg.computation(stream.normal(), updates=stream.updates())
        >>> f() == f()
        np.False_
        """
        return {self.state: self.state + _STEP * np.uint64(max(1, self._count()))}

    def _draw(self, op: Any, shape: Any, dtype: np.dtype[Any], **options: Any) -> Any:
        lengths = as_shape(shape)
        if current_trace() is not None:
            return op(self._advance_in_graph(), number=0, shape=lengths, dtype=dtype, **options)
        return op(self.state, number=self._advance(), shape=lengths, dtype=dtype, **options)

    def _advance_in_graph(self) -> Any:
        """Key and position of the next draw of a graph, with an update of the position."""
        current = self.state + _STEP * self._drawn
        self.state += _STEP
        return current

    def _advance(self) -> int:
        """Count an eager draw; return its number."""
        with self._lock:
            number = self._count()
            self._drawn.data = np.array(number + 1, np.uint64)
        return number

    def _count(self) -> int:
        return int(value_of(self._drawn))

    def state_dict(self) -> dict[str, Any]:
        """The key and the position, of eager draws and of graphs.

        Examples
        --------
        >>> import wengert as wg
        >>> stream, twin = wg.random.Stream(0), wg.random.Stream(1)
        >>> _ = stream.normal()
        >>> twin.load_state_dict(stream.state_dict())
        >>> bool(stream.normal() == twin.normal())
        True
        """
        return {"state": np.array(value_of(self.state)), "drawn": self._count()}

    def load_state_dict(self, state: Any) -> None:
        """Load what `state_dict` returned."""
        with self._lock:
            self.state.data = np.asarray(state["state"], np.uint64)
            self._drawn.data = np.array(int(state["drawn"]), np.uint64)

    def __repr__(self) -> str:
        return f"<stream of random numbers {self.state.node.name}>"

    def __getstate__(self) -> dict[str, Any]:
        return {"state": self.state, "_drawn": self._drawn}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name, held in (("state", self.state), ("_drawn", self._drawn)):
            if not is_variable(held.node):  # pickled
                setattr(self, name, variable(np.array(held), "random"))
        self._lock = lock()


def _integer(number: Any, what: str) -> int:
    try:
        return operator.index(number)
    except TypeError as error:
        raise ArgumentError(f"{what}={number!r} is not an integer{at(user_line())}.") from error


def _number(x: Any, what: str) -> Any:
    """A number, array, tensor or size, after a check."""
    if isinstance(x, Handle | Dim):
        return x
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ShapeError(f"{what}={x!r}: {error}{at(user_line())}.") from error
    if array.dtype.kind not in "biufc":
        raise DtypeError(f"{what}={x!r} is not a number{at(user_line())}.")
    return x if isinstance(x, int | float) else array


def _is_number(x: Any, number: float) -> bool:
    return not isinstance(x, Handle) and type(x) in (int, float) and x == number
