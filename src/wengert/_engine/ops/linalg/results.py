"""Named tuples that functions of `numpy.linalg` return, with NumPy's names and fields.

EigResult, EighResult    eigenvalues, eigenvectors
SVDResult                U, S, Vh
QRResult                 Q, R
SlogdetResult            sign, logabsdet
"""

from __future__ import annotations

from typing import Any, NamedTuple


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Any
    eigenvectors: Any


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Any
    S: Any
    Vh: Any


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Any
    R: Any


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Any
    logabsdet: Any
