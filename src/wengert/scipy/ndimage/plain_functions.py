"""The functions of scipy.ndimage that are called with plain arrays only: labels, morphology.

A tensor that is differentiated or traced is refused; one that depends on nothing is its value.

    plain_function  SciPy's function of a name
"""

from __future__ import annotations

import functools
from typing import Any

import scipy.ndimage

from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert._engine.core.node import Node
from wengert.errors import ArgumentError, at, user_line


@functools.cache
def plain_function(name: str) -> Any:
    """SciPy's function of a name, for plain arrays."""
    theirs = getattr(scipy.ndimage, name)
    if not callable(theirs):
        return theirs

    def plain(x: Any) -> Any:
        if not isinstance(x, Handle):
            return x
        if is_traced(x) or type(x.node) is Node:
            raise ArgumentError(
                f"scipy.ndimage.{name} takes plain arrays only. If no derivative is needed, detach "
                f"the tensor, x.detach().numpy(){at(user_line())}."
            )
        return value_of(x)

    @functools.wraps(theirs)
    def function(*args: Any, **kwargs: Any) -> Any:
        return theirs(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()})

    return function
