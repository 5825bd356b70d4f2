"""Contractions of plain arrays: from subscripts to matrix products.

Two operands become one batched matrix product (BLAS), or a broadcast product if nothing is summed;
a single operand becomes a sum and a transpose; more operands become a chain of pairs, in the order
of numpy.einsum_path.  The function for given subscripts and shapes is cached.

    contract    the value of a contraction
    planned     the function for subscripts and shapes
    _single, _pair, _chain    make such functions
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

Subscripts = tuple[str, ...]  # one string for each operand, then the result's
Shape = tuple[int, ...]
Run = Callable[..., Any]


def contract(*operands: Any, subscripts: Subscripts) -> Any:
    """The contraction of plain arrays.

    Parameters
    ----------
    *operands : array_like
        Axes of length one are broadcast.
    subscripts : tuple of str
        The subscripts: one string for each operand, without repetitions, and one for the result.

    Raises
    ------
    ValueError
        The lengths of a subscript differ.
    """
    arrays = [_array(x) for x in operands]
    out = planned(subscripts, tuple([a.shape for a in arrays]))(*arrays)
    return out if out.ndim else out[()]


@functools.lru_cache(maxsize=4096)
def planned(subscripts: Subscripts, shapes: tuple[Shape, ...]) -> Run:
    """The function that contracts arrays of these shapes (cached)."""
    *ins, out = subscripts
    _check(ins, shapes)
    if len(ins) == 1:
        return _single(ins[0], out)
    if len(ins) == 2:
        return _pair(ins[0], ins[1], out, *shapes)
    return _chain(ins, out, shapes)


def _check(ins: list[str], shapes: tuple[Shape, ...]) -> None:
    lengths: dict[str, int] = {}
    for word, shape in zip(ins, shapes, strict=True):
        for c, n in zip(word, shape, strict=True):
            known = lengths.setdefault(c, n)
            if known == 1:
                lengths[c] = n
            elif n not in (1, known):
                raise ValueError(f"the axes '{c}' of a contraction have lengths {known} and {n}")


# ---- one operand -------------------------------------------------------------------------------


def _order(word: str, target: str) -> tuple[int, ...] | None:
    order = tuple(word.index(c) for c in target)
    return None if order == tuple(range(len(order))) else order


def _single(word: str, out: str) -> Run:
    summed = tuple(i for i, c in enumerate(word) if c not in out)
    order = _order("".join(c for c in word if c in out), out)

    def run(a: Array) -> Any:
        if summed:
            a = np.add.reduce(a, axis=summed, dtype=a.dtype)
        return a if order is None else a.transpose(order)

    return run


# ---- two operands ------------------------------------------------------------------------------


def _pair(la: str, lb: str, lo: str, sa: Shape, sb: Shape) -> Run:
    """A function of two arrays: prepare each, multiply, transpose the result."""
    size_a, size_b = dict(zip(la, sa, strict=True)), dict(zip(lb, sb, strict=True))
    # A subscript of length one against a longer one is dropped: only the other operand has it.
    drop_a = {c for c in la if size_a[c] == 1 and size_b.get(c, 1) != 1}
    drop_b = {c for c in lb if size_b[c] == 1 and size_a.get(c, 1) != 1}
    drop_a |= {c for c in la if c not in lb and c not in lo}
    drop_b |= {c for c in lb if c not in la and c not in lo}
    ka = "".join(c for c in la if c not in drop_a)
    kb = "".join(c for c in lb if c not in drop_b)
    drop_a |= {c for c in ka if c not in kb and c not in lo}  # kb may have lost subscripts
    drop_b |= {c for c in kb if c not in ka and c not in lo}
    prepare_a, prepare_b = _dropping(la, drop_a), _dropping(lb, drop_b)
    ka = "".join(c for c in ka if c not in drop_a)
    kb = "".join(c for c in kb if c not in drop_b)
    sizes = size_b | {c: n for c, n in size_a.items() if n != 1 or c not in size_b}
    product = _product(ka, kb, lo, sizes)
    if prepare_a is None and prepare_b is None:
        return product

    def run(a: Array, b: Array) -> Any:
        if prepare_a is not None:
            a = prepare_a(a)
        if prepare_b is not None:
            b = prepare_b(b)
        return product(a, b)

    return run


def _array(x: Any) -> Any:
    """An array: NumPy's, or one of a device; a number becomes one."""
    return x if hasattr(x, "__array_function__") else np.asarray(x)


def _dropping(word: str, dropped: set[str]) -> Run | None:
    """A function that sums over subscripts (and removes axes of length one), or None."""
    axes = tuple(i for i, c in enumerate(word) if c in dropped)
    if not axes:
        return None
    return lambda x: _array(np.add.reduce(x, axis=axes, dtype=x.dtype))


