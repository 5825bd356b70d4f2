"""NumPy's `polynomial`: series in six families of polynomials, for arrays and tensors.

    polynomial    powers of x               laguerre     Laguerre
    chebyshev     Chebyshev, first kind     hermite      Hermite, of physics
    legendre      Legendre                  hermite_e    Hermite, of probability

    PolynomialFamily  a family, defined by its recurrence and NumPy's module
    functions         the functions of a family: val, der, int, mul, roots, fit ...

The functions have NumPy's names, ``wengert.numpy.polynomial.chebyshev.chebval``, and call NumPy's
for plain arrays.  NumPy's functions do not dispatch on tensors: those here are used instead of them
in converted functions, and elsewhere tensors must be passed to those here.  They are differentiable
with respect to points and coefficients.  The classes (``Chebyshev``) are NumPy's and support plain
arrays only.

The polynomials of a family follow from a recurrence, p[k+1] = (a x + b) p[k] - c p[k-1] (NIST DLMF
18.9(i)), which is differentiable with respect to x; a series is a product of coefficients with
them.  All other operations on coefficients are linear (derivative, integral, change of basis) or
bilinear (product), so their matrices are computed by applying NumPy's functions to unit vectors.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, is_traced
from wengert._engine.core.lazy_import import public_dir
from wengert._engine.tensor.numpy_dispatch import as_array, plain
from wengert._engine.tensor.operand_conversion import needed
from wengert.errors import ArgumentError, OperandError, ShapeError, at, user_line

from .linalg.decompositions_and_solve import roots_of_companion

Recurrence = Callable[[int], tuple[float, float, float]]


class PolynomialFamily:
    """Polynomials p[0] = 1, p[1], ... by their recurrence.

    Parameters
    ----------
    module : module
        NumPy's module, such as ``numpy.polynomial.chebyshev``.
    name : str
        The prefix of its functions: ``"cheb"``.
    recurrence : callable
        From k to the numbers a, b, c of ``p[k+1] = (a x + b) p[k] - c p[k-1]``.
    """

    def __init__(self, module: ModuleType, name: str, recurrence: Recurrence) -> None:
        self.module, self.name, self.recurrence = module, name, recurrence

    def theirs(self, what: str) -> Any:
        """NumPy's function, as ``theirs("der")``."""
        return getattr(
            self.module, what.replace("%", self.name) if "%" in what else self.name + what
        )

    def terms(self, x: Any, count: int) -> list[Any]:
        """The first polynomials at x."""
        terms = [x * 0 + 1.0]
        for k in range(count - 1):
            a, b, c = self.recurrence(k)
            term = (x * a if b == 0 else x * a + b) * terms[k]
            terms.append(term - c * terms[k - 1] if c and k else term)
        return terms

    @functools.cached_property
    def matrices(self) -> dict[Any, Any]:
        """The cache of linear maps, by name and size."""
        return {}

    def matrix(self, length: int, what: str, *args: Any, **how: Any) -> Any:
        """The matrix of a linear function of NumPy for `length` coefficients."""
        key = length, what, args, tuple(how.items())
        if key not in self.matrices:
            columns = [self.theirs(what)(unit, *args, **how) for unit in np.eye(length)]
            self.matrices[key] = _columns(columns)
        return self.matrices[key]

    def products(self, m: int, n: int) -> Any:
        """The coefficients of products of all pairs of polynomials, along the first axis."""
        key = m, n
        if key not in self.matrices:
            multiply = self.theirs("mul")
            columns = [multiply(a, b) for a in np.eye(m) for b in np.eye(n)]
            self.matrices[key] = _columns(columns, m + n - 1).reshape(m + n - 1, m, n)
        return self.matrices[key]


def _columns(columns: list[Any], length: int = 0) -> Any:
    """Vectors as columns, zero-padded to equal length."""
    rows = max([length, *map(len, columns)])
    return np.stack([np.pad(c, (0, rows - len(c))) for c in columns], axis=1)


def coefficients(c: Any) -> Any:
    """Coefficients as a floating-point array of at least one axis."""
    c = as_array(c)
    c = c.reshape((1,)) if c.ndim == 0 else c
    return c if c.dtype.kind in "fc" else c.astype(float)


def trimmed(c: Any) -> Any:
    """Remove trailing zeros, as NumPy does; in a graph they are kept, as values are unknown."""
    c = coefficients(c)
    if is_traced(c):
        return c
    places = np.flatnonzero(plain(c))
    return c[: int(places[-1]) + 1 if places.size else 1]


