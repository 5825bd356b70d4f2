"""SciPy's special functions in native code: ``s.special("jv", order, x)`` in a body.

    leaves          functions implemented in wengert are called as vector functions
    cython_special  C functions, called for one lane after the other
    ufuncs          for dtypes missing in cython_special, or several results: the inner loop of the
                    ufunc, a C function of arrays, which are here lanes in memory

None of them needs Python or the GIL.  If SciPy is set to warn or raise (`scipy.special.seterr`),
the inner loop of a ufunc acquires the GIL for that, and the caller of the native function checks
for an exception.  So only lanes that exist are computed: others must not raise.

The ufunc itself determines which loop is used, and so the dtype of the result.

    call       implements `s.special`
    of_target  the results of a native function for lanes
    work_of    the work of the special functions in a body, or None if one is not available
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # scipy.special is loaded when it is first used

from wengert._engine.kinds.elementwise import ARRAYS

from ..ir.execution_engine import foreign
from ..ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..ir.llvm_types import C128, F64, I64, Dtype, in_register, is_supported, of_width, part_of
from ..ir.memory_access import load, store
from ..ir.scalar_language import Language, constant_value, rule
from ..ir.simd_value import ComplexLane, Lane
from ..runtime import library_symbols
from ..vector_math import call_leaf, has_leaf

_WORK = 100  # of one function, relative to an addition
_FLAGS, _ALL_FLAGS = "feclearexcept", 63  # clears exception flags
_PYTHON = (bool, int, float, complex)
_WIDER = {"f": F64, "F": C128}
# Python functions: for each name and number of operands, the ufunc that they call, the operands
# that they add, and the operand that they convert to an integer.
_BEHIND: dict[tuple[str, int], tuple[str, tuple[Any, ...], int]] = {
    ("zeta", 1): ("_riemann_zeta", (), -1),
    ("zeta", 2): ("_zeta", (), -1),
    ("lambertw", 1): ("_lambertw", (0, 1e-8), 1),
    ("lambertw", 2): ("_lambertw", (1e-8,), 1),
    ("lambertw", 3): ("_lambertw", (), 1),
}


class UnsupportedFunction(Exception):
    """There is no native function for these operands; the node becomes a host callback."""


class NativeFunction(NamedTuple):
    """A native function.

    symbol : its name in a module, or the name of a vector function.
    addresses : external functions that the module needs, by name; empty for a vector function.
    data : the name of the data argument of a ufunc loop; empty for other functions.
    inner : the dtypes of its operands.
    outer : the dtypes of its results.
    results : the dtypes of SciPy's results.
    """

    symbol: str
    addresses: dict[str, int]
    data: str
    inner: tuple[Dtype, ...]
    outer: tuple[Dtype, ...]
    results: tuple[Dtype, ...]


# Vector functions in the place of SciPy's functions, for processors without libraries.
_OWN = {"ndtri": "normal_quantile"}


@rule("special")
def call(s: Language, name: str, operands: Sequence[Any]) -> Any:
    """A function of scipy.special; several results are a tuple.

    Raises
    ------
    UnsupportedFunction
        There is no native function of that name for these dtypes.
    """
    if not any(isinstance(x, Lane | ComplexLane) for x in operands):
        return ARRAYS.special(name, *operands)
    target = target_of(name, tuple(map(_operand, operands)))
    more = _BEHIND.get((name, len(operands)), ("", (), -1))[1]
    lanes = [s.cast(x, d) for x, d in zip((*operands, *more), target.inner, strict=True)]
    if all(x.width == 0 for x in lanes):
        given = [constant_value(x) for x in lanes[: len(operands)]]
        found = ARRAYS.special(name, *given)
        found = found if isinstance(found, tuple) else (found,)
        results = [s.constant(x, d) for x, d in zip(found, target.results, strict=True)]
    elif not target.addresses:
        results = [call_leaf(s, target.symbol, target.outer[0], lanes)]
    elif name in _OWN and (processor := foreign()) and not processor.has_libraries:
        results = [call_leaf(s, _OWN[name], target.outer[0], lanes)]
    else:
        results = of_target(s, target, lanes)
    cast = [s.cast(x, d) for x, d in zip(results, target.results, strict=True)]
    return cast[0] if len(cast) == 1 else tuple(cast)


def _operand(x: Any) -> Any:
    """The argument for `resolve_dtypes`: a dtype, or the class of a Python number."""
    return type(x) if type(x) in _PYTHON else x.dtype


# ---- selection of the function -----------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def target_of(name: str, operands: tuple[Any, ...]) -> NativeFunction:
    """The native function for operands of these dtypes, or classes of Python numbers.

    Raises
    ------
    UnsupportedFunction
        There is none.
    """
    ufunc, asked = _ufunc(name, operands)
    try:
        dtypes = ufunc.resolve_dtypes((*asked, *[None] * ufunc.nout))
    except TypeError as error:
        # Python integers, which take the dtype of the other operands.
        whole = [all(t[k] in "lq" for t in ufunc.types) for k in range(ufunc.nin)]
        again = tuple(I64 if w else d for w, d in zip(whole, asked, strict=True))
        if again == tuple(asked):
            raise UnsupportedFunction(name) from error
        dtypes = ufunc.resolve_dtypes((*again, *[None] * ufunc.nout))
    if not all(map(is_supported, dtypes)):
        raise UnsupportedFunction(name)
    inner, results = tuple(dtypes[: ufunc.nin]), tuple(dtypes[ufunc.nin :])
    if all(d.kind == "f" for d in dtypes) and len(results) == 1 and has_leaf(ufunc.__name__):
        return NativeFunction(ufunc.__name__, {}, "", inner, results, results)
    found = _of_cython(ufunc, inner, results) or _of_ufunc(ufunc, inner, results)
    if found is None:
        raise UnsupportedFunction(name)
    return found


def _ufunc(name: str, operands: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The ufunc of a name, and its arguments for `resolve_dtypes`."""
    found = getattr(scipy.special, name, None)
    if not isinstance(found, np.ufunc):
        behind, more, whole = _BEHIND.get((name, len(operands)), (name, (), -1))
        found = getattr(scipy.special._ufuncs, behind, None)
        operands = (*operands, *map(type, more))
        operands = tuple(I64 if k == whole else x for k, x in enumerate(operands))
    if not isinstance(found, np.ufunc) or found.nin != len(operands):
        raise UnsupportedFunction(name)
    return found, operands


