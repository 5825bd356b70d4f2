"""A class name stands for one class."""

import ast
from collections import defaultdict

from .sources import MODULES, tree_of

# Public classes with the names of other libraries, each in a namespace of its own.
SHARED = {
    "Flatten",  # of torch.nn and of torchvision's transforms
    "Linear",  # a layer, and a schedule
    "Op",  # the engine's, and that of one of the styles in wengert.extend
    "Transformer",  # a model, and a backend in one of the styles
}


def test_no_class_name_stands_twice():
    found = defaultdict(list)
    for module, path in MODULES.items():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module)
    twice = {name for name, modules in found.items() if len(modules) > 1}
    assert twice == SHARED, {name: found[name] for name in twice ^ SHARED}