def mapped(matrix: Any, c: Any, axis: int = 0) -> Any:
    """Apply a matrix along an axis."""
    made = np.tensordot(matrix.astype(c.dtype, copy=False), np.moveaxis(c, axis, 0), 1)
    return np.moveaxis(made, 0, axis)


# ---- the functions of a family -------------------------------------------------------------------


def vander(family: PolynomialFamily, x: Any, deg: int) -> Any:
    """The polynomials at x up to a degree, along a new last axis."""
    return np.stack(family.terms(coefficients(x) + 0.0, int(deg) + 1), axis=-1)


def val(family: PolynomialFamily, x: Any, c: Any, tensor: bool = True) -> Any:
    """The series at x."""
    x, c = as_array(x) + 0.0, coefficients(c)
    terms = np.stack(family.terms(x, c.shape[0]))
    if tensor:
        return np.tensordot(c, terms, axes=([0], [0]))
    one = max(c.ndim, terms.ndim)
    c, terms = (
        part.reshape((part.shape[0], *(1,) * (one - part.ndim), *part.shape[1:]))
        for part in (c, terms)
    )
    return np.sum(c * terms, axis=0)


def valfromroots(family: PolynomialFamily, x: Any, r: Any, tensor: bool = True) -> Any:
    """The product of x minus each root."""
    x, r = as_array(x), coefficients(r)
    if tensor:
        r = r.reshape((*r.shape, *(1,) * x.ndim))
    return np.prod(x - r, axis=0)


def val2d(family: PolynomialFamily, x: Any, y: Any, c: Any) -> Any:
    """The series of two variables at points."""
    _check_points(family, x, y)
    return val(family, y, val(family, x, c), tensor=False)


def val3d(family: PolynomialFamily, x: Any, y: Any, z: Any, c: Any) -> Any:
    """The series of three variables at points."""
    _check_points(family, x, y, z)
    return val(family, z, val2d(family, x, y, c), tensor=False)


def grid2d(family: PolynomialFamily, x: Any, y: Any, c: Any) -> Any:
    """The series of two variables on a grid."""
    return val(family, y, val(family, x, c))


def grid3d(family: PolynomialFamily, x: Any, y: Any, z: Any, c: Any) -> Any:
    """The series of three variables on a grid."""
    return val(family, z, grid2d(family, x, y, c))


def _check_points(family: PolynomialFamily, *points: Any) -> None:
    shapes = [np.shape(p) for p in points]
    if len(set(shapes)) > 1:
        raise ShapeError(
            f"{family.name}val of points with coordinates of shapes {shapes}. Pass coordinates of "
            f"equal shape, or use {family.name}grid{len(points)}d{at(user_line())}."
        )


def vander2d(family: PolynomialFamily, x: Any, y: Any, deg: Any) -> Any:
    """All products of the polynomials at x and at y, along a new last axis."""
    first, second = (vander(family, p, d) for p, d in zip((x, y), deg, strict=True))
    product = first[..., :, None] * second[..., None, :]
    return product.reshape((*product.shape[:-2], -1))


def vander3d(family: PolynomialFamily, x: Any, y: Any, z: Any, deg: Any) -> Any:
    """All products of the polynomials at x, at y and at z, along a new last axis."""
    product = (
        vander2d(family, x, y, deg[:2])[..., :, None] * vander(family, z, deg[2])[..., None, :]
    )
    return product.reshape((*product.shape[:-2], -1))


def der(family: PolynomialFamily, c: Any, m: int = 1, scl: Any = 1, axis: int = 0) -> Any:
    """The m-th derivative."""
    c = coefficients(c)
    made = mapped(family.matrix(c.shape[axis], "der", int(m)), c, axis)
    return made if isinstance(scl, int) and scl == 1 else made * scl ** int(m)


def int_(
    family: PolynomialFamily,
    c: Any,
    m: int = 1,
    k: Any = (),
    lbnd: Any = 0,
    scl: Any = 1,
    axis: int = 0,
) -> Any:
    """The m-th integral from `lbnd`, with constants k."""
    c = coefficients(c)
    how = {"lbnd": float(lbnd), "scl": float(scl)}
    made = mapped(family.matrix(c.shape[axis], "int", int(m), **how), c, axis)
    constants = np.stack([as_array(a) for a in k]) if isinstance(k, list | tuple) and k else k
    if np.size(constants) == 0:
        return made
    constants = coefficients(constants)
    integral, nothing = family.theirs("int"), np.zeros(c.shape[axis])
    columns = [integral(nothing, m, list(unit), **how) for unit in np.eye(constants.shape[0])]
    added = mapped(_columns(columns, made.shape[axis]), constants)
    return made + added.reshape([-1 if i == axis % c.ndim else 1 for i in range(c.ndim)])


