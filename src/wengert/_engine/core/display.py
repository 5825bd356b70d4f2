"""How objects and numbers are shown: tables in notebooks, and figures with units.

HTML that notebooks show of an object (`_repr_html_`), a table of names and values:

    table          a caption, and a row for each name
    grid           a caption, a header, and rows of cells
    shown_fields   a decorator: named tuples and dataclasses are shown as a table of their fields
    shown_result   a result of SciPy, which is a dict, that is shown as a table

Text is escaped; arrays are shortened, as NumPy prints them.

Figures of bytes, seconds and counts, with one to three digits before the point:

    duration       seconds: ``1.86 ms``
    memory         bytes: ``2.4 MB``, in units of 10**6
    count          anything else: ``3.2 million``
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from math import log10
from typing import Any, TypeVar

import numpy as np

_CELL = '<td style="text-align:left;vertical-align:top">'
_PLAIN = '<pre style="margin:0;background:none">'
_SHOWN_ELEMENTS, _END_ELEMENTS = 40, 4  # of an array
_Class = TypeVar("_Class", bound=type[Any])


def table(caption: str, rows: Mapping[str, object]) -> str:
    """A caption and a row for each name; values are shown as `repr`, text as it is."""
    lines = [
        f'<tr><th style="text-align:left;vertical-align:top">{_escaped(name)}</th>'
        f"{_CELL}{_PLAIN}{_escaped(_text(value))}</pre></td></tr>"
        for name, value in rows.items()
    ]
    return f"<table><caption>{_escaped(caption)}</caption>{''.join(lines)}</table>"


def grid(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A caption, a header, and rows of cells."""
    head = "".join([f"<th>{_escaped(name)}</th>" for name in header])
    body = [
        "<tr>" + "".join([f"{_CELL}{_escaped(cell)}</td>" for cell in row]) + "</tr>"
        for row in rows
    ]
    top = f"<caption>{_escaped(caption)}</caption><tr>{head}</tr>"
    return f"<table>{top}{''.join(body)}</table>"


def shown_fields(cls: _Class) -> _Class:
    """Show instances of a named tuple or dataclass as a table of their fields."""
    names = getattr(cls, "_fields", None) or [f.name for f in dataclasses.fields(cls)]

    def _repr_html_(self: Any) -> str:
        return table(cls.__name__, {name: getattr(self, name) for name in names})

    setattr(cls, "_repr_html_", _repr_html_)  # noqa: B010  mypy refuses the assignment
    return cls


def shown_result(result: Any) -> Any:
    """A result of SciPy as an instance of a subclass of its class that is shown as a table.

    Parameters
    ----------
    result : scipy.optimize.OptimizeResult
        Or of a subclass.
    """
    base: Any = type(result)
    return _filled(_shown_class(base), result)


@functools.cache
def _shown_class(base: Any) -> Any:
    """The subclass of a class of results; its instances are pickled as those of the class."""
    return type(
        base.__name__,
        (base,),
        {
            "__module__": base.__module__,
            "__doc__": base.__doc__,
            "__reduce__": lambda self: (shown_result, (_filled(base, self),)),
            "_repr_html_": lambda self: table(base.__name__, self),
        },
    )


def _filled(cls: Any, names: Mapping[str, object]) -> Any:
    """A dict of a class, without a call of its `__init__`, whose parameters differ."""
    made = cls.__new__(cls)
    made.update(names)
    return made


def _escaped(text: str) -> str:
    """Text between tags; importing Python's `html` with the package would take a millisecond."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    with np.printoptions(threshold=_SHOWN_ELEMENTS, edgeitems=_END_ELEMENTS):
        return str(value) if isinstance(value, np.generic) else repr(value)


_MEMORY = ("bytes", "kB", "MB", "GB", "TB")
_COUNTS = ("", "thousand", "million", "billion")


def duration(seconds: float) -> str:
    """A time.

    Examples
    --------
    >>> duration(0.00186), duration(2.5e-7)
    ('1.86 ms', '250 ns')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def memory(n: float) -> str:
    """A number of bytes.

    Examples
    --------
    >>> memory(2_400_000), memory(64)
    ('2.4 MB', '64 bytes')
    """
    return count(n, _MEMORY)


def count(n: float, units: Sequence[str] = _COUNTS) -> str:
    """A number in the unit in which it has one to three digits before the point.

    Examples
    --------
    >>> count(3.2e6), count(12)
    ('3.2 million', '12')
    """
    k = 0 if n < 1000 else min(int(log10(n) / 3 + 1e-9), len(units) - 1)
    number = f"{n:.0f}" if k == 0 else f"{n / 1000**k:.3g}"
    return f"{number} {units[k]}".strip()