def _of_cython(
    ufunc: np.ufunc, inner: tuple[Dtype, ...], results: tuple[Dtype, ...]
) -> NativeFunction | None:
    """The C function of cython_special, in double precision if there is no other."""
    if len(results) != 1:
        return None
    for widen in (False, True):
        own, outer = [
            tuple(_WIDER.get(d.char, d) if widen else d for d in x) for x in (inner, results)
        ]
        if os.name != "posix" and any(d.kind == "c" for d in (*own, *outer)):
            continue  # platforms that do not pass a complex number as two numbers
        letters = "".join("l" if d == I64 else d.char for d in own)
        found = library_symbols.special(ufunc.__name__, letters)
        if found is not None:
            symbol, address = found
            return NativeFunction(symbol, {symbol: address}, "", own, outer, results)
    return None


def _of_ufunc(
    ufunc: np.ufunc, inner: tuple[Dtype, ...], results: tuple[Dtype, ...]
) -> NativeFunction | None:
    found = library_symbols.loop(ufunc, (*inner, *results))
    if found is None:
        return None
    symbol, function, data = found
    addresses = {symbol: function, f"{symbol}.data": data, **library_symbols.of_flags()}
    return NativeFunction(symbol, addresses, f"{symbol}.data", inner, results, results)


# ---- the call ----------------------------------------------------------------------------------


def of_target(s: Language, target: NativeFunction, lanes: Sequence[Any]) -> list[Any]:
    """The results for lanes; only lanes that exist are computed."""
    flat = [p for x in lanes for p in _parts(x)]
    width = max(1, *[x.width for x in flat])
    at, mask = s.reader if s.reader is not None else (None, None)
    alive = None if at is None else at.existing(mask)
    masks = [alive] if alive is not None and alive.width <= width else []
    masked = bool(masks)
    given, section, width = s.together(*flat, *masks)
    full = f"{target.symbol}.{width}" + ".masked" * masked
    if full not in s.module:
        s.module.symbols |= target.addresses
        _write(s, target, full, width, masked)
    kinds = [of_width(in_register(p), width) for d in target.outer for p in _dtypes(d)]
    result = "{" + ", ".join(kinds) + "}"
    listed = ", ".join(f"{x.kind} {x.name}" for x in given)
    key = section, full, listed
    if key not in s.calls:
        s.calls[key] = section.value(f"call {result} @{full}({listed})")
    numbers = iter(range(len(kinds)))

    def part(dtype: Dtype) -> Lane:
        text = f"extractvalue {result} {s.calls[key]}, {next(numbers)}"
        return s.lane(section, text, dtype, width)

    return [_joined(s, [part(p) for p in _dtypes(d)], d) for d in target.outer]


