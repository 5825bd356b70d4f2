"""All random functions of a key in one namespace.

    from wengert.random import functions

`wengert.random` exports them; `wengert.scipy.stats` and `Generator` draw with them.
"""

# ruff: noqa: F403  (each module has an `__all__`)

from wengert._engine.core.lazy_import import exported

from .gamma_and_multivariate import *
from .integers_and_counts import *
from .inverse_transform import *
from .keys import *

_MODULES = "keys inverse_transform gamma_and_multivariate integers_and_counts"
__all__ = exported("wengert.random", _MODULES)
