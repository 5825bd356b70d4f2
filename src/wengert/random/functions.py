"""All random functions of a key in one namespace.

    from wengert.random import functions

`wengert.random` exports them; `wengert.scipy.stats` and `Generator` draw with them.
"""

# ruff: noqa: F403  (each module has an `__all__`)

from wengert._engine.core.lazy_import import exported

from .discrete_counts import *
from .gamma_von_mises import *
from .integers_and_choice import *
from .inverse_transform import *
from .keys import *
from .multivariate import *

_MODULES = "keys inverse_transform gamma_von_mises multivariate integers_and_choice discrete_counts"
__all__ = exported("wengert.random", _MODULES)
