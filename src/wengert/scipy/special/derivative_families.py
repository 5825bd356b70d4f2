"""Families: derivatives of a special function, indexed by integers.

The derivative of J by its order is not a function that SciPy has, and neither is the derivative of
that.  Together with a number n of derivatives they are a family that is closed: the entry states

    run       the value from plain arrays of float64, by a method of its own (integrals, series)
    partials  for each operand the map t -> partial * t, as those of elementwise entries, which
              names another member of the same family: n + 1, or the neighbors of the order

so every order of derivative exists.  Native code computes them by the same functions: it calls
`run` with numbers that NumPy takes for arrays of one element, and records what is done with
them (backends/llvm/special_functions).  So `values` is written with the ufuncs of NumPy, masks
(`x[mask]`, `out[mask] = y`), `np.where`, the loops of traced_loops.py and quadrature.py, and does
not branch on values: `mask.any()` only to leave out what is not needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, register
from wengert._engine.core.op_facts import BY_SCIPY
from wengert._engine.core.op_traits import Differentiation
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
    """Elementwise functions of an integer parameter; made by the decorator `family`."""

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
        self.ready = False

    @property
    def differentiable(self) -> bool:  # type: ignore[override]
        """Whether its partials are stated."""
        return self.ready

    has_jvp = True  # type: ignore[assignment]
    has_vjp = True  # type: ignore[assignment]

    def partials(self, *rules: Rule | None) -> FunctionFamily:
        """State the partials, one map `(t, out, *operands, **params) -> partial * t` for each."""
        if len(rules) != len(self.rules):
            raise TypeError(f"{self.name} has {len(self.rules)} operands, {len(rules)} rules")
        self.rules, self.ready = rules, True
        return self

    def _run(self, *operands: Any, **params: Any) -> Any:
        """The values, computed in double precision and given in that of the operands."""
        arrays = np.broadcast_arrays(*[np.asarray(x) for x in operands])
        dtype = np.result_type(*operands)
        if dtype.kind not in "fc":
            dtype = np.dtype(float)
        if dtype.kind == "c" and not self.complex_ok:
            raise DtypeError(
                f"{self.name} was given complex operands: the derivative of this function by an "
                "order or parameter is known for real ones only. Differentiate with respect to the "
                f"argument, or keep the parameters out of it (stop_gradient){at(user_line())}."
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
                f"{self.name} has operands that are too large for it: {error}. Scale the problem, "
                f"or keep these parameters out of the derivative{at(user_line())}."
            ) from error

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Spec:
        """The common shape; what it gives for one element says of which dtype."""
        shape = broadcast(*[s.shape for s in specs])
        small = [s if s.weak else Spec((1,) * len(s.shape), s.dtype) for s in specs]
        one = spec_of(self.run(*[example_of(s) for s in small], **params))
        return Spec(shape, one.dtype)

    def batched_as_kind(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """The operation itself, the rows lined up."""
        return self(*aligned(args, batched), **params)

    def vjp(self, node: Node, t: Any, out: Any, inputs: Sequence[Any], ctx: RuleContext) -> Any:
        """Each partial times the cotangent."""
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
    """Register the function below as a family (a decorator).

    Parameters
    ----------
    oracle : callable
        The same by another way, for the laws; `Witness` is one.
    complex_ok : bool
        It takes complex operands too; else they are refused.
    native : bool
        The function below can be read with elements in place of arrays (above); else native code
        calls it back in Python.

    The function below takes 1-d arrays of float64, all of one length, and by name integers.
    """

    def enter(values: Callable[..., Any]) -> FunctionFamily:
        kinds = [p.kind for p in inspect.signature(values).parameters.values()]
        number = sum(k is not inspect.Parameter.KEYWORD_ONLY for k in kinds)
        return register(FunctionFamily(values, number, oracle, complex_ok, native))

    return enter
