"""Fingerprints of large arrays, and arithmetic in the same pass over memory.

    fingerprint    a summary of the content of an array, which changes when an element does
    computed       x + y, x - y or x * y, with the fingerprints of operands
    has_nan        whether an array contains NaN
    is_finite      whether it contains neither NaN nor infinities

A fingerprint is a polynomial hash of the 8-byte words in each of 32 lanes, modulo 2**64.  The high
bits of each word are added to its low ones first: floating-point numbers such as 1 and 2 differ in
high bits only, which the multiplications by powers of the base would shift out.

NumPy's two sums (core/node.py), which are used until native code is loaded, take three times as
long.  The functions take the array itself, whose layout is known where native code is loaded
(abi/cpython_layout.py): reading its address by ctypes takes as long as hashing 10,000 numbers.

Derivatives keep plain arrays by their fingerprints (core/node.py: Watched), which are taken when an
operation uses the array, and again when its rule does.  Both times the array is read anyway, so its
sums are taken in the loop of the operation.  The results are NumPy's: one operation is rounded in
one way.  A function is generated for each operation, dtype and way in which operands are read.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.thread_state import call_ignoring_errors

from ..ir import execution_engine, llvm_types
from ..ir.ir_builder import ModuleBuilder
from ..runtime.runtime_library import loaded
from .cpython_layout import DATA

_NAME = "wengert_fingerprint"
MULTIPLIER = 0x5851F42D4C957F2D  # of Knuth's linear congruential generator
BLOCK_BYTES = 256  # of a trip of the loop


def text() -> str:
    """The module."""
    module = ModuleBuilder()
    module.parts.update(functions())
    return module.text(execution_engine.heading())


def functions() -> dict[str, str]:
    """The functions, by name."""
    return llvm_types.functions(__file__, multiplier=MULTIPLIER, data=DATA)


@functools.cache
def _function() -> Any:
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.c_int64)(
        loaded(text(), {}, [_NAME])[_NAME]
    )


def fingerprint(array: np.ndarray[Any, Any]) -> Hashable:
    """A summary of the content of an array.

    Examples
    --------
    >>> x = np.ones(1000)
    >>> before = fingerprint(x)
    >>> x[7] = 2.0
    >>> fingerprint(x) == before
    False
    """
    if not array.flags.c_contiguous:
        array = array.ravel(order="K")
    blocks, rest = divmod(array.nbytes, BLOCK_BYTES)
    return _function()(array, blocks), rest_of(array, rest)


def rest_of(array: np.ndarray[Any, Any], count: int) -> bytes:
    """The last bytes of an array in C order."""
    return array.reshape(-1).view(np.uint8)[array.nbytes - count :].tobytes() if count else b""


# ---- arithmetic ----------------------------------------------------------------------------------


Array = np.ndarray[Any, Any]

UFUNCS = {np.add: "fadd", np.subtract: "fsub", np.multiply: "fmul"}
_DTYPES = {np.dtype(np.float64): ("double", "i64", 8), np.dtype(np.float32): ("float", "i32", 16)}
_INFINITY = {"double": 0x7FF << 52, "float": 0xFF << 23}
_WORDS = "<8 x i64>"
_PARTS = range(4)  # of a block
_PLAIN, _HASHED, _REPEATED = "plain", "hashed", "repeated"  # how an operand is read


class Computed(NamedTuple):
    """A result, the fingerprints that were asked for, and whether all elements are finite."""

    value: Array
    fingerprints: tuple[Hashable, Hashable]
    is_finite: bool


def computed(ufunc: np.ufunc, x: Array, y: Array, hashed: tuple[bool, bool]) -> Computed | None:
    """The value of an operation of two arrays, with fingerprints of operands.

    Parameters
    ----------
    ufunc : numpy.ufunc
        One of `UFUNCS`.
    x, y : numpy.ndarray
        Of one shape and dtype, in C order; if it is not hashed, also one number that is broadcast.
    hashed : tuple of bool
        The operands whose fingerprints are taken.

    Returns
    -------
    Computed or None
        None if NumPy is to compute the value.
    """
    dtype = x.dtype
    if dtype not in _DTYPES or y.dtype != dtype or x.shape != y.shape or ufunc not in UFUNCS:
        return None
    ways = _way(x, hashed[0]), _way(y, hashed[1])
    if None in ways:
        return None
    out = np.empty(x.shape, dtype)
    blocks, rest = divmod(out.nbytes, BLOCK_BYTES)
    found = (ctypes.c_int64 * 2)()
    function = _operation(UFUNCS[ufunc], dtype.char, ways)
    finite = function(out, x, y, blocks, found)
    if rest:
        last = [
            z.flat[out.size - rest // dtype.itemsize :]
            if way == _REPEATED
            else z.reshape(-1)[out.size - rest // dtype.itemsize :]
            for z, way in zip((x, y, out), (*ways, _PLAIN), strict=True)
        ]
        call_ignoring_errors(ufunc, last[0], last[1], out=last[2])  # the caller handles them
        finite = finite and np.isfinite(last[2]).all()
    prints = [
        (found[k], rest_of(z, rest)) if wanted else None
        for k, (z, wanted) in enumerate(zip((x, y), hashed, strict=True))
    ]
    return Computed(out, (prints[0], prints[1]), bool(finite))


def has_nan(x: Array) -> bool | None:
    """Whether an array contains NaN; None if it is not known."""
    if x.dtype not in _DTYPES or not x.flags.c_contiguous:
        return None
    return _found(x, False)


def is_finite(x: Array) -> bool | None:
    """Whether all elements are finite; None if it is not known."""
    if x.dtype not in _DTYPES or not x.flags.c_contiguous:
        return None
    return not _found(x, True)


def _found(x: Array, infinite: bool) -> bool:
    """Whether an array contains NaN, or also infinities."""
    blocks, rest = divmod(x.nbytes, BLOCK_BYTES)
    if _search(x.dtype.char, infinite)(x, blocks):
        return True
    last = x.reshape(-1)[x.size - rest // x.dtype.itemsize :]
    return bool(rest) and bool((~np.isfinite(last) if infinite else np.isnan(last)).any())


def _way(x: Array, hashed: bool) -> str | None:
    """How an operand is read; None if it cannot be."""
    if x.flags.c_contiguous:
        return _HASHED if hashed else _PLAIN
    return None if hashed or any(x.strides) else _REPEATED


@functools.cache
def _operation(instruction: str, char: str, ways: tuple[str, str]) -> Any:
    name = f"wengert_{instruction}_{char}_{'_'.join(ways)}"
    text = module_text(name, instruction, char, ways)
    kinds: list[Any] = [ctypes.c_int64, *[ctypes.py_object] * 3, ctypes.c_int64, ctypes.c_void_p]
    return ctypes.CFUNCTYPE(*kinds)(loaded(text, {}, [name])[name])


@functools.cache
def _search(char: str, infinite: bool) -> Any:
    name = f"wengert_has_{'infinite' if infinite else 'nan'}_{char}"
    module = ModuleBuilder()
    module.parts[name] = _search_text(name, char, infinite)
    address = loaded(module.text(execution_engine.heading()), {}, [name])[name]
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.c_int64)(address)


class _Lines(NamedTuple):
    """The lines of a function: before its loop, values carried by it, in it and after it."""

    start: list[str]
    carried: list[str]
    body: list[str]
    end: list[str]


def module_text(name: str, instruction: str, char: str, ways: tuple[str, str]) -> str:
    """The module with the function of one operation."""
    number, word, lanes = _DTYPES[np.dtype(char)]
    kind, bits = f"<{lanes} x {number}>", f"<{lanes} x {word}>"
    magnitude = (1 << 8 * np.dtype(char).itemsize - 1) - 1  # all bits but the sign
    module = ModuleBuilder()
    largest = module.declare(f"llvm.umax.v{lanes}{word}", bits, [bits, bits])
    reduced = module.declare(f"llvm.vector.reduce.umax.v{lanes}{word}", word, [bits])
    lines = _Lines(_address("out"), [], [f"%at{k} = add i64 %first, {k}" for k in _PARTS], [])
    for operand, way in zip("xy", ways, strict=True):
        lines.start.extend(_address(operand))
        _read(lines, operand, way, number, lanes)
    for k in _PARTS:
        lines.carried.append(f"%big{k} = phi {bits} [zeroinitializer, %entry], [%top{k}, %block]")
        lines.body.extend(
            (
                f"%r{k} = {instruction} {kind} %xv{k}, %yv{k}",
                f"%q{k} = getelementptr {_WORDS}, ptr %out, i64 %at{k}",
                f"store {kind} %r{k}, ptr %q{k}, align 1",
                f"%i{k} = bitcast {kind} %r{k} to {bits}",
                f"%j{k} = and {bits} %i{k}, splat ({word} {magnitude})",
                f"%top{k} = call {bits} {largest}({bits} %big{k}, {bits} %j{k})",
            )
        )
    for k, (a, b) in enumerate((("big0", "big1"), ("big2", "big3"), ("all0", "all1"))):
        lines.end.append(f"%all{k} = call {bits} {largest}({bits} %{a}, {bits} %{b})")
    lines.end.extend(
        (
            f"%most = call {word} {reduced}({bits} %all2)",
            f"%finite = icmp ult {word} %most, {_INFINITY[number]}",
            "%flag = zext i1 %finite to i64",
            "ret i64 %flag",
        )
    )
    if _HASHED in ways:
        combine = "wengert_fingerprint_of_lanes"
        module.parts[combine] = functions()[combine]
    arguments = "ptr %out.array, ptr %x.array, ptr %y.array, i64 %blocks, ptr %found"
    module.parts[name] = _looped(f"define i64 @{name}({arguments}) #1", lines)
    return module.text(execution_engine.heading())


def _read(lines: _Lines, o: str, way: str, number: str, lanes: int) -> None:
    """Add the lines that read the elements of an operand, and take its fingerprint."""
    kind = f"<{lanes} x {number}>"
    if way == _REPEATED:
        lines.start.extend(
            (
                f"%{o}s = load {number}, ptr %{o}",
                f"%{o}t = insertelement {kind} poison, {number} %{o}s, i32 0",
                f"%{o}r = shufflevector {kind} %{o}t, {kind} poison, "
                f"<{lanes} x i32> zeroinitializer",
            )
        )
        lines.body.extend([f"%{o}v{k} = freeze {kind} %{o}r" for k in _PARTS])
        return
    for k in _PARTS:
        lines.body.extend(
            (
                f"%{o}p{k} = getelementptr {_WORDS}, ptr %{o}, i64 %at{k}",
                f"%{o}w{k} = load {_WORDS}, ptr %{o}p{k}, align 1",
                f"%{o}v{k} = bitcast {_WORDS} %{o}w{k} to {kind}",
            )
        )
    if way != _HASHED:
        return
    lines.start.append(f"%{o}lanes = alloca [4 x {_WORDS}], align 64")
    for k in _PARTS:
        seed = f"splat (i64 {k + 1})"
        lines.carried.append(f"%{o}a{k} = phi {_WORDS} [{seed}, %entry], [%{o}b{k}, %block]")
        lines.body.extend(
            (
                f"%{o}h{k} = lshr {_WORDS} %{o}w{k}, splat (i64 29)",
                f"%{o}m{k} = xor {_WORDS} %{o}w{k}, %{o}h{k}",
                f"%{o}c{k} = mul {_WORDS} %{o}a{k}, splat (i64 {MULTIPLIER})",
                f"%{o}b{k} = add {_WORDS} %{o}c{k}, %{o}m{k}",
            )
        )
        lines.end.append(f"%{o}e{k} = getelementptr {_WORDS}, ptr %{o}lanes, i64 {k}")
        lines.end.append(f"store {_WORDS} %{o}a{k}, ptr %{o}e{k}, align 64")
    lines.end.extend(
        (
            f"%{o}f = call i64 @wengert_fingerprint_of_lanes(ptr %{o}lanes)",
            f"%{o}g = getelementptr i64, ptr %found, i64 {'xy'.index(o)}",
            f"store i64 %{o}f, ptr %{o}g, align 8",
        )
    )


def _search_text(name: str, char: str, infinite: bool) -> str:
    """The search for NaN, a number that is unordered with zero; or for all not finite numbers.

    The difference of an infinite number and itself is NaN.
    """
    number, _, lanes = _DTYPES[np.dtype(char)]
    kind, masks = f"<{lanes} x {number}>", f"<{lanes} x i1>"
    lines = _Lines(_address("x"), [], [], [])
    for k in _PARTS:
        lines.carried.append(f"%m{k} = phi {masks} [zeroinitializer, %entry], [%n{k}, %block]")
        lines.body.extend(
            (
                f"%at{k} = add i64 %first, {k}",
                f"%p{k} = getelementptr {kind}, ptr %x, i64 %at{k}",
                f"%w{k} = load {kind}, ptr %p{k}, align 1",
                f"%v{k} = {'fsub' if infinite else 'freeze'} {kind} %w{k}" + f", %w{k}" * infinite,
                f"%u{k} = fcmp uno {kind} %v{k}, zeroinitializer",
                f"%n{k} = or {masks} %m{k}, %u{k}",
            )
        )
    lines.end.extend(
        (
            f"%a0 = or {masks} %m0, %m1",
            f"%a1 = or {masks} %m2, %m3",
            f"%a2 = or {masks} %a0, %a1",
            f"%bits = bitcast {masks} %a2 to i{lanes}",
            f"%flag = zext i{lanes} %bits to i64",
            "ret i64 %flag",
        )
    )
    return _looped(f"define i64 @{name}(ptr %x.array, i64 %blocks) #1", lines)


def _address(name: str) -> list[str]:
    """Lines that read the address of the elements of an array."""
    field = f"%{name}.address = getelementptr i8, ptr %{name}.array, i64 {DATA}"
    return [field, f"%{name} = load ptr, ptr %{name}.address, align 8"]


def _looped(head: str, lines: _Lines) -> str:
    """A function with one loop over blocks; `%first` counts their parts."""
    text = [f"{head} {{", "entry:", *lines.start, "br label %test"]
    text += ["test:", "%i = phi i64 [0, %entry], [%next, %block]", *lines.carried]
    text += ["%more = icmp slt i64 %i, %blocks", "br i1 %more, label %block, label %end"]
    text += ["block:", "%next = add i64 %i, 1", f"%first = mul i64 %i, {len(_PARTS)}"]
    return "\n".join([*text, *lines.body, "br label %test", "end:", *lines.end, "}"])
