r"""The Laplace approximation of a marginal likelihood: laplace.

For random effects u and parameters theta, with the joint density exp(-f(u, theta)),

    -log \int exp(-f(u, theta)) du  ~  f(u*, theta) + log det H(u*, theta) / 2 - n log(2 pi) / 2

where u* minimizes f for given theta, and H is the Hessian with respect to u there: sparse if each
effect is tied to few others.  The approximation is exact if f is quadratic in u.

    laplace                the approximation of a model
    LaplaceApproximation   the marginal objective, the mode, standard errors
    StandardErrors         of parameters and random effects
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.grad import value_and_grad
from wengert._engine.autodiff.jvp_vjp import jvp
from wengert._engine.core import display
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, value_of
from wengert._engine.core.validation import function, words
from wengert.errors import ArgumentError, ShapeError, StructureError, at, user_line
from wengert.scipy.sparse.linalg.determinants import sparse_slogdet, transposed_inverse

from .laplace_newton import JointFunction, mode_of
from .minimization import Raveled

_DIFFERENCE = 1e-4  # of the parameters, relative, for the Hessian of the marginal objective


@display.shown_fields
class StandardErrors(NamedTuple):
    """Standard errors of a model that was fitted.

    Attributes
    ----------
    params : dict
        Of the parameters: roots of the diagonal of `covariance`, in the shapes of the parameters.
    random : dict
        Of the random effects, given the data, with the uncertainty of the parameters.
    covariance : ndarray
        Of the parameters, ordered as the entries of the dict, each in C order.
    """

    params: dict[str, Any]
    random: dict[str, Any]
    covariance: Any


class LaplaceApproximation:
    """The negative log marginal likelihood of a model; made by `laplace`.

    A function of the parameters, which can be differentiated and compiled.

    Attributes
    ----------
    params : dict
        The initial values of the parameters, without the random effects.
    random : dict
        The initial values of the random effects.
    """

    __module__ = "wengert.optim"

    def __init__(
        self,
        fun: Callable[[dict[str, Any]], Any],
        params: dict[str, Any],
        random: tuple[str, ...],
        max_steps: int,
    ) -> None:
        self.params = {k: x for k, x in params.items() if k not in random}
        self.random = {k: params[k] for k in random}
        self.max_steps = max_steps
        self._density = fun  # compiled functions that use this object search it for captured values
        self._shape = Raveled(self.random, "laplace: random")
        self._start = self._shape.vector(self.random)
        shape, names, density = self._shape, tuple(params), converted(fun)

        def joint(u: Any, params: Any) -> Any:
            every = {**params, **shape.container(u)}
            return density({k: every[k] for k in names})

        self._joint = JointFunction(joint)

    def __call__(self, params: dict[str, Any]) -> Any:
        """The approximation of the negative log marginal likelihood.

        Parameters
        ----------
        params : dict
            As the attribute `params`.

        Raises
        ------
        ConvergenceError
            The mode was not found. In a compiled function the result is NaN.
        MatrixError
            The Hessian at the mode is not positive definite.
        """
        given = self._checked(params)
        u = mode_of(self._joint, self._start, given, self.max_steps)
        plan = self._joint.hessian.plan(u, given)
        data = plan.values(u, given)
        _, logarithm = sparse_slogdet(data, plan.indices, plan.indptr, assume="pos")
        constant = 0.5 * len(self._start) * math.log(2.0 * math.pi)
        return self._joint.value(u, given) + 0.5 * logarithm - constant

    def mode(self, params: dict[str, Any]) -> dict[str, Any]:
        """The most probable random effects for these parameters; it can be differentiated."""
        u = mode_of(self._joint, self._start, self._checked(params), self.max_steps)
        found: dict[str, Any] = self._shape.container(u)
        return found

    def starting_at(self, random: dict[str, Any]) -> LaplaceApproximation:
        """The same approximation, in which the search for the mode begins at these effects.

        Parameters
        ----------
        random : dict
            Random effects, such as the mode for other parameters. Near the mode, fewer Newton
            steps are needed; the result is the same up to rounding.
        """
        if not isinstance(random, Mapping) or set(random) != set(self.random):
            given = sorted(random) if isinstance(random, Mapping) else type(random).__name__
            raise StructureError(
                f"laplace: the random effects are {sorted(self.random)}, but {given} was given. "
                f"Pass a dict like the result of mode{at(user_line())}."
            )
        other = copy.copy(self)
        other.random = {k: np.asarray(value_of(random[k]), float) for k in self.random}
        shapes = {k: np.shape(x) for k, x in other.random.items()}
        wanted = {k: np.shape(x) for k, x in self.random.items()}
        if shapes != wanted:
            raise ShapeError(
                f"laplace: the random effects have shapes {shapes}, and must have {wanted}"
                f"{at(user_line())}."
            )
        other._start = self._shape.vector(other.random)
        return other

    def standard_errors(self, params: dict[str, Any]) -> StandardErrors:
        """Standard errors at a minimum, from the curvature of the marginal objective.

        Parameters
        ----------
        params : dict
            The parameters at the minimum.

        Notes
        -----
        The Hessian of the marginal objective is computed by central differences of its exact
        gradient, two gradients for each parameter. The variance of the random effects is the
        diagonal of the inverse of their Hessian, plus the part that the parameters contribute by
        the derivative of the mode.

        Raises
        ------
        ArgumentError
            The Hessian is not positive definite: the parameters are not at a minimum.
        """
        given = {k: value_of(x) for k, x in self._checked(params).items()}
        ravel = Raveled(given, "laplace: params")
        v = ravel.vector(given)
        slope = value_and_grad(lambda w: self(ravel.container(w)))
        hessian = np.empty((v.size, v.size))
        for k in range(v.size):
            h = _DIFFERENCE * (1.0 + abs(v[k]))
            e = np.eye(v.size)[k] * h
            hessian[k] = (slope(v + e)[1] - slope(v - e)[1]) / (2.0 * h)
        hessian = 0.5 * (hessian + hessian.T)
        try:
            np.linalg.cholesky(hessian)
        except np.linalg.LinAlgError:
            raise ArgumentError(
                "laplace: standard errors: the Hessian of the marginal objective is not positive "
                "definite at these parameters, so they are not at a minimum, or not all of them "
                f"can be estimated. Minimize first{at(user_line())}."
            ) from None
        covariance = np.linalg.inv(hessian)
        errors = ravel.container(np.sqrt(np.diagonal(covariance)))
        random = self._random_errors(ravel, v, covariance)
        return StandardErrors(errors, random, covariance)

    def _random_errors(self, ravel: Raveled, v: Any, covariance: Any) -> dict[str, Any]:
        def mode(w: Any) -> Any:
            return mode_of(self._joint, self._start, ravel.container(w), self.max_steps)

        u, given = value_of(mode(v)), ravel.container(v)
        plan = self._joint.hessian.plan(u, given)
        data = np.asarray(value_of(plan.values(u, given)))
        inverse = transposed_inverse(data, plan.indices, plan.indptr, "pos")
        variance = inverse[plan.rows == plan.cols]
        columns = [jvp(mode, (v,), (e,))[1] for e in np.eye(v.size)]
        jacobian = np.stack([np.asarray(value_of(c)) for c in columns], axis=1)
        variance = variance + np.einsum("ik,kl,il->i", jacobian, covariance, jacobian)
        found: dict[str, Any] = self._shape.container(np.sqrt(variance))
        return found

    def _checked(self, params: Any) -> dict[str, Any]:
        if not isinstance(params, Mapping) or set(params) != set(self.params):
            given = sorted(params) if isinstance(params, Mapping) else type(params).__name__
            raise StructureError(
                f"laplace: the parameters are {sorted(self.params)}, but {given} was given. Pass a "
                f"dict with these names, without the random effects{at(user_line())}."
            )
        return {k: _inexact(params[k]) for k in self.params}

    def __repr__(self) -> str:
        return (
            f"<Laplace approximation, {len(self._start)} random effects: {', '.join(self.random)}; "
            f"parameters: {', '.join(self.params)}>"
        )


def _inexact(x: Any) -> Any:
    return x if isinstance(x, Handle) else np.asarray(x, float)[()]


def laplace(
    negative_log_joint: Callable[[dict[str, Any]], Any],
    *,
    random: str | Sequence[str],
    params: dict[str, Any],
    max_steps: int = 100,
) -> LaplaceApproximation:
    """Integrate random effects out of a model by the Laplace approximation.

    Parameters
    ----------
    negative_log_joint : callable
        ``negative_log_joint(params)``: the negative logarithm of the joint density of data and
        random effects, a real number. `params` is a dict of arrays, as the argument `params`.
    random : str or sequence of str
        The names of the random effects, over which the density is integrated.
    params : dict
        Initial values of all parameters, with the random effects.
    max_steps : int
        The largest number of Newton steps for the mode of the random effects.

    Returns
    -------
    LaplaceApproximation
        The negative log marginal likelihood, a function of a dict of the other parameters. Its
        attribute `params` has their initial values, for `optim.minimize`. Methods: `mode`, the
        random effects, `standard_errors`, and `starting_at`, for other initial effects.

    Raises
    ------
    ArgumentError
        `random` is not among the names of `params`.
    DtypeError
        A random effect is not real.

    See Also
    --------
    minimize : minimizes it.

    Notes
    -----
    As ``MakeADFun`` of TMB [1]_ with the argument `random`. The Hessian with respect to the random
    effects is computed as a sparse matrix, whose pattern is found (`sparse_hessian`), and
    factorized; the gradient is exact: elements of the inverse Hessian on its pattern, its third
    derivatives, and one linear system for the change of the mode. It costs less than the value, a
    few Newton steps.

    The approximation is exact if the negative log density is quadratic in the random effects.

    References
    ----------
    .. [1] K. Kristensen, A. Nielsen, C. W. Berg, H. Skaug, B. M. Bell, "TMB: Automatic
       Differentiation and Laplace Approximation", J. Stat. Softw. 70(5), 2016.

    Examples
    --------
    Groups with random means (the result is known in this case):

    >>> import numpy as np
    >>> from wengert import optim
    >>> y = np.array([[1.0, 1.4], [3.1, 2.7], [2.0, 2.2]])
    >>> def negative_log_joint(p):
    ...     noise = np.sum((y - p["u"][:, None]) ** 2 / 0.1 + np.log(2 * np.pi * 0.1)) / 2
    ...     prior = np.sum((p["u"] - p["mean"]) ** 2 + np.log(2 * np.pi)) / 2
    ...     return noise + prior
    >>> start = {"u": np.zeros(3), "mean": 0.0}
    >>> marginal = optim.laplace(negative_log_joint, random="u", params=start)
    >>> found = optim.minimize(marginal, marginal.params)
    >>> found.x["mean"].round(6), marginal.mode(found.x)["u"].round(3)
    (np.float64(2.066667), array([1.241, 2.86 , 2.098]))
    """
    function(negative_log_joint, "laplace")
    names = words(random, "laplace: random")
    if not isinstance(params, dict) or not names or not set(names) <= set(params):
        known = ", ".join(map(str, params)) if isinstance(params, dict) else type(params).__name__
        raise ArgumentError(
            f"laplace: random={random!r} are not names among the parameters ({known}). Give a dict "
            f"of initial values with all names{at(user_line())}."
        )
    return LaplaceApproximation(negative_log_joint, params, tuple(names), max_steps)
