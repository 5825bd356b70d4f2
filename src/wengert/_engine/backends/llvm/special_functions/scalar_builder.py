"""The builder with which traced scalars emit instructions.

    fused        a product and a sum, rounded once
    called       a ufunc of NumPy or SciPy
    chosen       one of two values, by a condition
    branch       code that runs only if a condition holds
    repeat       a loop that carries values
    quadrature   Gauss' rule over panels, whose points are vector lanes

The loops are those requested by scipy/special/traced_loops.py and quadrature.py.  Loops cannot be
interrupted while they run, so each is bounded: an integral of more than `_MAX_PANELS` panels is
left to the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from typing import Any

import numpy as np

from ..ir.ir_builder import Section
from ..ir.llvm_types import BOOL, F64, I64, in_register
from ..ir.memory_access import load, store
from ..ir.scalar_language import Language
from ..ir.simd_value import ComplexLane, Lane
from .branch_scopes import Scope, deepest
from .scipy_symbols import UnsupportedFunction
from .traced_scalar import TracedScalar

_POINTS = 8  # points of an integral per vector
_MAX_PANELS = 1 << 18
_WHOLE = 64  # exponents up to which a power is a product


class ScalarBuilder:
    """Emits the instructions of one function.

    Parameters
    ----------
    scope : Scope
        The scope of the function.
    """

    def __init__(self, language: Language, scope: Scope) -> None:
        self.language, self.scope = language, scope
        self.loops = 0  # number of loops
        self.flag = ""  # stack slot of the flag for a missing result

    # ---- elements ------------------------------------------------------------------------------

    def wrapped(self, value: Any, scope: Scope) -> TracedScalar:
        """A value as a traced scalar; `scope` is that of constants."""
        section = value.section
        home = self.scope.homes.get(section) if section is not None else None
        return TracedScalar(self, value, scope if home is None else home[0])

    def constant(self, x: Any, scope: Scope) -> TracedScalar:
        """A number of Python or NumPy as a traced scalar."""
        dtype = np.asarray(x).dtype
        return TracedScalar(self, self.language.constant(x, dtype), scope)

    def called(self, ufunc: np.ufunc, inputs: Sequence[Any]) -> Any:
        """A ufunc of traced scalars and numbers."""
        scope = deepest(x.scope for x in inputs if isinstance(x, TracedScalar))
        operands = [_seen(x, scope) for x in inputs]
        name, s = ufunc.__name__, self.language
        if getattr(np, name, None) is not ufunc:
            found = s.special(name, *operands)
        elif name == "power":
            found = self._power(*operands)
        elif name == "logaddexp":
            found = _logaddexp(s, *operands)
        elif name == "square":
            found = operands[0] * operands[0]
        elif len(operands) == 1:
            found = s.unary(name, operands[0])
        elif len(operands) == 2:
            found = s.binary(name, *operands)
        else:
            raise UnsupportedFunction(name)
        if isinstance(found, tuple):
            return tuple(self.wrapped(x, scope) for x in found)
        return self.wrapped(found, scope)

    def _power(self, x: Any, y: Any) -> Any:
        """x**y; products if y is a small integer."""
        s = self.language
        whole = isinstance(y, int | float) and y == int(y) and abs(y) <= _WHOLE
        if not whole or not isinstance(x, Lane) or x.dtype.kind != "f":
            return s.binary("power", x, y)
        found, power, left = None, x, abs(int(y))
        while left:
            if left & 1:
                found = power if found is None else found * power
            left >>= 1
            power = power * power if left else power
        if found is None:
            return s.constant(1.0, x.dtype)
        return found if y > 0 else 1.0 / found

    def fused(self, x: Any, y: Any, z: Any) -> TracedScalar:
        """x * y + z, rounded once."""
        given = x, y, z
        scope = deepest(v.scope for v in given if isinstance(v, TracedScalar))
        return self.wrapped(self.language.fma(*[_seen(v, scope) for v in given]), scope)

    def chosen(
        self, condition: TracedScalar, x: float | TracedScalar, y: float | TracedScalar
    ) -> TracedScalar:
        """x if the condition holds, else y."""
        given = condition, x, y
        scope = deepest(v.scope for v in given if isinstance(v, TracedScalar))
        found = self.language.where(*[_seen(v, scope) for v in given])
        if not isinstance(found, Lane | ComplexLane):
            return self.constant(found, scope)
        return self.wrapped(found, scope)

    def branch(self, mask: TracedScalar, others: Sequence[TracedScalar]) -> Scope:
        """The scope of code that runs only if the mask holds, from which all of these are seen."""
        seen = [mask, *others]
        scope = deepest(x.scope for x in seen)
        stage = max(x.stage for x in seen if x.scope is scope)
        condition = mask.seen_in(scope)
        if condition.width > 1:
            raise UnsupportedFunction("a branch for some points of an integral")
        return scope.branch(condition.name, stage)

    def refuse(self, condition: TracedScalar) -> None:
        """Flag that there is no native result if a condition holds."""
        if not self.flag:
            self.flag = self.scope.function.slot("i1", 8)
            self.scope.stages[0].write(f"store i1 false, ptr {self.flag}")
        section = condition.scope.now
        value = condition.seen_in(condition.scope)
        old = section.value(f"load i1, ptr {self.flag}")
        section.write(f"store i1 {section.value(f'or i1 {old}, {value.name}')}, ptr {self.flag}")

    # ---- loops ---------------------------------------------------------------------------------

    def _inner(self, values: Sequence[Any]) -> Scope:
        return deepest(x.scope for x in values if isinstance(x, TracedScalar))

    def repeat(
        self,
        step: Callable[..., Any],
        state: Sequence[TracedScalar],
        times: int,
        going: Callable[..., Any] | None,
    ) -> tuple[TracedScalar, ...]:
        """The values after a number of steps, or until `going` is false."""
        self.loops += 1
        s, scope = self.language, self._inner(state)
        loop = scope.loop(str(times))
        dtypes = [x.dtype for x in state]
        slots = [self._slot(scope, d, 1) for d in dtypes]
        for x, slot in zip(state, slots, strict=True):
            store(s, loop.ahead, slot, x.seen_in(scope), 1, None)
        body, first = loop.body, loop.body.now

        def loaded(section: Section, home: Scope) -> list[TracedScalar]:
            pieces = zip(slots, dtypes, strict=True)
            return [TracedScalar(self, load(s, section, p, d, 1, None), home) for p, d in pieces]

        now = loaded(first, body)
        counter = s.cast(Lane(s, first, loop.counter, I64, 1), F64)
        if going is not None:
            loop.leave_unless(going(*now).seen_in(body).name)
        following = step(TracedScalar(self, counter, body), *now)
        last = loop.finish()
        for x, d, slot in zip(following, dtypes, slots, strict=True):
            value = x.seen_in(body) if isinstance(x, TracedScalar) else s.constant(x, d)
            store(s, last, slot, s.cast(value, d), 1, None)
        return tuple(loaded(scope.now, scope))

    def _slot(self, scope: Scope, dtype: Any, width: int) -> str:
        part = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
        number = width * (2 if dtype.kind == "c" else 1)
        kind = "i8" if dtype == BOOL else in_register(part)
        return scope.function.slot(f"[{number} x {kind}]", 64)

    def quadrature(
        self,
        f: Callable[[Any, Any], Any],
        bounds: tuple[Any, Any],
        panels: Any,
        rule: tuple[Any, Any],
        dtype: Any,
    ) -> TracedScalar:
        """The integral of f between bounds, by a rule of points and weights on panels.

        f is called with the points, and a function that selects the numbers that belong to them.
        """
        self.loops += 24
        s, dtype = self.language, np.dtype(dtype)
        low, high = bounds
        number = np.where(
            panels < 2.0 * _MAX_PANELS, np.ceil(np.maximum(panels, 4.0)), 2.0 * _MAX_PANELS
        )
        some = (high > low) & (number <= _MAX_PANELS)
        scope = self._inner([low, high, number])
        steps = len(rule[0]) // _POINTS
        turns: Any = np.where(some, number, 0.0)
        turns = turns.astype(I64) * steps
        half = (high - low) / (2.0 * number)
        loop = scope.loop(turns.seen_in(scope).name)
        total = self._slot(scope, dtype, _POINTS)
        store(s, loop.ahead, total, s.constant(0, dtype), _POINTS, None)
        body = loop.body
        turn = Lane(s, body.now, loop.counter, I64, 1)
        panel = s.lane(body.now, f"udiv i64 {turn.name}, {steps}", I64, 1)
        start = (turn - panel * steps) * (8 * _POINTS)
        nodes, weights = [self._table(body, v, start) for v in rule]
        center = s.cast(panel, F64) * 2.0 + 1.0
        points = TracedScalar(self, center + nodes, body) * half + low
        found = f(points, slice(None))
        value = found.seen_in(body) if isinstance(found, TracedScalar) else s.constant(found, dtype)
        value = s.cast(value, dtype)
        last = loop.finish()
        sum_ = load(s, last, total, dtype, _POINTS, None) + value * s.cast(weights, dtype)
        store(s, last, total, sum_, _POINTS, None)
        whole = load(s, scope.now, total, dtype, _POINTS, None)
        parts = [whole.real, whole.imag] if type(whole) is ComplexLane else [whole]
        added = [self._added(scope.now, x) for x in parts]
        sums = ComplexLane(s, added[0], added[1], dtype) if len(added) == 2 else added[0]
        result = TracedScalar(self, sums, scope) * half
        self.refuse((high > low) & (number > _MAX_PANELS))
        return np.where(high > low, result, 0.0)  # type: ignore[return-value]

    def _table(self, scope: Scope, values: Any, start: Lane) -> Lane:
        """A vector of numbers of a table, at an offset in bytes."""
        listed = ", ".join(f"double {self.language.constant(v, F64).name}" for v in values)
        name = f"rule.{len(values)}.{'nodes' if values[0] < 0 else 'weights'}"
        base = self.language.module.constant(name, f"[{len(values)} x double]", f"[{listed}]")
        address = scope.now.value(f"getelementptr i8, ptr {base}, i64 {start.name}")
        found: Lane = load(self.language, scope.now, address, F64, _POINTS, None)
        return found

    def _added(self, section: Section, lanes: Lane) -> Lane:
        """The sum of all lanes."""
        s = self.language
        callee = s.module.declare(
            f"llvm.vector.reduce.fadd.v{_POINTS}f64", "double", ["double", f"<{_POINTS} x double>"]
        )
        text = f"call reassoc double {callee}(double -0.0, {lanes.kind} {lanes.name})"
        return s.lane(section, text, F64, 1)


def _seen(x: Any, scope: Scope) -> Any:
    """An operand of the language: a lane or a number."""
    if isinstance(x, TracedScalar):
        return x.seen_in(scope)
    return x[()] if isinstance(x, np.ndarray) else x


def _logaddexp(s: Language, x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)), in NumPy's steps."""
    x, y = [s.cast(v, F64) for v in (x, y)]
    near = s.max(x, y) + s.log1p(s.exp(-s.abs(x - y)))
    return s.where(s.equal(x, y), x + log(2.0), near)