def add(family: PolynomialFamily, c1: Any, c2: Any) -> Any:
    """The sum."""
    return trimmed(_padded(c1, c2)[0] + _padded(c1, c2)[1])


def sub(family: PolynomialFamily, c1: Any, c2: Any) -> Any:
    """The difference."""
    return trimmed(_padded(c1, c2)[0] - _padded(c1, c2)[1])


def _padded(*several: Any) -> list[Any]:
    parts = [coefficients(c) for c in several]
    length = max(c.shape[0] for c in parts)
    return [np.pad(c, (0, length - c.shape[0])) for c in parts]


def mul(family: PolynomialFamily, c1: Any, c2: Any) -> Any:
    """The product."""
    a, b = trimmed(c1), trimmed(c2)
    table = family.products(a.shape[0], b.shape[0]).astype(np.result_type(a.dtype, b.dtype))
    return trimmed(np.einsum("kij,i,j->k", table, a, b))


def div(family: PolynomialFamily, c1: Any, c2: Any) -> tuple[Any, Any]:
    """Quotient and remainder."""
    rest, by = trimmed(c1), trimmed(c2)
    if by.shape[0] == 1 and not is_traced(by) and not np.any(plain(by)):
        raise ZeroDivisionError
    quotient = []
    for k in range(rest.shape[0] - by.shape[0], -1, -1):
        product = np.tensordot(family.products(k + 1, by.shape[0])[:, k], by, 1)
        factor = rest[-1] / product[-1]
        quotient.append(factor)
        rest = rest[:-1] - factor * product[:-1]
    if not quotient:
        return rest[:1] * 0, rest
    made = np.stack(quotient[::-1])
    return made, trimmed(rest) if rest.shape[0] else made[:1] * 0


def trim(family: PolynomialFamily, c: Any, tol: Any = 0) -> Any:
    """Remove trailing coefficients of absolute value up to `tol`."""
    if tol < 0:
        raise ArgumentError(
            f"{family.name}trim with tol={tol}: tol must be at least 0{at(user_line())}."
        )
    c = coefficients(c)
    remedy = "Choose a fixed part, c[:n]"
    found = needed(c, f"{family.name}trim", "how many coefficients are left", remedy)
    places = np.flatnonzero(np.abs(found) > tol)
    return c[: int(places[-1]) + 1] if places.size else c[:1] * 0


def line(family: PolynomialFamily, off: Any, scl: Any) -> Any:
    """The series of ``off + scl x``."""
    powers = trimmed(np.stack([as_array(off), as_array(scl)]))
    return powers if family.name == "poly" else from_powers(family, powers)


def mulx(family: PolynomialFamily, c: Any) -> Any:
    """The product with x."""
    c = trimmed(c)
    return mapped(family.matrix(c.shape[0], "mulx"), c)


def pow_(family: PolynomialFamily, c: Any, pow: int, maxpower: Any = 16) -> Any:
    """A power."""
    if int(pow) != pow or pow < 0 or (maxpower is not None and pow > maxpower):
        return family.theirs("pow")(np.ones(1), pow, maxpower)  # raises, or is one
    made = np.ones(1)
    for _ in range(int(pow)):
        made = mul(family, made, c)
    return made


def to_powers(family: PolynomialFamily, c: Any) -> Any:
    """The coefficients of powers of x of the same polynomial."""
    c = trimmed(c)
    return mapped(family.matrix(c.shape[0], "%2poly"), c)


def from_powers(family: PolynomialFamily, pol: Any) -> Any:
    """The coefficients in this family of a polynomial given by those of powers of x."""
    pol = trimmed(pol)
    return mapped(family.matrix(pol.shape[0], "poly2%"), pol)


def fromroots(family: PolynomialFamily, roots: Any) -> Any:
    """The polynomial with these roots."""
    roots = coefficients(roots)
    made: Any = np.ones(1, roots.dtype)
    nothing = np.zeros(1, roots.dtype)
    for k in range(roots.shape[0]):
        made = np.concatenate([nothing, made]) - np.concatenate([made * roots[k], nothing])
    return made if family.name == "poly" else mapped(family.matrix(made.shape[0], "poly2%"), made)


