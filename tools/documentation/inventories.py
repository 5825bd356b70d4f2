"""Addresses of the documentation of NumPy, SciPy and Python, without a network.

    write       writes the inventories to a folder
    MAPPING     where the three are

Sphinx reads inventories of other sites, usually from the network. The names here are those of the
installed packages, at the addresses where these projects' pages are.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import zlib
from pathlib import Path

MAPPING = {
    "numpy": "https://numpy.org/doc/stable/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "python": "https://docs.python.org/3/",
}
SPACES = {
    "numpy": {
        "numpy": "reference/generated",
        "numpy.linalg": "reference/generated",
        "numpy.fft": "reference/generated",
        "numpy.random": "reference/random/generated",
    },
    "scipy": {
        f"scipy.{name}": "reference/generated"
        for name in """fft integrate interpolate linalg ndimage optimize signal sparse
            sparse.linalg spatial.distance special stats""".split()
    },
}
SCALARS = "reference/arrays.scalars.html"
CONSTANTS = "reference/constants.html"


def write(folder: Path) -> dict[str, tuple[str, str]]:
    """Write an inventory for each of the three; the value of Sphinx's `intersphinx_mapping`."""
    folder.mkdir(parents=True, exist_ok=True)
    for project, spaces in SPACES.items():
        lines = [line for space, place in spaces.items() for line in _lines(space, place)]
        _write(folder / f"{project}.inv", project, lines)
    lines = []
    for name, thing in vars(builtins).items():
        if inspect.isclass(thing) and issubclass(thing, BaseException):
            lines.append(f"{name} py:exception 1 library/exceptions.html#$ -")
        elif callable(thing) and not name.startswith("_"):
            lines.append(f"{name} py:function 1 library/functions.html#$ -")
    _write(folder / "python.inv", "python", lines)
    return {name: (url, str(folder.resolve() / f"{name}.inv")) for name, url in MAPPING.items()}


def _lines(space: str, place: str) -> list[str]:
    module = importlib.import_module(space)
    listed = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
    lines = []
    for name in sorted(listed):
        thing, full = getattr(module, name, None), f"{space}.{name}"
        if inspect.ismodule(thing):
            continue
        if space == "numpy" and inspect.isclass(thing) and issubclass(thing, module.generic):
            lines.append(f"{full} py:class 1 {SCALARS}#$ -")
        elif space == "numpy" and not callable(thing):
            lines.append(f"{full} py:data 1 {CONSTANTS}#$ -")
        else:
            kind = "py:class" if inspect.isclass(thing) else "py:function"
            lines.append(f"{full} {kind} 1 {place}/$.html#$ -")
    return lines


def _write(path: Path, project: str, lines: list[str]) -> None:
    head = (
        "# Sphinx inventory version 2\n"
        f"# Project: {project}\n# Version: \n"
        "# The remainder of this file is compressed using zlib.\n"
    )
    path.write_bytes(head.encode() + zlib.compress("\n".join(lines).encode() + b"\n"))
