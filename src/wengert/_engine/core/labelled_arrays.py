"""Arrays with labels or units: objects of pandas, xarray and pint.

Derivatives and compiled functions take plain arrays and tensors.  An argument or a result with
labels or units raises `Labelled`, which the transformation catches: it calls `labelled_arrays` (a
higher layer), which calls it again with values, and gives the results labels and units.

is_labelled         whether an object is of a class that is handled so
LabelledTensor      the base of the classes that stand for objects of pandas while values are traced
Labelled            raised for an argument or a result with labels or units
may_be_labelled     whether a function may return such objects, and take them
ForeignOperand      raised for an operand with units in a function of arrays and tensors
calls               the module that handles such calls, imported at first use
values_of           what to write instead of passing an object of another class, for messages
base_of             the class that the class of an object is derived from
is_of_pandas        whether it is a Series or a DataFrame
beside_tensors      one as an operand of a tensor: the result has its labels
has_other_methods   whether it is of a library whose `std`, for example, is not that of arrays
has_units           whether an object has units, which its values alone do not have
is_refused          raise ForeignOperand for an operand that would lose its unit or labels
has_own_functions   whether NumPy's functions of an object are those of its class
LABELLED            the name of the module, set by wengert/__init__.py
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import TYPE_CHECKING, Any

from wengert.errors import NotDifferentiableError, OperandError, at, user_line

if TYPE_CHECKING:
    from .types import Array, Operand

LABELLED: list[str] = []
_CLASSES = {
    "pandas": ("Series", "DataFrame"),
    "xarray": ("DataArray",),
    "pint": ("Quantity",),
}
_PASS = {
    "pandas": "Pass its values, x.to_numpy(), and give the result labels, "
    "pandas.Series(result, x.index)",
    "xarray": "Pass its values, x.to_numpy(), and give the result names, x.copy(data=result)",
    "pint": "Pass a number of chosen units, x.to(unit).magnitude; a derivative has the units of "
    "the result divided by those of x",
    "polars": "Pass its values, x.to_numpy()",
    "torch": "Pass its values, x.numpy()",
}
_RETURN = {
    "pandas": "Return its values, x.to_numpy()",
    "xarray": "Return its values, x.data",
    "pint": "Return a number of chosen units, x.to(unit).magnitude",
}
_PASS_SEVERAL = "Pass its variables as a dict of DataArrays, dict(x.data_vars)"
_RETURN_SEVERAL = "Return a dict of its variables, dict(x.data_vars)"


class LabelledTensor:
    """Values with the labels of an object of pandas; see `labelled_arrays`."""

    __slots__ = ("labels", "values")

    labels: Any
    values: Array


class Labelled(NotDifferentiableError):
    """An argument or a result with labels or units, where values are needed."""

    def __init__(self, x: object, is_result: bool = False) -> None:
        self.is_result = is_result
        name = x.__class__.__name__
        if is_result:
            text = f"a {name} was returned. {values_of(x, True) or _RETURN['pandas']}"
        else:
            text = f"a {name} is not accepted here. {values_of(x) or _PASS['pandas']}"
        super().__init__(f"{text}{at(user_line())}.")


def may_be_labelled(fun: object) -> bool:
    """Whether a function may return objects with labels: not one of values (`PlainCall`)."""
    return not getattr(fun, "is_of_values", False)


class ForeignOperand(OperandError):
    """An operand with units, in a function that would compute with its values alone."""


def _package(x: object) -> str:
    return type(x).__module__.partition(".")[0]


def is_labelled(x: object) -> bool:
    """Whether it is a Series, a DataFrame, a DataArray or a Quantity, not of a subclass."""
    return isinstance(x, LabelledTensor) or type(x).__name__ in _CLASSES.get(_package(x), ())


def base_of(x: object) -> str | None:
    """The class of pandas, xarray or pint that the class of `x` is derived from, if any."""
    for cls in type(x).__mro__[1:]:
        if cls.__name__ in _CLASSES.get(cls.__module__.partition(".")[0], ()):
            return cls.__name__
    return None


def is_of_pandas(x: object) -> bool:
    """Whether it is a Series or a DataFrame of pandas itself."""
    return type(x).__name__ in _CLASSES["pandas"] and _package(x) == "pandas"


def beside_tensors(x: object) -> LabelledTensor:
    """A Series or a DataFrame as an operand of a tensor: the result has its labels."""
    found: LabelledTensor = calls().constant(x)
    return found


@functools.cache
def calls() -> Any:
    """The module that handles calls with labelled arguments."""
    return import_module(LABELLED[0])


def is_refused(x: Operand) -> bool:
    """False for an operand of a function of tensors, which may be of another class.

    Raises
    ------
    ForeignOperand
        Its unit or its labels would be lost.
    """
    if isinstance(x, LabelledTensor) or (
        _package(x) in ("pint", "xarray") and is_labelled(x) and not _is_plain(x)
    ):
        raise ForeignOperand(
            f"a {x.__class__.__name__} as operand of a function of tensors, which would lose its "
            f"labels or its unit. Pass its values: x.to_numpy() of pandas, x.data of xarray, "
            f"x.to(unit).magnitude of pint{at(user_line())}."
        )
    return False


def _is_plain(x: object) -> bool:
    """Whether it is an array of xarray with plain values, which functions of arrays convert."""
    return _package(x) == "xarray" and type(getattr(x, "data", None)).__module__ == "numpy"


def has_own_functions(x: object) -> bool:
    """Whether NumPy's functions of it are those of its class: a quantity, or labelled tensors."""
    return isinstance(x, LabelledTensor) or (_package(x) == "pint" and is_labelled(x))


def values_of(x: object, is_result: bool = False) -> str | None:
    """What to write instead of `x`, an argument or a result; None for other objects."""
    if _package(x) == "xarray" and hasattr(x, "data_vars"):  # a Dataset
        return _RETURN_SEVERAL if is_result else _PASS_SEVERAL
    return (_RETURN if is_result else _PASS).get(_package(x))


def has_other_methods(x: object) -> bool:
    """Whether methods of it have another meaning than those of an array of its values."""
    return _package(x) in ("polars", "torch")


def has_units(x: object) -> bool:
    """Whether it is a quantity of pint with units."""
    return _package(x) == "pint" and not getattr(x, "dimensionless", True)
