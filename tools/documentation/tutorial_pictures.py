"""Pictures of the tutorials: the figures that their pages make, in docs/pictures/tutorials.

    draw        runs a page, and saves its `figure`:
                python -m tools.documentation.tutorial_pictures [NAMES]

Pages show these files, and do not draw when the site is built.
"""

from __future__ import annotations

import linecache
import sys
from pathlib import Path

from . import notebooks
from .pages import DOCS

PICTURES = DOCS / "pictures" / "tutorials"
DOTS_PER_INCH = 100


def draw(page: Path) -> None:
    """Run the code of a page, and save its figure."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for number, source in enumerate(notebooks.code(page.read_text(encoding="utf-8"))):
        file = f"<{page.name} {number}>"  # as in a notebook, functions have their source
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
        exec(compile(source, file, "exec"), namespace)
    PICTURES.mkdir(parents=True, exist_ok=True)
    figure = namespace["figure"]
    figure.savefig(PICTURES / f"{page.stem}.png", dpi=DOTS_PER_INCH)  # type: ignore[attr-defined]


if __name__ == "__main__":
    for page in notebooks.tutorials():
        if not sys.argv[1:] or page.stem in sys.argv[1:]:
            draw(page)
