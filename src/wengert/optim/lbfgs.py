"""L-BFGS: the limited-memory quasi-Newton method, for deterministic losses.

The direction is the product of an approximate inverse Hessian and the gradient, computed by the
two-loop recursion over pairs (s, y) of changes of the parameters and of the gradient; SciPy's line
search finds a point that satisfies the strong Wolfe conditions.  A step evaluates the loss several
times, so it takes a function that computes it, a `closure`.  For functions of arrays, and other
methods, see `minimize`.
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
    """The limited-memory quasi-Newton method of Broyden, Fletcher, Goldfarb and Shanno.

    Parameters
    ----------
    params : iterable of Tensor
        All in one group, because the direction depends on all of them.
    lr : float or schedule, default 1
        The initial step length of the line search, or the step length without one.
    max_iter : int, default 20
        Iterations in one `step`.
    max_eval : int, optional
        Evaluations of the closure in one `step`; by default ``1.25 * max_iter``.
    tolerance_grad : float, default 1e-7
        Stop if no element of the gradient is larger in magnitude.
    tolerance_change : float, default 1e-9
        Stop if the loss or all parameters change by no more than this.
    history_size : int, default 10
        Number of pairs kept, of 2 * (number of parameters) numbers each.
    line_search_fn : {"strong_wolfe", None}, default "strong_wolfe"
        The line search; with None the step length is `lr`. (PyTorch's default is None, with which
        steps can be far too long.)

    Raises
    ------
    ArgumentError
        An option outside its range, several groups, or an unknown line search.

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
        """Add the parameter group; there can be only one."""
        if self.param_groups:
            raise ArgumentError(
                "LBFGS was given several parameter groups, but its direction depends on all "
                f"parameters. Pass them in one group{at(user_line())}."
            )
        super().add_param_group(group)

    def check(self, options: Options) -> None:
        """Raise for options outside their range."""
        super().check(options)
        for name in ("max_iter", "history_size"):
            require(options, name, lambda n: n >= 1, "at least 1", self)
        for name in ("tolerance_grad", "tolerance_change"):
            require(options, name, lambda x: x >= 0, "at least 0", self)
        if options["line_search_fn"] not in SEARCHES:
            raise ArgumentError(
                f"LBFGS(line_search_fn={options['line_search_fn']!r}): expected one of {SEARCHES}"
                f"{at(user_line())}."
            )

    # ---- stepping ------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Run up to `max_iter` iterations.

        Parameters
        ----------
        closure : callable
            Resets the gradients, computes the loss, calls ``backward()`` and returns the loss. It
            may be compiled (`wengert.jit`).

        Returns
        -------
        Tensor or array
            The loss before the first iteration.

        Raises
        ------
        StructureError
            No closure, or a call while a graph is built: the number of evaluations depends on
            their values.
        """
        if closure is None or current_trace() is not None:
            raise StructureError(
                "LBFGS.step evaluates the loss several times: it needs a closure, and cannot be "
                "part of a compiled function. Call step(closure) outside jit; the closure may be "
                f"compiled{at(user_line())}."
            )
        group = self.param_groups[0]
        parameters = _FlatParameters(self, closure, group)
        first = parameters.loss
        for _ in range(group["max_iter"]):
            if not self._iterate(parameters, group):
                break
        group.advance()
        return first

    def _iterate(self, parameters: _FlatParameters, group: Options) -> bool:
        """Run one iteration; return whether to continue."""
        x, value, gradient = parameters.x, parameters.value, parameters.gradient
        if not math.isfinite(value) or np.max(np.abs(gradient)) <= group["tolerance_grad"]:
            return False
        direction = self._memory.direction(gradient)
        if direction @ gradient >= 0:  # not a descent direction: the stored curvature is outdated
            self._memory = Memory()
            direction = -gradient
        length = float(group["lr"])
        if not self._memory.pairs:
            length = min(1.0, 1.0 / float(np.sum(np.abs(gradient)))) * length
        if group["line_search_fn"] is None:
            parameters.move_to(x + length * direction)
        elif not self._search(parameters, direction, length):
            return False
        self._memory.add(parameters.x - x, parameters.gradient - gradient, group["history_size"])
        moved = np.max(np.abs(parameters.x - x))
        tolerance = group["tolerance_change"]
        decrease = abs(parameters.value - value)
        return parameters.left > 0 and moved > tolerance and decrease > tolerance

    def _search(self, parameters: _FlatParameters, direction: Vector, length: float) -> bool:
        """Line search along a direction; False, without a step, if no point has a lower loss."""
        x, value, gradient = parameters.x, parameters.value, parameters.gradient
        if self._memory.pairs:
            length = 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a failed search returns None
            found = optimize.line_search(
                lambda point: parameters.at(point)[0],
                lambda point: parameters.at(point)[1],
                x,
                direction * length,
                gradient,
                value,
                maxiter=max(parameters.left, 1),
            )[0]
        steps = [found] if found is not None else [0.5**k for k in range(1, 30)]
        for step in steps:
            parameters.move_to(x + step * length * direction)
            if math.isfinite(parameters.value) and parameters.value < value:
                return True
        parameters.move_to(x)
        return False

    # ---- saving and loading --------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Options and stored pairs."""
        pairs = [(s.copy(), y.copy()) for s, y in self._memory.pairs]
        return {**super().state_dict(), "pairs": pairs}

    def load_state_dict(self, state: Any) -> None:
        """Load what `state_dict` returned."""
        super().load_state_dict(state)
        self._memory = Memory([(np.array(s), np.array(y)) for s, y in state["pairs"]])

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_memory": self._memory}


