"""Validation of layer sizes, before weights are allocated.

NumPy's message about an invalid shape names neither the layer nor its argument.

    check_layer_sizes    raises an error that names the layer and the size
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line


def check_layer_sizes(layer: Any, minimum: int = 0, **sizes: Any) -> None:
    """Check that the sizes of a layer are integers of at least `minimum`.

    Raises
    ------
    ArgumentError
        A size is invalid; the message names the layer and the size.
    """
    for name, size in sizes.items():
        for n in size if isinstance(size, tuple) else (size,):
            if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < minimum:
                kind = "integers" if isinstance(size, tuple) else "an integer"
                raise ArgumentError(
                    f"{type(layer).__name__}: {name} must be {kind} of at least {minimum}, got "
                    f"{size!r}{at(user_line())}."
                )
