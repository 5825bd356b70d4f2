"""Estimators for scikit-learn: fit, predict and score, in pipelines and grid searches.

linear.py            Ridge, Lasso, ElasticNet
logistic.py          LogisticRegression
perceptron.py        MLPClassifier, MLPRegressor
gaussian_process.py  GaussianProcessRegressor
kernels.py           covariances of Gaussian processes
inputs.py            what they are given, checked by scikit-learn; its only room in this package

They need scikit-learn (the extra `learn`), take its parameters' names, and pass its own checks.
What they find is found by exact derivatives and compiled code.
"""

from wengert._engine.core.lazy_import import public_dir

from .gaussian_process import GaussianProcessRegressor
from .linear import ElasticNet, Lasso, Ridge
from .logistic import LogisticRegression
from .perceptron import MLPClassifier, MLPRegressor

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
