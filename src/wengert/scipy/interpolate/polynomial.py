"""Polynomial interpolation, and pchip_interpolate.

    BarycentricInterpolator barycentric_interpolate
    KroghInterpolator krogh_interpolate
    pchip_interpolate

The polynomial is evaluated in Lagrange form (NIST DLMF 3.3.1), which divides only by differences of
nodes, so it is also differentiable where a point of evaluation is a node.  It is numerically stable
(N. J. Higham, The numerical stability of barycentric Lagrange interpolation, 2004).  Cost: the
number of points times n^2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, at, user_line

from .cubic_splines import PchipInterpolator
from .ppoly import check_data, move_point_axes, to_double

__all__ = [
    "BarycentricInterpolator",
    "KroghInterpolator",
    "barycentric_interpolate",
    "krogh_interpolate",
    "pchip_interpolate",
]


class BarycentricInterpolator:
    """The interpolating polynomial, as ``scipy.interpolate.BarycentricInterpolator``.

    Parameters
    ----------
    xi : array or Tensor of shape (n,)
        Distinct nodes, in any order.
    yi : array or Tensor
        Values, of length n along `axis`.
    axis : int, default 0

    Raises
    ------
    ShapeError, ArgumentError
        The shapes do not match; nodes coincide.

    Notes
    -----
    Differentiable with respect to `xi`, `yi` and the points of evaluation. NIST DLMF 3.3(i).

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.interpolate import BarycentricInterpolator
    >>> parabola = BarycentricInterpolator(np.array([0.0, 1.0, 3.0]), np.array([0.0, 1.0, 9.0]))
    >>> float(wg.grad(parabola)(2.0).round(12))
    4.0
    """

    def __init__(self, xi: Any, yi: Any, axis: int = 0) -> None:
        xi = as_array(xi)
        name = type(self).__name__
        known = to_double(xi)
        order = np.argsort(known) if len(shape_of(known)) == 1 else slice(None)
        values = np.moveaxis(as_array(yi), axis, 0)
        if len(shape_of(known)) == 1 and shape_of(values)[:1] == shape_of(known):
            values = values[order]
        self.xi, self.yi = check_data(name, known[order], values, 0)
        self.axis = axis

    def __call__(self, x: Any) -> Any:
        """The polynomial at points; their axes replace the axis of the data in the result."""
        x = to_double(as_array(x))
        nodes = self.xi
        differences = nodes[:, None] - nodes[None, :]
        diagonal = np.eye(shape_of(nodes)[0], dtype=bool)
        factors = np.where(diagonal, 1.0, x[..., None, None] - nodes[None, :])
        basis = np.prod(factors / np.where(diagonal, 1.0, differences), axis=-1)
        values = np.tensordot(basis, self.yi, axes=1)
        return move_point_axes(values, len(shape_of(x)), self.axis % len(shape_of(self.yi)))


class KroghInterpolator(BarycentricInterpolator):
    """The interpolating polynomial, as ``scipy.interpolate.KroghInterpolator``.

    Parameters
    ----------
    xi, yi, axis
        As for `BarycentricInterpolator`. Repeated nodes, at which SciPy interpolates derivatives,
        are not supported; see CubicHermiteSpline.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.scipy.interpolate import KroghInterpolator
    >>> float(KroghInterpolator(np.array([0.0, 1.0]), np.array([1.0, 3.0]))(0.5))
    2.0
    """


def barycentric_interpolate(xi: Any, yi: Any, x: Any, axis: int = 0) -> Any:
    """Evaluate the interpolating polynomial, as ``scipy.interpolate.barycentric_interpolate``.

    Parameters
    ----------
    xi, yi, axis
        As for `BarycentricInterpolator`.
    x : array or Tensor
        Points of evaluation.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.interpolate import barycentric_interpolate
    >>> line = lambda y: barycentric_interpolate(np.array([0.0, 2.0]), y, 0.5)
    >>> wg.grad(line)(np.array([1.0, 5.0]))
    array([0.75, 0.25])
    """
    return BarycentricInterpolator(xi, yi, axis)(x)


def krogh_interpolate(xi: Any, yi: Any, x: Any, der: int = 0, axis: int = 0) -> Any:
    """Evaluate the interpolating polynomial, as ``scipy.interpolate.krogh_interpolate``.

    Parameters
    ----------
    xi, yi, axis
        As for `BarycentricInterpolator`.
    x : array or Tensor
        Points of evaluation.
    der : int
        Must be 0.

    Returns
    -------
    array or Tensor

    Raises
    ------
    ArgumentError
        `der` is not 0.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.scipy.interpolate import krogh_interpolate
    >>> float(krogh_interpolate(np.array([0.0, 2.0]), np.array([1.0, 5.0]), 0.5))
    2.0
    """
    if der != 0:
        raise ArgumentError(
            f"krogh_interpolate of tensors with der={der!r}: der must be 0. Differentiate with "
            f"wengert.grad or wengert.jvp{at(user_line())}."
        )
    return KroghInterpolator(xi, yi, axis)(x)


def pchip_interpolate(xi: Any, yi: Any, x: Any, der: int = 0, axis: int = 0) -> Any:
    """Monotone cubic interpolation, as ``scipy.interpolate.pchip_interpolate``.

    Parameters
    ----------
    xi, yi, axis
        As for `PchipInterpolator`.
    x : array or Tensor
        Points of evaluation.
    der : int
        The order of the derivative.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.interpolate import pchip_interpolate
    >>> f = lambda x: pchip_interpolate(np.arange(3.0), np.array([0.0, 1.0, 4.0]), x)
    >>> bool(np.isclose(wg.grad(f)(1.0), 1.5))
    True
    """
    return PchipInterpolator(xi, yi, axis=axis)(x, nu=der)
