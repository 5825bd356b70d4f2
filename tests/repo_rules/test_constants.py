"""A constant says in its name what it counts or bounds: `MOST_STATES`, and not `MOST`."""

import ast

from .sources import MODULES, tree_of

BARE = set("MOST FEW SMALL LARGE LARGEST MANY LEAST HUGE TINY FAR NEAR LONG SHORT CHEAP".split())


def test_names_of_constants_say_what_they_count():
    bare = [
        f"{module}: {target.id}"
        for module, path in MODULES.items()
        for node in tree_of(path).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in ast.walk(node)
        if isinstance(target, ast.Name)
        and isinstance(target.ctx, ast.Store)
        and target.id.strip("_") in BARE
    ]
    assert bare == []
