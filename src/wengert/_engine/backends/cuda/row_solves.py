"""Systems with one matrix for all rows of a batch: a row solves for its own right-hand side.

Batching makes the rows columns of one right-hand side (ops/linalg/linear_solve.py), which is best
for a library. In a loop by rows each column is that of a row, with the matrix repeated by a view.

    with_own_systems    a body in which each row has a system of its own
"""

from __future__ import annotations

import functools
from typing import Any

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.spec import Spec
from wengert._engine.core.subgraph import Body
from wengert._engine.core.tracing import record

from ..llvm.ir.index_analysis import Length

_SOLVERS = ("solve", "solve_or_nan", "solve_triangular")
_MOST_ROWS = 8  # of a matrix; larger ones are factored once, by the library


@functools.lru_cache(maxsize=256)
def with_own_systems(body: Body, rows: Length) -> Body:
    """A body in which each row has a system of its own.

    Parameters
    ----------
    rows : Length
        The length of the batch.
    """
    solvers = [lookup(name) for name in _SOLVERS]
    if not any(n.op in solvers and _is_shared(n, rows) for n in body.nodes):
        return body

    apart: dict[Node, Node] = {}  # solutions, with the rows as an axis of their own

    def change(node: Node, args: tuple[Any, ...]) -> Node | None:
        whole = apart.get(args[0]) if args else None
        if whole is not None and _in_order(node) and node.spec.shape == whole.spec.shape:
            return whole
        if node.op not in solvers or not _is_shared(node, rows):
            return None
        a, b = args
        n = a.spec.shape[0]
        columns = 1 if b.spec.shape[1] == rows else b.spec.shape[1] // rows
        matrix = _made("broadcast_to", a, shape=(rows, n, n))
        if _in_order(b) and b.inputs[0].spec.shape == (n, rows, columns):
            sides = b.inputs[0]
        else:
            sides = _made("reshape", b, shape=(n, rows, columns))
        sides = _made("transpose", sides, axes=(1, 0, 2))
        found = record(node.op, [wrap(matrix), wrap(sides)], dict(node.params)).node
        found = _made("transpose", found, axes=(1, 0, 2))
        made = _made("reshape", found, shape=(n, b.spec.shape[1]))
        apart[made] = found
        return made

    with tracing_body():
        new = rebuilt(body.nodes, None, change)
    return Body(*[new[n] for n in body.outputs], inputs=body.inputs, name=body.name)


def _in_order(node: Node) -> bool:
    """Whether a node is a view of all elements in the same order."""
    return node.op is lookup("reshape") and node.params.get("order", "C") == "C"


def _made(name: str, x: Node, **params: Any) -> Node:
    made: Node = record(lookup(name), [wrap(x)], params).node
    return made


def _is_shared(node: Node, rows: Length) -> bool:
    """Whether one small matrix is that of all rows, which are columns of the right-hand side."""
    specs = [x.spec for x in node.inputs]
    if len(specs) != 2 or any(type(s) is not Spec or len(s.shape) != 2 for s in specs):
        return False
    (n, m), columns = specs[0].shape, specs[1].shape[1]
    if type(n) is not int or n != m or n > _MOST_ROWS:
        return False
    if columns == rows:
        return True
    both = type(columns) is int and type(rows) is int
    return both and columns > 0 and columns % rows == 0
