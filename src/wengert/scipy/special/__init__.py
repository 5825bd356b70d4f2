"""scipy.special, for arrays and tensors alike: every function here differentiates.

    gamma                    gamma, its logarithm, digamma

entries says how a function of scipy.special becomes an operation.

`wengert.scipy.special.gammaln is scipy.special.gammaln`: the ufuncs are SciPy's own, which bring
tensors to the operations here.  What is not a ufunc in SciPy is a function of ours, which calls
SciPy's where no tensor is among its arguments.  Each module states its public names in `__all__`,
and they are collected below.
"""

from importlib import import_module
from typing import Any

from .entries import public

# Each that has public names, one a line.
MODULES = """
    gamma
""".split()

_NAMES: dict[str, Any] = {}
for _module in [import_module(f"{__name__}.{name}") for name in MODULES]:
    _NAMES |= public(_module.__all__, vars(_module))
globals().update(_NAMES)  # behind the imports, as a module may have the name of a function

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
