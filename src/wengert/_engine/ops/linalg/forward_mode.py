"""Forward mode for the rules of linear algebra.

The rules of determinants and of equal eigenvalues differentiate functions, with functions that
autodiff, a higher layer, registers here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class ForwardMode:
    """The functions registered by `autodiff`.

    Attributes
    ----------
    jvp : callable
        `autodiff.jvp_vjp.jvp`: value and tangent of a function.
    pushforward : callable
        Tangents of nodes from those of other nodes (`autodiff/forward.py`).
    """

    jvp: Callable[..., Any]
    pushforward: Callable[..., Any]
