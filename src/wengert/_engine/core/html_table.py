"""HTML that notebooks show of an object (`_repr_html_`): a table of names and values.

    table     a caption, and a row for each name
    grid      a caption, a header, and rows of cells

Text is escaped; arrays are shortened, as NumPy prints them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

_CELL = '<td style="text-align:left;vertical-align:top">'
_PLAIN = '<pre style="margin:0;background:none">'
_SHOWN_ELEMENTS, _END_ELEMENTS = 40, 4  # of an array


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


def _escaped(text: str) -> str:
    """Text between tags; importing Python's `html` with the package would take a millisecond."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    with np.printoptions(threshold=_SHOWN_ELEMENTS, edgeitems=_END_ELEMENTS):
        return str(value) if isinstance(value, np.generic) else repr(value)
