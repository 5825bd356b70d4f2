"""Packages of wengert that are not in the distribution ``wengert``, but in ``wengert-extras``.

They connect to other hardware, processes and libraries, and each needs one that not everyone has.
The sources are in one tree; an installation of a checkout in development mode (``pip install -e``)
has all of them.

    EXTRA_PACKAGES   the packages, and the extras of ``wengert`` that bring them and what they need
    is_missing       whether a module is in one of them that is not installed
    find_extras      an import of one that is not installed is an error that names the extra
"""

from __future__ import annotations

import functools
import importlib.machinery
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

# pyproject.toml excludes these (tests/test_package.py compares the lists).
EXTRA_PACKAGES = {
    "wengert._engine.backends.cuda": "cuda",
    "wengert._engine.backends.llvm.export": "export",
    "wengert._engine.backends.llvm.kernels.messages": "mpi",
    "wengert._engine.jit.exporting": "export",
    "wengert._engine.visualization.fit_plots": "show",
    "wengert._engine.visualization.training_plots": "show",
    "wengert.cli.export": "export",
    "wengert.compat.autograd": "autograd",
    "wengert.compat.samplers": "samplers",
    "wengert.compat.sklearn": "learn",
    "wengert.distributed": "mpi",
    "wengert.integrate.sundials": "sundials",
    "wengert.nn.training.common_start": "mpi",
    "wengert.nn.training.processes": "mpi",
    "wengert.onnx": "onnx",
    "wengert.optim.nonlinear_programs": "nlp",
    "wengert.sparse.exported_derivatives": "export",
    "wengert.testing.array_api": "testing",
    "wengert.testing.laws": "testing",
    "wengert.testing.mpmath_oracle": "testing",
    "wengert.testing.op_checks": "testing",
    "wengert.testing.pairs": "testing",
}


def _found(name: str) -> importlib.machinery.ModuleSpec | None:
    """One of the packages, beside wengert or in another folder of ``sys.path``."""
    *parents, _ = name.split(".")
    here = str(Path(__file__).parents[3])
    folders = [str(Path(entry, *parents)) for entry in (here, *sys.path)]
    spec = importlib.machinery.PathFinder.find_spec(name, folders)
    return None if spec is None or spec.loader is None else spec


@functools.cache
def is_missing(module: str) -> bool:
    """Whether a module is in a package of wengert-extras that is not installed."""
    packages = [name for name in EXTRA_PACKAGES if f"{module}.".startswith(f"{name}.")]
    return bool(packages) and _found(packages[0]) is None


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
        if (spec := _found(name)) is not None:
            return spec
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
