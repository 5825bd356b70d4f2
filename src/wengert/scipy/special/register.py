"""Registration of functions of scipy.special as operations, with oracles.

    function            an elementwise operation that is one ufunc of scipy.special
    sampled_function    the same, with random examples between bounds
    inverse_partials    partials of an inverse function, by the implicit function theorem
    public              the public names of a module: SciPy's ufuncs, and functions defined here

An entry is

    gammaln = function("gammaln", "x", domain=[POSITIVE], oracle="loggamma(x)", doc="...")
    gammaln.partials(lambda t, out, x: t * digamma(x))

It is registered as "special.gammaln", so that it does not conflict with a user's operation named
gammaln.  The ufunc `scipy.special.gammaln` dispatches to it for tensors; so the public name is the
ufunc itself, with `out=`, `where=` and its other arguments, and with SciPy's values for plain
arrays.  Native code calls SciPy's C function
(_engine/backends/llvm/special_functions/scipy_symbols.py), or vector math of the same name.

The laws check an oracle that is a string at a grid of extreme points, with 800 digits for
derivatives (wengert.testing, whole_range).  For functions that take mpmath milliseconds per element
that would take hours.  An `OracleExpression` is evaluated only at the examples of the operation, by
wengert.testing.mpmath_oracle; extreme points have their own tests (tests/scipy).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.special

from wengert._engine.kinds.elementwise import POSITIVE, REAL, Elementwise, elementwise
from wengert._engine.tensor.numpy_protocols import implements

__all__: list[str] = []


class OracleExpression(NamedTuple):
    """A function of arrays, given as an mpmath expression.

    operands : the names of the operands, separated by spaces.
    expression : a Python expression in functions of mpmath, operands and parameters.
    """

    operands: str
    expression: str


PREFIX = "special."


def function(
    name: str,
    operands: str,
    *,
    doc: str,
    result: int | None = None,
    prefix: str = PREFIX,
    wide: bool = False,
    **options: Any,
) -> Elementwise:
    """Register a ufunc of scipy.special as an elementwise operation, without partials.

    Parameters
    ----------
    name : str
        SciPy's name.
    operands : str
        The names of the operands, separated by spaces.
    doc : str
        The formula, its source (DLMF) and the domain.
    result : int, optional
        The index of the result, for a ufunc with several; then the operation is named after the
        index, "special.airy.2", and tensors are not dispatched to it.
    prefix : str
        The prefix of the name in the registry.
    wide : bool
        Compute single precision tensors in double, where SciPy's own loop is inaccurate.
    **options
        Passed to `elementwise`: domain, oracle, kinks, complex_ok, singular ...

    Returns
    -------
    Elementwise
    """

    def body(s: Any, *xs: Any) -> Any:
        found = s.special(name, *xs)
        return found if result is None else found[result]

    names = ["language", *operands.split()]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    made: Any = body
    made.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])
    made.__name__ = name
    made.__doc__ = doc
    theirs = getattr(scipy.special, name)
    ufunc = theirs if result is None and isinstance(theirs, np.ufunc) else None
    if ufunc is None:
        options = {"half": False} | options
    full = f"{prefix}{name}" + ("" if result is None else f".{result}")
    entry: Elementwise = elementwise(body, name=full, ufunc=ufunc, **options)
    if wide:
        entry.run = functools.partial(_run_in_double, theirs)
    return entry


def sampled_function(
    name: str,
    operands: str,
    doc: str,
    oracle: Any,
    bounds: Sequence[tuple[float, float]] = (),
    domain: Sequence[Any] | None = None,
    examples: Callable[[Any], Any] | None = None,
) -> Elementwise:
    """Register a ufunc with random examples; it is singular and has no half precision.

    Parameters
    ----------
    name, operands, doc
        As for `function`.
    oracle : str or callable
        An mpmath expression of the operands, or a function.
    bounds : sequence of pairs
        The range of the examples of each operand; a pair of int gives integers.
    domain : sequence, optional
        By default deduced from the bounds: integers, [0, 1], positive or all real numbers.
    examples : callable, optional
        ``examples(rng)``, instead of bounds.
    """
    if isinstance(oracle, str):
        oracle = OracleExpression(operands, oracle)
    domain = [_domain(*b) for b in bounds] if domain is None else domain
    entry = function(
        name, operands, doc=doc, domain=domain, oracle=oracle, singular=True, half=False
    )

    def draw(rng: Any) -> Any:
        yield (
            tuple(
                rng.integers(a, b + 1, size=2) if isinstance(a, int) else rng.uniform(a, b, size=2)
                for a, b in bounds
            ),
            {},
        )

    entry.examples(examples or draw)
    return entry


def _domain(low: float, high: float) -> tuple[float, float]:
    if isinstance(low, int):
        return low, high
    return REAL if low < 0 else (0.0, 1.0) if high < 1 else POSITIVE


def inverse_partials(
    place: int, *slopes: Callable[..., Any], ends: tuple[float, float] | None = None
) -> list[Callable[..., Any]]:
    """The partials of an inverse function: of the argument for which a function has a given value.

    Parameters
    ----------
    place : int
        The index of the argument that is solved for; the value of the function is in its place.
    *slopes : callable
        The partial derivatives of the function with respect to its arguments.
    ends : pair of float, optional
        SciPy's result is one of them, or beyond, if there is no solution: the partials are NaN.
    """

    def partial(k: int) -> Callable[..., Any]:
        def rule(t: Any, out: Any, *operands: Any) -> Any:
            point = (*operands[:place], out, *operands[place + 1 :])
            numerator = t if k == place else -t * slopes[k](*point)
            slope = slopes[place](*point)
            if ends is not None:
                slope = slope * np.where((out > ends[0]) & (out < ends[1]), 1.0, np.nan)
            return numerator / slope

        return rule

    return [partial(k) for k in range(len(slopes))]


def _run_in_double(theirs: np.ufunc, *xs: Any) -> Any:
    """Compute a ufunc in double precision, and cast to the dtype that it would return."""
    kinds = tuple([x.dtype if hasattr(x, "dtype") else type(x) for x in xs])
    dtype = theirs.resolve_dtypes((*kinds, None))[-1]
    return np.asarray(theirs(*[np.asarray(x, np.float64) for x in xs])).astype(dtype)[()]


def public(names: Iterable[str], ours: Mapping[str, Any]) -> dict[str, Any]:
    """The public functions of a module.

    Parameters
    ----------
    names : iterable of str
    ours : mapping
        The module's namespace. Operations and functions that implement a SciPy ufunc for tensors
        are registered with it and replaced by the ufunc.

    Returns
    -------
    dict
    """
    found: dict[str, Any] = {}
    for name in names:
        theirs, mine = getattr(scipy.special, name, None), ours[name]
        if not isinstance(theirs, np.ufunc):
            found[name] = mine
            continue
        if getattr(mine, "ufunc", None) is not theirs:
            implements(theirs)(mine)
        found[name] = theirs
    return found