def _product(la: str, lb: str, lo: str, sizes: dict[str, int]) -> Run:
    """The product of two arrays; each subscript is in the other or in the result."""
    shared = [c for c in la if c in lb and c not in lo]
    if not shared:
        return _broadcast_product(la, lb, lo, sizes)
    batch = [c for c in lo if c in la and c in lb]
    free_a = [c for c in lo if c in la and c not in lb]
    free_b = [c for c in lo if c in lb and c not in la]
    if batch + free_a + free_b != list(lo) and batch + free_b + free_a == list(lo):
        flipped = _product(lb, la, lo, sizes)
        return lambda a, b: flipped(b, a)
    order_a = _order(la, "".join(batch + free_a + shared))
    order_b = _order(lb, "".join(batch + shared + free_b))
    order_out = _order("".join(batch + free_a + free_b), lo)
    if len(shared) == 1 and _plain_rank(batch, free_a, free_b):
        return _matrices(order_a, order_b, order_out)
    lead = tuple(sizes[c] for c in batch)
    k = prod(sizes[c] for c in shared)
    left = (*lead, prod(sizes[c] for c in free_a), k)
    right = (*lead, k, prod(sizes[c] for c in free_b))
    full = tuple(sizes[c] for c in batch + free_a + free_b)

    def run(a: Array, b: Array) -> Any:
        if order_a is not None:
            a = a.transpose(order_a)
        if order_b is not None:
            b = b.transpose(order_b)
        out = np.matmul(a.reshape(left), b.reshape(right)).reshape(full)
        return out if order_out is None else out.transpose(order_out)

    return run


def _plain_rank(batch: list[str], free_a: list[str], free_b: list[str]) -> bool:
    """Whether np.matmul accepts the operands unchanged: matrices, or vectors without batch."""
    if batch:
        return len(free_a) == len(free_b) == 1
    return len(free_a) <= 1 and len(free_b) <= 1


def _matrices(order_a: Shape | None, order_b: Shape | None, order_out: Shape | None) -> Run:
    if order_out is not None:
        return lambda a, b: np.matmul(
            a if order_a is None else a.transpose(order_a),
            b if order_b is None else b.transpose(order_b),
        ).transpose(order_out)
    if order_a is not None and order_b is not None:
        return lambda a, b: np.matmul(a.transpose(order_a), b.transpose(order_b))
    if order_a is not None:
        return lambda a, b: np.matmul(a.transpose(order_a), b)
    if order_b is not None:
        return lambda a, b: np.matmul(a, b.transpose(order_b))
    return np.matmul


def _broadcast_product(la: str, lb: str, lo: str, sizes: dict[str, int]) -> Run:
    order_a = _order(la, "".join(c for c in lo if c in la))
    order_b = _order(lb, "".join(c for c in lo if c in lb))
    left = tuple(sizes[c] if c in la else 1 for c in lo)
    right = tuple(sizes[c] if c in lb else 1 for c in lo)

    def run(a: Array, b: Array) -> Any:
        if order_a is not None:
            a = a.transpose(order_a)
        if order_b is not None:
            b = b.transpose(order_b)
        return np.multiply(a.reshape(left), b.reshape(right))

    return run


# ---- more operands -----------------------------------------------------------------------------


def _chain(ins: list[str], out: str, shapes: tuple[Shape, ...]) -> Run:
    """Contract pair by pair, in the cheapest order that a greedy search finds."""
    examples = [np.broadcast_to(0.0, s) for s in shapes]
    path = np.einsum_path(f"{','.join(ins)}->{out}", *examples, optimize="greedy")[0][1:]
    words = list(ins)
    steps: list[tuple[tuple[int, ...], Subscripts]] = []
    for group in path:
        chosen = sorted(group, reverse=True)
        while len(chosen) > 2:  # larger groups are contracted pairwise
            chosen, pair = chosen[2:], (chosen[0], chosen[1])
            steps.append((pair, _merge(words, pair, out)))
            chosen.insert(0, len(words) - 1)
        if len(chosen) == 2 or (len(chosen) == 1 and len(words) == 1):
            steps.append((tuple(chosen), _merge(words, tuple(chosen), out)))

    def run(*arrays: Any) -> Any:
        stack = list(arrays)
        for chosen, subscripts in steps:
            operands = [stack.pop(i) for i in chosen]
            stack.append(contract(*operands, subscripts=subscripts))
        return _array(stack[0])

    return run


def _merge(words: list[str], chosen: tuple[int, ...], out: str) -> Subscripts:
    """Replace two subscripts by those of their contraction; return the einsum of this step."""
    merged = [words.pop(i) for i in chosen]
    needed = set(out).union(*words)
    remaining = "".join(dict.fromkeys(c for w in merged for c in w if c in needed))
    result = remaining if words else out
    words.append(result)
    return (*merged, result)
