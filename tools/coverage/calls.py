"""What a function is called with, to see what it can do.

A call is written as the arguments are in a program (numpy_calls.py), and read here.  A function of
SciPy whose operation states a domain or examples is called with these, as the laws do; any other is
tried with a few usual arguments, and the first that SciPy takes are it.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy

from wengert._engine.core import pytree
from wengert._engine.core.op import REGISTRY
from wengert.testing.laws.common import arguments_of

from .distributions import call_of_method
from .numpy_calls import FAMILIES, FFT, LINALG, NUMPY, SERIES
from .scipy_calls import SCIPY

Call = tuple[tuple[Any, ...], dict[str, Any]]


def _given(*args: Any, **named: Any) -> Call:
    return args, named


def _square_sum(x: Any) -> Any:
    return (x * x).sum()


_A = np.array([[2.1, 0.3, -0.4], [0.2, 1.4, 0.5], [-0.6, 0.1, 1.7]])
WORDS: dict[str, Any] = {
    "V": np.array([0.31, 0.72, 0.55, 0.18]),
    "W": np.array([0.64, 0.27, 0.83, 0.45]),
    "X": np.array([[0.31, 0.72, 0.55], [0.18, 0.91, 0.43]]),
    "Y": np.array([[0.64, 0.27, 0.83], [0.45, 0.12, 0.77]]),
    "T": np.linspace(0.1, 1.2, 12).reshape(2, 2, 3) ** 2,
    "A": _A,
    "B": np.array([[0.3, 1.1, 0.2], [-0.7, 0.4, 0.6], [0.9, -0.2, 0.8]]),
    "P": _A @ _A.T,
    "Z": np.array([0.3 + 0.5j, -0.7 + 0.2j, 0.6 - 0.4j, 0.1 + 0.9j]),
    "I": np.array([3, 1, 2, 1]),
    "J": np.array([1, 2, 1, 3]),
    "C": np.array([True, False, True, True]),
    "S": np.array([0.0, 0.4, 0.9, 1.3]),
    "L": np.linspace(0.1, 1.0, 12) ** 2,
    "U": np.array([[0.0, 0.3, 0.2], [2.1, 1.7, 1.9]]),
    "np": np,
    "scipy": scipy,
    "square_sum": _square_sum,
    "given": _given,
}


def _read(table: str) -> dict[str, str]:
    lines = [line.split(" ", 1) for line in table.strip().splitlines()]
    return {name: arguments for name, arguments in lines}


@functools.cache
def _tables() -> dict[str, dict[str, str]]:
    tables = {"numpy": NUMPY, "numpy.linalg": LINALG, "numpy.fft": FFT}
    for family, short in FAMILIES.items():
        tables[f"numpy.polynomial.{family}"] = SERIES.replace("%", short)
    tables |= {f"scipy.{name}": table for name, table in SCIPY.items()}
    return {space: _read(table) for space, table in tables.items()}


def call_of(space: str, name: str, theirs: Any) -> Call | None:
    """The arguments to probe a function with; None if nobody knows any."""
    written = _tables().get(space, {}).get(name)
    if written is not None:
        made: Call = eval(f"given({written})", dict(WORDS))  # a table of ours, as a program has it
        return made
    if hasattr(getattr(theirs, "__self__", None), "shapes"):
        return call_of_method(name, theirs.__self__)
    for found in (*_stated(space, name), *_usual(theirs)):
        if _is_taken(theirs, found):
            return found
    return None


def _stated(space: str, name: str) -> Iterator[Call]:
    """With the first examples of the operation of that name, where there are numbers in them."""
    op: Any = REGISTRY.get(name) or REGISTRY.get(f"{space.rpartition('.')[2]}.{name}")
    if not space.startswith("scipy") or op is None:
        return
    try:
        examples = list(arguments_of(op, np.random.default_rng(0)))
    except Exception:  # of no use here
        return
    for args, params in examples:
        if any(np.size(a) > 1 for a in args):
            yield tuple(args), dict(params)


def _usual(theirs: Any) -> Iterator[Call]:
    count = getattr(theirs, "nin", None) or _number_of_arguments(theirs)
    v, w = WORDS["V"], WORDS["W"]
    vectors = [v, w, 1.0 - v * w, v + w]
    if count:
        yield tuple(vectors[:count]), {}
    for args in ((v,), (v, w), (2, v), (WORDS["A"],), (WORDS["A"], v[:3]), (2, 0.7, v)):
        yield args, {}


def _number_of_arguments(theirs: Any) -> int:
    """How many arguments have to be given."""
    try:
        parameters = inspect.signature(theirs).parameters.values()
    except (TypeError, ValueError):
        return 0
    return sum(
        p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        for p in parameters
    )


def _is_taken(theirs: Callable[..., Any], call: Call) -> bool:
    args, named = pytree.tree_map(lambda a: a.copy() if isinstance(a, np.ndarray) else a, call)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = theirs(*args, **named)
        except Exception:
            return False
    parts = [np.asarray(part) for part in pytree.flatten(made)[0] if part is not None]
    return bool(parts) and all(p.dtype.kind not in "fc" or np.isfinite(p).all() for p in parts)
