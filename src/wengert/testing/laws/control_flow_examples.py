"""Examples: nodes of loops, branches and calls for the laws, with oracles in Python.

The oracle of a node runs the functions of its bodies in Python loops; that of a replay is a
pullback by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.vmap_fallback import row_by_row
from wengert._engine.control_flow.call_rule import CustomRule
from wengert._engine.control_flow.checkpoint_schedule import stored_by_count, stored_by_distance
from wengert._engine.control_flow.checkpointed_loop import checkpointed, plain, replay
from wengert._engine.control_flow.custom import custom_call
from wengert._engine.control_flow.eager_loops import strong
from wengert._engine.control_flow.operations import cond_op, scan_op, sized, switch_op, while_op
from wengert._engine.control_flow.vjp import Request, pulled
from wengert._engine.core.graph_classes import Body, evaluated
from wengert._engine.core.handle import Handle, wrap
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import LOCAL, Dim
from wengert._engine.core.tracing import placeholder

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

Examples = Iterator[tuple[tuple[Any, ...], dict[str, Any]]]

_WRITTEN: dict[Body, Callable[..., Any]] = {}


def _body(f: Callable[..., Any], *operands: Any) -> Body:
    """A function as a body for given operands."""
    with tracing_body():
        specs = [Spec(np.shape(x), np.asarray(x).dtype) for x in operands]
        inputs = [placeholder(s) for s in specs]
        body = Body(*[strong(x) for x in f(*map(wrap, inputs))], inputs=inputs, name=f.__name__)
    _WRITTEN[body] = f
    return body


# ---- loops -------------------------------------------------------------------------------------


def _recurrent(a: Array, s: Array, x: Array) -> Any:
    s = np.tanh(a * s + x)
    return s, s[0] * x


def _squares(a: Array, s: Array, x: Array) -> Any:
    s = a * s * s + x
    return s, s * x


def _plainly(a: Array, s: Array, x: Array) -> Any:
    """Without elementary functions, because states are compared byte by byte."""
    return a * s + x, s[0] * x


def _halving(a: Array, stop: Array, k: Array, s: Array) -> Any:
    return k + 1, s * 0.5 + a


def _counting(a: Array, stop: Array, k: Array, s: Array) -> Any:
    return k + 1, np.sin(s) * a


def _goes_on(a: Array, stop: Array, k: Array, s: Array) -> Any:
    return (k < stop,)


def _scans(rng: np.random.Generator) -> Examples:
    for count in (5, 0):
        a, s, xs = np.float64(0.7), rng.normal(size=2), rng.normal(size=count)
        body = _body(_recurrent, a, s, 0.0)
        for reverse in (False, True):
            params = {"body": body, "carried": 1, "stacked": 1, "length": count}
            yield (a, s, xs), {**params, "reverse": reverse, "counted": False}


def _loops_while(rng: np.random.Generator) -> Examples:
    for stop in (4, 1, 0):
        args = np.float64(1.3), np.int64(stop), np.int64(0), np.float64(rng.uniform(0.3, 1.0))
        body, condition = _body(_counting, *args), _body(_goes_on, *args)
        params = {"body": body, "condition": condition, "carried": 2}
        yield args, {**params, "limit": 10, "length": None}


def _checkpointed_examples(rng: np.random.Generator) -> Examples:
    """Loops that fill all their slots: the content of unused ones is undefined."""
    a, s, xs = 0.7, rng.normal(size=2), rng.normal(size=7)
    body = _body(_plainly, a, s, 0.0)
    params: dict[str, Any] = {"body": body, "carried": 1, "stacked": 1, "length": 7}
    params |= {"reverse": True, "counted": False}
    for slots, block in ((2, 2), (7, 1), (1, 3)):
        yield (np.float64(a), s, xs), {**params, "loop": "scan", "slots": slots, "block": block}
    args = np.float64(1.3), np.int64(7), np.int64(0), np.float64(0.5)
    body, condition = _body(_halving, *args), _body(_goes_on, *args)
    params = {"body": body, "condition": condition, "carried": 2, "limit": None, "length": None}
    for slots, block in ((2, 1), (4, 1), (3, 3)):
        yield args, {**params, "loop": "while", "slots": slots, "block": block}


def _by_hand(args: Sequence[Any], params: dict[Any, Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """The results of a loop and all its states, by a Python loop."""
    f, carried = _WRITTEN[params["body"]], params["carried"]
    stacked = params.get("stacked", 0)
    fixed = len(args) - carried - stacked
    consts, state, xs = args[:fixed], list(args[fixed : fixed + carried]), args[fixed + carried :]
    states: list[Any] = []
    if "condition" in params:
        goes_on = _WRITTEN[params["condition"]]
        while goes_on(*consts, *state)[0]:
            states.append(state)
            state = list(f(*consts, *state))
        return (*state, np.int64(len(states))), states
    rows: list[Any] = []
    order = range(len(xs[0]))
    for k in reversed(order) if params["reverse"] else order:
        states.append(state)
        out = f(*consts, *state, *[x[k] for x in xs])
        state = list(out[:carried])
        rows.append(out[carried:])
    rows = rows[::-1] if params["reverse"] else rows
    kinds = [n.spec for n in params["body"].outputs[carried:]]
    ys = [
        np.array([r[k] for r in rows], s.dtype).reshape(len(rows), *s.shape)
        for k, s in enumerate(kinds)
    ]
    return (*state, *ys), states


def _loop_oracle(*args: Any, **params: Any) -> Any:
    return _by_hand(args, params)[0]


def _checkpointed_oracle(*args: Any, **params: Any) -> Any:
    results, states = _by_hand(args, plain(params))
    rule = stored_by_count if params["loop"] == "scan" else stored_by_distance
    rows = [
        b"".join(np.asarray(x).tobytes() for x in states[k])
        for k in rule(len(states), params["slots"], params["block"])
    ]
    return (*results, np.array([[*row] for row in rows], np.uint8))


def _replays(rng: np.random.Generator) -> Examples:
    """The backward pass of a short recurrence, from the snapshot of its start and from cotangents.

    Further snapshots would fit particular operands only, and laws vary them.
    """
    a, s, xs = np.float64(0.4), np.float64(rng.uniform(0.5, 1.0)), rng.uniform(0.2, 0.6, 7)
    body = _body(_squares, a, s, xs[0])
    bodies = pulled(body, Request(1, 1, frozenset({0, 1}), frozenset({0, 1, 2}), True, True))
    step = Body(body.outputs[0], inputs=body.inputs, name=body.name)
    keep = Body(
        bodies.forward.outputs[0],
        *bodies.forward.outputs[-bodies.residual_count :],
        inputs=bodies.forward.inputs,
        name=body.name,
    )
    hoisted = [] if bodies.before is None else evaluated(bodies.before)([a])
    params: dict[str, Any] = {
        "step": step, "keep": keep, "back": bodies.back, "carried": 1, "stacked": 1,
        "more": len(hoisted), "pulled": 2, "read": tuple([k - 2 for k in bodies.read]), "length": 7,
        "counted": False,
    }  # fmt: skip
    for reverse, slots, block in ((False, 1, 2), (True, 1, 7), (False, 1, 1)):
        loop = {"body": body, "carried": 1, "stacked": 1, "length": 7}
        loop |= {"reverse": reverse, "counted": False, "loop": "scan"}
        snapshots = checkpointed(a, s, xs, **loop, slots=slots, block=block)[-1]
        bars = np.float64(rng.normal()), np.float64(0.0), rng.normal(size=7)
        schedule = {"slots": slots, "block": block, "spread": False, "reverse": reverse}
        yield (a, s, xs, snapshots, *hoisted, *bars), {**params, **schedule}


def _replay_oracle(*args: Any, **params: Any) -> Any:
    """The pullback of s -> a s^2 + x, followed by s x, by hand."""
    a, s, xs, _, *_, end, total, ts = args
    order = range(len(xs))
    order = order[::-1] if params["reverse"] else order
    states = []
    for k in order:
        states.append(s)
        s = a * s * s + xs[k]
    cotangent, rows = end, np.zeros_like(xs)
    for k, s in zip(reversed(order), reversed(states), strict=True):
        state = a * s * s + xs[k]
        cotangent = cotangent + ts[k] * xs[k]
        rows[k] = cotangent + ts[k] * state
        total = total + cotangent * s * s
        cotangent = 2.0 * a * s * cotangent
    return cotangent, total, rows


# ---- branches ----------------------------------------------------------------------------------


def _product(x: Array, y: Array) -> Any:
    return x * y, x + 1.0


def _wave(x: Array, y: Array) -> Any:
    return np.sin(x) + y, y * y


def _first(x: Array, y: Array) -> Any:
    return x * 1.0, y - x


def _choices(functions: Sequence[Any], which: Sequence[Any]) -> Any:
    def make(rng: np.random.Generator) -> Examples:
        for k in which:
            x, y = rng.normal(size=(2, 1))
            yield (k, x, y), {"branches": tuple([_body(f, x, y) for f in functions])}

    return make


def _choice_oracle(which: Any, *operands: Any, branches: Sequence[Body]) -> Any:
    return _WRITTEN[branches[min(max(int(which), 0), len(branches) - 1)]](*operands)


def _of_prefix(x: Any, y: Any, empty: Any, count: Any = None) -> Any:
    """Uses the first elements; their number is a symbolic size in the body."""
    if count is None:
        count = Dim({((f"{LOCAL}0", 1),): 1}) - 1
    part = lookup("getitem")(x, index=slice(0, count)) if isinstance(x, Handle) else x[:count]
    other = lookup("getitem")(y, index=slice(0, count)) if isinstance(x, Handle) else y[:count]
    return (np.sin(part) * other).sum(), np.sum(part) * y


def _prefixes(rng: np.random.Generator) -> Examples:
    x, y = rng.normal(size=(2, 4))
    empty = np.zeros(0)  # so that the law of symbolic sizes does not change the lengths
    body = _body(_of_prefix, x, y, empty)
    for count in (0, 1, 3):
        yield (np.array([count + 1]), x, y, empty), {"branches": (body,), "names": (f"{LOCAL}0",)}


def _prefix_oracle(lengths: Any, x: Any, y: Any, empty: Any, branches: Any, names: Any) -> Any:
    return _of_prefix(x, y, empty, int(lengths[0]) - 1)


# ---- functions with rules ------------------------------------------------------------------------


class _Stated(CustomRule):
    """The derivative of `_waves` by hand, in one mode."""

    name = "waves"

    def __init__(self, forward: bool) -> None:
        self.has_jvp, self.has_vjp = forward, not forward

    def bars(self, operands: Any, outs: Any, ts: Any, saved: Any = None) -> list[Any]:
        (_, x, y), (t, u) = operands, ts
        return [None, t * np.cos(x) * y + u, t * np.sin(x) - 2.0 * u]

    def dots(self, operands: Any, outs: Any, dots: Any) -> list[Any]:
        _, x, y = operands
        dx, dy = (np.zeros_like(x) if d is None else d for d in dots[1:])
        return [np.cos(x) * y * dx + np.sin(x) * dy, dx - 2.0 * dy]


def _waves(n: Array, x: Array, y: Array) -> Any:
    return np.sin(x) * y + n, x - 2.0 * y


def _calls(rng: np.random.Generator) -> Examples:
    for forward in (False, True):
        x, y = rng.normal(size=(2, 1))
        body = _body(_waves, np.int64(2), x, y)
        yield (np.int64(2), x, y), {"body": body, "rule": _Stated(forward), "captured": 0}


def _call_oracle(*operands: Any, body: Body, rule: CustomRule, captured: int) -> Any:
    return _WRITTEN[body](*operands)


def _rows(rng: np.random.Generator) -> Examples:
    x, y = rng.normal(size=(3, 2)), rng.normal(size=2)
    yield (x, y), {"of": "multiply", "flags": (True, False), "options": {}}
    yield (x,), {"of": "cumsum", "flags": (True,), "options": {"axis": 0}}


def _rows_oracle(*operands: Any, of: str, flags: Any, options: dict[str, Any]) -> Any:
    function = getattr(np, of)
    rows = range(len(operands[0]))
    return np.stack([function(operands[0][i], *operands[1:], **options) for i in rows])


for _op, _make, _oracle in (
    (custom_call, _calls, _call_oracle),
    (row_by_row, _rows, _rows_oracle),
    (scan_op, _scans, _loop_oracle),
    (while_op, _loops_while, _loop_oracle),
    (checkpointed, _checkpointed_examples, _checkpointed_oracle),
    (replay, _replays, _replay_oracle),
    (sized, _prefixes, _prefix_oracle),
    (cond_op, _choices([_product, _wave], [np.False_, np.True_]), _choice_oracle),
    (
        switch_op,
        _choices([_product, _wave, _first], [np.int64(k) for k in (-1, 0, 1, 2, 7)]),
        _choice_oracle,
    ),
):
    _op.examples(_make)
    _op.oracle = _oracle
