"""Products: matmul in all ranks, dot, outer, tensordot, and the general contraction einsum."""

from __future__ import annotations

from string import ascii_letters

import numpy as np

from ..kinds.contraction import contract, contraction


def _matmul_letters(m, n):
    batch = ascii_letters[26 : 26 + max(m, n) - 2]
    left = "k" if m == 1 else batch[len(batch) - (m - 2) :] + "ik"
    right = "k" if n == 1 else batch[len(batch) - (n - 2) :] + "kj"
    return left, right, batch + ("i" if m > 1 else "") + ("j" if n > 1 else "")


@contraction(_matmul_letters)
def matmul(x, y):
    """The matrix product over the last two axes, earlier ones broadcast."""
    return np.matmul(x, y)


def _dot_letters(m, n):
    if m == 0 or n == 0:
        return ascii_letters[:m], ascii_letters[:n], ascii_letters[: m or n]
    left = ascii_letters[: m - 1]
    right = ascii_letters[26 : 26 + n - 1]
    if n == 1:
        return left + "z", "z", left
    return left + "z", right[:-1] + "z" + right[-1], left + right


@contraction(_dot_letters)
def dot(x, y):
    """numpy.dot: the last axis of x with the last but one of y."""
    return np.dot(x, y)


@contraction(lambda *ndims, letters: letters)
def einsum(*operands, letters):
    """The contraction given by one string of letters for each operand and one for the result."""
    return contract(*operands, letters=letters)
