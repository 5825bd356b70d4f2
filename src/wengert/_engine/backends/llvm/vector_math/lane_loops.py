"""Loops in vector functions, which run until no lane needs another iteration.

Some functions have no fixed number of steps: the remainder of a huge quotient, the greatest common
divisor.  All lanes take the same steps; further steps must not change a lane that is finished.  The
values are in stack slots, as in all loops (ir/ir_builder.py).

Evaluation of polynomials with fused multiply-adds.

    polynomial    even and odd powers in two chains
    horner        one chain: one instruction less, and no sums that cancel
    Coefficients  a tuple of numbers for each of the two dtypes

Horner's rule in x**2, in two parallel chains, has half the latency of one chain, and costs one more
multiplication, which most functions need anyway.  More chains (G. Estrin, 1960) need more powers,
and vector code is limited by the number of instructions.  J.-M. Muller, Elementary Functions, 3rd
ed., sect. 5.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wengert._engine.core.types import ScalarLanguage

from ..ir.llvm_types import in_register, of_width
from ..ir.simd_value import Lane


def repeat(
    s: ScalarLanguage,
    values: Sequence[Lane],
    unfinished: Callable[..., Lane],
    step: Callable[..., Sequence[Lane]],
) -> list[Lane]:
    """Repeat a step while any lane is unfinished; returns the values after it.

    Parameters
    ----------
    values : sequence of Lane
        The initial values.
    unfinished : callable
        Maps the values to booleans.
    step : callable
        Maps the values to the next ones, with the same dtypes.  Finished values, and NaN, must stay
        finished.
    """
    lanes, section, width = s.together(*values)
    kinds = [of_width(in_register(x.dtype), width) for x in lanes]
    slots = [section.function.slot(kind, align=64) for kind in kinds]
    number = section.function.number()

    def keep(found: Sequence[Lane]) -> None:
        for x, kind, slot in zip(found, kinds, slots, strict=True):
            section.write(f"store {kind} {s.widened(x, width).name}, ptr {slot}, align 64")

    def kept() -> list[Lane]:
        pieces = zip(lanes, kinds, slots, strict=True)
        return [
            s.lane(section, f"load {k}, ptr {p}, align 64", x.dtype, width) for x, k, p in pieces
        ]

    keep(lanes)
    section.block(f"again{number}")
    now = kept()
    flags = s.widened(unfinished(*now), width)
    assert flags.section is not None
    some = flags.section.any_lane(flags.name, width)
    section.write(f"br i1 {some}, label %turn{number}, label %rest{number}")
    section.label(f"turn{number}")
    keep(step(*now))
    section.write(f"br label %again{number}")
    section.label(f"rest{number}")
    return kept()


Coefficients = Mapping[int, Sequence[float]]  # by the size of the dtype in bytes


def polynomial(s: ScalarLanguage, x: Any, coefficients: Coefficients | Sequence[float]) -> Any:
    """The sum of c[j] * x**j.

    Parameters
    ----------
    coefficients : sequence of float, or a mapping to such from the size of the dtype in bytes
        Constant term first, at least two.
    """
    if isinstance(coefficients, Mapping):
        coefficients = coefficients[x.dtype.itemsize]
    square = x * x
    even, odd = horner(s, square, coefficients[::2]), horner(s, square, coefficients[1::2])
    return s.fma(x, odd, even)


def horner(s: ScalarLanguage, x: Any, coefficients: Coefficients | Sequence[float]) -> Any:
    """The same by Horner's rule.

    For coefficients of alternating signs and x near 1, whose even and odd sums would cancel, and
    if the latency of the chain is hidden by other instructions.
    """
    if isinstance(coefficients, Mapping):
        coefficients = coefficients[x.dtype.itemsize]
    total: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = s.fma(x, total, c)
    return total
