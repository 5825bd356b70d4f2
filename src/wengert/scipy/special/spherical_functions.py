"""Spherical Bessel functions, spherical harmonics and Legendre functions.

    spherical_jn spherical_yn spherical_in spherical_kn    DLMF 10.47
    sph_harm_y                                              DLMF 14.30
    lpmv                                                    Ferrers function, DLMF 14.3

Differentiable with respect to real arguments and angles; integer orders and degrees are not
differentiable.  The recurrences are those that also hold at 0 and at the poles of the sphere (DLMF
10.51.2, 14.10).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from wengert._engine.core.handle import dtype_of
from wengert._engine.kinds.elementwise import UNIT
from wengert._engine.tensor.numpy_dispatch import counterpart
from wengert.errors import NotDifferentiableError, at, user_line

from .register import OracleExpression, family, function
from .series_and_quadrature import is_traced_scalar

__all__ = ["spherical_jn", "spherical_yn", "spherical_in", "spherical_kn", "lpmv"]

# ---- Bessel functions ----------------------------------------------------------------------------


def _call_scipy(function: Any, n: Any, z: Any) -> Any:
    """SciPy's function of an integer order; for traced scalars its ufunc with the reflection."""
    n = n.astype(int)
    if not is_traced_scalar(z):
        return function(n, z)
    ufunc = getattr(scipy.special._ufuncs, f"_{function.__name__}")
    values, odd = ufunc(n, np.abs(z)), (n % 2).astype(bool)
    if function.__name__ in ("spherical_jn", "spherical_in"):
        return np.where((z < 0) & odd, -values, values)
    if function.__name__ == "spherical_yn":
        return np.where((z < 0) & ~odd, -values, values)
    return np.where(z < 0, ufunc(n, z + 0j).real, values)


@family(native=True, oracle=OracleExpression("n z", "sqrt(pi / (2 * z)) * besselj(n + 0.5, z)"))
def bessel_j(n: Any, z: Any) -> Any:
    """The spherical Bessel function j of integer order n, DLMF 10.47.3."""
    return _call_scipy(scipy.special.spherical_jn, n, z)


@family(native=True, oracle=OracleExpression("n z", "sqrt(pi / (2 * z)) * bessely(n + 0.5, z)"))
def bessel_y(n: Any, z: Any) -> Any:
    """The spherical Bessel function y of integer order n, DLMF 10.47.4."""
    return _call_scipy(scipy.special.spherical_yn, n, z)


@family(native=True, oracle=OracleExpression("n z", "sqrt(pi / (2 * z)) * besseli(n + 0.5, z)"))
def bessel_i(n: Any, z: Any) -> Any:
    """The modified spherical Bessel function i of integer order n, DLMF 10.47.7."""
    return _call_scipy(scipy.special.spherical_in, n, z)


@family(native=True, oracle=OracleExpression("n z", "sqrt(pi / (2 * z)) * besselk(n + 0.5, z)"))
def bessel_k(n: Any, z: Any) -> Any:
    """The modified spherical Bessel function k of integer order n, DLMF 10.47.9."""
    return _call_scipy(scipy.special.spherical_kn, n, z)


def _derivative(f: Any, lower_factor: float, upper_factor: float, n: Any, z: Any) -> Any:
    """(lower_factor n f(n-1, z) + upper_factor (n+1) f(n+1, z)) / (2n+1), DLMF 10.51.2."""
    lower, upper = f(np.maximum(n - 1, 0), z), f(n + 1, z)
    return (lower_factor * n * lower + upper_factor * (n + 1) * upper) / (2 * n + 1)


for _op, _lower, _upper in (
    (bessel_j, 1.0, -1.0),
    (bessel_y, 1.0, -1.0),
    (bessel_i, 1.0, 1.0),
    (bessel_k, -1.0, -1.0),
):
    _op.partials(
        None,
        lambda t, out, n, z, f=_op, p=_lower, q=_upper: t * _derivative(f, p, q, n, z),
    )


@bessel_j.examples
@bessel_y.examples
@bessel_i.examples
@bessel_k.examples
def _orders(rng: Any) -> Any:
    yield (rng.integers(0, 4, size=2), rng.uniform(0.5, 4.0, size=2)), {}


