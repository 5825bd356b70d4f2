"""Families of special functions as native code: traced scalars emit instructions.

    is_served    the work of a function, if it can be compiled
    called       its value for SIMD values

The text of a function is cached in the process, and included in the programs that call it.  The
builder has, for traced scalars:

    fused        a product and a sum, rounded once
    called       a ufunc of NumPy or SciPy
    chosen       one of two values, by a condition
    branch       code that runs only if a condition holds
    repeat       a loop that carries values
    quadrature   Gauss' rule over panels, whose points are vector lanes

The loops are those requested by scipy/special/series_and_quadrature.py.  Loops cannot be
interrupted while they run, so each is bounded: an integral of more than `_MAX_PANELS` panels is
left to the interpreter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..ir import execution_engine
from ..ir.ir_builder import Function, ModuleBuilder, Section
from ..ir.llvm_types import BOOL, C128, F64, I64, Dtype, in_register, part_of
from ..ir.memory_access import load, store
from ..ir.scalar_language import Language
from ..ir.simd_value import ComplexLane, Lane
from .scipy_symbols import NativeFunction, UnsupportedFunction, of_target
from .traced_scalar import Scope, TracedScalar, deepest

if TYPE_CHECKING:
    from wengert._engine.kinds.opaque import Opaque

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


# ---- families of functions -----------------------------------------------------------------------


_LINE, _LOOP = 1, 400  # the work of a line of text, and the factor of a loop
# The bits of the NaN that marks a missing native result.
_REFUSED = 0x7FF8_5745_4E47_4552


class CompiledFunction(NamedTuple):
    """A member of a family, for operands of some dtypes.

    parts : the definitions that it needs in a module.
    target : the name of the function to call.
    work : relative to that of an addition.
    refuses : whether its result may be `_REFUSED`.
    """

    parts: dict[str, str]
    target: NativeFunction
    work: int
    refuses: bool


def is_served(op: Any, params: dict[str, Any], dtypes: Sequence[Dtype]) -> int | None:
    """The work of a member for operands of these dtypes; None if it cannot be compiled."""
    found = _member(op, params, dtypes)
    return None if found is None else found.work


def called(op: Opaque, params: dict[str, Any], dtype: Dtype, s: Language, *lanes: Any) -> Any:
    """The value of a member for lanes, in a dtype."""
    found = _member(op, params, [x.dtype for x in lanes])
    assert found is not None
    s.module.include(found.parts)
    (value,) = of_target(
        s, found.target, [s.cast(x, d) for x, d in zip(lanes, found.target.inner, strict=True)]
    )
    if found.refuses and s.reader is not None:
        at, mask = s.reader
        real = getattr(value, "real", value)
        at.refuse(s.compare("equal", s.bits(real), s.constant(_REFUSED, I64)), mask)
    return s.cast(value, dtype)


def _member(op: Any, params: dict[str, Any], dtypes: Sequence[Dtype]) -> CompiledFunction | None:
    whole = tuple(C128 if d.kind == "c" else F64 for d in dtypes)
    if C128 in whole and not op.complex_ok:
        return None
    return _written(op, tuple(sorted(params.items())), whole, execution_engine.features())


@functools.lru_cache(maxsize=1024)
def _written(
    op: Any, params: tuple[tuple[str, Any], ...], dtypes: tuple[Dtype, ...], _: str
) -> CompiledFunction | None:
    """The text of a member; None if it calls a function without a native version."""
    try:
        return _text(op, dict(params), dtypes)
    except UnsupportedFunction:
        return None


def _text(op: Any, params: dict[str, Any], dtypes: tuple[Dtype, ...]) -> CompiledFunction:
    module = ModuleBuilder()
    numbers = "".join(f".{n}{v}" for n, v in sorted(params.items()))
    kinds = "".join(d.char for d in dtypes)
    name = "family." + "".join(c if c.isalnum() else "." for c in f"{op.name}{numbers}.{kinds}")
    listed = [(in_register(part_of(d)), f"x{k}") for k, d in enumerate(_parts(dtypes))]
    s = Language(module)
    known: list[Any] = []

    def write(result: str) -> Any:
        function = Function(
            module, name, [*listed, ("i32", "unused")], result, "noinline nounwind #1"
        )
        scope = Scope(function.body, {})
        s.home = scope.now
        names = iter(range(len(listed)))

        def argument(dtype: Dtype) -> Any:
            lanes = [Lane(s, scope.now, f"%x{next(names)}", p, 1) for p in _parts([dtype])]
            return ComplexLane(s, lanes[0], lanes[1], dtype) if dtype.kind == "c" else lanes[0]

        writer = ScalarBuilder(s, scope)
        operands = [TracedScalar(writer, argument(d), scope) for d in dtypes]
        with np.errstate(all="ignore"):
            found = op.values(*operands, **params)
        known[:] = function, scope, writer
        return found.value

    value = write("double")
    outer = C128 if value.dtype.kind == "c" else F64
    if outer == C128:
        module.parts.clear()
        s.calls.clear()
        value = write("{double, double}")
    function, scope, writer = known
    value = _or_refused(s, writer, scope, s.cast(value, outer))
    if outer == C128:
        kind, whole = "{double, double}", "poison"
        for k, part in enumerate((value.real, value.imag)):
            whole = scope.now.value(f"insertvalue {kind} {whole}, double {part.name}, {k}")
        scope.now.write(f"ret {kind} {whole}")
    else:
        scope.now.write(f"ret double {value.name}")
    work = _LINE * len(function.body.lines()) + _LOOP * writer.loops
    module.add(function)
    target = NativeFunction(name, dict(module.symbols), "", dtypes, (outer,), (outer,))
    return CompiledFunction(module.parts, target, work, bool(writer.flag))


def _or_refused(s: Language, writer: ScalarBuilder, scope: Scope, value: Any) -> Any:
    """The result, or the NaN that marks a missing one."""
    if not writer.flag:
        return value
    flag = s.lane(scope.now, f"load i1, ptr {writer.flag}", BOOL, 1)
    text = f"select i1 {flag.name}, double bitcast (i64 {_REFUSED} to double), double "
    real = s.lane(scope.now, text + getattr(value, "real", value).name, F64, 1)
    return ComplexLane(s, real, value.imag, value.dtype) if type(value) is ComplexLane else real


def _parts(dtypes: Sequence[Dtype]) -> list[Dtype]:
    return [part_of(d) for d in dtypes for _ in range(2 if d.kind == "c" else 1)]
