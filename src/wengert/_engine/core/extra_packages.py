"""Packages of wengert that are not in the distribution ``wengert``, but in ``wengert-extras``.

They connect to other hardware, processes and libraries, and each needs one that not everyone has.
The sources are in one tree; an installation of a checkout in development mode (``pip install -e``)
has all of them.

    EXTRA_PACKAGES   the packages, and the extras of ``wengert`` that bring them and what they need
    find_extras      an import of one that is not installed is an error that names the extra
"""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

# pyproject.toml excludes these (tests/test_package.py compares the lists).
EXTRA_PACKAGES = {
    "wengert._engine.backends.cuda": "cuda",
    "wengert._engine.backends.llvm.export": "export",
    "wengert._engine.jit.exporting": "export",
    "wengert.compat.autograd": "autograd",
    "wengert.compat.samplers": "samplers",
    "wengert.compat.sklearn": "learn",
    "wengert.distributed": "mpi",
    "wengert.integrate.sundials": "sundials",
    "wengert.nn.training.common_start": "mpi",
    "wengert.nn.training.processes": "mpi",
    "wengert.onnx": "onnx",
    "wengert.sparse.exported_derivatives": "export",
}


class _ExtrasFinder:
    """The last finder of imports: it is asked for a module that no other has found."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The package in another folder of ``sys.path`` than wengert.

        Raises
        ------
        ModuleNotFoundError
            It is one of `EXTRA_PACKAGES`, and not installed.
        """
        if name not in EXTRA_PACKAGES:
            return None
        *parents, _ = name.split(".")
        folders = [str(Path(entry, *parents)) for entry in sys.path]
        found = importlib.machinery.PathFinder.find_spec(name, folders)
        if found is not None and found.loader is not None:
            return found
        raise ModuleNotFoundError(
            f"{name} is not installed: it is in the distribution wengert-extras. Install it, and "
            f"the libraries that it needs: pip install 'wengert[{EXTRA_PACKAGES[name]}]'",
            name=name,
        )


_FINDER = _ExtrasFinder()


def find_extras() -> None:
    """Have imports of `EXTRA_PACKAGES` find them, or say how to install them."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)
