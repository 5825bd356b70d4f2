"""The namespaces that are compared, and the public functions in them.

Of a distribution of scipy.stats the methods count, ``norm.logpdf``, and a class counts where its
instances are functions, as ``CubicSpline``.
"""

from __future__ import annotations

import inspect
import warnings
from importlib import import_module
from operator import attrgetter
from types import ModuleType
from typing import Any

from .calls import call_of
from .numpy_calls import WAYS
from .probe import Facts, facts
from .reasons import reason_of
from .scipy_calls import WAYS as WAYS_OF_SCIPY

SPACES = """numpy numpy.linalg numpy.fft
    numpy.polynomial.polynomial numpy.polynomial.chebyshev numpy.polynomial.legendre
    numpy.polynomial.laguerre numpy.polynomial.hermite numpy.polynomial.hermite_e
    scipy.special scipy.linalg scipy.fft scipy.stats
    scipy.signal scipy.interpolate scipy.integrate scipy.ndimage""".split()
CLASSES = ("scipy.interpolate",)  # those of which the instances are functions
REAL = ("scipy.stats",)  # those of real numbers only
METHODS = "logpdf pdf logpmf pmf logcdf cdf logsf sf ppf isf entropy mean var std".split()


def theirs_of(space: str) -> ModuleType:
    """The module of NumPy or SciPy."""
    return import_module(space)


def ours_of(space: str) -> Any:
    """The module of wengert of that name, or None."""
    try:
        return attrgetter(space)(import_module("wengert"))
    except (AttributeError, ModuleNotFoundError):
        return None


def public_names(module: Any) -> list[str]:
    """The public functions of a module, distributions, and classes whose instances are called."""
    names = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
    found = []
    for name in sorted(set(names)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            what = getattr(module, name, None)
        if not inspect.isclass(what):
            if callable(what) or _is_distribution(what):
                found.append(name)
        elif module.__name__ in CLASSES and any("__call__" in vars(c) for c in what.__mro__):
            found.append(name)
    return found


def _is_distribution(what: Any) -> bool:
    return callable(getattr(what, "logpdf", None)) or callable(getattr(what, "logpmf", None))


def names_of(space: str) -> tuple[list[str], list[str]]:
    """The functions that both have, and those that only NumPy or SciPy has."""
    ours = ours_of(space)
    both: list[str] = []
    missing: list[str] = []
    for name in public_names(theirs_of(space)):
        mine, theirs = getattr(ours, name, None), getattr(theirs_of(space), name)
        if mine is None:
            missing.append(name)
        elif not _is_distribution(theirs):
            both.append(name)
        else:
            methods = [m for m in METHODS if hasattr(theirs, m)]
            both += [f"{name}.{m}" for m in methods if hasattr(mine, m)]
            missing += [f"{name}.{m}" for m in methods if not hasattr(mine, m)]
    return both, missing


def way_of(space: str, name: str) -> str:
    """How a call of it is a function of its arrays; see `probe.Program`."""
    written = (WAYS | WAYS_OF_SCIPY).get(space, {}).get(name)
    if written is not None:
        return written
    return "called" if inspect.isclass(getattr(theirs_of(space), name, None)) else ""


def collected(space: str, names: list[str] | None = None, quick: bool = False) -> dict[str, Facts]:
    """The facts about the functions of a namespace, found now.

    Parameters
    ----------
    space : str
        As ``"numpy.linalg"``.
    names : list of str, optional
        Of some only.
    quick : bool
        Without order two and native code.
    """
    theirs, ours = theirs_of(space), ours_of(space)
    found: dict[str, Facts] = {}
    for name in names_of(space)[0] if names is None else names:
        function = attrgetter(name)(theirs)
        called = reason_of(space, name) == "not yet"  # else it might write a file, or a setting
        call = call_of(space, name, function) if called else None
        if call is None:
            found[name] = {"kind": "not called"}
            continue
        way = way_of(space, name)
        found[name] = facts(attrgetter(name)(ours), function, call, way, quick, space in REAL)
    return found
