"""The modules of the package, parsed once for all rules of this folder.

PACKAGE, MODULES    the folder, and its modules by their dotted names
tree_of, nodes_of   the syntax tree of a module, and all its nodes
package_of          the package that relative imports of a module begin from
"""

import ast
import functools
import gc
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "wengert"


def module_of(path):
    """The dotted name of a file."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def package_of(module):
    """The package that relative imports of a module begin from."""
    is_package = MODULES[module].name == "__init__.py"
    return module if is_package else module.rpartition(".")[0]


@functools.cache
def tree_of(path):
    """The syntax tree of a file, kept."""
    return _trees()[path]


@functools.cache
def _trees():
    # Garbage collection would visit the millions of nodes again and again: half of the time.
    enabled = gc.isenabled()
    gc.disable()
    try:
        return {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES.values()}
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


@functools.cache
def nodes_of(path):
    """All nodes of the tree of a file, in the order of `ast.walk`."""
    return tuple(ast.walk(tree_of(path)))
