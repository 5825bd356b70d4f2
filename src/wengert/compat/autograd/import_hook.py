"""Imports of `autograd` that give the modules of this package.

With the hook installed, ``import autograd.numpy as np`` in any module gives
`wengert.compat.autograd.numpy`, whether HIPS autograd is installed or not.  Modules imported before
keep what they have imported.

    install    install the hook
    remove     remove it, and the modules that it has given
    Finder     the finder on `sys.meta_path`
    import_all import all modules of a package
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ...errors import ArgumentError

__all__ = ["install", "remove"]

NAME = "autograd"
_PACKAGE = __name__.rpartition(".")[0]


class Finder(MetaPathFinder, Loader):
    """Finds `autograd` and its submodules in this package."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of `autograd`; None for modules of other names.

        Raises
        ------
        ModuleNotFoundError
            A submodule that this package has not.
        """
        if fullname == NAME:
            return ModuleSpec(fullname, self, origin=_PACKAGE)
        if fullname.startswith(f"{NAME}."):
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: imports of autograd give wengert.compat.autograd, "
                "which has no such module (docs/autograd-users.md lists those it has).",
                name=fullname,
            )
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Put the modules of this package in the places of those of autograd.

        All at once: a later import of a submodule would ask the finders of other programs first,
        and that of pytest would read its file a second time.
        """
        import_all(_PACKAGE)
        for name in [n for n in sys.modules if n == _PACKAGE or n.startswith(f"{_PACKAGE}.")]:
            sys.modules[NAME + name.removeprefix(_PACKAGE)] = sys.modules[name]


def import_all(package: str) -> None:
    """Import the modules of a package, and of the packages in it."""
    for _, name, is_package in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if name != "__main__":
            importlib.import_module(f"{package}.{name}")
            if is_package:
                import_all(f"{package}.{name}")


_FINDER = Finder()


def install(strict: bool = False) -> None:
    """Make ``import autograd`` give `wengert.compat.autograd`, in this process.

    Parameters
    ----------
    strict : bool, default False
        Refuse what autograd refuses (strict.py), for programs that must also run with autograd.

    Raises
    ------
    ArgumentError
        autograd itself has been imported before.

    Examples
    --------
    >>> from wengert.compat.autograd import import_hook
    >>> import_hook.install()
    >>> from autograd import grad
    >>> import autograd.numpy as np
    >>> float(grad(np.tanh)(0.0))
    1.0
    >>> import_hook.remove()
    """
    if strict:
        importlib.import_module(f"{_PACKAGE}.strict").enable()
    if _FINDER in sys.meta_path:
        return
    found: Any = sys.modules.get(NAME)
    if found is not None:
        raise ArgumentError(
            f"autograd was imported before, from {getattr(found, '__file__', '?')}. Install the "
            "import hook first, or run the program with "
            "`python -m wengert.compat.autograd script.py`."
        )
    sys.meta_path.insert(0, _FINDER)


def remove() -> None:
    """Remove the hook: later imports of autograd give autograd itself, if it is installed."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
        importlib.import_module(f"{_PACKAGE}.strict").disable()
        for name in [n for n in sys.modules if n == NAME or n.startswith(f"{NAME}.")]:
            del sys.modules[name]
