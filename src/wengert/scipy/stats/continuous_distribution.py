"""Base classes of univariate distributions, with SciPy's names and signatures.

    Distribution  what continuous and discrete distributions share
    Continuous    base class; a subclass defines formulas of the standard form (loc 0, scale 1):
                  `log_density(x, *shapes)` ...
    Frozen        a distribution with fixed parameters

(Discrete is in discrete_distribution.py.)  The formulas are written with NumPy and SciPy functions,
so that they can be differentiated with respect to the point and every parameter, in both modes, to
any order; for arrays they return arrays.  The base class adds:

    location and scale     (x - loc) / scale, and the logarithm of the scale
    the support            outside of it the density is 0, its logarithm -inf, and the derivative 0;
                           formulas are evaluated at a point inside (`inner`) instead
    parameters             where they are invalid the result is NaN

Branches are selected by `where`, whose derivative is 0 for the branch not selected
(docs/conventions.md).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, shape_of, value_of
from wengert._engine.tensor.numpy_dispatch import as_array, broadcast_shapes, values
from wengert.errors import ArgumentError, DtypeError, NotDifferentiableError, at, user_line
from wengert.random.keys import as_key, as_shape, key

Formula = Callable[..., Any]


class Distribution:
    """Parameters, names and moments of continuous and discrete distributions."""

    ends: tuple[float, float] = (-np.inf, np.inf)
    inner: float = 0.5

    def __init__(self, name: str) -> None:
        self.name = name
        self.shapes = tuple(inspect.signature(self.log_density).parameters)[1:]
        self.__doc__ = inspect.getdoc(type(self))

    def log_density(self, x: Any, *shapes: Any) -> Any:
        """The logarithm of the density of the standard form, inside the support."""
        raise NotImplementedError

    def valid(self, *shapes: Any) -> Any:
        """True where the shape parameters are valid."""
        return True

    def support_of(self, *shapes: Any) -> tuple[Any, Any]:
        """Both ends of the support of the standard form."""
        return self.ends

    def inside_of(self, *shapes: Any) -> Any:
        """A point of the support, used in place of points outside."""
        return self.inner

    def formula(self, name: str) -> Formula:
        """A formula of the subclass.

        Raises
        ------
        NotDifferentiableError
            The subclass does not define it.
        """
        formula: Formula | None = getattr(self, name, None)
        if formula is None:
            raise NotDifferentiableError(
                f"{self.name} has no differentiable {name.replace('standard_', '')}. For plain "
                f"arrays use scipy.stats.{self.name}{at(user_line())}."
            )
        return formula

    def parse_args(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], point: Any = None
    ) -> tuple[list[Any], Any, Any]:
        """Shapes, location and scale of a call, each a tensor or an array of real numbers.

        Python numbers are converted to the precision of the point, so that the density at a float32
        is a float32.
        """
        names = [*self.shapes, *self.last]
        if len(args) > len(names) or set(kwargs) - set(names):
            raise ArgumentError(
                f"{self.name} has the parameters {', '.join(names)}, but was called with "
                f"{len(args)} positional arguments and the keywords {sorted(kwargs)}"
                f"{at(user_line())}."
            )
        parameters = dict(zip(names, args, strict=False))
        repeated = sorted(set(parameters) & set(kwargs))
        parameters |= kwargs
        missing = [n for n in self.shapes if n not in parameters]
        if repeated or missing:
            problem = f"{repeated} are given twice" if repeated else f"{missing} are missing"
            raise ArgumentError(f"{self.name}: {problem}{at(user_line())}.")
        dtype = None if point is None else dtype_of(point)
        number = dtype.type if dtype is not None and dtype.kind == "f" else float
        values = [real(parameters[n], n) for n in self.shapes]
        values += [real(parameters.get("loc", 0), "loc"), real(parameters.get("scale", 1), "scale")]
        *shapes, loc, scale = [number(v) if type(v) in (int, float) else v for v in values]
        return shapes, loc, scale

    last: tuple[str, ...] = ("loc", "scale")

    def freeze(self, *args: Any, **kwargs: Any) -> Frozen:
        """The distribution with these parameters."""
        self.parse_args(args, kwargs)
        return Frozen(self, args, kwargs)

    __call__ = freeze

    @np.errstate(all="ignore")
    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """The mean."""
        shapes, loc, scale = self.parse_args(args, kwargs)
        return self._nan_if_invalid(
            loc + scale * self.formula("standard_mean")(*shapes), shapes, scale
        )

    @np.errstate(all="ignore")
    def var(self, *args: Any, **kwargs: Any) -> Any:
        """The variance."""
        shapes, _, scale = self.parse_args(args, kwargs)
        out = scale * scale * self.formula("standard_var")(*shapes)
        return self._nan_if_invalid(out, shapes, scale)

    @np.errstate(all="ignore")
    def std(self, *args: Any, **kwargs: Any) -> Any:
        """The standard deviation."""
        if not hasattr(self, "standard_std"):
            return np.sqrt(self.var(*args, **kwargs))
        shapes, _, scale = self.parse_args(args, kwargs)
        return self._nan_if_invalid(scale * self.formula("standard_std")(*shapes), shapes, scale)

    @np.errstate(all="ignore")
    def _nan_if_invalid(self, out: Any, shapes: list[Any], scale: Any) -> Any:
        return np.where(np.logical_and(self.valid(*shapes), scale > 0), out, np.nan)[()]

    @np.errstate(all="ignore")
    def rvs(self, *args: Any, size: Any = None, random_state: Any = None, **kwargs: Any) -> Any:
        """Random variates; those of continuous distributions are differentiable.

        Parameters
        ----------
        *args, **kwargs
            Shapes, ``loc`` and ``scale``.
        size : int or tuple of int, optional
            By default the shape of the parameters.
        random_state : key or int
            A key (wengert.random.key), or a seed for one. The same gives the same numbers.
        """
        shapes, loc, scale = self.parse_args(args, kwargs)
        if random_state is None:
            raise ArgumentError(
                f"{self.name}.rvs is a function of a key. Pass random_state=wengert.random.key(0)"
                f"{at(user_line())}."
            )
        rng_key = key(random_state) if isinstance(random_state, int) else as_key(random_state)
        lengths = broadcast_shapes(*map(shape_of, [*shapes, loc, scale]))
        if size is not None:
            lengths = as_shape(size)
        standard = self.formula("standard_draw")(rng_key, lengths, *shapes)
        if dtype_of(standard).kind != "f":
            return standard + np.asarray(value_of(loc)).astype(np.int64)
        return self._nan_if_invalid(loc + scale * standard, shapes, scale)

    def __repr__(self) -> str:
        return f"<distribution {self.name}({', '.join([*self.shapes, *self.last])})>"


def real(x: Any, what: str) -> Any:
    """An operand as a real array or tensor."""
    if isinstance(x, int | float) and not isinstance(x, bool):
        return x
    x = as_array(x)
    if dtype_of(x).kind not in "biuf":
        raise DtypeError(f"{what} is {dtype_of(x)}, but must be real{at(user_line())}.")
    return x


class Frozen:
    """A distribution with fixed parameters: ``norm(0, 2).logpdf(x)``."""

    def __init__(self, dist: Distribution, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.dist, self.args, self.kwds = dist, args, kwargs

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.dist, name)
        if name in ("mean", "var", "std", "entropy", "median", "support"):
            return lambda: method(*self.args, **self.kwds)
        if name == "rvs":
            return lambda size=None, random_state=None: method(
                *self.args, size=size, random_state=random_state, **self.kwds
            )
        return lambda x: method(x, *self.args, **self.kwds)

    def __repr__(self) -> str:
        arguments = [*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwds.items())]
        return f"<{self.dist.name}({', '.join(arguments)})>"


class Continuous(Distribution):
    """A continuous distribution; a subclass defines formulas of the standard form.

    log_density                  required
    lower, upper                 the cdf and the survival function
    log_lower, log_upper         their logarithms
    quantile, upper_quantile     their inverses
    standard_mean, standard_var, standard_entropy, standard_draw
    """

    at_low = True  # whether log_density is valid at the lower end
    at_high = True

    @np.errstate(all="ignore")
    def logpdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the density."""
        x = real(x, "x")
        shapes, loc, scale = self.parse_args(args, kwargs, x)
        z = (x - loc) / scale
        low, high = self.support_of(*shapes)
        above = z >= low if self.at_low else z > low
        below = z <= high if self.at_high else z < high
        inside = np.logical_and(np.logical_and(above, below), np.isfinite(values(z)))
        out = self.log_density(np.where(inside, z, self.inside_of(*shapes)), *shapes)
        out = np.where(inside, out - np.log(scale), -np.inf)
        return self._finish(out, z, shapes, scale)

    def pdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The density."""
        with np.errstate(all="ignore"):
            return exp_of(self.logpdf(x, *args, **kwargs))

    def cdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The cumulative distribution function."""
        return self._probability(x, args, kwargs, ("lower", "upper"), 0.0, 1.0)

    def sf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The survival function, 1 - cdf."""
        return self._probability(x, args, kwargs, ("upper", "lower"), 1.0, 0.0)

    def logcdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the cumulative distribution function."""
        return self._probability(x, args, kwargs, ("log_lower", "log_upper"), -np.inf, 0.0)

    def logsf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the survival function."""
        return self._probability(x, args, kwargs, ("log_upper", "log_lower"), 0.0, -np.inf)

    @np.errstate(all="ignore")
    def _probability(
        self, x: Any, args: Any, kwargs: Any, names: tuple[str, str], below: float, above: float
    ) -> Any:
        """cdf, sf or one of their logarithms: the first of `names`, or derived from the other.

        `below` and `above` are the values outside of the support.
        """
        x = real(x, "x")
        shapes, loc, scale = self.parse_args(args, kwargs, x)
        z = (x - loc) / scale
        low, high = self.support_of(*shapes)
        over_low, under_high = z > low, z < high
        inside = np.where(np.logical_and(over_low, under_high), z, self.inside_of(*shapes))
        out = self._from_formulas(names, inside, shapes)
        out = np.where(over_low, np.where(under_high, out, above), below)
        return self._finish(out, z, shapes, scale)

    def _from_formulas(self, names: tuple[str, str], z: Any, shapes: list[Any]) -> Any:
        """cdf or sf from its own formula, or else from the other one or from its logarithm."""
        own, other = names
        if hasattr(self, own):
            return getattr(self, own)(z, *shapes)
        if own.startswith("log"):
            if hasattr(self, other) and not hasattr(self, own[4:]):
                return log1mexp(getattr(self, other)(z, *shapes))
            return self._logarithm(own[4:], other[4:], z, shapes)
        if hasattr(self, f"log_{own}"):
            return exp_of(getattr(self, f"log_{own}")(z, *shapes))
        if hasattr(self, other):
            return 1.0 - getattr(self, other)(z, *shapes)
        if hasattr(self, f"log_{other}"):
            return one_minus_exp(getattr(self, f"log_{other}")(z, *shapes))
        self.formula(own)
        return None

    def _logarithm(self, own: str, other: str, z: Any, shapes: list[Any]) -> Any:
        """The log of cdf or sf, computed from the smaller of the two."""
        value = self._from_formulas((own, other), z, shapes)
        complement = self._from_formulas((other, own), z, shapes)
        small = value < 0.5
        return np.where(
            small, np.log(np.where(small, value, 0.5)), np.log1p(-np.where(small, 0.5, complement))
        )

    def ppf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """The quantile function, the inverse of the cdf."""
        return self._inverse(q, args, kwargs, ("quantile", "upper_quantile"), False)

    def isf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """The inverse of the survival function."""
        return self._inverse(q, args, kwargs, ("upper_quantile", "quantile"), True)

    @np.errstate(all="ignore")
    def _inverse(self, q: Any, args: Any, kwargs: Any, names: tuple[str, str], upper: bool) -> Any:
        q = real(q, "q")
        shapes, loc, scale = self.parse_args(args, kwargs, q)
        low, high = self.support_of(*shapes)
        if upper:
            low, high = high, low
        inside = np.logical_and(q > 0, q < 1)
        q_inside = np.where(inside, q, 0.5)
        if hasattr(self, names[0]):
            out = getattr(self, names[0])(q_inside, *shapes)
        else:
            out = self.formula(names[1])(1.0 - q_inside, *shapes)
        ends = np.where(q == 0, low, np.where(q == 1, high, np.nan))  # in double precision
        out = _in_precision(np.where(inside, out, ends), q, shapes)
        return self._nan_if_invalid(loc + scale * out, shapes, scale)

    def median(self, *args: Any, **kwargs: Any) -> Any:
        """The median."""
        return self.ppf(0.5, *args, **kwargs)

    def support(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Both ends of the support."""
        shapes, loc, scale = self.parse_args(args, kwargs)
        low, high = self.support_of(*shapes)
        return loc + scale * low, loc + scale * high

    @np.errstate(all="ignore")
    def entropy(self, *args: Any, **kwargs: Any) -> Any:
        """The differential entropy."""
        shapes, _, scale = self.parse_args(args, kwargs)
        out = self.formula("standard_entropy")(*shapes) + np.log(scale)
        return self._nan_if_invalid(out, shapes, scale)

    def _finish(self, out: Any, z: Any, shapes: list[Any], scale: Any) -> Any:
        out = _in_precision(out, z, shapes)
        out = np.where(np.isnan(values(z)), np.nan, out)
        return self._nan_if_invalid(out, shapes, scale)