def _public(name: str, op: Any, lower_factor: float, upper_factor: float) -> Any:
    """SciPy's function of that name; for tensors the operation `op`."""
    theirs = getattr(scipy.special, name)

    def ours(n: Any, z: Any, derivative: bool = False) -> Any:
        if dtype_of(n).kind == "f":  # SciPy truncates floats
            n = np.trunc(n).astype(int)
        return _derivative(op, lower_factor, upper_factor, n, z) if derivative else op(n, z)

    ours.__name__ = name
    ours.__doc__ = f"""{op.__doc__}

    Parameters
    ----------
    n : int or array of int
        Not negative; not differentiable.
    z : array or Tensor
        Real.
    derivative : bool
        Whether to return the derivative with respect to z instead.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.scipy.special import {name}
    >>> slope = wg.grad(lambda z: {name}(1, z))(2.0)
    >>> bool(abs(slope - {name}(1, 2.0, derivative=True)) < 1e-14)
    True
    """
    return counterpart(theirs)(ours)


spherical_jn = _public("spherical_jn", bessel_j, 1.0, -1.0)
spherical_yn = _public("spherical_yn", bessel_y, 1.0, -1.0)
spherical_in = _public("spherical_in", bessel_i, 1.0, 1.0)
spherical_kn = _public("spherical_kn", bessel_k, -1.0, -1.0)

# ---- harmonics -----------------------------------------------------------------------------------

if hasattr(scipy.special, "sph_harm_y"):  # SciPy 1.15
    __all__ += ["sph_harm_y"]

    @family(oracle=OracleExpression("n m theta", "re(spherharm(n, m, theta, 0))"))
    def meridian(n: Any, m: Any, theta: Any) -> Any:
        """The spherical harmonic at phi = 0, where it is real; DLMF 14.30.1."""
        values = scipy.special.sph_harm_y(n.astype(int), m.astype(int), theta, 0.0)
        return np.where(np.abs(m) > n, 0.0, values.real)

    def _meridian_by_theta(t: Any, out: Any, n: Any, m: Any, theta: Any) -> Any:
        """The partial with respect to theta, by ladder operators, which also holds at the poles.

        Outside of [0, pi], SciPy's values are functions of cos(theta) and abs(sin(theta)).
        """
        up = np.sqrt(np.maximum((n - m) * (n + m + 1), 0) * 1.0) * meridian(n, m + 1, theta)
        down = np.sqrt(np.maximum((n + m) * (n - m + 1), 0) * 1.0) * meridian(n, m - 1, theta)
        return np.where(np.sin(theta) < 0.0, -0.5, 0.5) * t * (up - down)

    meridian.partials(None, None, _meridian_by_theta)

    @meridian.examples
    def _degrees(rng: Any) -> Any:
        yield (np.array([2, 3]), np.array([1, -2]), rng.uniform(0.3, 2.5, size=2)), {}

    @counterpart(scipy.special.sph_harm_y)
    def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, *, diff_n: int = 0) -> Any:
        """The spherical harmonic of degree n and order m, DLMF 14.30.1.

        Parameters
        ----------
        n, m : int or array of int
            Degree and order; not differentiable.
        theta, phi : array or Tensor
            Polar and azimuthal angle, in radians.
        diff_n : int
            Must be 0 for tensors.

        Returns
        -------
        array or Tensor, complex

        Raises
        ------
        NotDifferentiableError
            diff_n is not 0.

        Examples
        --------
        >>> import wengert as wg
        >>> from wengert.scipy.special import sph_harm_y
        >>> slope = wg.grad(lambda theta: sph_harm_y(1, 0, theta, 0.0).real)(1.2)
        >>> float(slope.round(6))
        -0.455397
        """
        if diff_n:
            raise NotDifferentiableError(
                f"sph_harm_y of tensors with diff_n={diff_n}: only values are returned. "
                f"Differentiate with wengert.grad or wengert.jacobian{at(user_line())}."
            )
        return meridian(n, m, theta) * np.exp(1j * m * phi)


# ---- Legendre functions --------------------------------------------------------------------------

lpmv = function(
    "lpmv",
    "m v x",
    domain=[(0, 2), (0, 4), UNIT],
    oracle=OracleExpression("m v x", "re(legenp(v, m, x))"),
    singular=True,
    half=False,
    doc="Ferrers function P of order m and degree v, DLMF 14.3.1, for -1 < x < 1.",
)


def _not_differentiable(t: Any, out: Any, m: Any, v: Any, x: Any) -> Any:
    raise NotDifferentiableError(
        "lpmv is not differentiable with respect to its order and degree. Detach them with "
        "stop_gradient, or use eval_legendre, which is differentiable with respect to its degree"
        f"{at(user_line())}."
    )


lpmv.partials(
    _not_differentiable,
    _not_differentiable,
    lambda t, out, m, v, x: (
        t * (((v + 1.0) * x * out - (v - m + 1.0) * lpmv(m, v + 1.0, x)) / (1.0 - x * x))
    ),
)


@lpmv.examples
def _ferrers(rng: Any) -> Any:
    yield (np.array([0, 1, 2]), np.array([2, 3, 4]), rng.uniform(-0.8, 0.8, size=3)), {}