def _parts(x: Any) -> list[Lane]:
    return [x.real, x.imag] if type(x) is ComplexLane else [x]


def _dtypes(dtype: Dtype) -> list[Dtype]:
    return [part_of(dtype)] * (2 if dtype.kind == "c" else 1)


def _joined(s: Language, parts: Sequence[Lane], dtype: Dtype) -> Any:
    return ComplexLane(s, parts[0], parts[1], dtype) if len(parts) == 2 else parts[0]


def _write(s: Language, target: NativeFunction, full: str, width: int, masked: bool) -> None:
    """The function of lanes: they are stored, and computed one after the other."""
    dtypes = [p for d in target.inner for p in _dtypes(d)]
    arguments = [(of_width(in_register(p), width), f"x{k}") for k, p in enumerate(dtypes)]
    arguments += [(of_width("i1", width), "alive")] if masked else []
    kinds = [of_width(in_register(p), width) for d in target.outer for p in _dtypes(d)]
    result = "{" + ", ".join(kinds) + "}"
    function = Function(s.module, full, arguments, result, "noinline nounwind #1")
    body = function.body
    names = iter(f"%x{k}" for k in range(len(dtypes)))
    operands = []
    for d in target.inner:
        parts = [Lane(s, body, next(names), p, width) for p in _dtypes(d)]
        operands.append(_slot(function, d, width))
        store(s, body, operands[-1], _joined(s, parts, d), width, None)
    results = [_slot(function, d, width) for d in target.outer]
    for d, place in zip(target.outer, results, strict=True):
        store(s, body, place, s.constant(0, d), width, None)
    if target.data:
        _by_loop(body, target, [*operands, *results], width, masked)
    else:
        _by_lanes(s, body, target, [*operands, *results], width, masked)
    whole: Name = "poison"
    found = [load(s, body, p, d, width, None) for p, d in zip(results, target.outer, strict=True)]
    for k, x in enumerate(p for y in found for p in _parts(y)):
        whole = body.value(f"insertvalue {result} {whole}, {x.kind} {x.name}, {k}")
    body.write(f"ret {result} {whole}")
    s.module.add(function)


def _slot(function: Function, dtype: Dtype, width: int) -> Name:
    count = width * (2 if dtype.kind == "c" else 1)
    return function.slot(f"[{count} x {in_register(dtype)}]", 64)


def _places(s: Section, target: NativeFunction, slots: Sequence[Name], k: Name) -> list[Name]:
    """The addresses of a lane's operands and results."""
    sizes = [d.itemsize for d in (*target.inner, *target.outer)]
    found = []
    for slot, size in zip(slots, sizes, strict=True):
        by = s.value(f"mul i64 {k}, {size}")
        found.append(s.value(f"getelementptr i8, ptr {slot}, i64 {by}"))
    return found


def _each(s: Section, width: int, bits: Name, write: Callable[[Section, Name], None]) -> None:
    """Emit code by `write` for each lane whose bit is set in an i64."""
    function = s.function
    n, cell = function.number(), function.slot("i64")
    s.write(f"store i64 {bits}, ptr {cell}")
    s.block(f"head{n}")
    left = s.value(f"load i64, ptr {cell}")
    more = s.value(f"icmp ne i64 {left}, 0")
    s.write(f"br i1 {more}, label %body{n}, label %done{n}")
    s.label(f"body{n}")
    lowest = function.module.declare("llvm.cttz.i64", "i64", ["i64", "i1"])
    write(s, s.value(f"call i64 {lowest}(i64 {left}, i1 true)"))
    less = s.value(f"sub i64 {left}, 1")
    s.write(f"store i64 {s.value(f'and i64 {left}, {less}')}, ptr {cell}")
    s.write(f"br label %head{n}")
    s.label(f"done{n}")


def _bits(s: Section, width: int, masked: bool) -> Name:
    """The lanes that exist, as bits of an i64."""
    if not masked:
        return str((1 << width) - 1 if width < 64 else -1)
    if width == 1:
        return s.value("zext i1 %alive to i64")
    bits = s.value(f"bitcast <{width} x i1> %alive to i{width}")
    return bits if width == 64 else s.value(f"zext i{width} {bits} to i64")


