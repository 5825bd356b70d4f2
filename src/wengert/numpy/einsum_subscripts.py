"""Subscripts of einsum: parsed to a string of letters for each operand.

    parse       arrays and subscripts
    diagonals   repeated letters in an operand
    view_of     the result as a view, if nothing is summed: writes to it change the operand

All forms of NumPy are supported: a string with or without an arrow, sublists of integers, an
ellipsis, spaces.  Invalid subscripts are passed to NumPy, for its error message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import ascii_letters, ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np

from wengert._engine.core.dispatch import apply
from wengert._engine.core.handle import is_traced, link, shape_of, value_of
from wengert._engine.core.symbolic.dim import Dim, spelled
from wengert._engine.ops import shapes
from wengert._engine.ops.creation import positions
from wengert._engine.ops.indexing import getitem
from wengert._engine.ops.indexing.template import IndexSlot
from wengert.errors import ShapeError, at, user_line

_LETTERS = ascii_uppercase + ascii_lowercase  # sorted, like the integers of sublists
_DOTS = "..."


def parse(operands: Sequence[Any]) -> tuple[list[Any], list[str], str]:
    """The arrays, the subscripts of each, and those of the result, without ellipsis.

    Raises
    ------
    ShapeError
        The subscripts do not match the operands.
    """
    arrays, words, out = _forms(operands)
    try:
        return arrays, *_expand_ellipsis(arrays, words, out)
    except ValueError as error:
        raise _invalid_subscripts(operands, arrays, error) from error


def _forms(operands: Sequence[Any]) -> tuple[list[Any], list[str], str | None]:
    """Both call forms: `einsum("ij,jk", a, b)` and `einsum(a, [0, 1], b, [1, 2])`."""
    first = operands[0]
    if isinstance(first, str):
        text = first.replace(" ", "")
        left, arrow, right = text.partition("->")
        return list(operands[1:]), left.split(","), right if arrow else None
    pairs = len(operands) // 2
    arrays = list(operands[: 2 * pairs : 2])
    words = [_word(labels) for labels in operands[1 : 2 * pairs : 2]]
    return arrays, words, _word(operands[-1]) if len(operands) % 2 else None


def _word(labels: Any) -> str:
    try:
        return "".join(_DOTS if c is Ellipsis else _LETTERS[int(c)] for c in labels)
    except (TypeError, IndexError, ValueError) as error:
        raise ShapeError(
            f"einsum: {labels!r} is not a list of labels. Labels are integers from 0 to 51, "
            f"and at most one Ellipsis{at(user_line())}."
        ) from error


def _expand_ellipsis(
    arrays: Sequence[Any], words: Sequence[str], out: str | None
) -> tuple[list[str], str]:
    free = [c for c in ascii_letters if c not in "".join(words)]
    ndims = [len(shape_of(x)) for x in arrays]
    spans = [n - len(w.replace(_DOTS, "")) for n, w in zip(ndims, words, strict=True)]
    if any(s < 0 or (s > 0 and _DOTS not in w) for s, w in zip(spans, words, strict=True)):
        raise ValueError("the number of letters is not the number of axes")
    dots = "".join(free[: max(spans, default=0)])
    full = [w.replace(_DOTS, dots[len(dots) - s :]) for w, s in zip(words, spans, strict=True)]
    if out is None:
        every = "".join(words).replace(_DOTS, "")
        out = dots + "".join(sorted(c for c in set(every) if every.count(c) == 1))
    elif _DOTS in out:
        out = out.replace(_DOTS, dots)
    elif dots:
        raise ValueError("axes of the ellipsis are missing in the result")
    if not all(c.isascii() and c.isalpha() for c in out + "".join(full)):
        raise ValueError("only letters, commas, one arrow and an ellipsis are allowed")
    if len(set(out)) < len(out) or not set(out) <= set("".join(full)):
        raise ValueError("a letter of the result is repeated, or is in no operand")
    return full, out


def _invalid_subscripts(
    operands: Sequence[Any], arrays: Sequence[Any], error: Exception
) -> ShapeError:
    shapes = ", ".join(spelled(shape_of(x)) for x in arrays)
    try:
        if not any(map(is_traced, arrays)):
            plain: list[Any] = [
                x if isinstance(x, str | list | tuple) else value_of(x) for x in operands
            ]
            np.einsum(*plain)
        why = str(error)
    except (ValueError, TypeError) as complaint:
        why = str(complaint)
    subscripts = repr(operands[0]) if isinstance(operands[0], str) else "sublists"
    return ShapeError(
        f"einsum with {subscripts} of shapes {shapes}: {why.rstrip('.')}. Use a letter for each "
        f"axis of each operand, or '...' for the other axes{at(user_line())}."
    )


def diagonals(x: Any, word: str, take: Callable[..., Any]) -> tuple[Any, str]:
    """The diagonals of repeated letters, by `take(x, axis1=i, axis2=j)`, and the subscripts."""
    for c in dict.fromkeys(word):
        while word.count(c) > 1:
            i = word.index(c)
            j = word.index(c, i + 1)
            if x.shape[i] != x.shape[j]:
                raise ShapeError(
                    f"einsum: the letter {c!r} is repeated in an operand of shape {x.shape}, where "
                    f"its axes differ in length. Use different letters{at(user_line())}."
                )
            x = take(x, axis1=i, axis2=j)
            word = word[:i] + word[i + 1 : j] + word[j + 1 :] + c
    return x, word


def view_of(x: Any, word: str, result: str) -> Any:
    """The view of an operand with these subscripts: diagonals and permuted axes."""
    x, word = diagonals(x, word, _diagonal)
    return shapes.transpose(x, axes=tuple([word.index(c) for c in result]))


def _diagonal(x: Any, axis1: int, axis2: int) -> Any:
    """The diagonal of two axes as a new last axis; unlike that of `np.diagonal`, it is writable."""
    where = {"offset": 0, "axis1": axis1, "axis2": axis2}

    def take(base: Any) -> Any:
        return apply(shapes.diagonal, (base,), where)

    out = take(x)
    link(out, x, take, lambda base, view: _with_diagonal(base, view, axis1, axis2), shares=True)
    return out


def _with_diagonal(base: Any, view: Any, axis1: int, axis2: int) -> Any:
    """`base` with a new diagonal of two axes."""
    n, ndim = base.shape[axis1], base.ndim
    axes = (*[k for k in range(ndim) if k not in (axis1, axis2)], axis1, axis2)
    turned = base if axes == tuple(range(ndim)) else shapes.transpose(base, axes=axes)
    if isinstance(n, Dim):
        places = positions(n), positions(n)
        new = getitem.replaced(turned, view, (Ellipsis, IndexSlot(0), IndexSlot(1)), places)
    else:  # elements of the flattened matrices at a constant step
        flat = shapes.reshape(turned, shape=(*turned.shape[:-2], n * n))
        flat = getitem.replaced(flat, view, (Ellipsis, slice(None, None, n + 1)), ())
        new = shapes.reshape(flat, shape=turned.shape)
    return new if turned is base else shapes.transpose(new, axes=shapes.inverse_order(axes))
