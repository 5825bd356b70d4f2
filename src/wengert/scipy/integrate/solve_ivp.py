"""Initial value problems: scipy.integrate.solve_ivp, and the steps of a solution in a graph.

    solve_ivp     the solution of a system of ordinary differential equations
    uses_tensors  whether a problem has tensors among its arguments or captured
    LastStep      the `t` or `y` of a solution whose number of steps is not known

Without tensors SciPy's function is called for its methods.  With tensors, and in compiled
functions, RK23, RK45, DOP853, Radau and BDF take the same steps in one loop of machine code; its
derivative is that of these steps.

With LastStep, programs that use the end of a solution, ``sol.y[:, -1]``, need no `t_eval` in
compiled functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
import scipy.integrate
from numpy.lib.mixins import NDArrayOperatorsMixin

from wengert._engine.core import display, pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, is_traced, shape_of, value_of
from wengert._engine.core.recording import no_grad
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, ShapeError, TraceError, at, user_line

from .ivp.events import Event
from .ivp.initial_value import MESSAGES, IvpOptions, solve
from .ivp.methods import NATIVE
from .ivp.observers import Interpolant
from .lsoda import STATIC_OPTIONS, by_lsoda

__all__ = ["solve_ivp", "uses_tensors"]

_OF_SCIPY = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")
_OPTIONS = ("first_step", "max_step", "rtol", "atol", "jac", "progress")
_OURS = {name.lower() for name in NATIVE if name not in _OF_SCIPY}


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Sequence[Any],
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    **options: Any,
) -> Any:
    """Solve an initial value problem, as ``scipy.integrate.solve_ivp``.

    Parameters
    ----------
    fun : callable
        ``fun(t, y, *args)``, the derivative of the state; captured tensors are differentiated.
    t_span : sequence of two numbers
        The ends of the interval, which may be tensors.
    y0 : array_like or Tensor, shape (n,)
        The initial state, real or complex.
    method : str
        'RK45', 'RK23', 'DOP853', 'Radau' or 'BDF', or one of those of `wengert.integrate.solve`.
        'LSODA' is SciPy's own loop with compiled functions, and has no derivative, events or dense
        output with tensors: use 'BDF' or 'Radau' for stiff problems, 'DOP853' for others.
    t_eval : array_like or Tensor, shape (m,), optional
        The times of the result; without it those of the steps. In a graph their number is not
        known, and only the last can be used: ``t[-1]``, ``y[:, -1]``.
    dense_output : bool
        Whether `sol`, the solution as a function of time, is wanted; in eager calls only.
    events : callable or list of callables, optional
        ``event(t, y, *args)`` with the attributes `terminal` and `direction`, as in SciPy.
    vectorized : bool
        Of no effect.
    args : tuple, optional
        Further arguments of `fun` and of the events, which are differentiated.
    first_step, max_step, rtol, atol
        As in SciPy.
    jac : array_like, sparse array or callable, optional
        As in SciPy; for implicit methods. Without it the Jacobian is computed exactly.
    progress : bool or callable
        Whether to show a progress bar; see `wengert.integrate.solve`. Not with 'LSODA'.

    Returns
    -------
    OdeResult
        SciPy's result object. `y` has shape (n, m).

    Raises
    ------
    ArgumentError, ShapeError, DtypeError
        An argument cannot be.
    TraceError
        In a graph, without `t_eval`, other steps than the last are used.
    NotDifferentiableError
        A derivative of 'LSODA' is needed.

    Notes
    -----
    The derivative is that of the steps that were taken, whose sizes are constants: it is exact for
    the numbers that were computed. A gradient costs 2 to 3 solutions. With respect to the ends of
    the interval it is that of the exact solution, and with respect to the time of an event that of
    its equation. A failed solution ends where it failed; in a graph its other times are NaN, and
    so are derivatives.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.integrate import solve_ivp
    >>> def decayed(k):
    ...     return solve_ivp(lambda t, y: -k * y, (0, 1), [2.0], rtol=1e-9, atol=1e-9).y[0, -1]
    >>> [round(float(x), 6) for x in wg.value_and_grad(decayed)(0.5)]
    [1.213061, -1.213061]
    """
    args = _arguments(args)
    is_ours = isinstance(method, str) and method.lower() in _OURS
    is_ours = is_ours or options.get("progress", False) is not False
    if not is_ours and not uses_tensors(fun, t_span, y0, t_eval, events, args, options):
        return scipy.integrate.solve_ivp(
            fun,
            t_span,
            y0,
            method,
            t_eval,
            dense_output,
            events,
            vectorized,
            args or None,
            **options,
        )
    what = "solve_ivp"
    is_lsoda = isinstance(method, str) and method == "LSODA"
    known = [*_OPTIONS, *(STATIC_OPTIONS if is_lsoda else ())]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise ArgumentError(
            f"{what} with tensors: the option {unknown[0]!r} is not known to method={method!r}"
            f"{at(user_line())}."
        )
    t0, t1 = t_span
    times = None if t_eval is None else _times(t_eval, t0, t1, what)
    if is_lsoda:
        _without_steps(dense_output or events is not None or options.get("progress", False))
        static = {name: options.pop(name) for name in STATIC_OPTIONS if name in options}
        rhs = lambda t, y: converted(fun)(t, y, *args)  # noqa: E731
        return by_lsoda(rhs, t0, t1, y0, _options(method, options, args), static, times)
    save = "dense" if dense_output else "times" if times is not None else "steps"
    many = _events(events, args)
    found = solve(
        lambda t, y: converted(fun)(t, y, *args),
        t0,
        t1,
        y0,
        _options(method, options, args),
        what,
        save,
        times if save == "times" else None,
        many,
    )
    return _result(found, save, times, bool(many) or events is not None)


def _without_steps(is_needed: bool) -> None:
    """Refuse what needs the steps of LSODA."""
    if is_needed:
        raise ArgumentError(
            "solve_ivp: method='LSODA' with tensors has no dense_output, events or progress. Use "
            f"method='BDF', 'Radau', 'RK45' or 'DOP853'{at(user_line())}."
        )


def _options(method: Any, options: dict[str, Any], args: tuple[Any, ...]) -> IvpOptions:
    """The options that are given, with the Jacobian as a function of time and state."""
    given = {k: v for k, v in options.items() if v is not None}
    jac = given.get("jac")
    if jac is not None:
        given["jac"] = lambda t, y: _dense(converted(jac)(t, y, *args) if callable(jac) else jac)
    return IvpOptions(method, ends_in_graphs=True, **given)


def _dense(matrix: Any) -> Any:
    """A matrix that may be a sparse array."""
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def _arguments(args: Any) -> tuple[Any, ...]:
    if args is None:
        return ()
    try:
        return tuple(args)
    except TypeError:
        raise TypeError(
            "Supplied 'args' cannot be unpacked. Please supply `args` as a tuple (e.g. "
            f"`args=({args},)`){at(user_line())}."
        ) from None


def uses_tensors(
    fun: Any, t_span: Any, y0: Any, t_eval: Any, events: Any, args: Any, options: Any
) -> bool:
    """Whether tensors are among the arguments, or captured by the functions."""
    given = [*t_span, y0, t_eval, args, [v for v in options.values() if not callable(v)]]
    if any([isinstance(x, Handle) for x in pytree.flatten(given)[0]]):
        return True
    with no_grad():
        t, y = float(t_span[0]), np.asarray(y0)
        y = y if y.dtype.kind in "fc" else y.astype(float)
        listed = events if isinstance(events, list | tuple) else [events] if events else []
        results = [f(t, y.copy(), *args) for f in (fun, *listed) if callable(f)]
    return any([isinstance(x, Handle) for x in pytree.flatten(results)[0]])


def _times(t_eval: Any, t0: Any, t1: Any, what: str) -> Any:
    """The times of the result, checked as in SciPy."""
    times = as_array(t_eval)
    if len(times.shape) != 1:
        raise ShapeError(f"{what}: `t_eval` must be 1-dimensional{at(user_line())}.")
    if any(map(is_traced, (times, t0, t1))):
        return times * 1.0
    plain = np.asarray(value_of(times), float)
    start, end = float(value_of(t0)), float(value_of(t1))
    if np.any(plain < min(start, end)) or np.any(plain > max(start, end)):
        raise ArgumentError(f"{what}: values in `t_eval` are not within `t_span`{at(user_line())}.")
    steps = np.diff(plain)
    if (end > start and np.any(steps <= 0)) or (end < start and np.any(steps >= 0)):
        raise ArgumentError(f"{what}: values in `t_eval` are not properly sorted{at(user_line())}.")
    return times * 1.0


def _events(events: Any, args: tuple[Any, ...]) -> list[Event]:
    """The events, with SciPy's attributes."""
    if events is None:
        return []
    listed = [events] if callable(events) else list(events)
    found = []
    for event in listed:
        terminal = getattr(event, "terminal", None)
        count = 0 if terminal is None else int(terminal)
        if count != (0 if terminal is None else terminal) or count < 0:
            raise ArgumentError(
                "The `terminal` attribute of each event must be a boolean or positive integer"
                f"{at(user_line())}."
            )
        function = lambda t, y, g=event: converted(g)(t, y, *args)  # noqa: E731
        found.append(Event(function, float(getattr(event, "direction", 0)), count))
    return found