def _by_lanes(
    language: Language,
    s: Section,
    target: NativeFunction,
    slots: Sequence[Name],
    width: int,
    masked: bool,
) -> None:
    """Call a C function of numbers for each lane; complex numbers are two arguments."""
    (outer,) = target.outer
    types = [in_register(p) for d in target.inner for p in _dtypes(d)]
    given = in_register(outer)
    given = f"{{{given}, {given}}}" if outer.kind == "c" else given
    callee = s.function.module.declare(target.symbol, given, [*types, "i32"], "nounwind")

    def one(t: Section, k: Name) -> None:
        *places, last = _places(t, target, slots, k)
        lanes = [
            load(language, t, p, d, 1, None) for p, d in zip(places, target.inner, strict=True)
        ]
        listed = [f"{x.kind} {x.name}" for y in lanes for x in _parts(y)]
        found = t.value(f"call {given} {callee}({', '.join(listed)}, i32 0)")
        parts = [found]
        if outer.kind == "c":
            parts = [t.value(f"extractvalue {given} {found}, {j}") for j in (0, 1)]
        made = [Lane(language, t, x, part_of(outer), 1) for x in parts]
        store(language, t, last, _joined(language, made, outer), 1, None)

    _each(s, width, _bits(s, width, masked), one)


def _by_loop(
    s: Section, target: NativeFunction, slots: Sequence[Name], width: int, masked: bool
) -> None:
    """Call a ufunc loop: ``void loop(char **args, intp *dims, intp *steps, void *data)``."""
    function, module = s.function, s.function.module
    callee = module.declare(target.symbol, "void", ["ptr"] * 4, "nounwind")
    module.parts.setdefault(target.data, f"@{target.data} = external global i8")
    sizes = [d.itemsize for d in (*target.inner, *target.outer)]
    steps, places = [function.slot(f"[{len(sizes)} x i64]", 8) for _ in range(2)]
    count = function.slot("i64")
    for k, size in enumerate(sizes):
        s.write(f"store i64 {size}, ptr {s.value(f'getelementptr i64, ptr {steps}, i64 {k}')}")

    def several(t: Section, k: Name, number: Name) -> None:
        for j, place in enumerate(_places(t, target, slots, k)):
            t.write(
                f"store ptr {place}, ptr {t.value(f'getelementptr ptr, ptr {places}, i64 {j}')}"
            )
        t.write(f"store i64 {number}, ptr {count}")
        if _FLAGS in target.addresses:  # SciPy reads them after the loop
            clear = module.declare(_FLAGS, "i32", ["i32"], "nounwind")
            t.value(f"call i32 {clear}(i32 {_ALL_FLAGS})")
        listed = ", ".join(f"ptr {x}" for x in (places, count, steps, f"@{target.data}"))
        t.write(f"call void {callee}({listed})")

    if not masked:
        several(s, "0", str(width))
        return
    bits = _bits(s, width, masked)
    every = s.value(f"icmp eq i64 {bits}, {_bits(s, width, False)}")
    with s.when(every) as t:
        several(t, "0", str(width))
    rest = s.value(f"select i1 {every}, i64 0, i64 {bits}")
    _each(s, width, rest, lambda t, k: several(t, k, "1"))


# ---- the work ----------------------------------------------------------------------------------


def work_of(body: Any, dtypes: tuple[Dtype, ...]) -> int | None:
    """The work of the special functions in a body with operands of these dtypes.

    None if one of them is not supported.  The body is traced once, into a module that is discarded.
    """
    processor = foreign()
    return _work_of(body, dtypes, processor is None or processor.has_libraries)


@functools.lru_cache(maxsize=1024)
def _work_of(body: Any, dtypes: tuple[Dtype, ...], has_libraries: bool) -> int | None:
    module = ModuleBuilder()
    s = CountingLanguage(module)
    function = Function(module, "reading", [])
    s.home = function.body
    lanes = [_joined(s, [Lane(s, s.home, "%x", p, 1) for p in _dtypes(d)], d) for d in dtypes]
    try:
        body(s, *lanes)
    except UnsupportedFunction:
        return None
    return s.work if has_libraries or not module.symbols else None


class CountingLanguage(Language):
    """A language that counts special functions."""

    work = 0

    def special(self, name: str, *operands: Any) -> Any:
        """A function of scipy.special, counted."""
        self.work += _WORK
        return super().special(name, *operands)
