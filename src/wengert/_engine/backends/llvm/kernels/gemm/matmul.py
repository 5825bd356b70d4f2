"""Matrix products: matmul, dot and einsum.

    strong    a product in which zeros of the first operand are strong: 0 * inf and 0 * NaN are 0

More than two operands are multiplied in pairs, in the order that NumPy's greedy search finds
(unknown sizes are replaced by a number for it).

Options of a call: ``alpha`` and ``beta``, for result = alpha * product + beta * addend.  The addend
is an additional operand, the last one; without it, it is the previous content of the result.  With
the option ``scaled`` the operand after the factors is a number, by which alpha is multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.dim import names_in, valued

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import BOOL
from .. import nan_scan
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import kind_of, moved, nest, place, read, write
from . import batched_small_gemm
from .choose import is_small_batch
from .einsum_lowering import contract_pair, new, sum_over
from .operands import PLAIN, Epilogue, Scale, Subscripts, arranged, subscripts

_UNKNOWN = 256  # assumed for an unknown size


# ---- the kernels -------------------------------------------------------------------------------


def product(
    call: KernelCall,
    s: Section,
    operands: Sequence[Subscripts],
    result: Subscripts,
    epilogue: Epilogue = PLAIN,
) -> None:
    """Write a contraction of any number of operands; of two if something is added to it."""
    left = list(operands)
    if len(left) == 1:
        sum_over(call, s, left[0], result)
        return
    for chosen in _path(left, result):
        taken = [left.pop(i) for i in sorted(chosen, reverse=True)]
        if not left:
            contract_pair(call, s, taken[0], taken[1], result, epilogue)
            return
        needed = set(result.labels).union(*(w.labels for w in left))
        kept = list(dict.fromkeys(c for w in taken for c in w.labels if c in needed))
        lengths = [next(w.axis(c).length for w in taken if c in w.labels) for c in kept]
        dtype = np.result_type(*(w.array.dtype for w in taken))
        between = Subscripts(new(call, lengths, dtype), "".join(kept))
        contract_pair(call, s, taken[0], taken[1], between)
        left.append(between)


def _path(operands: Sequence[Subscripts], result: Subscripts) -> list[tuple[int, int]]:
    """The pairs of operands to multiply, in order; each product is appended."""
    if len(operands) == 2:
        return [(0, 1)]
    sizes = dict.fromkeys(names_in(n for w in operands for n in w.array.shape), _UNKNOWN)
    shapes = [[int(valued(n, sizes)) for n in w.array.shape] for w in operands]
    stand_ins = [np.broadcast_to(0.0, shape) for shape in shapes]
    text = f"{','.join(w.labels for w in operands)}->{result.labels}"
    found: list[tuple[int, int]] = []
    count = len(operands)
    for group in np.einsum_path(text, *stand_ins, optimize="greedy")[0][1:]:
        chosen = sorted(group, reverse=True)
        while len(chosen) > 1:
            one, two, *rest = chosen
            found.append((one, two))
            count -= 1
            chosen = [count - 1, *rest]
            if not rest:
                break
    return found


def _contract(call: KernelCall, words: Sequence[str]) -> None:
    *ins, out = words
    operands = [subscripts(x, w) for x, w in zip(call.operands, ins, strict=False)]
    result = subscripts(call.results[0], out)
    epilogue = _epilogue(call, words)
    accumulates = epilogue.beta != 0 and epilogue.addend is None
    if is_small_batch(operands, result, accumulates):
        batched_small_gemm.run(call, operands, result, epilogue)
    else:
        product(call, call.section, operands, result, epilogue)


def _epilogue(call: KernelCall, words: Sequence[str]) -> Epilogue:
    """The epilogue that the options of a call ask for."""
    number = call.operands[2] if "scaled" in call.options else None
    alpha = Scale(call.options.get("alpha", 1.0), number)
    addend = subscripts(call.operands[-1], words[-1]) if _has_addend(call) else None
    return Epilogue(alpha, call.options.get("beta", 0.0), addend)


def _has_addend(call: KernelCall) -> bool:
    return "beta" in call.options and len(call.operands) == 3 + ("scaled" in call.options)


def _letters(call: KernelCall, name: str) -> tuple[str, ...]:
    count = 2 if "beta" in call.options else len(call.operands)
    ranks = [len(x.shape) for x in call.operands[:count]]
    found: tuple[str, ...] = lookup(name).letters(*ranks, **call.params)
    return found


@kernel("matmul", strided=True)
def matmul(call: KernelCall) -> None:
    """The matrix product over the last two axes."""
    _contract(call, _letters(call, "matmul"))


@kernel("dot", strided=True)
def dot(call: KernelCall) -> None:
    """The last axis of the first with the last but one of the second."""
    _contract(call, _letters(call, "dot"))


@kernel("einsum", strided=True)
def einsum(call: KernelCall) -> None:
    """Any contraction."""
    _contract(call, _letters(call, "einsum"))


# ---- zeros that are stronger -------------------------------------------------------------------


@kernel("strong_einsum", strided=True)
def strong(call: KernelCall) -> None:
    """The product with strong zeros: elements that are NaN are recomputed."""
    words = _letters(call, "strong_einsum")
    _contract(call, words)
    if call.results[0].dtype.kind not in "fc":
        return
    *ins, out = words
    result = subscripts(call.results[0], out)
    operands = [subscripts(x, w) for x, w in zip(call.operands, ins, strict=False)]
    gone = "".join(dict.fromkeys(c for w in operands for c in w.labels if c not in result.labels))

    def repair(call: KernelCall) -> None:
        lengths = [call.number(n) for n in result.array.shape]
        with nest(call.section, lengths) as (s, outer):
            target = place(call, s, result.array, outer)
            own = call.language.unary("isnan", read(call.language, s, target, result.array.dtype))
            with s.when(own.name) as t:
                _again(call, t, operands, result, gone, outer, target, _epilogue(call, words))

    with call.section.when(nan_scan.any_of(call, call.section, result.array)) as some:
        call.cold(some, repair)


def _again(
    call: KernelCall,
    s: Section,
    operands: Sequence[Subscripts],
    result: Subscripts,
    gone: str,
    outer: Sequence[Name],
    target: Name,
    epilogue: Epilogue,
) -> None:
    """One element, without the terms with a strong zero, if the other terms are finite."""
    language, dtype = call.language, result.array.dtype
    total, sound = call.function.slot(kind_of(dtype)), call.function.slot("i8")
    write(s, total, language.constant(0, dtype))
    write(s, sound, language.constant(True, BOOL))
    lengths = [next(w.axis(c).length for w in operands if c in w.labels) for c in gone]
    with nest(s, [call.number(n) for n in lengths]) as (t, inner):
        where = [*outer, *inner]
        first, *others = (_element(call, t, w, result.labels + gone, where) for w in operands)
        live = language.cast(first, BOOL)
        with t.when(live.name) as u:
            term, still = language.cast(moved(u, first), dtype), read(language, u, sound, BOOL)
            for x in others:
                factor = language.cast(moved(u, x), dtype)
                still = language.binary("logical_and", still, language.unary("isfinite", factor))
                term = term * factor
            write(u, sound, still)
            write(u, total, read(language, u, total, dtype) + term)
    kept = read(language, s, sound, BOOL)
    with s.when(kept.name) as v:
        value = read(language, v, total, dtype)
        if epilogue.addend is not None:
            before = _element(call, v, epilogue.addend, result.labels, outer)
            value = epilogue.alpha.applied(call, v, value)
            value = value + language.constant(epilogue.beta, dtype) * before
        write(v, target, value)


def _element(
    call: KernelCall, s: Section, w: Subscripts, labels: str, where: Sequence[Name]
) -> Any:
    array: ArrayPointer = arranged(w, labels)
    return read(call.language, s, place(call, s, array, where), array.dtype)
