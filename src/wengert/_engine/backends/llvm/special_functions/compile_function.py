"""Families of special functions as native code.

    is_served   the work of a function, if it can be compiled
    called      its value for SIMD values

The text of a function is cached in the process, and included in the programs that call it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..ir import execution_engine
from ..ir.ir_builder import Function, ModuleBuilder
from ..ir.llvm_types import BOOL, C128, F64, I64, Dtype, in_register, part_of
from ..ir.scalar_language import Language
from ..ir.simd_value import ComplexLane, Lane
from .branch_scopes import Scope
from .scalar_builder import ScalarBuilder
from .scipy_symbols import NativeFunction, UnsupportedFunction, of_target
from .traced_scalar import TracedScalar

if TYPE_CHECKING:
    from wengert._engine.kinds.opaque import Opaque

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