def _result(found: Any, save: str, times: Any, has_events: bool) -> Any:
    """SciPy's result object."""
    outcome = found.outcome
    sol = None
    is_plain = not is_traced(outcome.status)
    if save == "times":
        index, ys = outcome.saved
        ts = times
        if is_plain:
            ts, ys = ts[: int(value_of(index))], ys[: int(value_of(index))]
    elif outcome.saved is None:  # the steps, in a graph
        ts, ys = LastStep(outcome.t, "sol.t"), LastStep(outcome.y, "sol.y")
    else:
        index, ts, ys, *parts = outcome.saved
        count = int(value_of(index))
        ts, ys = ts[:count], ys[:count]
        if save == "dense":
            sol = _Solution(Interpolant(found.method, ts, ys, [x[: count - 1] for x in parts]))
            if times is not None:
                first, last = sorted([float(value_of(ts[0])), float(value_of(ts[-1]))])
                reached = [first <= float(t) <= last for t in value_of(times)]
                ts = as_array(times)[np.array(reached, bool)]
                ys = sol(ts).T
    t_events = y_events = None
    if has_events:
        t_events, y_events = [], []
        for number, ets, eys in outcome.events:
            keep = min(int(value_of(number)), ets.shape[0]) if is_plain else None
            t_events.append(ets[:keep])
            y_events.append(eys[:keep])
    status = outcome.status if not is_plain else int(value_of(outcome.status))
    counts = [n if is_traced(n) else int(value_of(n)) for n in outcome.counts]
    if is_plain and status < -1:
        status = -1
    result = scipy.integrate._ivp.ivp.OdeResult(
        t=ts,
        y=ys if isinstance(ys, LastStep) else ys.T,
        sol=sol,
        t_events=t_events,
        y_events=y_events,
        nfev=counts[0],
        njev=counts[1],
        nlu=counts[2],
        status=status,
        message=MESSAGES[int(value_of(outcome.status))] if is_plain else "",
        success=status >= 0,
    )
    return display.shown_result(result)


class _Solution:
    """`sol` of the result: the solution at a time, of shape (n,), or at times, (n, m)."""

    def __init__(self, interpolant: Interpolant) -> None:
        self.interpolant = interpolant
        self.ts = interpolant.ts

    @property
    def t_min(self) -> Any:
        """The smallest time."""
        return self.interpolant.t_min

    @property
    def t_max(self) -> Any:
        """The largest time."""
        return self.interpolant.t_max

    @property
    def n_segments(self) -> int:
        """The number of steps."""
        return self.interpolant.n_segments

    def __call__(self, t: Any) -> Any:
        """The solution at a time or at times."""
        t = as_array(t)
        if not t.shape:
            return self.interpolant.at(t)
        if len(t.shape) != 1:
            raise ShapeError(f"sol: `t` must be a float or a 1-D array{at(user_line())}.")
        return self.interpolant.states(t).T


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
