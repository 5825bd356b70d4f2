"""Named tuples that functions of `numpy.linalg` return, with NumPy's names and fields.

EigResult, EighResult    eigenvalues, eigenvectors
SVDResult                U, S, Vh
QRResult                 Q, R
SlogdetResult            sign, logabsdet
"""

from __future__ import annotations

from typing import Any, NamedTuple


class EigResult(NamedTuple):
    """What `eig` returns."""

    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Any
    eigenvectors: Any


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Any
    S: Any
    Vh: Any


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Any
    R: Any


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Any
    logabsdet: Any
