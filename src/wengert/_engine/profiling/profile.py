"""Profile: what `wengert.profile` returns, with its text, pictures and files.

    Profile     a profile: a table as text, a picture with tables in a notebook

The figures are in profile_data.py, their rendering in render.py.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wengert._engine.core.lazy_import import LazyModule
from wengert.errors import ArgumentError, at, user_line

from .profile_data import ProfileData

if TYPE_CHECKING:
    from . import render
else:
    render = LazyModule("wengert._engine.profiling.render")


class Profile(ProfileData):
    """The time and memory of a call of a function; the result of `wengert.profile`.

    Attributes
    ----------
    name : str
        Name of the function.
    value : object
        Its result.
    timing : Timing
        The record of the backend.
    """

    __module__ = "wengert.compiling"

    # ---- text and pictures -----------------------------------------------------------------------

    def __str__(self) -> str:
        return render.text(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return render.html(self)

    def to_svg(self, path: Any = None) -> str:
        """The flame graph of the steps and the user's lines as SVG.

        Parameters
        ----------
        path : path, optional
            Where to write it.

        Returns
        -------
        str
            The SVG document.
        """
        return render.picture(self, path)

    def to_json(self, path: Any = None) -> str:
        """All figures as JSON: totals, ``rows`` and ``lines``.

        Parameters
        ----------
        path : path, optional
            Where to write it.
        """
        totals = dataclasses.asdict(dataclasses.replace(self.timing, steps=()))
        del totals["steps"]
        figures = {
            "name": self.name,
            **totals,
            "rows": [dataclasses.asdict(row) for row in self.rows],
            "scopes": self.by_scope(),
            "lines": [{**dataclasses.asdict(x), "text": x.text} for x in self.by_line()],
        }
        text = json.dumps(figures, indent=1)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def save(self, path: Any) -> Path:
        """Write the profile to a file: ``.svg``, ``.html``, ``.json`` or ``.txt`` (the text).

        Raises
        ------
        ArgumentError
            The file has another suffix.
        """
        target = Path(os.fspath(path))
        writers = {".svg": self.to_svg, ".html": self._page, ".json": self.to_json, ".txt": str}
        if target.suffix not in writers:
            raise ArgumentError(
                f"save({target.name!r}): the suffix of the file selects the format, and "
                f"must be one of {', '.join(writers)}{at(user_line())}."
            )
        write: Any = writers[target.suffix]
        target.write_text(write(self) if write is str else write(), encoding="utf-8")
        return target

    def _page(self) -> str:
        return render.page(self)
