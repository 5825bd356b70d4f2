"""The labels and the values of objects of pandas, xarray and pint.

labels_of    the labels and the values of an object
constant     a Series or a DataFrame as an operand of a tensor
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wengert._engine.core.labelled_arrays import LabelledTensor, is_labelled
from wengert._engine.core.lazy_import import LazyModule

from . import units
from .labels import Labels, Refused

if TYPE_CHECKING:
    from . import pandas_tensors, xarray_labels
else:  # imported when an object of the library is met
    pandas_tensors = LazyModule("wengert._engine.labelled_arrays.pandas_tensors")
    xarray_labels = LazyModule("wengert._engine.labelled_arrays.xarray_labels")


def labels_of(x: Any) -> tuple[Labels, Any] | None:
    """The labels of an object, and its values: an array, a number or a tensor.

    None for an object without labels.

    Raises
    ------
    Refused
        The meaning of a derivative with respect to it is not clear.
    """
    if isinstance(x, LabelledTensor):
        return Labels(x.labels), x.values
    if not is_labelled(x):
        return None
    package = type(x).__module__.partition(".")[0]
    if package == "pandas":
        axes, values = pandas_tensors.axes_of(x)
        return Labels(axes), values
    if package == "xarray":
        array_axes, data = xarray_labels.axes_of(x)
        inner = labels_of(data)
        if inner is None:
            return Labels(array_axes), data
        return Labels(array_axes, inner[0].unit), inner[1]
    unit, values = units.unit_of(x)
    if unit is None:
        raise Refused(f"a Quantity in {x.units}", units.OFFSET)
    is_number = hasattr(values, "dtype") or isinstance(values, float | int)
    if is_labelled(values) or not is_number:
        raise Refused(f"a Quantity of a {type(values).__name__}", "Make it one of an array")
    return Labels(None, unit), values


def constant(x: object) -> Any:
    """A Series or a DataFrame with its values as they are, as an operand of a tensor."""
    return pandas_tensors.constant(x)
