"""Distributions: those of `wengert.scipy.stats`.

autograd has a module for each, so ``import wengert.compat.autograd.scipy.stats.norm as norm`` has
to work too.
"""

import importlib
import sys
from typing import Any

MODULES = ("beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t")


class _Distribution:
    """A distribution of `wengert.scipy.stats`, found when something of it is asked for."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        stats = importlib.import_module("wengert.scipy.stats")
        return getattr(getattr(stats, self.__name__), attribute)


for _name in MODULES:
    sys.modules[f"{__name__}.{_name}"] = _Distribution(_name)  # type: ignore[assignment]


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return sys.modules[f"{__name__}.{name}"]
    return getattr(importlib.import_module("wengert.scipy.stats"), name)
