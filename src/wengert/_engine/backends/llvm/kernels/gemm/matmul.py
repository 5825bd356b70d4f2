"""Matrix products: matmul, dot and einsum.

    strong            a product with strong zeros in the first operand: 0 * inf and 0 * NaN are 0
    any_of            whether an array contains NaN
    any_not_finite    whether an array contains NaN or infinities

More than two operands are multiplied in pairs, in the order of NumPy's greedy search, which needs a
number for unknown sizes.

Options of a call: ``alpha`` and ``beta``, for result = alpha * product + beta * addend.  The addend
is an additional operand, the last one, or else the previous content of the result.  With the option
``scaled`` the operand after the factors is a number by which alpha is multiplied.

A product with strong zeros is computed like any other and then scanned: without NaN it is correct.
The scan takes a few percent of the time of the product; a scalar loop takes nearly as long as the
product itself.  So it is if the factors that zeros are multiplied by are finite, which takes less
time to find out for a product of two long vectors.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.dim import names_in, valued

from ...ir import execution_engine
from ...ir.ir_builder import Function, ModuleBuilder, Name, Section
from ...ir.llvm_types import BOOL, F32, F64, Dtype, in_memory, of_width, part_of
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import address, in_section, is_c_contiguous, kind_of, nest, read, size_of, write
from . import loop_products
from .choose import is_small_batch
from .einsum_lowering import contract_pair, scratch_array, sum_over
from .operands import PLAIN, Epilogue, Scale, Subscripts, arranged, subscripts

_ASSUMED_SIZE = 256  # for an unknown size
_SCANNED_RESULT = 4  # times as large as the factors is a result that is not scanned at first


# ---- the kernels -------------------------------------------------------------------------------


def product(
    call: KernelCall,
    s: Section,
    operands: Sequence[Subscripts],
    result: Subscripts,
    epilogue: Epilogue = PLAIN,
) -> None:
    """Write a contraction of any number of operands; with an addend, of two."""
    remaining = list(operands)
    if len(remaining) == 1:
        sum_over(call, s, remaining[0], result)
        return
    for chosen in _path(remaining, result):
        pair = [remaining.pop(i) for i in sorted(chosen, reverse=True)]
        if not remaining:
            contract_pair(call, s, pair[0], pair[1], result, epilogue)
            return
        needed = set(result.labels).union(*(w.labels for w in remaining))
        labels = list(dict.fromkeys(c for w in pair for c in w.labels if c in needed))
        lengths = [next(w.axis(c).length for w in pair if c in w.labels) for c in labels]
        dtype = np.result_type(*(w.array.dtype for w in pair))
        intermediate = Subscripts(scratch_array(call, lengths, dtype), "".join(labels))
        contract_pair(call, s, pair[0], pair[1], intermediate)
        remaining.append(intermediate)


def _path(operands: Sequence[Subscripts], result: Subscripts) -> list[tuple[int, int]]:
    """The pairs of operands to multiply, in order; each product is appended."""
    if len(operands) == 2:
        return [(0, 1)]
    sizes = dict.fromkeys(names_in(n for w in operands for n in w.array.shape), _ASSUMED_SIZE)
    shapes = [[int(valued(n, sizes)) for n in w.array.shape] for w in operands]
    stand_ins = [np.broadcast_to(0.0, shape) for shape in shapes]
    text = f"{','.join(w.labels for w in operands)}->{result.labels}"
    pairs: list[tuple[int, int]] = []
    count = len(operands)
    for group in np.einsum_path(text, *stand_ins, optimize="greedy")[0][1:]:
        pending = sorted(group, reverse=True)
        while len(pending) > 1:
            first, second, *rest = pending
            pairs.append((first, second))
            count -= 1
            pending = [count - 1, *rest]
            if not rest:
                break
    return pairs


def _contract(call: KernelCall, all_subscripts: Sequence[str]) -> None:
    *input_subscripts, output_labels = all_subscripts
    operands = [
        subscripts(x, labels) for x, labels in zip(call.operands, input_subscripts, strict=False)
    ]
    result = subscripts(call.results[0], output_labels)
    epilogue = _epilogue(call, all_subscripts)
    accumulates = epilogue.beta != 0 and epilogue.addend is None
    if is_small_batch(operands, result, accumulates):
        loop_products.batched_small_gemm(call, operands, result, epilogue)
    else:
        product(call, call.section, operands, result, epilogue)


def _epilogue(call: KernelCall, all_subscripts: Sequence[str]) -> Epilogue:
    scale = call.operands[2] if "scaled" in call.options else None
    alpha = Scale(call.options.get("alpha", 1.0), scale)
    addend = subscripts(call.operands[-1], all_subscripts[-1]) if _has_addend(call) else None
    return Epilogue(alpha, call.options.get("beta", 0.0), addend)


def _has_addend(call: KernelCall) -> bool:
    return "beta" in call.options and len(call.operands) == 3 + ("scaled" in call.options)


def _subscripts_of(call: KernelCall, name: str) -> tuple[str, ...]:
    count = 2 if "beta" in call.options else len(call.operands)
    ranks = [len(x.shape) for x in call.operands[:count]]
    result: tuple[str, ...] = lookup(name).subscripts(*ranks, **call.params)
    return result


@kernel("matmul", strided=True, in_lanes=True)
def matmul(call: KernelCall) -> None:
    """The matrix product over the last two axes."""
    _contract(call, _subscripts_of(call, "matmul"))


@kernel("dot", strided=True, in_lanes=True)
def dot(call: KernelCall) -> None:
    """The last axis of the first with the last but one of the second."""
    _contract(call, _subscripts_of(call, "dot"))


@kernel("einsum", strided=True, in_lanes=True)
def einsum(call: KernelCall) -> None:
    """Any contraction."""
    _contract(call, _subscripts_of(call, "einsum"))


# ---- strong zeros ------------------------------------------------------------------------------


@kernel("strong_einsum", strided=True)
def strong(call: KernelCall) -> None:
    """The product with strong zeros: elements that are NaN are recomputed."""
    _with_strong_zeros(call, "strong_einsum", 1)


@kernel("masked_einsum", strided=True)
def masked(call: KernelCall) -> None:
    """The same, with strong zeros of the first two operands."""
    _with_strong_zeros(call, "masked_einsum", 2)


def _with_strong_zeros(call: KernelCall, name: str, count: int) -> None:
    """A product with strong zeros of the first `count` operands."""
    all_subscripts = _subscripts_of(call, name)
    _contract(call, all_subscripts)
    if call.results[0].dtype.kind not in "fc":
        return
    *input_subscripts, output_labels = all_subscripts
    result = subscripts(call.results[0], output_labels)
    operands = [subscripts(x, w) for x, w in zip(call.operands, input_subscripts, strict=False)]
    summed = "".join(dict.fromkeys(c for w in operands for c in w.labels if c not in result.labels))

    def repair(call: KernelCall) -> None:
        lengths = [call.number(n) for n in result.array.shape]
        with nest(call.section, lengths) as (s, outer):
            target = address(call, s, result.array, outer)
            is_nan = call.language.unary(
                "isnan", read(call.language, s, target, result.array.dtype)
            )
            with s.when(is_nan.name) as t:
                _recompute(
                    call,
                    t,
                    operands,
                    result,
                    summed,
                    outer,
                    target,
                    _epilogue(call, all_subscripts),
                    count,
                )

    def repair_if_nan(s: Section) -> None:
        with s.when(any_of(call, s, result.array)) as cold_section:
            call.cold(cold_section, repair)

    factors = call.operands[1 : len(input_subscripts)]
    if not _are_scanned_faster(factors, result.array):
        repair_if_nan(call.section)
        return
    flags = [any_not_finite(call, call.section, x) for x in factors]
    suspect = functools.reduce(lambda x, y: call.section.value(f"or i1 {x}, {y}"), flags)
    with call.section.when(suspect) as s:
        repair_if_nan(s)


def _are_scanned_faster(factors: Sequence[ArrayPointer], result: ArrayPointer) -> bool:
    """Whether factors, if finite, show sooner than the result that no zero gives NaN."""
    shapes = [result.shape, *[x.shape for x in factors]]
    if any(type(n) is not int for shape in shapes for n in shape):
        return False
    if any(x.dtype not in (F32, F64) or not is_c_contiguous(x) for x in factors):
        return False
    size, *sizes = [prod(shape) for shape in shapes]
    return bool(sizes) and sum(sizes) <= size // _SCANNED_RESULT


def _recompute(
    call: KernelCall,
    s: Section,
    operands: Sequence[Subscripts],
    result: Subscripts,
    summed: str,
    outer: Sequence[Name],
    target: Name,
    epilogue: Epilogue,
    count: int,
) -> None:
    """Recompute an element without its terms with a strong zero, if its other terms are finite."""
    language, dtype = call.language, result.array.dtype
    total, all_finite = call.function.slot(kind_of(dtype)), call.function.slot("i8")
    write(s, total, language.constant(0, dtype))
    write(s, all_finite, language.constant(True, BOOL))
    lengths = [next(w.axis(c).length for w in operands if c in w.labels) for c in summed]
    with nest(s, [call.number(n) for n in lengths]) as (t, inner):
        indices = [*outer, *inner]
        factors = [_element(call, t, w, result.labels + summed, indices) for w in operands]
        is_nonzero = language.cast(factors[0], BOOL)
        for x in factors[1:count]:
            is_nonzero = language.binary("logical_and", is_nonzero, language.cast(x, BOOL))
        with t.when(is_nonzero.name) as u:
            term, finite_so_far = (
                language.cast(in_section(u, factors[0]), dtype),
                read(language, u, all_finite, BOOL),
            )
            for x in factors[1:count]:
                term = term * language.cast(in_section(u, x), dtype)
            for x in factors[count:]:
                factor = language.cast(in_section(u, x), dtype)
                finite_so_far = language.binary(
                    "logical_and", finite_so_far, language.unary("isfinite", factor)
                )
                term = term * factor
            write(u, all_finite, finite_so_far)
            write(u, total, read(language, u, total, dtype) + term)
    was_finite = read(language, s, all_finite, BOOL)
    with s.when(was_finite.name) as v:
        value = read(language, v, total, dtype)
        if epilogue.addend is not None:
            addend_value = _element(call, v, epilogue.addend, result.labels, outer)
            value = epilogue.alpha.applied(call, v, value)
            value = value + language.constant(epilogue.beta, dtype) * addend_value
        write(v, target, value)


def _element(
    call: KernelCall, s: Section, w: Subscripts, labels: str, indices: Sequence[Name]
) -> Any:
    array: ArrayPointer = arranged(w, labels)
    return read(call.language, s, address(call, s, array, indices), array.dtype)


# ---- scans for NaN and infinities ----------------------------------------------------------------


_UNROLL = 4  # vectors per iteration: one instruction tests two of them


def any_of(call: KernelCall, s: Section, array: ArrayPointer) -> Name:
    """Whether an array in C order contains NaN in any part, an i1."""
    return _scanned(call, s, array, False)


def any_not_finite(call: KernelCall, s: Section, array: ArrayPointer) -> Name:
    """Whether an array in C order contains NaN or an infinity in any part, an i1."""
    return _scanned(call, s, array, True)


def _scanned(call: KernelCall, s: Section, array: ArrayPointer, infinities: bool) -> Name:
    part = part_of(array.dtype)
    count = s.times(call.number(size_of(array)), "2" if array.dtype.kind == "c" else "1")
    function = _scan_function(call.module, part, infinities)
    return s.value(f"call i1 @{function}(ptr {array.pointer}, i64 {count})")


def _scan_function(module: ModuleBuilder, dtype: Dtype, infinities: bool) -> str:
    name = f"{'infinite' if infinities else 'undefined'}.{dtype.str[1:]}"
    if name in module:
        return name
    kind, width = in_memory(dtype), execution_engine.vector_bytes() // dtype.itemsize
    vector, flags = of_width(kind, width), of_width("i1", width)
    function = Function(module, name, [("ptr", "x"), ("i64", "n")], "i1", "noinline nounwind #1")
    body = function.body
    any_nan = function.slot("i1")
    body.write(f"store i1 false, ptr {any_nan}")
    step = width * _UNROLL
    full = body.value(f"and i64 %n, {-step}")
    with body.loop("0", full, str(step)) as (s, i):
        first = s.value(f"getelementptr {kind}, ptr %x, i64 {i}")
        lanes = []
        for k in range(_UNROLL):
            pointer = s.value(f"getelementptr {vector}, ptr {first}, i64 {k}")
            lane = s.value(f"load {vector}, ptr {pointer}, align {dtype.itemsize}")
            lanes.append(_nan_if_infinite(s, vector, lane) if infinities else lane)
        pairs = [
            s.value(f"fcmp uno {vector} {lanes[k]}, {lanes[k + 1]}") for k in range(0, _UNROLL, 2)
        ]
        both = s.value(f"or {flags} {pairs[0]}, {pairs[1]}")
        _update(s, any_nan, s.any_lane(both, width))
    with body.loop(full, "%n") as (s, i):
        pointer = s.value(f"getelementptr {kind}, ptr %x, i64 {i}")
        element = s.value(f"load {kind}, ptr {pointer}")
        element = _nan_if_infinite(s, kind, element) if infinities else element
        _update(s, any_nan, s.value(f"fcmp uno {kind} {element}, {element}"))
    body.write(f"ret i1 {body.value(f'load i1, ptr {any_nan}')}")
    module.add(function)
    return name


def _nan_if_infinite(s: Section, kind: str, x: Name) -> Name:
    """The difference of a number and itself: zero, or NaN if it is not finite."""
    return s.value(f"fsub {kind} {x}, {x}")


def _update(s: Section, cell: Name, flag: Name) -> None:
    before = s.value(f"load i1, ptr {cell}")
    s.write(f"store i1 {s.value(f'or i1 {before}, {flag}')}, ptr {cell}")
