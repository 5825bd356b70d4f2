"""Subscripts of einsum: from what the user writes to one string of letters for each operand.

All forms of NumPy's: a string with or without an arrow, sublists of whole numbers, an ellipsis in
any place, spaces.  What cannot be read here is given to NumPy, whose complaint says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters, ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np

from ..core.dims import spelled
from ..core.handle import is_traced, shape_of, value_of
from ..errors import ShapeError, at, user_line

_LETTERS = ascii_uppercase + ascii_lowercase  # in the order of the alphabet, as sublists sort
_DOTS = "..."


def parse(operands: Sequence[Any]) -> tuple[list[Any], list[str], str]:
    """The arrays, the letters of each, and the letters of the result; no ellipsis is left.

    Raises
    ------
    ShapeError
        The subscripts do not fit the operands.
    """
    arrays, words, out = _forms(operands)
    try:
        return arrays, *_without_dots(arrays, words, out)
    except ValueError as error:
        raise _refused(operands, arrays, error) from error


def _forms(operands: Sequence[Any]) -> tuple[list[Any], list[str], str | None]:
    """The two ways to call: `einsum("ij,jk", a, b)` and `einsum(a, [0, 1], b, [1, 2])`."""
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
            f"einsum: {labels!r} is not a list of labels. Labels are whole numbers from 0 to 51, "
            f"and at most one Ellipsis{at(user_line())}."
        ) from error


def _without_dots(
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
        raise ValueError("only letters, commas, one arrow and the ellipsis have a meaning")
    if len(set(out)) < len(out) or not set(out) <= set("".join(full)):
        raise ValueError("a letter of the result repeats, or stands in no operand")
    return full, out


def _refused(operands: Sequence[Any], arrays: Sequence[Any], error: Exception) -> ShapeError:
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
        f"einsum with {subscripts} of shapes {shapes}: {why.rstrip('.')}. Give each axis of each "
        f"operand a letter, or '...' for the rest{at(user_line())}."
    )
