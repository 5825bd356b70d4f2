"""Colours of the pictures: what a line is, at a glance.

Leaves by role, operations by kind.  Fill, stroke, text; dark text on light fills, so that the
contrast is above 4.5 everywhere (constants are lighter on purpose: above 3).
"""

from __future__ import annotations

from .lines import Line

Colours = tuple[str, str, str]

ROLES: dict[str, Colours] = {
    "input": ("#ffe9b8", "#c98a00", "#4d3500"),
    "constant": ("#f7f7f7", "#c4c4c4", "#7d7d7d"),
    "discrete": ("#f1f1f1", "#8a8a8a", "#4a4a4a"),
}
KINDS: dict[str, Colours] = {
    "elementwise": ("#e3eefb", "#4a7ab5", "#16324f"),
    "reduction": ("#dff3e4", "#3f8f5b", "#123d22"),
    "contraction": ("#ece3f7", "#7c56ab", "#33184f"),
    "view": ("#ffffff", "#9aa5b1", "#3a4550"),
    "indexing": ("#fde4e0", "#c05f4e", "#53190f"),
    "opaque": ("#dcf1f3", "#2f8a94", "#0c3c41"),
}
OTHER: Colours = ("#fbe6f2", "#b04d86", "#4d1236")


def colours(line: Line) -> Colours:
    """Fill, stroke and text of a line's box."""
    return ROLES.get(line.role) or KINDS.get(line.kind, OTHER)


def legend_name(line: Line) -> str:
    """What the legend calls its colour."""
    return line.role if line.role in ROLES else line.kind or "other"
