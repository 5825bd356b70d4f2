"""Registration of functions of scipy.special, and of families of derivatives, as operations.

    function          an elementwise operation that is one ufunc of scipy.special
    sampled_function  the same, with random examples between bounds
    inverse_partials  partials of an inverse function, by the implicit function theorem
    public            the public names of a module: SciPy's ufuncs, and functions defined here

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

SciPy has no function for the derivative of J with respect to its order, nor for the derivatives of
that.  The n-th derivatives for all n are a family that is closed under differentiation.  An entry
states

    run       the values for plain arrays of float64, by a method of its own (integrals, series)
    partials  for each operand the map t -> partial * t, as for elementwise operations; it uses
              another member of the family, such as n + 1, or another order of the function

so that derivatives of any order exist.  Native code computes the values with the same functions: it
calls them with traced scalars, which NumPy takes for arrays of one element, and records the
operations (_engine/backends/llvm/special_functions).  So they are written with ufuncs of NumPy,
masks (`x[mask]`, `out[mask] = y`), `np.where`, and the loops of series_and_quadrature.py and
series_and_quadrature.py.  They do not branch on values, except for `mask.any()`, which skips a
computation.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.special

from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, register
from wengert._engine.core.op_facts import BY_SCIPY, Differentiation
from wengert._engine.core.spec import Spec, example_of, spec_of
from wengert._engine.core.symbolic.constraints import broadcast
from wengert._engine.kinds.batching import aligned
from wengert._engine.kinds.elementwise import POSITIVE, REAL, Elementwise, elementwise, strong_zero
from wengert._engine.kinds.opaque import Opaque
from wengert._engine.tensor.numpy_protocols import implements
from wengert.errors import DtypeError, OperandError, at, user_line

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


Rule = Callable[..., Any]


class FunctionFamily(Opaque):
    """Elementwise functions with integer parameters; see the decorator `family`."""

    differentiation = Differentiation(singular=True)

    def __init__(
        self,
        values: Callable[..., Any],
        operands: int,
        oracle: Any,
        complex_ok: bool = False,
        native: bool = False,
    ) -> None:
        super().__init__(values, name=f"{PREFIX}{values.__name__}", oracle=oracle, trusted=True)
        self.values = values
        self.complex_ok = complex_ok
        self.native = native
        self.host_callback = "" if native else BY_SCIPY
        self.run = self._run
        self.rules: tuple[Rule | None, ...] = (None,) * operands
        self.has_rules = False

    @property
    def differentiable(self) -> bool:  # type: ignore[override]
        """Whether partials are defined."""
        return self.has_rules

    has_jvp = True  # type: ignore[assignment]
    has_vjp = True  # type: ignore[assignment]

    def partials(self, *rules: Rule | None) -> FunctionFamily:
        """Define the partials: for each operand a map `(t, out, *operands, **params)`."""
        if len(rules) != len(self.rules):
            raise TypeError(f"{self.name} has {len(self.rules)} operands, {len(rules)} rules")
        self.rules, self.has_rules = rules, True
        return self

    def _run(self, *operands: Any, **params: Any) -> Any:
        """Compute values in double precision, and cast them to that of the operands."""
        arrays = np.broadcast_arrays(*[np.asarray(x) for x in operands])
        dtype = np.result_type(*operands)
        if dtype.kind not in "fc":
            dtype = np.dtype(float)
        if dtype.kind == "c" and not self.complex_ok:
            raise DtypeError(
                f"{self.name} of complex operands: the derivative of this function with respect to "
                "an order or parameter is implemented for real operands only. Differentiate with "
                "respect to the argument, or detach the parameters with stop_gradient"
                f"{at(user_line())}."
            )
        flat = [x.ravel().astype(complex if x.dtype.kind == "c" else float) for x in arrays]
        try:
            with np.errstate(all="ignore"):
                found = self.values(*flat, **params) if flat[0].size else flat[0]
                if found.dtype.kind == "c" and dtype.kind != "c":
                    dtype = np.result_type(dtype, np.complex64)
                return found.astype(dtype).reshape(arrays[0].shape)[()]
        except OverflowError as error:
            raise OperandError(
                f"{self.name} cannot be computed for these operands: {error}. Scale the problem, "
                f"or detach the parameters with stop_gradient{at(user_line())}."
            ) from error

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Spec:
        """The broadcast shape, and the dtype of the result for one element."""
        shape = broadcast(*[s.shape for s in specs])
        ones = [s if s.weak else Spec((1,) * len(s.shape), s.dtype) for s in specs]
        result = spec_of(self.run(*[example_of(s) for s in ones], **params))
        return Spec(shape, result.dtype)

    def batched_as_kind(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """The operation itself, with aligned batch axes."""
        return self(*aligned(args, batched), **params)

    def vjp(self, node: Node, t: Any, out: Any, inputs: Sequence[Any], ctx: RuleContext) -> Any:
        """The cotangent times each partial."""
        if not self.differentiable:
            raise self.no_rule(node)
        holomorphic = t.dtype.kind == "c"
        t = t.conj() if holomorphic else t
        bars: list[Any] = []
        for rule, a in zip(self.rules, node.args, strict=True):
            if rule is None or not ctx.wants(a):
                bars.append(None)
                continue
            g = rule(t, out, *inputs, **node.params)
            g = strong_zero(t, g) if ctx.guarded else g
            bars.append(g.conj() if holomorphic else g)
        return bars

    def jvp(self, node: Node, dots: Sequence[Any], out: Any, inputs: Any, ctx: RuleContext) -> Any:
        """The sum of partials times tangents."""
        if not self.differentiable:
            raise self.no_rule(node)
        total = None
        for rule, dot in zip(self.rules, dots, strict=True):
            if dot is None or rule is None:
                continue
            term = rule(dot, out, *inputs, **node.params)
            term = strong_zero(dot, term) if ctx.guarded else term
            total = term if total is None else total + term
        return total


def family(
    *, oracle: Any, complex_ok: bool = False, native: bool = False
) -> Callable[[Callable[..., Any]], FunctionFamily]:
    """Register a function as a family (a decorator).

    Parameters
    ----------
    oracle : callable
        The reference for the laws: an independent function, such as a `OracleExpression`.
    complex_ok : bool
        Whether complex operands are accepted.
    native : bool
        Whether native code can trace the function with scalars (see above); otherwise it calls it
        back in Python.

    The decorated function takes 1-d arrays of float64 of equal length, and integers by keyword.
    """

    def enter(values: Callable[..., Any]) -> FunctionFamily:
        kinds = [p.kind for p in inspect.signature(values).parameters.values()]
        number = sum(k is not inspect.Parameter.KEYWORD_ONLY for k in kinds)
        return register(FunctionFamily(values, number, oracle, complex_ok, native))

    return enter
