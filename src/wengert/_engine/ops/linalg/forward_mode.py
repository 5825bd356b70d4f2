"""Forward mode, as rules of linear algebra use it.

The rules of determinants and of equal eigenvalues differentiate functions themselves; autodiff, a
later layer, sets the functions that do it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class ForwardMode:
    """The functions that `autodiff` has set.

    Attributes
    ----------
    jvp : callable
        `autodiff.jvp_vjp.jvp`: value and tangent of a function.
    pushforward : callable
        Tangents of nodes from those of other nodes (`autodiff/forward.py`).
    """

    jvp: Callable[..., Any]
    pushforward: Callable[..., Any]
