"""Arrays with labels or units: objects of pandas, xarray and pint, which are not differentiated.

values_of    what to write instead of passing one, for messages
has_units    whether an object has units, which its values alone do not have
"""

from __future__ import annotations

_PASS = {
    "pandas": "Pass its values, x.to_numpy(), and give the result labels, "
    "pandas.Series(result, x.index)",
    "xarray": "Pass its values, x.to_numpy(), and give the result names, x.copy(data=result)",
    "pint": "Pass a number of chosen units, x.to(unit).magnitude; a derivative has the units of "
    "the result divided by those of x",
}
_RETURN = {
    "pandas": "Return its values, x.to_numpy()",
    "xarray": "Return its values, x.data",
    "pint": "Return a number of chosen units, x.to(unit).magnitude",
}


def _package(x: object) -> str:
    return type(x).__module__.partition(".")[0]


def values_of(x: object, is_result: bool = False) -> str | None:
    """What to write instead of `x`, an argument or a result; None for other objects."""
    return (_RETURN if is_result else _PASS).get(_package(x))


def has_units(x: object) -> bool:
    """Whether it is a quantity of pint with units."""
    return _package(x) == "pint" and not getattr(x, "dimensionless", True)
