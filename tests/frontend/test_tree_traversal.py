"""The traversals of syntax trees find what those of `ast` find, except contexts and operators."""

import ast
from pathlib import Path

import pytest

from wengert._engine.frontend import syntax

LEFT_OUT = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
SOURCES = [
    "tests/frontend/test_edge_cases.py",
    "tests/frontend/programs.py",
    "docs/generate/coverage.py",
]
SYNTAX = """
from __future__ import annotations
import numpy as np, os.path as p
@decorated(1)
async def f(a, /, b: int = 2, *c, d=None, **e) -> int:
    global g
    async for x in y: await z
    async with a as b, c: pass
    return {**a, 'k': [*b, x := 3]}, f"{x!r:>{n}}", lambda q=1, *, r: q + r
class C(Base, metaclass=M):
    x: int = 3
    del x, y[1:2, ...]
match value:
    case {'a': [1, *rest], **others} if rest: pass
    case Point(x=0, y=(1 | 2) as k): pass
    case _: raise E from None
try:
    assert a < b <= c, -d
except (A, B) as error:
    x += not y
else: pass
finally: yield_ = [(i, j) for i in a if i for j in b]
"""


def trees():
    root = Path(__file__).parents[2]
    return [ast.parse((root / name).read_text()) for name in SOURCES] + [ast.parse(SYNTAX)]


@pytest.mark.parametrize("tree", trees())
def test_all_nodes_are_found(tree):
    wanted = [n for n in ast.walk(tree) if not isinstance(n, LEFT_OUT)]
    found = list(syntax.traverse(*tree.body))
    assert len(found) == len(wanted) - 1 and set(found) | {tree} == set(wanted)
    for node in wanted:
        expected = [n for n in ast.iter_child_nodes(node) if not isinstance(n, LEFT_OUT)]
        assert syntax.children(node) == expected


@pytest.mark.parametrize("tree", trees())
def test_copies_are_equal_and_share_no_statement(tree):
    tree.body[0].stops = ("flag",)  # set by rewriting/exits.py
    made = syntax.copied(tree)
    assert ast.dump(made, include_attributes=True) == ast.dump(tree, include_attributes=True)
    assert made.body[0].stops == ("flag",)
    assert not set(syntax.traverse(made)) & set(syntax.traverse(tree))
    compile(made, "copy", "exec")
