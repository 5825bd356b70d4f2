"""Verification: whether the parameters of a loop or conditional fit its bodies and operands.

Nodes made by tracing are valid; graphs that are built by hand or read from files may not be.  The
checks run whenever specs are inferred, so a verified graph has no invalid node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.graph_classes import Body
from wengert._engine.core.spec import Spec, bare, shown
from wengert._engine.core.symbolic.dim import Dim, is_open
from wengert.errors import OperandError, at, user_line

from .checkpoint_schedule import MOST_STATES, size_of_state

if TYPE_CHECKING:
    from wengert._engine.core.types import Size

_SCAN = frozenset(("body", "carried", "stacked", "length", "reverse", "counted"))
_WHILE = frozenset(("body", "condition", "carried", "limit", "length"))
_REPLAY = frozenset(
    ("back", "block", "carried", "counted", "keep", "length", "more", "pulled", "read", "reverse")
) | {"slots", "spread", "stacked", "step"}
# Of loops with limited memory for the backward pass (checkpoint_schedule.py).
_OPTIONAL_PARAMS = frozenset(("slots", "bytes"))


def check_scan(specs: Sequence[Any], params: Mapping[str, Any]) -> None:
    """Refuse an invalid scan."""
    body = _body_of(params, _SCAN, "scan")
    carried, stacked, length = params["carried"], params["stacked"], params["length"]
    counted = params["counted"]
    _need(type(counted) is bool and type(params["reverse"]) is bool, "scan", "a flag is not a bool")
    _need(_is_count(stacked), "scan", f"stacked={stacked!r} is not a number of operands")
    _check_carry(body, carried, stacked, "scan")
    _need(len(specs) == counted + len(body.inputs), "scan", _operands(specs, body, counted))
    if counted:
        _check_number(specs[0], "scan", "its number of steps", "iu")
    if length is None:
        rows = stacked or len(body.outputs) > carried
        _need(counted and not rows, "scan", "it has rows, and no length")
    else:
        is_length = _is_count(length) or type(length) is Dim
        _need(is_length, "scan", f"length={length!r} is not a length")
    for s in specs[len(specs) - stacked :] if stacked else ():
        valid = type(s) is Spec and s.shape and s.shape[0] == length
        _need(valid, "scan", f"it has {length} steps, but an operand to scan over is {s}")


def check_while(specs: Sequence[Any], params: Mapping[str, Any]) -> None:
    """Refuse an invalid while."""
    body = _body_of(params, _WHILE, "while")
    condition, limit, length = params["condition"], params["limit"], params["length"]
    _check_carry(body, params["carried"], 0, "while")
    _need(isinstance(condition, Body), "while", "its condition is not a body")
    _need(
        len(condition.inputs) == len(body.inputs) == len(specs),
        "while",
        _operands(specs, body, 0),
    )
    _need(len(condition.outputs) == 1, "while", "its condition is not a single boolean")
    _check_number(condition.outputs[0].spec, "while", "its condition", "b")
    _need(limit is None or _is_count(limit), "while", f"limit={limit!r} is not a number of steps")
    if length is None:
        rows = len(body.outputs) > params["carried"]
        _need(not rows, "while", "it has stacked results, and no length")
    else:
        _need(is_open(length), "while", f"length={length!r} is not a length known after the loop")


def check_conditional(name: str, specs: Sequence[Any], params: Mapping[str, Any]) -> None:
    """Refuse an invalid cond or switch."""
    branches = params.get("branches")
    valid = type(branches) is tuple and branches and all(isinstance(b, Body) for b in branches)
    _need(valid and len(params) == 1, name, "its branches are not bodies")
    assert branches is not None
    _need(name != "cond" or len(branches) == 2, name, f"it has {len(branches)} branches, not two")
    for b in branches:
        _need(len(specs) == 1 + len(b.inputs), name, _operands(specs, b, 1))
        outs = [[bare(n.spec) for n in x.outputs] for x in (b, branches[0])]
        _need(outs[0] == outs[1], name, "its branches differ in the specs of their results")
    _check_number(specs[0], name, "its first operand", "b" if name == "cond" else "iu")


def check_checkpointed(params: Mapping[str, Any]) -> None:
    """Refuse an invalid number of snapshots; the rest is checked for the loop."""
    name, loop = "checkpointed", params.get("loop")
    _need(loop in ("scan", "while"), name, f"loop={loop!r} is neither scan nor while")
    _check_slots(params, name)


def _check_slots(params: Mapping[str, Any], name: str) -> None:
    for key in ("slots", "block"):
        n = params.get(key, 0)
        _need(_is_count(n) and 0 < n <= MOST_STATES, name, f"{key}={n!r} is not a number of states")


def check_replay(specs: Sequence[Any], params: Mapping[str, Any]) -> None:
    """Refuse an invalid replay."""
    name = "replay"
    _need(params.keys() == _REPLAY, name, f"its parameters are {', '.join(sorted(params))}")
    step, keep, back = params["step"], params["keep"], params["back"]
    length = params["length"]
    _need(all(isinstance(b, Body) for b in (step, keep, back)), name, "a body is not a Body")
    for key in ("carried", "stacked", "more", "pulled"):
        _need(_is_count(params[key]), name, f"{key}={params[key]!r} is not a count")
    _check_slots(params, name)
    for key in ("counted", "reverse", "spread"):
        _need(type(params[key]) is bool, name, "a flag is not a bool")
    carried, pulled, more = params["carried"], params["pulled"], params["more"]
    _check_carry(step, carried, params["stacked"], name)
    _need(len(step.outputs) == carried, name, "its step returns more than the carry")
    _check_carry(keep, carried, params["stacked"], name)
    same = [[bare(n.spec) for n in b.inputs] for b in (step, keep)]
    _need(same[0] == same[1], name, "its bodies keep and step differ in their inputs")
    read = params["read"]
    valid = type(read) is tuple and all(_is_count(k) and k < params["stacked"] for k in read)
    _need(valid, name, f"read={read!r} is not a tuple of positions")
    carried_and_residuals = pulled + len(keep.outputs) - carried + len(read)
    rows = len(specs) - params["counted"] - len(step.inputs) - 1 - more - pulled
    fixed = len(step.inputs) - carried - params["stacked"]
    _need(
        rows >= 0 and len(back.inputs) == fixed + more + carried_and_residuals + rows,
        name,
        f"its {len(specs)} operands do not fit its bodies",
    )
    snapshots = specs[params["counted"] + len(step.inputs)]
    size = size_of_state([n.spec for n in step.outputs])
    valid = type(snapshots) is Spec and snapshots.dtype == np.dtype(np.uint8)
    valid = valid and snapshots.shape == (params["slots"], size)
    _need(valid, name, f"its snapshots are {snapshots}")
    _need(len(back.outputs) >= pulled, name, "its backward body returns less than it carries")
    is_length = length is None or _is_count(length) or type(length) is Dim
    _need(is_length, name, f"length={length!r} is not a length")
    _need(length is not None or len(back.outputs) == pulled, name, "it has rows, and no length")


def _body_of(params: Mapping[str, Any], names: frozenset[str], name: str) -> Body:
    _need(
        params.keys() - _OPTIONAL_PARAMS == names,
        name,
        f"its parameters are {', '.join(sorted(params))}",
    )
    slots = params.get("slots")
    _need(slots is None or _is_count(slots), name, f"slots={slots!r} is not a number of states")
    _need(type(params.get("bytes", True)) is bool, name, "a flag is not a bool")
    body = params["body"]
    _need(isinstance(body, Body), name, "its body is missing")
    assert isinstance(body, Body)
    return body


def _check_carry(body: Body, carried: int, stacked: int, name: str) -> None:
    _need(_is_count(carried), name, f"carried={carried!r} is not a number of operands")
    fixed = len(body.inputs) - carried - stacked
    valid = fixed >= 0 and carried <= len(body.outputs)
    _need(valid, name, f"its body does not carry {carried} values and scan over {stacked}")
    pairs = zip(body.inputs[fixed : fixed + carried], body.outputs[:carried], strict=True)
    for before, after in pairs:
        same = bare(before.spec) == bare(after.spec)
        _need(same, name, f"a step changes {shown(before.spec)} to {shown(after.spec)}")


def _check_number(spec: Spec, name: str, what: str, kinds: str) -> None:
    valid = type(spec) is Spec and spec.shape == () and spec.dtype.kind in kinds
    _need(valid, name, f"{what} is {spec}")


def _operands(specs: Sequence[Any], body: Body, more: int) -> str:
    return f"it has {len(specs)} operands, for a body of {len(body.inputs)} inputs and {more} more"


def _is_count(x: Size) -> bool:
    return type(x) is int and x >= 0


def _need(valid: Any, name: str, what: str) -> None:
    if not valid:
        raise OperandError(
            f"{name}: {what}. Trace a function that calls wengert.control instead of building "
            f"such nodes by hand{at(user_line())}."
        )
