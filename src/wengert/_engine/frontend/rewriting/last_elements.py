"""Replace ``out[-1]`` in a loop that fills the list by a variable.

    out = [y0]                             out = [y0]
    for t in ts:                           _wg_last_1_out = out[-1]
        out.append(step(out[-1], t))       for t in ts:
                                               _wg_last_1_out = step(_wg_last_1_out, t)
                                               out.append(_wg_last_1_out)

The loop carries the variable, and does not read the list any more (list_appends.py).  A list that
may have fewer elements when the loop starts is left: Python may raise an IndexError.

with_last_element_variables    the transformation
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ..tree_traversal import traverse
from .list_appends import append_of, appends_in, last_read
from .syntax import load, located


def with_last_element_variables(body: list[ast.stmt], parameters: set[str]) -> list[ast.stmt]:
    """Replace the last elements of lists by variables, in the loops that fill the lists.

    Parameters
    ----------
    body : list of ast.stmt
        The body of a function, after `as_append_calls`.
    parameters : set of str
        The parameters of the function.
    """
    if not any(last_read(n) for s in body for n in traverse(s)):
        return body
    counts = {
        loop: counts_of_loop
        for loop, lengths in appends_in(body, parameters, last_reads=True).lengths.items()
        if (counts_of_loop := _counts(loop, lengths))
    }
    module = _LoopStarts(counts).visit(ast.Module(body, []))
    assert isinstance(module, ast.Module)
    return module.body


def _counts(loop: ast.stmt, lengths: Mapping[str, int]) -> dict[str, int]:
    """The number of last elements that a loop reads of each list, if the list is long enough."""
    counts: dict[str, int] = {}
    for node in traverse(loop):
        if (last := last_read(node)) is not None:
            list_name, position = last[0].id, last[1]
            counts[list_name] = max(counts.get(list_name, 0), position)
    return {n: count for n, count in counts.items() if count <= lengths.get(n, 0)}


def _variable(list_name: str, position: int) -> str:
    return f"_wg_last_{position}_{list_name}"


def _assignment(where: ast.stmt, list_name: str, values: list[ast.expr]) -> ast.stmt:
    """Assign values to the variables of the last elements of a list."""
    targets: list[ast.expr] = [
        ast.Name(_variable(list_name, k + 1), ast.Store()) for k in range(len(values))
    ]
    if len(targets) == 1:
        return located(where, ast.Assign(targets, values[0]))
    return located(
        where, ast.Assign([ast.Tuple(targets, ast.Store())], ast.Tuple(values, ast.Load()))
    )


class _LoopStarts(ast.NodeTransformer):
    """Assign the variables before loops, and replace the elements inside."""

    def __init__(self, counts: Mapping[ast.stmt, Mapping[str, int]]) -> None:
        self._counts = counts

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        return self._loop(node)

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        return self._loop(node)

    def _loop(self, node: ast.For | ast.While) -> ast.AST | list[ast.stmt]:
        counts = self._counts.get(node)
        if counts is None:
            return self.generic_visit(node)
        before = []
        for list_name, count in sorted(counts.items()):
            elements: list[ast.expr] = [
                ast.Subscript(
                    load(list_name), ast.UnaryOp(ast.USub(), ast.Constant(k + 1)), ast.Load()
                )
                for k in range(count)
            ]
            before.append(_assignment(node, list_name, elements))
        _LastElementReads(counts).generic_visit(node)
        return [*before, node]


class _LastElementReads(ast.NodeTransformer):
    """Replace the elements by variables inside a loop."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = counts

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        last = last_read(node)
        if last is None or last[0].id not in self._counts:
            return self.generic_visit(node)
        return located(node, load(_variable(last[0].id, last[1])))

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        append = append_of(node)
        if append is None or append[0] not in self._counts:
            return node
        list_name, value = append
        earlier: list[ast.expr] = [
            load(_variable(list_name, k)) for k in range(1, self._counts[list_name])
        ]
        assert isinstance(node.value, ast.Call)
        node.value.args = [located(node, load(_variable(list_name, 1)))]
        return [_assignment(node, list_name, [value, *earlier]), node]
