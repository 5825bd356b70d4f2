"""Fourier transforms: those of `wengert.numpy.fft`.

Autograd has no gradients of real transforms of odd lengths.  Here they have one, and are refused
only in strict mode (strict.py).

    rfft, rfft2, rfftn, irfft, irfft2, irfftn    refuse odd lengths in strict mode
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from wengert._engine.core.handle import shape_of
from wengert.numpy import fft as _ours

from ....errors import at, user_line
from ..errors import NoRuleError
from ..strict import depends_on_variables, is_strict

_REAL = ("irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn")
__all__ = sorted({*_ours.__all__})


def _refusing_odd(function: Callable[..., Any]) -> Callable[..., Any]:
    """A real transform that in strict mode has no derivative for an odd length."""
    signature = inspect.signature(function)
    inverse = function.__name__.startswith("i")

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        out = function(*args, **kwargs)
        if is_strict():
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            a, length, axis = list(bound.arguments.values())[:3]
            if depends_on_variables(a):
                last = axis if isinstance(axis, int) else -1 if axis is None else axis[-1]
                if length is None:
                    length = shape_of(out if inverse else a)[last]
                _refuse_odd(length if isinstance(length, int) else length[-1], function.__name__)
        return out

    return checked


def _refuse_odd(length: int, name: str) -> None:
    if length % 2:
        raise NoRuleError(
            f"{name} of length {length} of an array that is being differentiated, in strict mode: "
            "autograd has no gradient of real transforms of odd lengths. Use an even length, or "
            f"fft, or run the program without --strict{at(user_line())}."
        )


globals().update({name: _refusing_odd(getattr(_ours, name)) for name in _REAL})


def __getattr__(name: str) -> Any:
    return getattr(_ours, name)


def __dir__() -> list[str]:
    return sorted({*dir(_ours), *__all__})
