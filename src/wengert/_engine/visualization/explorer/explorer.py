"""The explorer: one HTML file in which a graph can be walked through, offline.

    explore     the page as text, or written to a file
    show_graph  the page in the browser, or in the notebook
    repr_html   the page inside a notebook's cell

The page is put together from page/*.js and page/page.css.  It asks the network for nothing, and
its content security policy allows its own style and script, by their hashes, and nothing else: a
name in a graph that looks like markup is a text and cannot become anything more.
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

from wengert.errors import ArgumentError, at, user_line

from ..colors import palettes
from ..expand_bodies import opened
from ..node_labels import Names, graph_of
from ..statistics import values_of
from .page_data import Page
from .rewrite_history import steps_of

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand

# In the order in which they build on each other.
SCRIPTS = "data tree ranks columns layer scene camera draw minimap panel search steps keys main"
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
    """A graph as a page to walk through: one HTML file that needs no network.

    Parameters
    ----------
    outputs : Graph, Tensor, or list of Tensor
    path : path, optional
        Where to write it.
    values : mapping from Node or Tensor to array, or sequence, optional
        Values to show statistics of; a sequence is aligned with ``graph.nodes``. Nodes that hold
        values themselves need none.
    history : sequence of (title, graph) or (title, graph, note), optional
        Graphs to step through, or what a rewrite has recorded.
    names : mapping from name to Tensor, or a module, optional
        What to call leaves.
    title : str, optional
        By default the name of the graph.

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
        whole, written = opened(step.graph)
        steps[k] = step._replace(graph=whole)
        known.update({new: known[old] for old, new in written.items() if old in known})
    text = _document(Page(names, known).data(steps, title or graph.name))
    if path is not None:
        try:
            place = Path(path)
        except TypeError as error:
            raise ArgumentError(
                f"{path!r} names no file. Give the path of one{at(user_line())}."
            ) from error
        place.write_text(text, encoding="utf-8")
    return text


def show_graph(
    outputs: Any, path: str | PathLike[str] | None = None, **options: Any
) -> Path | None:
    """Show a graph: in the notebook where there is one, else in the browser.

    Parameters
    ----------
    outputs : Graph, Tensor, or list of Tensor
    path : path, optional
        Where to write the page; by default a temporary file.
    **options
        As of `explore`.

    Returns
    -------
    Path or None
        The file that the browser was asked to open; None in a notebook.
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

    The frame may run the page's own script and reach nothing of the notebook around it.

    Parameters
    ----------
    outputs : Graph, Tensor, or list of Tensor
    height : int, default 520
        In pixels.
    **options
        As of `explore`.
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
    """What a notebook displays as HTML."""

    def __init__(self, html: str) -> None:
        self._html = html

    def _repr_html_(self) -> str:
        return self._html


def _notebook_display() -> Any:
    """IPython's display function where the front end shows HTML, else None."""
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
    # One pass: what is put in is not looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found.group(1)], template)


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
    r"""JSON that can stand inside a script element: no ``<``, no line separators, only ASCII.

    >>> as_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
