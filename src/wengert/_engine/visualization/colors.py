"""Colors of nodes: leaves by role, operations by kind.

A color is a triple of fill, stroke and text.  Text is dark on light fills, with a contrast above
4.5 (constants above 3).  The page has a second set with the same hues for dark mode.
"""

from __future__ import annotations

from .node_labels import NodeLabel

Colors = tuple[str, str, str]

ROLES: dict[str, Colors] = {
    "input": ("#ffe9b8", "#c98a00", "#4d3500"),
    "constant": ("#f7f7f7", "#c4c4c4", "#7d7d7d"),
    "discrete": ("#f1f1f1", "#8a8a8a", "#4a4a4a"),
}
KINDS: dict[str, Colors] = {
    "elementwise": ("#e3eefb", "#4a7ab5", "#16324f"),
    "reduction": ("#dff3e4", "#3f8f5b", "#123d22"),
    "contraction": ("#ece3f7", "#7c56ab", "#33184f"),
    "view": ("#ffffff", "#9aa5b1", "#3a4550"),
    "indexing": ("#fde4e0", "#c05f4e", "#53190f"),
    "opaque": ("#dcf1f3", "#2f8a94", "#0c3c41"),
}
OTHER: Colors = ("#fbe6f2", "#b04d86", "#4d1236")
VARIABLE: Colors = ("#ffd9b0", "#c9690a", "#4d2700")  # a variable; only on the page

DARK: dict[str, Colors] = {
    "input": ("#4a3a12", "#e0a92e", "#ffe9b8"),
    "variable": ("#4d2f10", "#e08a35", "#ffdcb8"),
    "constant": ("#2a2c30", "#5c6168", "#a9afb8"),
    "discrete": ("#2e3136", "#868d97", "#d2d6dc"),
    "elementwise": ("#1c3350", "#6fa3e0", "#d9e8fb"),
    "reduction": ("#173a25", "#5db57d", "#d3f0dd"),
    "contraction": ("#352450", "#a983da", "#e9ddf8"),
    "view": ("#24282e", "#8794a2", "#d5dbe2"),
    "indexing": ("#4a241e", "#dd8271", "#fbdcd6"),
    "opaque": ("#143a3f", "#4fb0bb", "#d2eff2"),
    "other": ("#47203a", "#d474ac", "#fadceb"),
}


def colors(label: NodeLabel) -> Colors:
    """Fill, stroke and text of the box of a node."""
    return ROLES.get(label.role) or KINDS.get(label.kind, OTHER)


def legend_name(label: NodeLabel) -> str:
    """The name of the color of a node in the legend."""
    return label.role if label.role in ROLES else label.kind or "other"


def palettes() -> dict[str, dict[str, Colors]]:
    """The colors of the page by the names of the legend, for light and dark mode."""
    return {"light": {**ROLES, "variable": VARIABLE, **KINDS, "other": OTHER}, "dark": DARK}
