"""The little of SVG that the plots need: a page of white, text, lines, dots, an axis of ratios.

Written by hand, so that plots are made wherever pages are, and are small and the same everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from xml.sax.saxutils import escape

INK, FAINT = "#222222", "#dddddd"


class Drawing:
    """Shapes on a white page of a width; the height is known when it is written."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.parts: list[str] = []

    def text(
        self, x: float, y: float, words: str, anchor: str = "start", size: int = 11,
        color: str = INK, weight: str = "normal",
    ) -> None:  # fmt: skip
        """Words; y is their base line."""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
            f'font-weight="{weight}" fill="{color}">{escape(words)}</text>'
        )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, color: str = FAINT, width: float = 1.0
    ) -> None:
        """A straight line."""
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{color}" stroke-width="{width:g}"/>'
        )

    def dot(self, x: float, y: float, color: str, says: str, shape: str = "circle") -> None:
        """A mark; what it says is shown when a pointer rests on it."""
        title = f"<title>{escape(says)}</title>"
        if shape == "circle":
            mark = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"'
        else:
            mark = f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7"'
        self.parts.append(
            f'{mark} fill="{color}" fill-opacity="0.8">{title}</{mark[1:].split()[0]}>'
        )

    def written(self, height: float) -> str:
        """The document."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{height:.0f}" '
            f'viewBox="0 0 {self.width} {height:.0f}" font-family="sans-serif">\n'
            '<rect width="100%" height="100%" fill="#ffffff"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


class Logarithmic:
    """An axis from the least to the greatest value, in whole powers of ten or halves of them."""

    def __init__(self, values: Sequence[float], left: float, right: float) -> None:
        low, high = log10(min([*values, 1.0])), log10(max([*values, 1.0]))
        self.low, self.high = floor(2.0 * low - 0.05) / 2.0, ceil(2.0 * high + 0.05) / 2.0
        self.left, self.right = left, right

    def at(self, value: float) -> float:
        """Where a value stands."""
        share = (log10(value) - self.low) / (self.high - self.low)
        return self.left + share * (self.right - self.left)

    def ticks(self) -> list[float]:
        """One, two and five of every decade, or the decades alone where there are many."""
        digits = (1.0, 2.0, 5.0) if self.high - self.low <= 3.0 else (1.0,)
        decades = range(floor(self.low), ceil(self.high) + 1)
        found = [d * 10.0**k for k in decades for d in digits]
        return [t for t in found if self.low - 1e-9 <= log10(t) <= self.high + 1e-9]
