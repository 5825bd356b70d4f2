"""Factors of sparse matrices, kept for the derivatives.

    factor_of    the factors of a matrix, from the last ones if they are of the same values
    factorized   the factors of a matrix, which are not kept

A real symmetric matrix with a positive diagonal has Cholesky factors if it is positive definite
(cholesky_factors.py); the others have those of SuperLU (superlu_factors.py).

Value and derivatives need the same factors, and know them by the values of the matrix: the last
ones are kept, up to a number and a size (`_MAX_FACTORS`, `_MAX_BYTES`).
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from wengert._engine.core.thread_state import lock

from .cholesky_factors import cholesky_of
from .matrix_factors import MatrixFactors, counts
from .matrix_patterns import MatrixPattern, pattern_of
from .operands import Plain
from .superlu_factors import SuperLUFactors

__all__ = ["counts", "factor_of", "factorized"]

_MAX_FACTORS = 64
_MAX_BYTES = 1 << 30  # of all factors that are kept; the last one is kept in any case

_lock = lock()
_kept: OrderedDict[Any, MatrixFactors] = OrderedDict()


def factorized(pattern: MatrixPattern, data: Plain, assume: str = "gen") -> MatrixFactors:
    """The factors of a matrix.

    Parameters
    ----------
    pattern : MatrixPattern
    data : ndarray
        The values of its entries; not copied.
    assume : str
        'gen', 'pos' for a Hermitian positive definite matrix, or 'triangular'.

    Raises
    ------
    LinAlgError
        The matrix is singular or not finite.
    """
    if not np.isfinite(data).all():
        raise LinAlgError("the matrix contains NaN or infinity")
    found = None if assume == "triangular" else cholesky_of(pattern, data, assume == "pos")
    if found:
        return found
    return SuperLUFactors(pattern, data, assume, is_definite=found is None)


def factor_of(data: Plain, indices: Plain, indptr: Plain, assume: str = "gen") -> MatrixFactors:
    """The factors of a matrix in CSR format; the last ones are kept."""
    given: list[Any] = [
        np.ascontiguousarray(x, x.dtype.newbyteorder("=")) for x in (data, indices, indptr)
    ]
    pattern, values = pattern_of(given[1], given[2]), given[0]
    key = assume, pattern, values.dtype.str, zlib.crc32(values.view(np.uint8))
    with _lock:
        found = _kept.get(key)
        if found is not None:
            _kept.move_to_end(key)
    if found is not None and _have_same_bits(values, found.data):
        return found
    factor = factorized(pattern, values.copy(), assume)
    with _lock:
        _kept[key] = factor
        _kept.move_to_end(key)
        while len(_kept) > 1 and (
            len(_kept) > _MAX_FACTORS or sum([x.bytes for x in _kept.values()]) > _MAX_BYTES
        ):
            _kept.popitem(last=False)
    return factor


def _have_same_bits(x: Plain, y: Plain) -> bool:
    return np.array_equal(x.view(np.uint8), y.view(np.uint8))
