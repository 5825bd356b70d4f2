"""Last elements: reads of ``out[-1]`` in a loop that fills the list, as reads of a variable.

    out = [y0]                             out = [y0]
    for t in ts:                           _wg_last_1_out = out[-1]
        out.append(step(out[-1], t))       for t in ts:
                                               _wg_last_1_out = step(_wg_last_1_out, t)
                                               out.append(_wg_last_1_out)

The variable is carried by the loop, which then reads nothing of the list (list_appends.py).  Lists
that may have fewer elements when the loop starts are left as they are: Python raises an IndexError.

with_last_elements    the rewriting
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from .list_appends import appended, appends_in, last_read
from .syntax import at, name


def with_last_elements(body: list[ast.stmt], parameters: set[str]) -> list[ast.stmt]:
    """Statements that read variables for the last elements of the lists that loops fill.

    Parameters
    ----------
    body : list of ast.stmt
        Of a function, after `with_calls`.
    parameters : set of str
        Of the function.
    """
    if not any(last_read(n) for s in body for n in ast.walk(s)):
        return body
    counts = {
        loop: found
        for loop, lengths in appends_in(body, parameters, last_reads=True).lengths.items()
        if (found := _counts(loop, lengths))
    }
    module = _LoopStarts(counts).visit(ast.Module(body, []))
    assert isinstance(module, ast.Module)
    return module.body


def _counts(loop: ast.stmt, lengths: Mapping[str, int]) -> dict[str, int]:
    """For the lists whose last elements a loop reads, how many of them it reads."""
    counts: dict[str, int] = {}
    for node in ast.walk(loop):
        if (found := last_read(node)) is not None:
            word, position = found[0].id, found[1]
            counts[word] = max(counts.get(word, 0), position)
    return {n: count for n, count in counts.items() if count <= lengths.get(n, 0)}


def _variable(word: str, position: int) -> str:
    return f"_wg_last_{position}_{word}"


def _assignment(where: ast.stmt, word: str, values: list[ast.expr]) -> ast.stmt:
    """Assign values to the variables of the last elements of a list."""
    targets: list[ast.expr] = [
        ast.Name(_variable(word, k + 1), ast.Store()) for k in range(len(values))
    ]
    if len(targets) == 1:
        return at(where, ast.Assign(targets, values[0]))
    return at(where, ast.Assign([ast.Tuple(targets, ast.Store())], ast.Tuple(values, ast.Load())))


class _LoopStarts(ast.NodeTransformer):
    """Assign the variables before loops, and use them inside."""

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
        for word, count in sorted(counts.items()):
            elements: list[ast.expr] = [
                ast.Subscript(name(word), ast.UnaryOp(ast.USub(), ast.Constant(k + 1)), ast.Load())
                for k in range(count)
            ]
            before.append(_assignment(node, word, elements))
        _LastElementReads(counts).generic_visit(node)
        return [*before, node]


class _LastElementReads(ast.NodeTransformer):
    """Use the variables inside a loop."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = counts

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        found = last_read(node)
        if found is None or found[0].id not in self._counts:
            return self.generic_visit(node)
        return at(node, name(_variable(found[0].id, found[1])))

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        found = appended(node)
        if found is None or found[0] not in self._counts:
            return node
        word, value = found
        earlier: list[ast.expr] = [name(_variable(word, k)) for k in range(1, self._counts[word])]
        assert isinstance(node.value, ast.Call)
        node.value.args = [at(node, name(_variable(word, 1)))]
        return [_assignment(node, word, [value, *earlier]), node]
