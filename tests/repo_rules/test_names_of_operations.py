"""Facts about operations are stated at the operations and looked up (core/op_facts.py).

Code that compares the names of operations instead has to be edited for each new operation.  It is
allowed in rewriting rules, which are about particular operations, and in folders that implement
operations one by one (lowering to LLVM, ONNX, sparse patterns, laws).  Elsewhere the comparisons
are counted, and their number may only become smaller.
"""

import ast

from .sources import PACKAGE, nodes_of

BY_NAME = ("_engine/rewrite/", "_engine/backends/llvm/", "onnx/", "sparse/", "testing/")
LIMIT = 18


def compares_name(node):
    """Whether an expression compares the name of an operation, `node.op.name == ...`."""
    parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
    if any(isinstance(x, ast.Name) and x.id == "REGISTRY" for x in parts):
        return False
    return any(
        isinstance(x, ast.Attribute)
        and x.attr == "name"
        and (getattr(x.value, "attr", None) == "op" or getattr(x.value, "id", None) == "op")
        for x in parts
    )


def test_names_of_operations_are_compared_in_few_places():
    found = [
        f"{place}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if not (place := path.relative_to(PACKAGE).as_posix()).startswith(BY_NAME)
        for node in nodes_of(path)
        if compares_name(node)
    ]
    assert len(found) == LIMIT, "\n".join(
        ["state a fact (core/op_facts.py), or lower LIMIT:", *found]
    )
