"""Families of functions: a special function and its derivatives, indexed by integer parameters.

SciPy has no function for the derivative of J with respect to its order, nor for the derivatives of
that.  The n-th derivatives for all n are a family that is closed under differentiation.  An entry
states

    run       the values for plain arrays of float64, by a method of its own (integrals, series)
    partials  for each operand the map t -> partial * t, as for elementwise operations; it uses
              another member of the family, such as n + 1, or another order of the function

so that derivatives of any order exist.  Native code computes the values with the same functions: it
calls them with traced scalars, which NumPy takes for arrays of one element, and records the
operations (_engine/backends/llvm/special_functions).  So they are written with ufuncs of NumPy,
masks (`x[mask]`, `out[mask] = y`), `np.where`, and the loops of traced_loops.py and quadrature.py.
They do not branch on values, except for `mask.any()`, which skips a computation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, register
from wengert._engine.core.op_facts import BY_SCIPY, Differentiation
from wengert._engine.core.spec import Spec, example_of, spec_of
from wengert._engine.core.symbolic.constraints import broadcast
from wengert._engine.kinds.batching import aligned
from wengert._engine.kinds.elementwise import strong_zero
from wengert._engine.kinds.opaque import Opaque
from wengert.errors import DtypeError, OperandError, at, user_line

from .register import PREFIX

__all__: list[str] = []

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
