"""Operations that are defined by other operations.

    composed    the graph of these operations

Operations without a LAPACK routine can often be computed by one or two routines and arithmetic: the
polar factor is a singular value decomposition and a product.  Such an operation is defined by other
operations (`Op.compose`), which are traced here for the shapes of the node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.handle import Handle
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.node import LeafOp, Node, constant
from wengert._engine.core.subgraph import Body, bodies_of
from wengert._engine.core.symbolic.constraints import requirements_of
from wengert._engine.core.symbolic.dim import Dim
from wengert.errors import DtypeError, TracedBranchError, user_line

if TYPE_CHECKING:
    from wengert._engine.control_flow import closure_conversion
else:
    closure_conversion = LazyModule("wengert._engine.control_flow.closure_conversion")


class _NotDecomposable(Exception):
    """The operation has no decomposition for these operands."""


def composed(node: Node) -> BaseGraph | None:
    """The graph that defines a node; None if its operation has no definition for these operands.

    None also if the graph would have other shapes or dtypes than the operation, or is valid for
    fewer sizes: nobody would check them.

    Parameters
    ----------
    node : Node
        Of an operation with a `composition`.
    """
    assert not isinstance(node.op, LeafOp)
    made = node.op.composition
    assert made is not None, node.op.name

    def fun(*operands: Any) -> Any:
        found = made(*operands, **node.params)
        if found is NotImplemented:
            raise _NotDecomposable
        return found

    try:
        specs = [a.spec for a in node.inputs]
        inside = closure_conversion.closed(fun, specs, node.op.name, hoist=False)
    except (_NotDecomposable, TracedBranchError, DtypeError):  # or a symbolic size, or float16
        return None
    if not _conditions([node]) >= _conditions(inside.body.nodes):
        return None
    _place(inside.body.nodes, user_line(), node.where)
    body = _with_constants(inside.body, inside.captured)
    wanted = node.spec if isinstance(node.spec, tuple) else (node.spec,)
    found = [(n.spec.shape, n.spec.dtype) for n in body.outputs]
    return body if found == [(s.shape, s.dtype) for s in wanted] else None


def _place(nodes: Iterable[Node], caller: str, where: str | None) -> None:
    """Give nodes the line of the operation, where they have that of the call that compiles."""
    for node in nodes:
        if node.where == caller:
            node.note(where=where)
        for body in bodies_of(node):
            _place(body.nodes, caller, where)


def _conditions(nodes: Iterable[Node]) -> set[tuple[Dim, bool]]:
    """What nodes require of the sizes: lengths that are at least zero, or equal to zero."""
    return {(r.length, r.equal) for r in requirements_of(nodes)}


def _with_constants(body: Body, captured: list[Any]) -> BaseGraph:
    """The graph with captured arrays as constants."""
    if not captured:
        return body
    count = len(captured)
    values = [x.node if isinstance(x, Handle) else constant(x) for x in captured]
    place = dict(zip(body.inputs[:count], values, strict=True))
    new = rebuilt(body.nodes, place, lambda node, args: None)
    return BaseGraph(*[new.get(n, n) for n in body.outputs], inputs=body.inputs[count:])
