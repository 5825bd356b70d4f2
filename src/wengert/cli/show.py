"""Show the contents of a file as a table, a picture or a page.

Graphs are printed node by node; weights and arrays as a table of names, dtypes, shapes and sizes.
Nothing is unpickled, so files from untrusted sources can be shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import wengert as wg
from wengert import nn as nn  # graphs of models name its classes
from wengert._engine import visualization as show
from wengert._engine.core import pytree
from wengert._engine.graphs.graph import Graph
from wengert.errors import FileError


def run(options: Any) -> None:
    """Show a file."""
    contents = _read(options.file)
    pictures = {"--svg": options.svg, "--html": options.html, "--dot": options.dot}
    requested = [name for name, path in pictures.items() if path is not None]
    if not isinstance(contents, Graph):
        if requested:
            raise FileError(
                f"{options.file} does not contain a graph, so {requested[0]} cannot be used. Omit "
                "the option."
            )
        print(_table(contents))
        return
    print(show.table(contents, values=False))
    if options.svg:
        show.to_svg(contents, options.svg)
    if options.html:
        show.explore(contents, options.html)
    if options.dot:
        options.dot.write_text(show.to_dot(contents), encoding="utf-8")
    for name in requested:
        print(f"wrote {pictures[name]}")


def _read(path: Path) -> Any:
    if not path.exists():
        raise FileError(
            f"{path} does not exist. Pass a file written by wengert, safetensors or NumPy."
        )
    if path.suffix in (".npz", ".npy"):
        try:
            loaded = np.load(path, allow_pickle=False)
            return dict(loaded) if path.suffix == ".npz" else {path.stem: loaded}
        except (ValueError, EOFError) as error:
            raise FileError(f"{path} cannot be read as a NumPy file: {error}") from error
    return wg.load(path)


def _table(contents: Any) -> str:
    leaves, names = pytree.flatten(contents)[0], pytree.paths(contents)
    if isinstance(contents, Mapping) and len(contents) == len(leaves):
        names = [str(name) for name in contents]
        leaves = list(contents.values())
    rows = [("name", "dtype", "shape", "bytes")]
    for name, leaf in zip(names, leaves, strict=True):
        array = np.asarray(leaf)
        rows.append((name, str(array.dtype), str(array.shape), f"{array.nbytes:,}"))
    widths = [max(len(row[k]) for row in rows) for k in range(4)]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    total = sum(np.asarray(leaf).nbytes for leaf in leaves)
    return "\n".join([*(line.rstrip() for line in lines), f"{len(leaves)} arrays, {total:,} bytes"])
