"""Late: what is imported when it is used, and not before.

Pictures, files, diagnoses and other backends are a third of what `wengert.jit` would import for a
first call, which uses none of them.

    Late          a module in whose place it stands, until something of it is asked for
    public_dir    a module's `__dir__`: its public names
    late_names    a package's `__getattr__`, for names that stand in modules of its own
    STARTED       when wengert was imported: sources that are changed later are not what runs
    FAMILIES      modules that register operations and that `import wengert` leaves out
    load_families  imports them: whoever looks for an operation that is not there tries this first
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

STARTED = time.time_ns()
FAMILIES: list[str] = []  # full names, entered by the package that has them (wengert/__init__.py)


# What `dir` shows of every module beside its public names.
DUNDERS = ("__all__", "__doc__", "__file__", "__name__", "__package__", "__path__", "__spec__")


def public_dir(module: str, *more: str) -> Callable[[], list[str]]:
    """A module's `__dir__`: what it says is public in `__all__`, and submodules named here.

    Parameters
    ----------
    module : str
        Its `__name__`.
    *more : str
    """
    return lambda: sorted({*sys.modules[module].__all__, *more, *DUNDERS})


class Late:
    """A module that is imported when something of it is asked for.

    Parameters
    ----------
    name : str
        Its full name.

    Examples
    --------
    >>> Late("wengert.core.tree").flatten((1, 2))[0]
    [1, 2]
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)

    def __repr__(self) -> str:
        return f"<late {self._name}>"


def late_names(package: str, where: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__`, which imports the module that a name stands in.

    Parameters
    ----------
    package : str
        Its `__name__`.
    where : mapping from str to str
        For each name the module, relative to the package: ``".saving"``. A name must not be that
        of a module in the package, which would take its place.

    Returns
    -------
    callable
    """

    def __getattr__(name: str) -> Any:
        if name in where:
            return getattr(import_module(where[name], package), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return __getattr__


def load_families() -> bool:
    """Import the modules in FAMILIES; False if there is none that was not imported already."""
    waiting = [name for name in FAMILIES if name not in sys.modules]
    for name in waiting:
        import_module(name)
    return bool(waiting)
