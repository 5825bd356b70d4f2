"""SciPy's compiled modules without the packages around them.

    extension    a compiled module by its full name: "scipy.linalg.cython_blas"

Native programs need addresses of BLAS and LAPACK, which two compiled modules export.  Importing
them the usual way runs `scipy.linalg` first: 0.15 s, for a program that is compiled in 0.05 s.
They do not depend on it, so they are loaded from their files and removed from `sys.modules`: a
later import of SciPy's package behaves as always, and finds the same module.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from importlib.machinery import PathFinder
from types import ModuleType

from wengert._engine.core.fork_safe_locks import lock

_LOCK = lock()


def extension(name: str) -> ModuleType:
    """A compiled module of SciPy.

    Parameters
    ----------
    name : str
        Its full name.

    Returns
    -------
    module
        Imported in the usual way if it cannot be loaded alone.

    Examples
    --------
    >>> "dgemm" in extension("scipy.linalg.cython_blas").__pyx_capi__
    True
    """
    with _LOCK:
        package = name.rpartition(".")[0]
        # `import scipy` may set the search path of libraries (Windows), so it comes first.
        if package not in sys.modules and os.name == "posix":
            found = _from_file(name)
            if found is not None:
                return found
        return importlib.import_module(name)


def _from_file(name: str) -> ModuleType | None:
    """The module loaded from its file; None if that fails."""
    top, *folders, short = name.split(".")
    base = importlib.util.find_spec(top)
    for folder in (base.submodule_search_locations or []) if base else []:
        file = PathFinder.find_spec(short, [os.path.join(folder, *folders)])
        if file is None or file.origin is None:
            continue
        spec = importlib.util.spec_from_file_location(name, file.origin)
        if spec is None or spec.loader is None:
            continue
        try:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        except ImportError:
            return None
        finally:
            sys.modules.pop(name, None)  # compiled modules add themselves
        return module
    return None
