"""Validation of samples, targets and options, and scikit-learn's base classes.

scikit-learn is imported here and nowhere else in the package.  Its own functions check what comes
in, so that messages, warnings and attributes (`n_features_in_`, `classes_`) are those its users
know.

    samples, pairs, labeled    arrays that `predict` or `fit` were given, checked
    at_least, above             options within their range, checked in `fit` as scikit-learn asks
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
    """What a fitted estimator is to predict for."""
    check_is_fitted(estimator)
    return validate_data(estimator, x, dtype=REAL, reset=False)  # type: ignore[no-any-return]


def pairs(estimator: Any, x: Any, y: Any, several: bool = True) -> tuple[Array, Array]:
    """Samples and real targets, in one dtype; `several` targets a sample if allowed."""
    x, y = validate_data(estimator, x, y, dtype=REAL, multi_output=several, y_numeric=True)
    return x, np.asarray(y, x.dtype)


def labeled(estimator: Any, x: Any, y: Any) -> tuple[Array, Array]:
    """Samples and the number of each one's class; sets `classes_`."""
    x, y = validate_data(estimator, x, y, dtype=REAL)
    check_classification_targets(y)
    estimator.classes_, codes = np.unique(y, return_inverse=True)
    if len(estimator.classes_) < 2:
        raise ArgumentError(
            f"{type(estimator).__name__}.fit was given one class only, "
            f"{estimator.classes_[0]!r}. Classifiers tell two or more apart{at(user_line())}."
        )
    return x, codes


def weights(given: Any, x: Array) -> Array:
    """A weight for each sample: those given, or ones."""
    if given is None or isinstance(given, Number):
        return np.full(len(x), 1.0 if given is None else given, x.dtype)
    weight: Array = check_array(given, dtype=x.dtype, ensure_2d=False, input_name="sample_weight")
    if weight.shape != (len(x),) or np.any(weight < 0):
        raise ArgumentError(
            f"sample_weight has shape {weight.shape}, smallest {weight.min()}. Give each of the "
            f"{len(x)} samples one weight, at least 0{at(user_line())}."
        )
    if not np.any(weight):
        raise ArgumentError(
            "sample_weight: every weight is zero, so there is nothing to learn from. Give the "
            f"samples that count a positive one{at(user_line())}."
        )
    return weight


def at_least(estimator: Any, **least: float) -> None:
    """Refuse options that are smaller than they may be."""
    _bounded(estimator, least, lambda value, bound: value >= bound, "at least")


def above(estimator: Any, **least: float) -> None:
    """Refuse options that are not larger than they have to be."""
    _bounded(estimator, least, lambda value, bound: value > bound, "larger than")


def _bounded(estimator: Any, bounds: dict[str, float], holds: Any, words: str) -> None:
    for name, bound in bounds.items():
        value = getattr(estimator, name)
        if not holds(value, bound):
            raise ArgumentError(
                f"{type(estimator).__name__}({name}={value!r}): {name} has to be {words} {bound}. "
                f"Change it{at(user_line())}."
            )


def stopped_early(estimator: Any, why: str) -> None:
    """Warn that the best was not found."""
    warnings.warn(
        f"{type(estimator).__name__} did not converge: {why}. Allow more iterations, scale the "
        "features, or accept a larger tolerance.",
        ConvergenceWarning,
        stacklevel=3,
    )
