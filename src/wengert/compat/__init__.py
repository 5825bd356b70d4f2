"""Compatibility: names and interfaces of other libraries.

autograd  the names of HIPS autograd, with its conventions (docs/autograd-users.md)
samplers  log-densities for nutpie and walnutpie, draws for ArviZ (docs/bayesian.md)
sklearn   estimators with scikit-learn's interface
"""

import importlib
from typing import Any

from wengert._engine.core.lazy_import import public_dir

SUBPACKAGES = ("autograd", "samplers", "sklearn")

__all__ = [*SUBPACKAGES]


def __getattr__(name: str) -> Any:
    if name in SUBPACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = public_dir(__name__)
