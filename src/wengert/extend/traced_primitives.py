"""Primitives in graphs: their bodies and rules are traced.

A primitive is a function of arrays with a derivative rule.  On a traced operand the function is run
once, with tensors, and its operations are recorded; the rule is stored with it (`custom_call`,
_engine/control_flow/custom.py), batched with it, and asked in every derivative.  So a graph with
primitives is fused and compiled as one without.  A function that cannot be traced (it calls another
library, branches on a value, writes to its operands) is called back when the graph runs.

    written    a call of a primitive in a graph; NotImplemented if it needs a host callback
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert._engine.control_flow.custom_rules import PrimitiveCall, PrimitiveFunction
from wengert._engine.core import pytree
from wengert._engine.core.recording import no_grad
from wengert.errors import TraceError, at, user_line


def written(op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """A call of a primitive in a graph, as nodes; NotImplemented if it needs a host callback.

    Raises
    ------
    TraceError
        It cannot be traced, and was registered with ``callback=False``.
    """
    leaves, structure = pytree.flatten(tuple(args))
    if op.callback or len(leaves) != len(args):
        return NotImplemented
    try:
        if op.discrete:
            with no_grad():
                return op.function(*args, **params)
        return PrimitiveCall(PrimitiveFunction(op, params), (), leaves, structure).record_in_graph(
            leaves
        )
    except Exception as error:
        if op.callback is False:
            raise TraceError(
                f"{op.name} was registered with callback=False, and cannot be traced: {error}. "
                "Write it with NumPy functions without branches on values, or use a host callback "
                f"(callback=True){at(user_line())}."
            ) from error
        return NotImplemented