def _in_precision(out: Any, point: Any, shapes: list[Any]) -> Any:
    """A result in the precision of point and shapes (betaln, for one, has no float32)."""
    dtype = np.result_type(*map(dtype_of, [point, *shapes]))
    return out.astype(dtype) if dtype.kind == "f" and dtype_of(out) != dtype else out


# Below this exp(x) is 0; evaluating its derivative at x = -inf would give 0 * inf = NaN.
_UNDERFLOW = -800.0


def exp_of(x: Any) -> Any:
    """exp(x); 0 with derivative 0 where that underflows."""
    in_range = np.logical_not(x < _UNDERFLOW)  # keeps NaN
    return np.where(in_range, np.exp(np.where(in_range, x, 0.0)), 0.0)


def one_minus_exp(x: Any) -> Any:
    """1 - exp(x); 1 with derivative 0 where exp(x) underflows."""
    in_range = np.logical_not(x < _UNDERFLOW)
    return np.where(in_range, -np.expm1(np.where(in_range, x, 0.0)), 1.0)


def sqrt_or_zero(x: Any) -> Any:
    """sqrt(x) for x that is 0 only by underflow: then 0 with derivative 0."""
    nonzero = np.logical_not(x == 0)  # keeps NaN
    return np.where(nonzero, np.sqrt(np.where(nonzero, x, 1.0)), 0.0)


def log1mexp(x: Any) -> Any:
    """log(1 - exp(x)) for x < 0: M. Maechler, Accurately computing log(1 - exp(-|a|)) (2012)."""
    near = x > -0.6931471805599453
    return np.where(
        near, np.log(-np.expm1(np.where(near, x, -1.0))), np.log1p(-exp_of(np.where(near, -1.0, x)))
    )


def log_expm1(x: Any) -> Any:
    """log(exp(x) - 1) for x > 0, which does not overflow."""
    return x + log1mexp(-x)


def is_plain(*operands: Any) -> bool:
    """Whether none of them is a tensor."""
    return not any(isinstance(x, Handle) for x in operands)
