"""Calls of Python functions with the values of a run, for debugging: prints and breakpoints.

    DebugCallback    the operation: it takes a token and values, calls, and returns the token
    PendingCall      the function of one node, with the arguments that are not values
    call_in_order    call a function now or, in a graph, whenever the graph runs

In a graph the calls are ordered by tokens, as messages between processes are
(core/message_order.py): loops and branches carry the token, so a call in a loop happens in each
step, and in a branch if it is taken.  Tokens cost a little in all traces, so they are not used
before a call asks for them by `OrderWanted`; a graph without loops lists the calls as its effects.

Summaries of values in logs.

summary     minimum, maximum and mean of the finite elements, counts of NaN and infinity
histogram   counts of the finite elements in bins
entry       a summary with label, spec, time and the user's line
write_line  writes one line of JSON to a file, atomically, or to a logger
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.dispatch import Example, Operation, apply
from wengert._engine.core.handle import Handle, value_of, wrap
from wengert._engine.core.message_order import (
    NO_MESSAGES,
    OrderWanted,
    advance,
    current,
    is_used,
    start_using,
)
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, lookup, register
from wengert._engine.core.op_facts import ACTS, Effects
from wengert._engine.core.recording import current_trace
from wengert._engine.core.spec import Spec, spec_of
from wengert._engine.core.user_functions import original

from .messages import of_batch

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

__all__ = ["PendingCall", "DebugCallback", "call_in_order"]
_VALUES = (Handle, np.ndarray, np.generic)


class PendingCall:
    """A function with nested arguments, of which the arrays are given at each call.

    Parameters
    ----------
    function : callable
        Traced values in its closure and in its defaults are operands too.
    args, kwargs
        The arguments; tensors and arrays in them are its `operands`.
    takes_batch : bool
        Whether the function is called once for a whole batch, with values that broadcast.
    """

    def __init__(
        self, function: Callable[..., Any], args: Any, kwargs: Any, takes_batch: bool = False
    ) -> None:
        while type(function) is functools.partial:
            args, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
            function = function.func
        self._function, self.takes_batch = original(function), takes_batch
        held = _held_values(self._function)
        self._leaves, self._structure = pytree.flatten((held, args, kwargs))
        self._places = [k for k, x in enumerate(self._leaves) if isinstance(x, _VALUES)]
        self.operands = [self._leaves[k] for k in self._places]
        places = set(self._places)
        self._leaves = [None if k in places else original(x) for k, x in enumerate(self._leaves)]

    def __call__(self, values: Sequence[Any]) -> None:
        """Call the function with values in the places of the operands."""
        leaves = list(self._leaves)
        for k, value in zip(self._places, values, strict=True):
            leaves[k] = np.array(value)[()]  # a copy: a run may use the memory again
        held, args, kwargs = pytree.unflatten(self._structure, leaves)
        function = _with_held_values(self._function, held) if held else self._function
        function(*args, **kwargs)


def _held_values(fun: object) -> dict[tuple[str, Any], Any]:
    """The traced values in the closure and in the defaults of a function."""
    if type(fun) is not FunctionType:
        return {}
    held: dict[tuple[str, Any], Any] = {}
    for k, cell in enumerate(fun.__closure__ or ()):
        with contextlib.suppress(ValueError):  # an unbound variable
            held["cell", k] = cell.cell_contents
    held |= {("default", k): x for k, x in enumerate(fun.__defaults__ or ())}
    held |= {("keyword", name): x for name, x in (fun.__kwdefaults__ or {}).items()}
    # A variable has the value of the run whenever it is read.
    return {k: x for k, x in held.items() if isinstance(x, Handle) and x.node.value is None}


def _with_held_values(fun: FunctionType, held: dict[tuple[str, Any], Any]) -> FunctionType:
    """The function with these values in its closure and defaults."""
    cells = list(fun.__closure__ or ())
    defaults = list(fun.__defaults__ or ())
    keyword_defaults = dict(fun.__kwdefaults__ or {})
    for (kind, place), x in held.items():
        if kind == "cell":
            cells[place] = CellType(x)
        elif kind == "default":
            defaults[place] = x
        else:
            keyword_defaults[place] = x
    scope, name = fun.__globals__, fun.__name__
    new = FunctionType(fun.__code__, scope, name, tuple(defaults), tuple(cells))
    new.__kwdefaults__ = keyword_defaults
    vars(new).update(vars(fun))
    return new


class DebugCallback(Operation):
    """A call of a Python function with values, after the calls up to a token.

    Its parameter `batched` says for each axis of `vmap`, the outermost first, which of the values
    have it: the function is called for each element of the batch.
    """

    effects = Effects(side_effect=True, serializable=False)
    host_callback = ACTS
    notes_where = True
    is_users_exception = True
    exception_note = "It was raised in a function that was called at {}."
    oracle = staticmethod(lambda token, *values, **params: NO_MESSAGES)

    def run(self, token: Any, *values: Any, call: PendingCall, batched: Any = ()) -> Any:
        """Call the function, and return the token."""
        if call.takes_batch:
            call([_with_axes(x, axes) for x, *axes in zip(values, *batched, strict=True)])
        else:
            _call_each(call, values, batched)
        return NO_MESSAGES

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Any:
        """The spec of tokens."""
        return Spec((), NO_MESSAGES.dtype)

    def vjp(self, node: Node, t: Any, out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """The cotangent of the token."""
        return [t, *[None] * (len(node.args) - 1)]

    def jvp(self, node: Node, dots: Sequence[Any], out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """The tangent of the token."""
        return dots[0]

    def batched_as_kind(
        self, args: Sequence[Any], batched: Sequence[bool], size: Any, params: dict[str, Any]
    ) -> Any:
        """One operation, which calls for each element."""
        token = of_batch(args[0]) if batched[0] else args[0]
        if any(batched[1:]):
            params = {**params, "batched": (tuple(batched[1:]), *params.get("batched", ()))}
        out = self(token, *args[1:], **params)
        return lookup("broadcast_to")(out, shape=(size,))


def _with_axes(x: Any, axes: Sequence[bool]) -> Any:
    """A value with an axis of length 1 for each axis of the batch that it does not have."""
    return np.expand_dims(x, [k for k, has in enumerate(axes) if not has])


def _call_each(call: PendingCall, values: Sequence[Any], batched: Any) -> None:
    if not batched:
        call(values)
        return
    has_axis, *inner = batched
    size = next(len(x) for x, has in zip(values, has_axis, strict=True) if has)
    for i in range(size):
        row = [x[i] if has else x for x, has in zip(values, has_axis, strict=True)]
        _call_each(call, row, inner)


debug_callback: DebugCallback = register(DebugCallback("debug_callback", DebugCallback.__doc__))


@debug_callback.examples
def _examples(rng: np.random.Generator) -> Iterator[Example]:
    x, y = rng.normal(size=(2, 3)), rng.normal(size=4)
    # A token of integers, which has no derivative that could be compared with differences.
    yield (0, x, y), {"call": PendingCall(_nothing, (x, y), {})}


def _nothing(*args: Array) -> None:
    """A function without effect."""


def call_in_order(call: PendingCall) -> None:
    """Call a function now or, in a graph, whenever the graph runs.

    Raises
    ------
    OrderWanted
        What is traced must be traced again, with a token.
    """
    session, token = current_trace(), current()
    has_traced = any(isinstance(x, Handle) for x in call.operands)
    if session is None or not (has_traced or token is not None or session.general):
        call([value_of(x) for x in call.operands])
    elif token is not None:
        advance(apply(debug_callback, [wrap(token.node), *call.operands], {"call": call}))
    elif session.isolated or not (has_traced or is_used()):
        start_using()
        raise OrderWanted(
            "a call for debugging is in a function whose steps are traced separately from it, "
            "such as a rule of a derivative. Call it outside, or return the values."
        )
    else:
        out = apply(debug_callback, [NO_MESSAGES, *call.operands], {"call": call})
        session.effects.append(out.node)


def summary(x: Operand) -> dict[str, Any]:
    """Summary statistics of an array; for complex arrays, of the magnitudes.

    Returns
    -------
    dict
        ``min``, ``max`` and ``mean`` of the finite elements (None if there are none); ``nan`` and
        ``inf``, the counts of these.
    """
    array = _real(x)
    if array.dtype.kind in "biu":
        finite_values, nans, infinite = array, 0, 0
    else:
        finite = np.isfinite(array)
        nans = int(np.count_nonzero(np.isnan(array)))
        infinite = array.size - int(np.count_nonzero(finite)) - nans
        finite_values = array if nans + infinite == 0 else array[finite]
    if finite_values.size == 0:
        return {"min": None, "max": None, "mean": None, "nan": nans, "inf": infinite}
    with np.errstate(over="ignore"):
        mean = float(np.mean(finite_values, dtype=np.float64))
    return {
        "min": _plain(finite_values.min()),
        "max": _plain(finite_values.max()),
        "mean": mean if np.isfinite(mean) else None,
        "nan": nans,
        "inf": infinite,
    }


def _plain(x: Any) -> Any:
    """A number as JSON can represent it; None if it is outside the range of float64."""
    number = x.item()
    if isinstance(number, int | float):
        return number
    return float(number) if np.isfinite(float(number)) else None


def histogram(x: Any, bins: int) -> dict[str, list[float]]:
    """The histogram of the finite elements; for complex arrays, of the magnitudes.

    Returns
    -------
    dict
        ``counts``, one for each bin, and ``edges``, one more; empty if no element is finite.
    """
    array = _real(x).astype(np.float64)
    values = array[np.isfinite(array)]
    if values.size == 0:
        return {"counts": [], "edges": []}
    low, high = float(values.min()), float(values.max())
    if not np.isfinite(high - low) or high - low < bins * np.spacing(max(abs(low), abs(high))):
        # There are no representable edges in between.
        return {"counts": [values.size], "edges": [low, high]}
    counts, edges = np.histogram(values, bins)
    return {"counts": counts.tolist(), "edges": edges.tolist()}


def _real(x: Operand) -> Any:
    array = np.asarray(x)
    return np.abs(array) if array.dtype.kind == "c" else array


def entry(x: Operand, label: str | None, where: str, bins: int | None = None) -> dict[str, Any]:
    """The log entry of a value."""
    spec = spec_of(x)
    return {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "label": label,
        "dtype": str(spec.dtype),
        "shape": list(spec.shape),
        **summary(x),
        **({} if bins is None else histogram(x, bins)),
        "where": where,
    }


def is_logger(x: object) -> bool:
    """Whether an object is a logger; since Python 3.14 paths too have an attribute ``info``."""
    return callable(getattr(x, "info", None))


def write_line(to: Any, line: dict[str, Any]) -> None:
    """Append a line to a file, given by its path, or send it to a logger.

    A file is opened in append mode and written once, so lines of concurrent threads and processes
    do not interleave.
    """
    text = json.dumps(line, allow_nan=False)
    if is_logger(to):
        to.info(text)
        return
    file = os.open(to, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o666)
    try:
        os.write(file, text.encode() + b"\n")
    finally:
        os.close(file)
