"""The public modules in the order of the reference, and the names of each.

    GROUPS      titles, and the modules below each
    MODULES     all of them
    names       the public names of a module
    subjects    the names of the package `wengert`, by subject

A module that is public and not listed here fails tests/test_documentation_site.py.
"""

from __future__ import annotations

import importlib
import types
from typing import Any

GROUPS: dict[str, str] = {
    "Derivatives, tensors, loops": """wengert wengert.tree wengert.sparse wengert.random
        wengert.control wengert.integrate wengert.bijectors wengert.axes""",
    "NumPy": """wengert.numpy wengert.numpy.linalg wengert.numpy.fft wengert.numpy.random
        wengert.numpy.polynomial""",
    "SciPy": """wengert.scipy wengert.scipy.fft wengert.scipy.integrate wengert.scipy.interpolate
        wengert.scipy.linalg wengert.scipy.ndimage wengert.scipy.optimize wengert.scipy.signal
        wengert.scipy.sparse wengert.scipy.sparse.linalg wengert.scipy.spatial.distance
        wengert.scipy.special wengert.scipy.stats""",
    "Models and training": """wengert.nn wengert.nn.functional wengert.nn.init wengert.nn.training
        wengert.optim wengert.data wengert.estimators wengert.onnx""",
    "Graphs and compilation": """wengert.graphs wengert.rewrite wengert.backends wengert.compiling
        wengert.memory wengert.cache wengert.show wengert.show.fits wengert.show.training
        wengert.keep wengert.debug""",
    "Several processes": "wengert.distributed",
    "Extending and testing": "wengert.extend wengert.testing wengert.ops wengert.errors",
    "Other programs": """wengert.compat wengert.compat.autograd wengert.compat.sklearn
        wengert.compat.samplers wengert.cli""",
}
MODULES = [name for group in GROUPS.values() for name in group.split()]


def module(name: str) -> types.ModuleType:
    """The module of this name, which may be a table of names that are imported at first use."""
    if name in ("wengert.show.fits", "wengert.show.training"):
        return getattr(importlib.import_module("wengert").show, name.rpartition(".")[2])  # type: ignore[no-any-return]
    return importlib.import_module(name)


def names(name: str) -> list[str]:
    """The public names of a module, in the order of the alphabet."""
    found = module(name)
    listed = getattr(found, "__all__", None)
    shown = set(listed if listed is not None else (n for n in dir(found) if n[0] != "_"))
    if name == "wengert":  # `from wengert import *` does not hide Python's own `input` and `map`
        shown |= {n for n in dir(found) if not n.startswith("_")} - {"annotations"}
    return sorted(shown, key=lambda n: (n.lower(), n))


def get(module_name: str, name: str) -> Any:
    """The object of this name."""
    return getattr(module(module_name), name)


def subjects() -> dict[str, list[str]]:
    """The names of `wengert` by the lines of its docstring, and what the lines do not name."""
    left, found = names("wengert"), {}
    lines = (importlib.import_module("wengert").__doc__ or "").splitlines()[2:]
    for line in lines:
        listed, _, subject = line.partition("  ")
        chosen = [n for n in listed.replace(",", " ").split() if n in left]
        if chosen:
            found[subject.strip()] = chosen
            left = [n for n in left if n not in chosen]
    if left:
        found["other names"] = left
    return found
