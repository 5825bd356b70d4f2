"""Estimators with scikit-learn's interface.

covariance           covariances of Gaussian processes
gaussian_process     GaussianProcessRegressor
linear_model         Ridge, Lasso, ElasticNet
logistic_regression  LogisticRegression
mlp                  MLPClassifier, MLPRegressor
validation           what they are given, checked by scikit-learn; its only room in this package

They need scikit-learn (the extra `learn`), take its parameters' names, and pass its own checks.
What they find is found by exact derivatives and compiled code.
"""

from wengert._engine.core.lazy_import import public_dir

from .gaussian_process import GaussianProcessRegressor
from .linear_model import ElasticNet, Lasso, Ridge
from .logistic_regression import LogisticRegression
from .mlp import MLPClassifier, MLPRegressor

__all__ = [
    "ElasticNet",
    "GaussianProcessRegressor",
    "Lasso",
    "LogisticRegression",
    "MLPClassifier",
    "MLPRegressor",
    "Ridge",
]

__dir__ = public_dir(__name__)
