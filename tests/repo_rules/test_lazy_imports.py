"""Imports by name (`LazyModule`, `lazy_names` ...) lead somewhere, and down the layers.

import-linter sees import statements only.  Here every call that names a module of the package is
read from the source, resolved, and compared with the layers of pyproject.toml.  `UPWARD` lists what
goes up today, with the reason; it may only shrink.
"""

import ast
import functools
import tomllib

from .sources import MODULES, ROOT, nodes_of, package_of

UPWARD = {
    # a checkpointed function is a custom function
    ("_engine.autodiff.checkpoint", "_engine.control_flow.custom"),
}
CALLS = {"LazyModule", "lazy_names", "import_module"}


def text_of(node, module):
    """The string that an expression of constants, __name__ and __package__ makes, or None."""
    known = {"__name__": module, "__package__": package_of(module)}
    match node:
        case ast.Constant(value=str()):
            return node.value
        case ast.Name(id=name):
            return known.get(name)
        case ast.FormattedValue(value=value):
            return text_of(value, module)
        case ast.JoinedStr(values=values):
            parts = [text_of(value, module) for value in values]
            return None if None in parts else "".join(parts)
    return None


def absolute(name, package):
    """A name as `importlib` resolves it."""
    if not name.startswith("."):
        return name
    level = len(name) - len(name.lstrip("."))
    return ".".join([*package.split(".")[: len(package.split(".")) - level + 1], name[level:]])


def named(call, module):
    """The modules of the package that one call names."""
    package = package_of(module)
    kind = getattr(call.func, "id", getattr(call.func, "attr", None))
    if kind == "lazy_names":
        package = text_of(call.args[0], module)
        texts = [n.value for n in ast.walk(call.args[1]) if isinstance(n, ast.Constant)]
        texts = [t for t in texts if isinstance(t, str) and t.startswith(".")]
    else:
        texts = [text_of(call.args[0], module)]
        if len(call.args) > 1:
            package = text_of(call.args[1], module) or package
    found = [absolute(t, package) for t in texts if t]
    return [name for name in found if name.split(".")[0] == "wengert"]


@functools.cache
def lazy_imports():
    return list(_lazy_imports())


def _lazy_imports():
    for module, path in MODULES.items():
        for node in nodes_of(path):
            name = isinstance(node, ast.Call) and getattr(
                node.func, "id", getattr(node.func, "attr", None)
            )
            if name in CALLS and node.args:
                for target in named(node, module):
                    yield module, target


def layers():
    """For each container of layers, the height of the modules in it."""
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = configuration["tool"]["importlinter"]["contracts"]
    found = {}
    for contract in contracts:
        if contract["type"] == "layers":
            names = [line.replace("|", " ").split() for line in contract["layers"]]
            height = {name: -k for k, line in enumerate(names) for name in line}
            found |= dict.fromkeys(contract["containers"], height)
    return found


def is_upward(a, b, height):
    """Whether module a is below module b in a container of both."""
    for container, heights in height.items():
        inside = [m.removeprefix(f"{container}.").split(".")[0] for m in (a, b)]
        both = all(m.startswith(f"{container}.") for m in (a, b))
        if both and heights[inside[0]] < heights[inside[1]]:
            return True
    return False


def test_every_name_is_that_of_a_module():
    found = lazy_imports()
    assert len(found) > 40
    wrong = [f"{a} names {b}" for a, b in found if b not in MODULES]
    assert not wrong


def test_they_go_down_the_layers():
    height = layers()
    upward = {
        (a.removeprefix("wengert."), b.removeprefix("wengert."))
        for a, b in lazy_imports()
        if is_upward(a, b, height)
    }
    assert upward - UPWARD == set(), "import from the layers below, or move what is needed"
    assert UPWARD - upward == set(), "no longer upward: delete it from UPWARD"
