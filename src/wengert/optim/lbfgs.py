"""L-BFGS: the limited-memory quasi-Newton method, for deterministic losses.

The quasi-Newton method of limited memory: the product of the inverse Hessian and the gradient by
the two-loop recursion over pairs (s, y) of changes in position and gradient, and a search along it
for a point that satisfies Wolfe's strong conditions (SciPy's).  It needs the loss as a function, a
`closure`, as it looks at several points in each step.  For functions of arrays, and other methods,
see `minimize`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from wengert._engine.core.handle import value_of
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.recording import current_trace, enable_grad, no_grad

from ..errors import ArgumentError, StructureError, at, user_line
from .optimizer import Optimizer, Options, require

Vector = np.ndarray[Any, Any]
SEARCHES = ("strong_wolfe", None)
optimize = LazyModule("scipy.optimize")


class LBFGS(Optimizer):
    """The quasi-Newton method of Broyden, Fletcher, Goldfarb and Shanno, with limited memory.

    Parameters
    ----------
    params : iterable of Tensor
        All in one group: the direction mixes all of them.
    lr : float or schedule, default 1
        The length of a step without a search along the line; where a search begins.
    max_iter : int, default 20
        Iterations in one `step`.
    max_eval : int, optional
        Evaluations of the closure in one `step`; by default ``1.25 * max_iter``.
    tolerance_grad : float, default 1e-7
        Stop where no element of the gradient is larger.
    tolerance_change : float, default 1e-9
        Stop where neither the loss nor any parameter changes by more.
    history_size : int, default 10
        Pairs kept: 2 * history_size * (number of elements) numbers of memory.
    line_search_fn : {"strong_wolfe", None}, default "strong_wolfe"
        How the length of a step is found; None takes `lr`. (PyTorch's default is None, with which
        a step can be far too long.)

    Raises
    ------
    ArgumentError
        An option outside its range, several groups, or an unknown search.

    References
    ----------
    .. [1] J. Nocedal and S. Wright, "Numerical Optimization", 2nd ed., 2006, algorithm 7.4.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import optim
    >>> p = wg.tensor([-1.2, 1.0], requires_grad=True)
    >>> optimizer = optim.LBFGS([p], max_iter=50)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> first = optimizer.step(closure)
    >>> bool(np.allclose(p.numpy(), 1.0, atol=1e-6))
    True
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 10,
        line_search_fn: str | None = "strong_wolfe",
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            max_iter=max_iter,
            max_eval=max_eval,
            tolerance_grad=tolerance_grad,
            tolerance_change=tolerance_change,
            history_size=history_size,
            line_search_fn=line_search_fn,
        )
        self._memory = Memory()

    def add_param_group(self, group: Any) -> None:
        """Only one group: the direction mixes all parameters."""
        if self.param_groups:
            raise ArgumentError(
                "LBFGS was given several groups of parameters, but its direction mixes all of "
                f"them. Pass them in one{at(user_line())}."
            )
        super().add_param_group(group)

    def check(self, options: Options) -> None:
        """Refuse options outside their range."""
        super().check(options)
        for name in ("max_iter", "history_size"):
            require(options, name, lambda n: n >= 1, "at least 1", self)
        for name in ("tolerance_grad", "tolerance_change"):
            require(options, name, lambda x: x >= 0, "at least 0", self)
        if options["line_search_fn"] not in SEARCHES:
            raise ArgumentError(
                f"LBFGS(line_search_fn={options['line_search_fn']!r}): it is one of {SEARCHES}. "
                f"Choose one{at(user_line())}."
            )

    # ---- stepping ------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Up to `max_iter` iterations.

        Parameters
        ----------
        closure : callable
            Forgets the gradients, computes the loss, calls ``backward()`` and returns the loss. It
            may be compiled (`wengert.jit`).

        Returns
        -------
        Tensor or array
            The loss before the first iteration.

        Raises
        ------
        StructureError
            No closure, or a call while a graph is built: the number of evaluations is not known
            before they are done.
        """
        if closure is None or current_trace() is not None:
            raise StructureError(
                "LBFGS.step looks at several points, so it needs the loss as a function, and "
                "cannot be a line of a compiled one. Call step(closure) from plain Python; the "
                f"closure may be compiled{at(user_line())}."
            )
        group = self.param_groups[0]
        walk = _FlatParameters(self, closure, group)
        first = walk.loss
        for _ in range(group["max_iter"]):
            if not self._iterate(walk, group):
                break
        group.advance()
        return first

    def _iterate(self, walk: _FlatParameters, group: Options) -> bool:
        """One iteration; whether another one makes sense."""
        x, value, slope = walk.x, walk.value, walk.slope
        if not math.isfinite(value) or np.max(np.abs(slope)) <= group["tolerance_grad"]:
            return False
        direction = self._memory.direction(slope)
        if direction @ slope >= 0:  # the curvature that was seen is not that of here
            self._memory = Memory()
            direction = -slope
        length = float(group["lr"])
        if not self._memory.pairs:
            length = min(1.0, 1.0 / float(np.sum(np.abs(slope)))) * length
        if group["line_search_fn"] is None:
            walk.go(x + length * direction)
        elif not self._search(walk, direction, length):
            return False
        self._memory.add(walk.x - x, walk.slope - slope, group["history_size"])
        moved = np.max(np.abs(walk.x - x))
        small = group["tolerance_change"]
        return walk.left > 0 and moved > small and abs(walk.value - value) > small

    def _search(self, walk: _FlatParameters, direction: Vector, length: float) -> bool:
        """Go along the direction; False, and no step, if no point is better."""
        x, value, slope = walk.x, walk.value, walk.slope
        if self._memory.pairs:
            length = 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the result says that it found nothing
            found = optimize.line_search(
                lambda there: walk.at(there)[0],
                lambda there: walk.at(there)[1],
                x,
                direction * length,
                slope,
                value,
                maxiter=max(walk.left, 1),
            )[0]
        steps = [found] if found is not None else [0.5**k for k in range(1, 30)]
        for step in steps:
            walk.go(x + step * length * direction)
            if math.isfinite(walk.value) and walk.value < value:
                return True
        walk.go(x)
        return False

    # ---- saving and loading --------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Options, and the pairs in memory."""
        pairs = [(s.copy(), y.copy()) for s, y in self._memory.pairs]
        return {**super().state_dict(), "pairs": pairs}

    def load_state_dict(self, state: Any) -> None:
        """Go on where another one stood."""
        super().load_state_dict(state)
        self._memory = Memory([(np.array(s), np.array(y)) for s, y in state["pairs"]])

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_memory": self._memory}


