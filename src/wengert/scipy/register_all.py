"""Every operation that is registered at first use: importing this module registers them all.

It is the last module that `load_families` (_engine/core/lazy_import.py) imports when an operation
is looked for by its name, or by SciPy's function, and is not there; the tests of all operations
import it too (tests/conftest.py).
"""

from __future__ import annotations

from importlib import import_module

from . import SUBPACKAGES

__all__ = ["PACKAGES"]

PACKAGES = [import_module(f"{__package__}.{name}") for name in (*SUBPACKAGES, "sparse.linalg")]
