"""Products: matmul, dot, and the general contraction einsum.

Each is defined by its subscripts (kinds/contraction.py); outer, inner, tensordot, kron and the
other products of NumPy call these three (numpy/matmul_einsum.py).
"""

from __future__ import annotations

from string import ascii_letters
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.kinds.batching import row_ranks
from wengert._engine.kinds.contraction import contraction, strong_contract
from wengert._engine.kinds.contraction_lowering import contract

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Size


def _matmul_subscripts(m: int, n: int) -> Any:
    batch = ascii_letters[26 : 26 + max(m, n) - 2]
    left = "k" if m == 1 else batch[len(batch) - (m - 2) :] + "ik"
    right = "k" if n == 1 else batch[len(batch) - (n - 2) :] + "kj"
    return left, right, batch + ("i" if m > 1 else "") + ("j" if n > 1 else "")


@contraction(_matmul_subscripts, ufunc=np.matmul, oracle="numpy", strict=True)
def matmul(x: Array, y: Array) -> Any:
    """The matrix product over the last two axes; earlier axes broadcast."""


@matmul.batch
def _matmul_batch(args: list[Array], batched: list[bool], size: Size) -> Any:
    m, n = row_ranks(args, batched)
    fits = m == n >= 2 if all(batched) else _is_one_product(m, n, batched)
    return matmul(*args) if fits else NotImplemented


def _is_one_product(m: int, n: int, batched: list[bool]) -> Any:
    """Whether the batch of vectors on the left forms a matrix, so that one product suffices."""
    return batched[0] and m == 1 and n in (1, 2)


@matmul.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3)), rng.normal(size=(3, 4))), {}
    yield (rng.normal(size=3), rng.normal(size=(2, 3, 4))), {}
    yield (rng.normal(size=(1, 2, 3)), rng.normal(size=(4, 1, 3, 2))), {}
    yield (rng.normal(size=3), rng.normal(size=3)), {}
    yield (rng.normal(size=(2, 0)), rng.normal(size=(0, 3))), {}


def _dot_subscripts(m: int, n: int) -> Any:
    if m == 0 or n == 0:
        return ascii_letters[:m], ascii_letters[:n], ascii_letters[: m or n]
    left = ascii_letters[: m - 1]
    right = ascii_letters[26 : 26 + n - 1]
    if n == 1:
        return left + "z", "z", left
    return left + "z", right[:-1] + "z" + right[-1], left + right


@contraction(_dot_subscripts, oracle="numpy", strict=True)
def dot(x: Array, y: Operand) -> Any:
    """``numpy.dot``: contract the last axis of x with the second to last axis of y."""
    return np.dot(x, y)


@dot.batch
def _dot_batch(args: list[Array], batched: list[bool], size: Size) -> Any:
    m, n = row_ranks(args, batched)
    fits = m == n == 2 if all(batched) else _is_one_product(m, n, batched)
    return matmul(*args) if fits else NotImplemented


@dot.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3)), rng.normal(size=(4, 3, 2))), {}
    yield (rng.normal(size=(2, 3)), rng.normal(size=3)), {}
    yield (rng.normal(), rng.normal(size=3)), {}


def _by_loops(*operands: Any, subscripts: Any) -> Any:
    *ins, out = subscripts
    return np.einsum(f"{','.join(ins)}->{out}", *operands)


@contraction(lambda *ndims, subscripts: subscripts, oracle=_by_loops)
def einsum(*operands: Any, subscripts: tuple[str, ...]) -> Any:
    """The contraction with these subscripts: one string per operand and one for the result."""
    return contract(*operands, subscripts=subscripts)


@contraction(lambda *ndims, subscripts: subscripts, oracle=_by_loops)
def strong_einsum(t: Array, *others: Any, subscripts: tuple[str, ...]) -> Any:
    """`einsum` in which a zero of the first operand times infinity or NaN is zero.

    Used in graphs for the derivative of a contraction whose cotangent may be zero because an
    element was not selected, and for sums whose terms a mask selects: the first operand, which then
    has no derivative.
    """
    plain = contract(t, *others, subscripts=subscripts)
    return plain if not np.isnan(plain).any() else strong_contract(plain, t, others, subscripts)


@contraction(lambda *ndims, subscripts: subscripts, oracle=_by_loops)
def masked_einsum(mask: Array, t: Array, *others: Any, subscripts: tuple[str, ...]) -> Any:
    """`einsum` in which a zero of the first or second operand times infinity or NaN is zero.

    The derivative of `strong_einsum` with a mask, whose cotangent may be zero because an element
    was not selected.
    """
    plain = contract(mask, t, *others, subscripts=subscripts)
    if not np.isnan(plain).any():
        return plain
    return strong_contract(plain, mask, (t, *others), subscripts, also=(0,))


strong_einsum.has_strong_zeros = masked_einsum.has_strong_zeros = True


@masked_einsum.examples
def _(rng: np.random.Generator) -> Any:
    mask = np.tri(2, 3)
    yield (
        (mask, rng.normal(size=(2, 4)), rng.normal(size=(4, 3))),
        {"subscripts": ("ab", "ac", "cb", "ab")},
    )
    yield (mask, rng.normal(size=3)), {"subscripts": ("ab", "b", "a")}


@strong_einsum.examples
@einsum.examples
def _(rng: np.random.Generator) -> Any:
    def draw(*shapes: tuple[int, ...]) -> tuple[Array, ...]:
        return tuple(rng.normal(size=s) for s in shapes)

    yield draw((2, 3, 4), (4, 3, 5)), {"subscripts": ("abc", "cbd", "ad")}
    yield draw((2, 3), (2, 3)), {"subscripts": ("ab", "ab", "a")}
    yield draw((2, 3), (3, 2), (2,)), {"subscripts": ("ab", "bc", "c", "ac")}
    yield draw((2, 3, 4)), {"subscripts": ("abc", "ca")}
    yield draw((1, 3), (2, 1)), {"subscripts": ("ab", "ab", "b")}