class Memory:
    """Pairs of changes in position and gradient, and the direction that they suggest."""

    def __init__(self, pairs: list[tuple[Vector, Vector]] | None = None) -> None:
        self.pairs = pairs or []

    def add(self, s: Vector, y: Vector, most: int) -> None:
        """Keep a pair if the function curves upwards along it."""
        if s @ y > 1e-10 * (y @ y):
            self.pairs = [*self.pairs, (s, y)][-most:]

    def direction(self, slope: Vector) -> Vector:
        """Minus the inverse Hessian times the gradient [1, algorithm 7.4]."""
        q, factors = -slope, []
        for s, y in reversed(self.pairs):
            factor = (s @ q) / (y @ s)
            factors.append(factor)
            q = q - factor * y
        if self.pairs:
            s, y = self.pairs[-1]
            q = q * ((s @ y) / (y @ y))
        for (s, y), factor in zip(self.pairs, reversed(factors), strict=True):
            q = q + (factor - (y @ q) / (y @ s)) * s
        return q


class _FlatParameters:
    """Where the parameters are, in one vector of float64, and what the closure says there."""

    def __init__(self, optimizer: Optimizer, closure: Callable[[], Any], group: Options) -> None:
        self.parameters = [p for p in optimizer.parameters() if p.requires_grad]
        self.closure = closure
        self.left = group["max_eval"] or math.ceil(1.25 * group["max_iter"])
        self.seen: dict[bytes, tuple[float, Vector, Any]] = {}
        self.x = np.concatenate([np.ravel(value_of(p)).astype(float) for p in self.parameters])
        self.value, self.slope, self.loss = self._evaluate(self.x)

    def at(self, x: Vector) -> tuple[float, Vector, Any]:
        """Loss and gradient at a point, evaluated once."""
        key = x.tobytes()
        if key not in self.seen:
            self.seen = {key: self._evaluate(x)} | dict(list(self.seen.items())[-3:])
        return self.seen[key]

    def go(self, x: Vector) -> None:
        """Move to a point."""
        self.value, self.slope, _ = self.at(x)
        self._place(x)
        self.x = x

    def _place(self, x: Vector) -> None:
        begin = 0
        with no_grad():
            for p in self.parameters:
                values = x[begin : begin + p.size].reshape(p.shape)
                p.data = values.astype(p.dtype)
                begin += p.size

    def _evaluate(self, x: Vector) -> tuple[float, Vector, Any]:
        self.left -= 1
        self._place(x)
        with enable_grad():
            loss = self.closure()
        slopes = [
            np.zeros(p.size) if p.grad is None else np.ravel(value_of(p.grad)).astype(float)
            for p in self.parameters
        ]
        return float(value_of(loss)), np.concatenate(slopes), loss
