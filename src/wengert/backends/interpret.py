"""Interpret: a graph run by NumPy, one line after the other.  The meaning of a graph.

Compiling makes a list of steps, each a function and where its operands are found; running walks
that list.  A value is let go as soon as no later step needs it (liveness.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.apply import PART
from ..core.graph import Graph
from ..core.node import Leaf, Node, is_variable
from ..core.op import Op
from ..core.params import substituted
from ..core.spec import Spec
from ..core.tracing import SIZE
from ..errors import OperandError, ShapeError, WengertError, at
from .base import Backend, Run, register_backend
from .liveness import last_uses

Step = tuple[Any, ...]


class Interpreter(Backend):
    """Runs a graph by NumPy; see `Backend`."""

    name = "interpret"

    def compile(self, graph: Graph, sizes: Mapping[str, int]) -> Run:
        """Steps to walk along."""
        return _Program(graph, sizes).run


class _Program:
    """The steps of one graph at given sizes.

    Attributes
    ----------
    start : list
        What stands in each slot before the first step: constants, sizes.
    slots : list of int
        Where the fed values go.
    steps : list
        ``(run, params, operand slots, result slot, slots to let go)``.
    """

    def __init__(self, graph: Graph, sizes: Mapping[str, int]) -> None:
        self.nodes = graph.nodes
        slot = {n: i for i, n in enumerate(graph.nodes)}
        self.start: list[Any] = [None] * len(graph.nodes)
        self.slots = [slot[n] for n in (*graph.inputs, *graph.variables)]
        self.results = [slot[n] for n in (*graph.outputs, *graph.updates.values())]
        self.steps: list[Step] = []
        released = last_uses(graph)
        for i, node in enumerate(graph.nodes):
            if isinstance(node.op, Leaf):
                if node.op is SIZE:
                    self.start[i] = node.params["size"](sizes)
                elif not node.is_traced and not is_variable(node):
                    self.start[i] = node.value
                continue
            operands = tuple(slot[a] for a in node.inputs)
            self.steps.append((_run_of(node, sizes), operands, i, released[i]))

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Walk along the steps."""
        held = self.start.copy()
        for slot, value in zip(self.slots, values, strict=True):
            held[slot] = value
        i = 0
        try:
            with np.errstate(all="ignore"):
                for run, operands, i, gone in self.steps:
                    if len(operands) == 2:
                        a, b = operands
                        held[i] = run(held[a], held[b])
                    elif len(operands) == 1:
                        held[i] = run(held[operands[0]])
                    else:
                        held[i] = run(*[held[k] for k in operands])
                    for k in gone:
                        held[k] = None
        except WengertError:
            raise
        except (TypeError, ValueError, IndexError, ArithmeticError) as error:
            raise self._refusal(i, error) from error
        return [held[k] for k in self.results]

    def _refusal(self, i: int, error: Exception) -> Exception:
        node = self.nodes[i]
        cls = ShapeError if isinstance(error, ValueError) else OperandError
        return cls(f"%{i} {node.op.name}: {error}{at(node.where)}.")


def _run_of(node: Node, sizes: Mapping[str, int]) -> Callable[..., Any]:
    """A function of the operands that gives the value of a line."""
    op = node.op
    assert isinstance(op, Op)
    if op is PART:
        index = node.params["index"]
        return lambda values: values[index]
    run = op.run
    if node.params:
        run = _with_params(run, substituted(node.params, sizes))
    spec = node.spec
    if type(spec) is Spec and spec.weak:
        return _weak(run)
    if node.extra is not None and "probed" in node.extra:
        return _checked(run, node, sizes)
    return run


def _with_params(run: Callable[..., Any], params: dict[str, Any]) -> Callable[..., Any]:
    return lambda *xs: run(*xs, **params)


def _weak(run: Callable[..., Any]) -> Callable[..., Any]:
    def number(*xs: Any) -> Any:
        out = run(*xs)
        return out.item() if isinstance(out, np.generic | np.ndarray) else out

    return number


def _checked(run: Callable[..., Any], node: Node, sizes: Mapping[str, int]) -> Callable[..., Any]:
    """A run whose shape was inferred by probing: it may be another at these sizes."""
    specs = node.spec if type(node.spec) is tuple else (node.spec,)
    expected = [tuple(substituted(s.shape, sizes)) for s in specs]

    def checked(*xs: Any) -> Any:
        out = run(*xs)
        shapes = [np.shape(v) for v in (out if type(out) is tuple else (out,))]
        if shapes != expected:
            raise ShapeError(
                f"{node.op.name} gave shapes {shapes} at the sizes {dict(sizes)}, but the graph "
                f"was built for {expected}: its shape follows another rule at these sizes. Trace "
                f"with numbers in place of names{at(node.where)}."
            )
        return out

    return checked


register_backend(Interpreter())
