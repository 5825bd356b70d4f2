"""The description of a training, read from TOML and validated.

    seed = 0

    [data]
    source = "digits.npz"              # or "digits", "iris", ...; a .csv; folders: see described.py
    inputs = "x"                       # names in the file
    target = "y"
    held_out = 0.2

    [[model]]
    layer = "Linear"                   # a module of wengert.nn; other entries are its arguments
    in_features = 64
    out_features = 10

    [loss]
    name = "CrossEntropyLoss"

    [optimizer]
    name = "Adam"
    lr = 0.001

    [fit]
    epochs = 20

An entry that is unknown is an error, with what may stand there.
"""

from __future__ import annotations

import ast
import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from wengert.errors import ArgumentError, FileError

SECTIONS = ("seed", "data", "model", "loss", "optimizer", "fit")


def read(path: Path, changes: Iterable[str]) -> dict[str, Any]:
    """The entries of a file, with changes from the command line.

    Raises
    ------
    FileError
        No such file, or not TOML.
    ArgumentError
        An unknown section, or a change that is not ``key=value``.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(f"{path} does not exist. Pass the path of a TOML file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path} is not TOML: {error}.") from error
    for change in changes:
        _change(found, change)
    only(found, SECTIONS, str(path))
    for name in ("data", "model"):
        if name not in found:
            raise ArgumentError(f"{path} has no [{name}]. Add this section.")
    for name in SECTIONS:
        _check_kind(name, found.get(name), path)
    return found


def _check_kind(name: str, entry: Any, path: Path) -> None:
    """Check that sections are tables, models lists of tables, and the seed an integer."""
    tables = entry if name == "model" and isinstance(entry, list) else [entry]
    if name == "seed":
        if entry is not None and (type(entry) is not int or entry < 0):
            raise ArgumentError(f"{path}: seed = {entry!r}: must be an integer >= 0.")
    elif entry is not None and not all(isinstance(table, Mapping) for table in tables):
        brackets = f"[[{name}]]" if name == "model" else f"[{name}]"
        raise ArgumentError(f"{path}: {name} = {entry!r}: entries belong into {brackets}.")


def only(entries: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """Refuse entries that nobody reads."""
    names = sorted(known)
    for name in entries:
        if name not in names:
            close = difflib.get_close_matches(name, names, 1)
            hint = f"Did you mean {close[0]!r}?" if close else f"There are {', '.join(names)}."
            raise ArgumentError(f"{where}: nothing is called {name!r}. {hint}")


def _change(entries: Any, change: str) -> None:
    key, equals, text = change.partition("=")
    if not equals or not key:
        raise ArgumentError(f"--set {change}: must be key=value, for example fit.epochs=3.")
    *path, last = key.split(".")
    for name in path:
        place = _place(entries, name, change)
        inner: Any = entries.setdefault(name, {}) if place == name else entries[place]
        if not isinstance(inner, dict | list):
            raise ArgumentError(f"--set {change}: {name} is {inner!r}, which has no entries.")
        entries = inner
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = {"true": True, "false": False}.get(text, text)
    entries[_place(entries, last, change)] = value


def _place(entries: Any, name: str, change: str) -> Any:
    """A name in a table, a number in a list of them."""
    if not isinstance(entries, list):
        return name
    if not name.isdecimal() or int(name) >= len(entries):
        raise ArgumentError(
            f"--set {change}: {name} must be an index from 0 to {len(entries) - 1}."
        )
    return int(name)
