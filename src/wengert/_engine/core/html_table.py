"""HTML that notebooks show of an object (`_repr_html_`): a table of names and values.

    table          a caption, and a row for each name
    grid           a caption, a header, and rows of cells
    shown_fields   a decorator: named tuples and dataclasses are shown as a table of their fields
    shown_result   a result of SciPy, which is a dict, that is shown as a table

Text is escaped; arrays are shortened, as NumPy prints them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
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
