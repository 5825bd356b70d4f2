"""Counted: sizes that layers are made with, looked at before weights of such shapes are drawn.

NumPy's message about an invalid shape names neither the layer nor its argument.

    counted    refuse what is not an integer, naming the layer and the size
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line


def counted(layer: Any, least: int = 0, **sizes: Any) -> None:
    """Refuse sizes of a layer that are not integers, or less than `least`.

    Raises
    ------
    ArgumentError
        The message names the layer and the size.
    """
    for name, size in sizes.items():
        for n in size if isinstance(size, tuple) else (size,):
            if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < least:
                raise ArgumentError(
                    f"{type(layer).__name__} with {name}={size!r}: sizes are integers from "
                    f"{least} on. Change it{at(user_line())}."
                )
