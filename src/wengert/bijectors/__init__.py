"""Bijectors: constrained parameters as functions of unconstrained ones, with log-Jacobians.

    bijector     Bijector: forward, inverse, log_det_jacobian, and the checks of what is given;
                 Real, Positive, Lower, Upper, Interval: numbers and arrays of them
    vectors_and_factors  Ordered, Simplex, UnitVector: the last axis; CorrelationCholesky,
                         CovarianceCholesky: lower triangular matrices
    joint        Joint: a bijector for each leaf of a container; vectors of all parameters

The transformations are those of Stan's parameter types, so that densities on the unconstrained
space agree with Stan's (Stan Reference Manual, "Constraint Transforms"; the simplex is that of
versions with stick breaking).
"""

from wengert._engine.core.lazy_import import public_dir

from .bijector import Bijector, Interval, Lower, Positive, Real, Upper
from .joint import Joint
from .vectors_and_factors import (
    CorrelationCholesky,
    CovarianceCholesky,
    Ordered,
    Simplex,
    UnitVector,
)

__all__ = [
    "Bijector",
    "CorrelationCholesky",
    "CovarianceCholesky",
    "Interval",
    "Joint",
    "Lower",
    "Ordered",
    "Positive",
    "Real",
    "Simplex",
    "UnitVector",
    "Upper",
]

__dir__ = public_dir(__name__)
