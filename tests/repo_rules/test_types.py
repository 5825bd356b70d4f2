"""Parameters of the engine are typed: the share that says nothing (`Any`) may only shrink."""

import ast

from .sources import PACKAGE, nodes_of

ENGINE = PACKAGE / "_engine"
SHARE = 0.15  # of the parameters of all functions, `self` and `cls` left out


def parameters():
    """The annotation of each parameter of each function of the engine, as text."""
    for path in ENGINE.rglob("*.py"):
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                a = node.args
                for each in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg):
                    if each is not None and each.arg not in ("self", "cls"):
                        yield "" if each.annotation is None else ast.unparse(each.annotation)


def test_few_parameters_are_any():
    found = list(parameters())
    assert len(found) > 5000
    assert sum(text in ("", "Any") for text in found) < SHARE * len(found)
