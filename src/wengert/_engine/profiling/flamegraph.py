"""Flame graphs of a run as SVG.

There are three panels.  The first has the steps from left to right in execution order, with widths
proportional to their times, and the steps of a loop below the loop.  The second has the memory in
use, and the third the user's lines, the slowest first, with the time of the value and, darker, of
the derivatives.  Pale bars are estimates: several lines share a step.

    FlameBar  a step with its time and nested steps
    LineBar   one of the user's lines
    flames    the SVG document
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from wengert._engine.visualization.node_labels import KIND_COLORS, OTHER

WIDTH, MARGIN = 960.0, 20.0
_ROW, _GAP = 26.0, 2.0
_LINE_HEIGHT, _MEMORY_HEIGHT = 24.0, 40.0
_SHOWN = 20  # maximum number of the user's lines
_NARROW = 0.4  # a bar narrower than this is not drawn
_LETTER, _CODE = 6.3, 6.6  # widths of a character of a label and of source text
_FONT = "Helvetica, Arial, sans-serif"
_MONO = "Menlo, Consolas, monospace"
_COLORS = {
    "nest": KIND_COLORS["elementwise"],
    "straight": KIND_COLORS["reduction"],
    "call": KIND_COLORS["contraction"],
    "host callback": KIND_COLORS["indexing"],
    "node": KIND_COLORS["elementwise"],
    "loop": KIND_COLORS["opaque"],
    "branch": KIND_COLORS["view"],
    "around": ("#f1f1f1", "#c4c4c4", "#5a6570"),
}
_KIND_NAMES = {
    "nest": "loops over arrays",
    "straight": "numbers in registers",
    "call": "kernels and libraries",
    "host callback": "Python",
    "node": "nodes, one at a time",
    "loop": "loops of the program",
    "branch": "branches",
    "around": "outside of steps: arguments, results",
}
_VALUE, _DERIVATIVE = "#8fb4de", "#2f6db3"


class FlameBar(NamedTuple):
    """The bar of a step.

    note : the tooltip.
    held : bytes of intermediate values in memory while it runs.
    """

    label: str
    seconds: float
    kind: str
    note: str
    inside: tuple[FlameBar, ...] = ()
    held: int = 0


class LineBar(NamedTuple):
    """The bar of one of the user's lines.

    value, derivative : seconds.
    label : the text at the end of the bar.
    """

    place: str
    text: str
    value: float
    derivative: float
    is_estimated: bool
    label: str


def flames(
    bars: Sequence[FlameBar],
    lines: Sequence[LineBar] = (),
    title: str = "",
    memory: str = "",
    path: str | PathLike[str] | None = None,
) -> str:
    """A flame graph of a run.

    Parameters
    ----------
    bars : sequence of FlameBar
        The steps in execution order.
    lines : sequence of LineBar
        The user's lines, the slowest first.
    title, memory : str
        The titles of the picture and of the memory panel.
    path : path, optional
        File to write.

    Returns
    -------
    str
        The SVG document.
    """
    total = sum(bar.seconds for bar in bars)
    parts: list[str] = []
    top = MARGIN + 6.0
    if title:
        parts.append(_text(MARGIN, top + 8.0, title, 14.0, "#222222", weight="bold"))
        top += 24.0
    top = _legend(parts, bars, top)
    scale = (WIDTH - 2 * MARGIN) / total if total > 0.0 else 0.0
    _level(parts, bars, MARGIN, top, scale)
    top += (max(map(_depth, bars), default=0)) * (_ROW + _GAP) + 10.0
    top = _memory(parts, bars, memory, top, scale) + 14.0
    shown = [line for line in lines if line.value + line.derivative > 0.0][:_SHOWN]
    if shown:
        top = _lines(parts, shown, top)
    height = top + MARGIN
    document = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {WIDTH:.0f} {height:.0f}" font-family="{_FONT}">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )
    if path is not None:
        Path(path).write_text(document, encoding="utf-8")
    return document


def _depth(bar: FlameBar) -> int:
    return 1 + max(map(_depth, bar.inside), default=0)


def _kinds(bars: Sequence[FlameBar]) -> dict[str, None]:
    kinds: dict[str, None] = {}
    for bar in bars:
        kinds[bar.kind] = None
        kinds.update(_kinds(bar.inside))
    return kinds


def _legend(parts: list[str], bars: Sequence[FlameBar], top: float) -> float:
    x = MARGIN
    for kind in _kinds(bars):
        fill, stroke, _ = _COLORS.get(kind, OTHER)
        name = _KIND_NAMES.get(kind, kind)
        parts.append(_box(x, top, 11.0, 11.0, fill, stroke))
        parts.append(_text(x + 16.0, top + 9.5, name, 11.0, "#5a6570"))
        x += 34.0 + 5.6 * len(name)
    return top + 22.0


def _level(parts: list[str], bars: Sequence[FlameBar], x: float, y: float, scale: float) -> None:
    for bar in bars:
        width = bar.seconds * scale
        if width > _NARROW:
            fill, stroke, ink = _COLORS.get(bar.kind, OTHER)
            label = _truncated(bar.label, (width - 8.0) / _LETTER)
            parts.append(
                f"<g><title>{escape(bar.note)}</title>"
                + _box(x, y, max(0.5, width - 0.8), _ROW, fill, stroke)
                + (_text(x + 4.0, y + 17.0, label, 11.5, ink) if label else "")
                + "</g>"
            )
            _level(parts, bar.inside, x, y + _ROW + _GAP, scale)
        x += width


def _memory(
    parts: list[str], bars: Sequence[FlameBar], title: str, top: float, scale: float
) -> float:
    """Draw columns with heights proportional to the memory in use."""
    leaves = [leaf for bar in bars for leaf in _leaves(bar)]
    peak = max((leaf.held for leaf in leaves), default=0)
    if title:
        parts.append(_text(MARGIN, top + 9.0, title, 11.0, "#5a6570"))
        top += 16.0
    if not peak:
        return top
    x = MARGIN
    for leaf in leaves:
        width, height = leaf.seconds * scale, _MEMORY_HEIGHT * leaf.held / peak
        if width > _NARROW and height > 0.0:
            column = _box(x, top + _MEMORY_HEIGHT - height, width, height, "#d9c2a0", "none", 0)
            parts.append(f"<g><title>{escape(leaf.note)}</title>{column}</g>")
        x += width
    parts.append(_box(MARGIN, top + _MEMORY_HEIGHT, WIDTH - 2 * MARGIN, 0.6, "#b59a6d", "none", 0))
    return top + _MEMORY_HEIGHT


def _leaves(bar: FlameBar) -> list[FlameBar]:
    """The innermost bars, and the bar itself for its time outside of nested bars."""
    nested = [leaf for inner in bar.inside for leaf in _leaves(inner)]
    own = bar.seconds - sum(inner.seconds for inner in bar.inside)
    return [*nested, bar._replace(seconds=max(0.0, own), inside=())]


def _lines(parts: list[str], lines: Sequence[LineBar], top: float) -> float:
    has_both = any(line.derivative for line in lines)
    head = "your lines" + (": values, and darker their derivatives" if has_both else "")
    parts.append(_text(MARGIN, top + 9.0, head, 12.0, "#222222", weight="bold"))
    top += 20.0
    place_width = 6.3 * max(len(line.place) for line in lines) + 14.0
    bar_at, available = 500.0, WIDTH - 500.0 - MARGIN - 170.0
    longest = max(line.value + line.derivative for line in lines)
    for line in lines:
        text = _truncated(line.text, (bar_at - MARGIN - place_width - 12.0) / _CODE)
        middle = top + 15.0
        opacity = ' opacity="0.6"' if line.is_estimated else ""
        parts.append(f"<g><title>{escape(f'{line.place}  {line.text}')}</title>")
        parts.append(_text(MARGIN, middle, line.place, 11.5, "#5a6570"))
        parts.append(_text(MARGIN + place_width, middle, text, 11.0, "#222222", family=_MONO))
        value, derivative = (s * available / longest for s in (line.value, line.derivative))
        parts.append(f"<g{opacity}>" + _box(bar_at, top + 3.0, value, 16.0, _VALUE, "none"))
        parts.append(
            _box(bar_at + value, top + 3.0, derivative, 16.0, _DERIVATIVE, "none") + "</g>"
        )
        label_at = bar_at + value + derivative + 6.0
        parts.append(_text(label_at, middle, line.label, 11.0, "#222222"))
        parts.append("</g>")
        top += _LINE_HEIGHT
    return top


def _truncated(text: str, characters: float) -> str:
    limit = int(characters)
    if len(text) <= limit:
        return text
    return text[: limit - 1] + "…" if limit > 3 else ""


def _box(
    x: float,
    y: float,
    width: float,
    height: float,
    fill: str,
    stroke: str,
    round: int = 2,
) -> str:
    return (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" rx="{round}" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="0.8"/>'
    )


def _text(
    x: float,
    y: float,
    text: str,
    size: float,
    ink: str,
    weight: str = "normal",
    family: str = _FONT,
) -> str:
    return (
        f'<text x="{x:.2f}" y="{y:.2f}" font-size="{size}" fill="{ink}" font-weight="{weight}" '
        f'font-family="{family}" xml:space="preserve">{escape(text)}</text>'
    )
