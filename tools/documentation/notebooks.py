"""Notebooks of the tutorials, made from the pages of docs/tutorials.

    write       writes a notebook for each page to a folder:
                python -m tools.documentation.notebooks [FOLDER]
    publish     writes them beside the pages of the site, which link to them
    notebook    the notebook of the text of a page, in nbformat 4.5
    code        the sources of its cells

The results are those of the page, which the tests compare. Each block of code is a cell, and so is
each example of a block with `>>>` prompts, whose expected output is that of the cell. A picture of
a page is the output of the cell before it. Links to other pages become their text, since a notebook
is read without them.
"""

from __future__ import annotations

import ast
import base64
import doctest
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from .pages import DOCS, LINK, ROOT

Json: TypeAlias = "str | int | list[Json] | dict[str, Json] | None"

TUTORIALS = DOCS / "tutorials"
BLOCK = re.compile(r"^```python\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"^!\[[^\]]*\]\((?P<file>[^()\s:]+\.png)\)$\n?", re.MULTILINE)
KERNEL: dict[str, Json] = {"display_name": "Python 3", "language": "python", "name": "python3"}
FORMAT, FORMAT_MINOR = 4, 5


def tutorials() -> list[Path]:
    """The pages of which notebooks are made."""
    return sorted(TUTORIALS.glob("*.md"))


def write(folder: Path) -> None:
    """Write the notebook of each tutorial to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in tutorials():
        made = notebook(page.read_text(encoding="utf-8"), page.parent)
        text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{page.stem}.ipynb").write_text(text, encoding="utf-8")


def publish(folder: Path) -> None:
    """Write the notebooks to the folder of the site's tutorials, and link the pages to them."""
    write(folder)
    for page in tutorials():
        path = folder / page.name
        title, _, rest = path.read_text(encoding="utf-8").partition("\n")
        link = f"[This page as a notebook]({page.stem}.ipynb)"
        path.write_text(f"{title}\n\n{link}\n{rest}", encoding="utf-8")


def notebook(text: str, folder: Path) -> dict[str, Json]:
    """The notebook of a page; its pictures are given relative to the folder."""
    cells: list[Json] = []
    for number, cell in enumerate(_cells(text, folder)):
        cells.append({**cell, "id": f"cell-{number}"})
    metadata: dict[str, Json] = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return {
        "cells": cells,
        "metadata": metadata,
        "nbformat": FORMAT,
        "nbformat_minor": FORMAT_MINOR,
    }


def code(text: str) -> list[str]:
    """The sources of the cells of a page, in order."""
    found = (_examples(part) for kind, part in _parts(text) if kind == "code")
    return [source for examples in found for source, _ in examples]


def _cells(text: str, folder: Path) -> Iterator[dict[str, Json]]:
    """The cells of a page, without their names."""
    count, last = 0, None  # `last`: a cell of code that may get a picture as its output
    for kind, part in _parts(text):
        if kind == "picture" and last is not None:
            image = base64.b64encode((folder / part).read_bytes()).decode("ascii")
            shown: dict[str, Json] = {"image/png": image}
            last["outputs"] = [{"output_type": "display_data", "metadata": {}, "data": shown}]
        elif kind == "code":
            for source, outcome in _examples(part):
                if last is not None:
                    yield last
                count += 1
                last = _code(source, outcome, count)
        elif kind == "text" and part.strip():
            if last is not None:
                yield last
            last = None
            plain = LINK.sub(_link, part.strip())
            yield {"cell_type": "markdown", "metadata": {}, "source": _lines(plain)}
    if last is not None:
        yield last


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """The page as pairs of a kind, "text", "code" or "picture", and its content."""
    end = 0
    found = [("code", m.span(), m[1]) for m in BLOCK.finditer(text)]
    found += [("picture", m.span(), m["file"]) for m in PICTURE.finditer(text)]
    for kind, (start, stop), content in sorted(found, key=lambda item: item[1]):
        yield "text", text[end:start]
        yield kind, content
        end = stop
    yield "text", text[end:]


def _examples(source: str) -> list[tuple[str, str]]:
    """Sources of cells of a block, with their outputs."""
    if not re.search(r"^>>> ", source, re.MULTILINE):
        return [(source, "")]
    found = doctest.DocTestParser().get_examples(source)
    return [(example.source, example.want) for example in found]


def _code(source: str, outcome: str, count: int) -> dict[str, Json]:
    """A cell of code with its output."""
    outputs: list[Json] = []
    if outcome and _is_value(source):
        data: dict[str, Json] = {"text/plain": _lines(outcome)}
        outputs = [
            {
                "output_type": "execute_result",
                "execution_count": count,
                "metadata": {},
                "data": data,
            }
        ]
    elif outcome:
        outputs = [{"output_type": "stream", "name": "stdout", "text": _lines(outcome, "\n")}]
    return {
        "cell_type": "code",
        "metadata": {},
        "execution_count": count,
        "source": _lines(source),
        "outputs": outputs,
    }


def _is_value(source: str) -> bool:
    """Whether the output of a cell is the value of its expression, not what it prints."""
    statement = ast.parse(source).body[-1]
    if not isinstance(statement, ast.Expr):
        return False
    call = statement.value
    return not (isinstance(call, ast.Call) and ast.unparse(call.func) == "print")


def _link(found: re.Match[str]) -> str:
    """A link to another page as its text; others remain."""
    return found[0] if re.match(r"[a-z]+:", found["target"]) else found["text"]


def _lines(text: str, end: str = "") -> list[Json]:
    """A text as nbformat has it: a list of lines, of which all but the last end in a newline."""
    return [*(text.rstrip("\n") + end).splitlines(keepends=True)]


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "out" / "notebooks")
