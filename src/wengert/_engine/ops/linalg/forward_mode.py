"""Forward mode, as rules of linear algebra use it: autodiff, a later layer, sets the functions."""

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
