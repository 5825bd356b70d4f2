"""Validation of samples, targets and options, and scikit-learn's base classes.

Only this module imports scikit-learn.  Inputs are validated by its functions, so that messages,
warnings and attributes (`n_features_in_`, `classes_`) are those of scikit-learn.

    samples, pairs, labeled    validated inputs of `predict` and `fit`
    at_least, above            ranges of options, checked in `fit` as scikit-learn requires
"""

from __future__ import annotations

import warnings
from numbers import Number
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils import check_array, check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "wengert.compat.sklearn needs scikit-learn 1.6 or newer. Install the extra: "
        "pip install 'wengert[learn]'."
    ) from error

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "MultiOutputMixin",
    "RegressorMixin",
    "above",
    "at_least",
    "check_random_state",
    "labeled",
    "pairs",
    "samples",
    "stopped_early",
    "weights",
]

Array = np.ndarray[Any, Any]
REAL = (np.float64, np.float32)


def samples(estimator: Any, x: Any) -> Array:
    """The validated samples for a prediction."""
    check_is_fitted(estimator)
    return validate_data(estimator, x, dtype=REAL, reset=False)  # type: ignore[no-any-return]


def pairs(estimator: Any, x: Any, y: Any, several: bool = True) -> tuple[Array, Array]:
    """Samples and real targets, in one dtype; `several` allows several targets per sample."""
    x, y = validate_data(estimator, x, y, dtype=REAL, multi_output=several, y_numeric=True)
    return x, np.asarray(y, x.dtype)


def labeled(estimator: Any, x: Any, y: Any) -> tuple[Array, Array]:
    """Samples and the class index of each; sets `classes_`."""
    x, y = validate_data(estimator, x, y, dtype=REAL)
    check_classification_targets(y)
    estimator.classes_, codes = np.unique(y, return_inverse=True)
    if len(estimator.classes_) < 2:
        raise ArgumentError(
            f"{type(estimator).__name__}.fit was given one class, "
            f"{estimator.classes_.tolist()[0]!r}. A classifier needs at least two{at(user_line())}."
        )
    return x, codes


def weights(given: Any, x: Array) -> Array:
    """Sample weights, by default ones."""
    if given is None or isinstance(given, Number):
        return np.full(len(x), 1.0 if given is None else given, x.dtype)
    weight: Array = check_array(given, dtype=x.dtype, ensure_2d=False, input_name="sample_weight")
    if weight.shape != (len(x),) or np.any(weight < 0):
        raise ArgumentError(
            f"sample_weight has shape {weight.shape} and minimum {weight.min()}. Pass a weight of "
            f"at least 0 for each of the {len(x)} samples{at(user_line())}."
        )
    if not np.any(weight):
        raise ArgumentError(
            f"sample_weight: all weights are zero. At least one must be positive{at(user_line())}."
        )
    return weight


def at_least(estimator: Any, **least: float) -> None:
    """Raise for options below their bounds."""
    _bounded(estimator, least, lambda value, bound: value >= bound, "at least")


def above(estimator: Any, **least: float) -> None:
    """Raise for options that are not above their bounds."""
    _bounded(estimator, least, lambda value, bound: value > bound, "larger than")


def _bounded(estimator: Any, bounds: dict[str, float], holds: Any, words: str) -> None:
    for name, bound in bounds.items():
        value = getattr(estimator, name)
        if not holds(value, bound):
            raise ArgumentError(
                f"{type(estimator).__name__}({name}={value!r}): {name} must be {words} {bound}. "
                f"Change it{at(user_line())}."
            )


def stopped_early(estimator: Any, why: str) -> None:
    """Warn that the fit did not converge."""
    warnings.warn(
        f"{type(estimator).__name__} did not converge: {why}. Allow more iterations, scale the "
        "features, or accept a larger tolerance.",
        ConvergenceWarning,
        stacklevel=3,
    )
