"""Overlay: the globals of a function, with modules exchanged for the namespaces of tensors.

    Overlay    a view of a module's globals

The module itself is not changed, so other threads and library code see NumPy's own functions.
"""

from __future__ import annotations

from typing import Any


class Overlay(dict[str, Any]):
    """A view of a module's globals, in which some objects are exchanged for others.

    Names are looked up in the module at each access, so changes of its globals are seen.

    Attributes
    ----------
    real : dict
        The globals of the module.
    """

    __slots__ = ("real",)

    def __init__(self, real: dict[str, Any]) -> None:
        super().__init__()
        self.real = real

    def __missing__(self, name: str) -> Any:
        return exchanged(self.real[name])


def exchanged(x: Any) -> Any:
    """The object to use in place of `x`, which is `x` itself for most."""
    return x
