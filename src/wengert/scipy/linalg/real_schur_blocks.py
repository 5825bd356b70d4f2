"""Conversions between real and complex eigenvalue forms: 2 x 2 blocks and conjugate pairs.

    block_signs    operation: the blocks of a real Schur form and the order of their eigenvalues
    rsf2csf        from a real to a complex Schur form, by one rotation for each block
    cdf2rdf        from complex eigenvalues and eigenvectors to real blocks and vectors

The positions of blocks and pairs are locally constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from wengert._engine.core.handle import Handle, value_of
from wengert._engine.core.op_facts import BY_SCIPY, facts
from wengert._engine.ops import casts
from wengert._engine.ops.elementwise.selection import where
from wengert._engine.ops.linalg.linear_solve import adjoint
from wengert.errors import ArgumentError, at, user_line

from ..dispatch import counterpart, floating, known_length
from .register import entry, square

__all__ = ["cdf2rdf", "rsf2csf"]


def _signs_oracle(t: Any) -> Any:
    """Test oracle: from SciPy's triangular form of the blocks."""
    out = np.zeros(t.shape[-1])
    for m in np.flatnonzero(np.diagonal(t, -1)) + 1:
        block = t[m - 1 : m + 1, m - 1 : m + 1]
        out[m] = np.sign(scipy.linalg.rsf2csf(block, np.eye(2))[0][0, 0].imag)
    return out


@facts(host_callback=BY_SCIPY)
@entry("Check it for NaN and infinity", "2", discrete=True, oracle=_signs_oracle)
def block_signs(t):
    """For each row 0, or, if it is the second of a block, the sign of the first imaginary part."""
    out = np.zeros(t.shape[-1])
    eps = np.finfo(t.dtype if t.dtype.kind in "fc" else float).eps
    for m in range(1, t.shape[-1]):
        if abs(t[m, m - 1]) > eps * (abs(t[m - 1, m - 1]) + abs(t[m, m])):
            block = t[m - 1 : m + 1, m - 1 : m + 1].astype(complex)
            out[m] = 1.0 if np.linalg.eigvals(block)[0].imag >= 0 else -1.0
    return out


@block_signs.examples
def _(rng):
    yield (np.array([[1.0, 2.0, 0.5], [-0.3, 1.0, 0.7], [0.0, 0.0, 3.0]]),), {}


@counterpart(scipy.linalg.rsf2csf)
def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """Convert a real Schur form to a complex one, as ``scipy.linalg.rsf2csf``.

    Parameters
    ----------
    T, Z : array_like of shape (..., n, n)
        The result of `schur`.

    Returns
    -------
    T, Z : Tensor of shape (..., n, n)
        Complex; T is upper triangular.

    Notes
    -----
    Differentiable with respect to both. The number of graph nodes is proportional to n.
    """
    t, z = square(T, "rsf2csf"), square(Z, "rsf2csf")
    signs = block_signs(value_of(t))
    dtype = np.result_type(t.dtype, z.dtype, np.complex64)
    t, z = casts.astype(t, dtype), casts.astype(z, dtype)
    n = known_length(t.shape[-1], "rsf2csf")
    for m in range(n - 1, 0, -1):
        sign = signs[..., m]
        used = sign != 0
        g = _rotation(t[..., m - 1 : m + 1, m - 1 : m + 1], sign, used)
        inside = np.eye(n, dtype=dtype)[:, m - 1 : m + 1]
        rotation = np.eye(n, dtype=dtype) + inside @ (g - np.eye(2)) @ inside.T
        t = rotation @ t @ adjoint(rotation)
        z = z @ adjoint(rotation)
    return where(np.tri(n, k=-1, dtype=bool), 0.0, t), z


def _rotation(block: Any, sign: Any, used: Any) -> Any:
    """The unitary matrix that makes a block upper triangular; the identity if not `used`."""
    p, q, r, s = (block[..., i, j] for i in (0, 1) for j in (0, 1))
    r, q = where(used, r, 1.0), where(used, q, -1.0)
    half = (p - s) * 0.5
    root = np.sqrt(casts.astype(-(half * half + q * r), block.dtype))
    mu = half + 1j * sign * root  # the first eigenvalue minus the last element
    size = np.sqrt(np.abs(mu) ** 2 + np.abs(r) ** 2)
    c, d = mu / size, r / size
    rows = np.stack([np.conjugate(c), d, -d, c], axis=-1).reshape((*c.shape, 2, 2))
    return where(used[..., None, None], rows, np.eye(2))


@counterpart(scipy.linalg.cdf2rdf)
def cdf2rdf(w: Any, v: Any) -> tuple[Any, Any]:
    """Convert complex eigenvalues and eigenvectors to real form, as ``scipy.linalg.cdf2rdf``.

    Parameters
    ----------
    w : array_like of shape (..., n)
        Eigenvalues; those that are not real must be in conjugate pairs.
    v : array_like of shape (..., n, n)

    Returns
    -------
    wr : Tensor of shape (..., n, n)
        Block diagonal, with 1x1 and 2x2 blocks.
    vr : Tensor of shape (..., n, n)

    Raises
    ------
    ArgumentError
        The number of eigenvalues that are not real is odd.
    """
    w, v = floating(w), square(v, "cdf2rdf")
    n = w.shape[-1]
    pairs = np.imag(value_of(w)) != 0
    count = np.cumsum(pairs, axis=-1)
    if not isinstance(count, Handle) and n and np.any(count[..., -1] % 2):
        raise ArgumentError(
            "cdf2rdf with an odd number of eigenvalues that are not real: they must be in "
            f"conjugate pairs{at(user_line())}."
        )
    pair_index = (count + 1) // 2
    first = pairs & (count % 2 == 1)
    diagonal = np.eye(n, dtype=bool)
    linked = (pair_index[..., :, None] == pair_index[..., None, :]) & pairs[..., :, None]
    linked = linked & pairs[..., None, :]
    off_diagonal = linked & ~diagonal
    wr = where(diagonal, np.real(w)[..., None], where(off_diagonal, np.imag(w)[..., None], 0.0))
    sign = where(first, 0.5j, -0.5j)[..., None]
    u = where(linked, where(first[..., None, :], sign, 0.5), where(diagonal, 1.0 + 0j, 0.0))
    return wr, np.real(v @ u)
