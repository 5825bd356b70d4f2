"""Spatial: layers over 1, 2 and 3 dimensions from one class.

    class _MaxPool(Spatial): ...          parameters and behavior, with a docstring template
    class MaxPool1d(_MaxPool): axes = 1   a number of dimensions; completes the docstring

The placeholders of templates are described in functional/window_options.py.
"""

from __future__ import annotations

from typing import Any

from ..functional.window_options import documented
from ..module import Module


class Spatial(Module):
    """Base of layers over `axes` dimensions; fills in the docstring template of its subclasses."""

    axes: Any
    _template = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__
        if "<n>" in (own.get("__doc__") or ""):
            cls._template, cls.__doc__ = cls.__doc__ or "", None
        elif "axes" in own and cls.__mro__[1].__dict__.get("_template"):
            sections = cls._template.partition("\n\n")[2]
            cls.__doc__ = f"{cls.__doc__}\n\n{documented(sections, cls.axes)}"
