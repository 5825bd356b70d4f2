"""The explorer: one HTML file in which a graph can be explored offline.

    explore     the page as text, or written to a file
    show_graph  the page in the browser, or in the notebook
    repr_html   the page inside a notebook cell

The page is assembled from page/page.html, page/*.js and page/page.css.  It makes no network
requests, and its content security policy allows only its own style and script, by their hashes: a
name in a graph that looks like markup is displayed as text and cannot run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import tempfile
import webbrowser
from functools import cache
from html import escape
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wengert._engine.visualization.node_groups import expanded
from wengert._engine.visualization.node_labels import palettes, values_of
from wengert.errors import ArgumentError, at, user_line

from ..node_labels import Names, graph_of
from .page_data import Page, steps_of

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand

# In the order of their dependences.
SCRIPTS = "data layout scene camera draw panel keys main"
NOTEBOOK_LIMIT = 20_000


def explore(
    outputs: Any,
    path: str | PathLike[str] | None = None,
    *,
    values: int | dict[Any, Any] | list[Operand | None] | None = None,
    history: list[Any] | None = None,
    names: Names | None = None,
    title: str = "",
) -> str:
    """A graph as an interactive page: one HTML file that works offline.

    Parameters
    ----------
    outputs : Graph, Tensor, or list of Tensor
    path : path, optional
        Where to write it.
    values : mapping from Node or Tensor to array, or sequence, optional
        Values to show statistics of; a sequence is aligned with ``graph.nodes``. Nodes of an eager
        graph have values of their own.
    history : sequence of (title, graph) or (title, graph, note), optional
        Graphs to step through; or the history of a rewrite (``graph.simplify(history=True)``).
    names : mapping from name to Tensor, or a module, optional
        Names of leaves.
    title : str, optional
        The title of the page; by default the name of the graph.

    Returns
    -------
    str
        The document.

    Raises
    ------
    ArgumentError
        `values` or `history` do not fit the graph.

    Notes
    -----
    Ten thousand nodes make about one megabyte, in about half a second.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import show
    >>> graph = wg.trace(lambda x: np.sum(np.sin(x) * x))(wg.spec(3))
    >>> page = show.explore(graph, title="a sum")
    >>> "<title>a sum</title>" in page, "https:" in page
    (True, False)
    """
    graph = graph_of(outputs)
    steps = steps_of(graph, history)
    known: dict[Any, Any] = {}
    for step in steps:
        known.update(values_of(step.graph))
    known.update(values_of(graph, values))
    for k, step in enumerate(steps):
        graph_with_bodies, new_nodes = expanded(step.graph)
        steps[k] = step._replace(graph=graph_with_bodies)
        known.update({new: known[old] for old, new in new_nodes.items() if old in known})
    text = _document(Page(names, known).data(steps, title or graph.name))
    if path is not None:
        try:
            file = Path(path)
        except TypeError as error:
            raise ArgumentError(
                f"path={path!r} is not a path. Give the path of a file{at(user_line())}."
            ) from error
        file.write_text(text, encoding="utf-8")
    return text


def show_graph(
    outputs: Any, path: str | PathLike[str] | None = None, **options: Any
) -> Path | None:
    """Show a graph in the notebook if there is one, else in the browser.

    Parameters
    ----------
    outputs : Graph, Tensor, or list of Tensor
    path : path, optional
        Where to write the page; by default a temporary file.
    **options
        Options of `explore`.

    Returns
    -------
    Path or None
        The file that was opened in the browser; None in a notebook.
    """
    display = _notebook_display()
    if display is not None and path is None:
        display(_Framed(repr_html(outputs, **options)))
        return None
    if path is None:
        path = Path(tempfile.mkdtemp(prefix="wengert-")) / "graph.html"
    explore(outputs, path, **options)
    webbrowser.open(Path(path).resolve().as_uri())
    return Path(path)


def repr_html(outputs: Any, height: int = 520, **options: Any) -> str:
    """The page inside a frame, for notebooks.

    The frame can run the script of the page, but cannot access the notebook.

    Parameters
    ----------
    outputs : Graph, Tensor, or list of Tensor
    height : int, default 520
        The height of the frame in pixels.
    **options
        Options of `explore`.
    """
    graph = graph_of(outputs)
    if len(graph) > NOTEBOOK_LIMIT:
        return f"<pre>{escape(repr(graph))}: too long for a notebook; use show_graph.</pre>"
    page = escape(explore(graph, **options), quote=True)
    return (
        f'<iframe srcdoc="{page}" sandbox="allow-scripts" title="{escape(graph.name, quote=True)}"'
        f' style="width:100%;height:{int(height)}px;border:1px solid #8886;border-radius:6px">'
        "</iframe>"
    )


class _Framed:
    """An object that a notebook displays as HTML."""

    def __init__(self, html: str) -> None:
        self._html = html

    def _repr_html_(self) -> str:
        return self._html


def _notebook_display() -> Any:
    """IPython's display function if the front end can show HTML, else None."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    if running is None or not hasattr(running, "kernel"):
        return None
    return sys.modules["IPython.display"].display


# ---- the document ------------------------------------------------------------------------------


def _document(data: dict[str, Any]) -> str:
    script, style, template = _parts()
    parts = {
        "title": escape(str(data["title"])),
        "policy": f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}",
        "style": style,
        "data": as_json(data),
        "script": script,
    }
    # One substitution, so that text that is inserted is not searched for placeholders.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match.group(1)], template)


@cache
def _parts() -> tuple[str, str, str]:
    folder = resources.files(__package__).joinpath("page")

    def read(name: str) -> str:
        return folder.joinpath(name).read_text(encoding="utf-8")

    modules = [read(f"{name}.js") for name in SCRIPTS.split()]
    colors = f"const PALETTES = {json.dumps(palettes())};\n"
    script = "\n".join(['"use strict";\n(() => {', colors, *modules, "})();\n"])
    return script, read("page.css"), read("page.html")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def as_json(data: float | dict[Any, Any] | list[str]) -> str:
    r"""JSON that is safe inside a script element: no ``<``, no line separators, only ASCII.

    >>> as_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
