"""Processors that code is exported for.

    TARGETS          by name
    target_of        a processor, by its name or an LLVM triple
    SCALAR           the processor for which C is printed: without vectors

A triple (`aarch64-apple-darwin`) has the instructions of the target of its first part.
"""

from __future__ import annotations

from dataclasses import replace

from wengert.errors import ArgumentError, at, user_line

from ..ir import execution_engine
from ..ir.processors import Processor

_AVX512 = "+avx512f,+avx512vl,+avx512dq,+avx512bw,+avx512cd"
_LINUX = "unknown-linux-gnu"
TARGETS = {
    p.name: p
    for p in (
        Processor("x86-64", f"x86_64-{_LINUX}", "x86-64", "", 16, 16),
        Processor("x86-64-v3", f"x86_64-{_LINUX}", "x86-64-v3", "+avx,+avx2,+fma", 32, 32),
        Processor("x86-64-v4", f"x86_64-{_LINUX}", "x86-64-v4", f"+avx2,+fma,{_AVX512}", 64, 64),
        Processor("aarch64", f"aarch64-{_LINUX}", "generic", "+neon", 16, 16),
        Processor("riscv64", f"riscv64-{_LINUX}", "generic-rv64", "+m,+a,+f,+d,+c", 16, 0, "lp64d"),
        Processor("wasm32", "wasm32-unknown-unknown", "generic", "+simd128", 16, 16),
    )
}
SCALAR = Processor("c", f"x86_64-{_LINUX}", "x86-64", "", 16, 0)
_ARCHITECTURES = {"x86_64": "x86-64", "arm64": "aarch64"}


def target_of(name: str | None) -> Processor:
    """A processor, by its name or an LLVM triple; by default this computer's.

    Raises
    ------
    ArgumentError
        There is no such target.

    Examples
    --------
    >>> target_of("riscv64").abi
    'lp64d'
    >>> target_of("aarch64-apple-darwin").triple
    'aarch64-apple-darwin'
    """
    if name is None or name == "native":
        return _native()
    if name in TARGETS:
        return TARGETS[name]
    first, dash, _ = name.partition("-")
    known = TARGETS.get(_ARCHITECTURES.get(first, first))
    if known is None or not dash:
        raise ArgumentError(
            f"{name!r} is not a target. Use 'native', {', '.join(map(repr, TARGETS))}, or an LLVM "
            f"triple that begins with x86_64, aarch64, riscv64 or wasm32{at(user_line())}."
        )
    return replace(known, triple=name)


def _native() -> Processor:
    width = execution_engine.vector_bytes()
    triple = str(execution_engine.machine().triple)
    cpu, features = execution_engine.cpu(), execution_engine.features()
    return Processor("native", triple, cpu, features, width, width)