class Memory:
    """Pairs (s, y) of changes of parameters and gradient, and the direction computed from them."""

    def __init__(self, pairs: list[tuple[Vector, Vector]] | None = None) -> None:
        self.pairs = pairs or []

    def add(self, s: Vector, y: Vector, history_size: int) -> None:
        """Store a pair if the curvature along it is positive."""
        if s @ y > 1e-10 * (y @ y):
            self.pairs = [*self.pairs, (s, y)][-history_size:]

    def direction(self, gradient: Vector) -> Vector:
        """Minus the inverse Hessian times the gradient [1, algorithm 7.4]."""
        q, factors = -gradient, []
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
    """The parameters as one float64 vector, with the loss and gradient of the closure."""

    def __init__(self, optimizer: Optimizer, closure: Callable[[], Any], group: Options) -> None:
        self.parameters = [p for p in optimizer.parameters() if p.requires_grad]
        self.closure = closure
        self.left = group["max_eval"] or math.ceil(1.25 * group["max_iter"])
        self.seen: dict[bytes, tuple[float, Vector, Any]] = {}
        self.x = np.concatenate([np.ravel(value_of(p)).astype(float) for p in self.parameters])
        self.value, self.gradient, self.loss = self._evaluate(self.x)

    def at(self, x: Vector) -> tuple[float, Vector, Any]:
        """Loss and gradient at a point; the last few are cached."""
        key = x.tobytes()
        if key not in self.seen:
            self.seen = {key: self._evaluate(x)} | dict(list(self.seen.items())[-3:])
        return self.seen[key]

    def move_to(self, x: Vector) -> None:
        """Set the parameters to a point."""
        self.value, self.gradient, _ = self.at(x)
        self._assign(x)
        self.x = x

    def _assign(self, x: Vector) -> None:
        begin = 0
        with no_grad():
            for p in self.parameters:
                values = x[begin : begin + p.size].reshape(p.shape)
                p.data = values.astype(p.dtype)
                begin += p.size

    def _evaluate(self, x: Vector) -> tuple[float, Vector, Any]:
        self.left -= 1
        self._assign(x)
        with enable_grad():
            loss = self.closure()
        gradients = [
            np.zeros(p.size) if p.grad is None else np.ravel(value_of(p.grad)).astype(float)
            for p in self.parameters
        ]
        return float(value_of(loss)), np.concatenate(gradients), loss
