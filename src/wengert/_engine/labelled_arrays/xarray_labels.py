"""Dims and coordinates of xarray.

    ArrayAxes   the labels of a DataArray
    axes_of     the labels and the data of a DataArray

The labels are kept as a DataArray whose data are zeros that take no memory.  A derivative keeps the
dims, the coordinates and the name of the argument, not its attributes, which may be a unit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from wengert._engine.core.handle import Handle, shape_of
from wengert._engine.core.other_libraries import is_labelled

from .labels import Axes, Refused, refuse_jacobian


class ArrayAxes:
    """The labels of a DataArray.

    Parameters
    ----------
    template : xarray.DataArray
        One with these labels.
    """

    __slots__ = ("_template",)

    holds_units = True  # its data may be a quantity

    def __init__(self, template: xr.DataArray) -> None:
        zeros = np.broadcast_to(np.float64(0.0), template.shape)
        self._template = template.copy(deep=False, data=zeros)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self._template.shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrayAxes) and self._template.identical(other._template)

    def __hash__(self) -> int:
        return hash((self._template.dims, self._template.shape, self._template.name))

    def wrap(self, values: Any) -> xr.DataArray:
        """A DataArray with these labels."""
        return self._template.copy(deep=False, data=values)

    def of_derivative(self) -> ArrayAxes:
        """The labels of a gradient: without attributes."""
        template = self._template.copy(deep=False)
        template.attrs = {}
        return ArrayAxes(template)

    def agrees(self, other: Axes) -> bool:
        """Whether the dims and the indices are the same."""
        if not isinstance(other, ArrayAxes) or other._template.dims != self._template.dims:
            return False
        try:
            xr.align(self._template, other._template, join="exact", copy=False)
        except ValueError:
            return False
        return self.shape == other.shape

    def jacobian(self, argument: Axes | None, values: Any, what: str) -> xr.DataArray:
        """A DataArray with the dims of the output, then those of the argument."""
        if not isinstance(argument, ArrayAxes):
            rest = shape_of(getattr(values, "magnitude", values))[len(self.shape) :]
            refuse_jacobian(what, f"the argument, of shape {rest}, has no dims")
        a, b = self.of_derivative()._template, argument.of_derivative()._template
        shared = [str(d) for d in a.dims if d in b.dims]
        if shared:
            refuse_jacobian(
                what,
                f"the result and the argument share the dims {', '.join(shared)}, and a DataArray "
                f"has each once. Rename them in the result, y.rename({shared[0]}='out'); otherwise",
            )
        joined = (a * b).transpose(*a.dims, *b.dims)
        joined.name = None
        found: xr.DataArray = joined.copy(deep=False, data=values)
        return found

    def jacobian_of_array(self, values: Any, what: str) -> Any:
        """Refused: the axes of the result have no dims."""
        return refuse_jacobian(
            what, "the result is an array without dims, and the argument a DataArray"
        )


def axes_of(x: xr.DataArray) -> tuple[ArrayAxes, Any]:
    """The labels and the data of a DataArray."""
    data = x.data
    is_array = isinstance(data, np.ndarray | Handle) or is_labelled(data)
    if not is_array:
        raise Refused(f"a DataArray of a {type(data).__module__} array", "Load it first, x.load()")
    if not isinstance(data, Handle) and data.dtype.kind not in "biufc":
        raise Refused(f"a DataArray of {data.dtype}", "Convert it, x.astype(float)")
    return ArrayAxes(x), data