def companion(family: PolynomialFamily, c: Any) -> Any:
    """The companion matrix, whose eigenvalues are the roots; affine in ``c[:-1] / c[-1]``."""
    c = trimmed(c)
    n = c.shape[0] - 1
    if n < 1:
        raise ShapeError(
            f"{family.name}companion of a constant, which has no roots. Pass at least two "
            f"coefficients{at(user_line())}."
        )
    units, make = np.eye(n + 1), family.theirs("companion")
    base = make(units[n])
    parts = np.stack([make(units[n] + unit) - base for unit in units[:n]]).astype(c.dtype)
    return base.astype(c.dtype) + np.tensordot(c[:n] / c[n], parts, 1)


def roots(family: PolynomialFamily, c: Any) -> Any:
    """The roots of the series: the eigenvalues of its companion matrix, sorted."""
    c = trimmed(c)
    if c.shape[0] < 2:
        return c[:0]
    return np.sort(roots_of_companion(companion(family, c)[::-1, ::-1]))


def fit(
    family: PolynomialFamily,
    x: Any,
    y: Any,
    deg: Any,
    rcond: Any = None,
    full: bool = False,
    w: Any = None,
) -> Any:
    """The least-squares fit of a series to data."""
    if full or np.ndim(deg):
        raise OperandError(
            f"{family.name}fit of tensors returns all coefficients up to a degree, and only these. "
            f"Omit full=, and pass deg as an integer{at(user_line())}."
        )
    x, y = as_array(x) + 0.0, as_array(y) + 0.0
    rows = vander(family, x, deg)
    if w is not None:
        w = as_array(w) + 0.0
        rows, y = rows * w[:, None], y * (w[:, None] if y.ndim == 2 else w)
    scale = np.sqrt(np.sum(np.square(np.absolute(rows)), axis=0))
    rcond = x.shape[0] * np.finfo(x.dtype).eps if rcond is None else rcond
    c = np.linalg.lstsq(rows / scale, y, rcond)[0]
    return (c.T / scale).T


WHAT: dict[str, Callable[..., Any]] = {
    "vander": vander, "val": val, "val2d": val2d, "val3d": val3d, "grid2d": grid2d,
    "grid3d": grid3d, "vander2d": vander2d, "der": der, "int": int_, "add": add, "sub": sub,
    "mul": mul, "mulx": mulx, "pow": pow_, "%2poly": to_powers, "poly2%": from_powers,
    "fromroots": fromroots, "roots": roots, "fit": fit, "vander3d": vander3d, "div": div,
    "trim": trim, "valfromroots": valfromroots, "companion": companion, "line": line,
}  # fmt: skip


def functions(family: PolynomialFamily) -> dict[str, Callable[..., Any]]:
    """The functions of a family for arrays and tensors, by NumPy's names."""
    found = {}
    for what, ours in WHAT.items():
        name = what.replace("%", family.name) if "%" in what else family.name + what
        if hasattr(family.module, name):
            found[name] = _public(family, getattr(family.module, name), ours)
    return found


def _public(family: PolynomialFamily, theirs: Any, ours: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(theirs)
    def call(*args: Any, **named: Any) -> Any:
        if any(isinstance(part, Handle) for part in pytree.flatten((args, named))[0]):
            return ours(family, *args, **named)
        return theirs(*args, **named)

    return call


def _family(module: str, name: str, recurrence: Recurrence) -> Any:
    """A module with the functions of a family, and the names of NumPy's module."""
    theirs = getattr(np.polynomial, module)
    own = functions(PolynomialFamily(theirs, name, recurrence))
    made = ModuleType(f"{__name__}.{module}", theirs.__doc__)
    names = {n: getattr(theirs, n) for n in theirs.__all__}
    made.__dict__.update(names | own, OWN=sorted(own), __all__=sorted(names | own))
    sys.modules[made.__name__] = made
    return made


polynomial = _family("polynomial", "poly", lambda k: (1.0, 0.0, 0.0))
chebyshev = _family("chebyshev", "cheb", lambda k: (2.0 if k else 1.0, 0.0, 1.0))
legendre = _family("legendre", "leg", lambda k: ((2 * k + 1) / (k + 1), 0.0, k / (k + 1)))
laguerre = _family("laguerre", "lag", lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1)))
hermite = _family("hermite", "herm", lambda k: (2.0, 0.0, 2.0 * k))
hermite_e = _family("hermite_e", "herme", lambda k: (1.0, 0.0, 1.0 * k))

FAMILIES = "polynomial chebyshev legendre laguerre hermite hermite_e".split()
__all__ = FAMILIES


def __getattr__(name: str) -> Any:
    """NumPy's attribute of that name, for its classes."""
    if name == "__path__":  # NumPy's, where this module has no submodules in files
        raise AttributeError(name)
    return getattr(np.polynomial, name)


__dir__ = public_dir(__name__)
