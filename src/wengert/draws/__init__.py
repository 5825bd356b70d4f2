"""Draws: random numbers as functions of a key; `wengert.random` has them all.

    keys         key, split, fold_in, bits: what draws are functions of
    explicit     distributions that are a map of uniform numbers
    families     gamma and what is made of it: beta, dirichlet, chisquare, t ...; von Mises
    vectors      multivariate normal, points of balls and rotations
    whole        whole numbers, truth values, permutations and choices
    counts       poisson, binomial, multinomial ...
    parameters   arrays that broadcast to the shape of a draw

    trials       samplers that propose and accept, element by element
    rejection    those that there are

A draw takes a key and gives, for the same key and parameters, the same numbers wherever it runs:
eagerly, in a graph, compiled, under `vmap`, in loops.  Of plain arrays it is a plain array.
"""

from typing import Any

from . import counts, explicit, families, keys, vectors, whole
from .counts import *  # noqa: F403 - its `__all__`
from .explicit import *  # noqa: F403 - its `__all__`
from .families import *  # noqa: F403 - its `__all__`
from .keys import *  # noqa: F403 - its `__all__`
from .vectors import *  # noqa: F403 - its `__all__`
from .whole import *  # noqa: F403 - its `__all__`

_MODULES: tuple[Any, ...] = (keys, explicit, families, vectors, whole, counts)
__all__ = [name for module in _MODULES for name in module.__all__]
