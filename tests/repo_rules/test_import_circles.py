"""No modules import each other, at any depth: not under TYPE_CHECKING, not inside functions.

Counted are all import statements and the names given to `LazyModule`, `lazy_names` and
`import_module`.  CIRCLES lists those that remain, by what ties them; it may only shrink.
"""

import ast
import functools

from .sources import PACKAGE, nodes_of

LAZY = {"LazyModule", "lazy_names", "import_module"}
CIRCLES = {
    "Tensor and its mixins": {
        f"_engine.tensor.{n}" for n in ("grad_attributes", "methods", "operators", "tensor")
    },
}


@functools.cache
def modules():
    """Files of modules by name, without the name of the package."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        found[name.removesuffix(".__init__").removesuffix("__init__")] = path
    return found


def known(name):
    """The module that a dotted name is, or is a part of; None if none but the package itself."""
    while name and name not in modules():
        name = name.rpartition(".")[0]
    return name or None


def imports(module):
    """The modules that a module imports."""
    path = modules()[module]
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in nodes_of(path):
        names = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ["wengert", *package[: len(package) - node.level + 1]] if node.level else []
            base = ".".join([*base, *([node.module] if node.module else [])])
            full = [f"{base}.{a.name}" for a in node.names]
            names = [n if n.removeprefix("wengert.") in modules() else base for n in full]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", None) in LAZY:
            names = [a.value for a in node.args if isinstance(a, ast.Constant)]
        for name in names:
            if isinstance(name, str) and name.startswith("wengert."):
                yield known(name.removeprefix("wengert."))


@functools.cache
def circles():
    """Sets of modules that import each other: strongly connected components (Tarjan 1972)."""
    edges = {m: {x for x in imports(m) if x and x != m} for m in modules() if m}
    number, low, stack, found = {}, {}, [], []
    for root in edges:
        work = [(root, iter(edges[root]))] if root not in number else []
        while work:
            module, rest = work[-1]
            if module not in number:
                number[module] = low[module] = len(number)
                stack.append(module)
            for x in rest:
                if x not in number:
                    work.append((x, iter(edges[x])))
                    break
                if x in stack:
                    low[module] = min(low[module], number[x])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[module])
                if low[module] == number[module]:
                    at = stack.index(module)
                    found.append(frozenset(stack[at:]))
                    del stack[at:]
    return [circle for circle in found if len(circle) > 1]


def test_modules_do_not_import_each_other():
    found = circles()
    remaining = [c for c in found if not any(c <= allowed for allowed in CIRCLES.values())]
    assert remaining == [], "let what both need stand below both, or pass it as an argument"


def test_circles_that_have_ended_are_not_listed():
    found = circles()
    ended = [name for name, allowed in CIRCLES.items() if not any(c <= allowed for c in found)]
    assert ended == [], "delete them from CIRCLES"


def test_imports_are_found():
    assert set(imports("_engine.core.op")) >= {"_engine.core.node", "_engine.core.spec"}
    assert "_engine.visualization" in set(imports("_engine.graphs.graph"))  # lazily
