"""Distributions: those of `wengert.scipy.stats`.

autograd has a module for each, so ``import wengert.compat.autograd.scipy.stats.norm as norm`` works
too.
"""

import importlib
import sys
from typing import Any

MODULES = ("beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t")


class _Distribution:
    """A distribution of `wengert.scipy.stats`, imported at first use.

    Its `rvs` is SciPy's, as in autograd: without a key, and without derivatives.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        package = "scipy.stats" if attribute == "rvs" else "wengert.scipy.stats"
        return getattr(getattr(importlib.import_module(package), self.__name__), attribute)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The distribution with these parameters."""
        return getattr(importlib.import_module("wengert.scipy.stats"), self.__name__)(
            *args, **kwargs
        )


for _name in MODULES:
    sys.modules[f"{__name__}.{_name}"] = _Distribution(_name)  # type: ignore[assignment]


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return sys.modules[f"{__name__}.{name}"]
    found = getattr(importlib.import_module("wengert.scipy.stats"), name)
    return _Distribution(name) if hasattr(found, "rvs") else found
