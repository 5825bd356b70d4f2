"""All random functions of a key in one namespace.

    MODULES    where they are defined, in the order of the documentation

`wengert.random` exports them; `wengert.scipy.stats` and `Generator` draw with them.
"""

from types import ModuleType

from . import (
    discrete_counts,
    gamma_von_mises,
    integers_and_choice,
    inverse_transform,
    keys,
    multivariate,
)
from .discrete_counts import *  # noqa: F403 - its `__all__`
from .gamma_von_mises import *  # noqa: F403 - its `__all__`
from .integers_and_choice import *  # noqa: F403 - its `__all__`
from .inverse_transform import *  # noqa: F403 - its `__all__`
from .keys import *  # noqa: F403 - its `__all__`
from .multivariate import *  # noqa: F403 - its `__all__`

MODULES: tuple[ModuleType, ...] = (
    keys,
    inverse_transform,
    gamma_von_mises,
    multivariate,
    integers_and_choice,
    discrete_counts,
)
__all__ = [name for module in MODULES for name in module.__all__]
