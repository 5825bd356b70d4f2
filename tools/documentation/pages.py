"""Markdown pages as the site has them: docs/, and two files beside the README.

    copy        copies all pages and pictures to a folder
    rewritten   the text of a page, with links that work on the site

A link to a program in examples/ leads to its page in the gallery. A link to another file outside
docs/, such as a source file, becomes its text, since the site has no copy of it.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BESIDE = "CHANGELOG.md", "CONTRIBUTING.md"
COPIED = {".png", ".svg", ".json", ".ipynb"}
NOT_COPIED = {"coverage.json"}
LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\)")
CODE = re.compile(r"(`+).*?\1")
DIRECTIVE_OPTION = re.compile(r"^\s*(`{3,}|~{3,})")


def copy(target: Path) -> None:
    """Copy pages, pictures and notebooks."""
    for path in sorted(DOCS.rglob("*")):
        name = path.relative_to(DOCS)
        if path.suffix == ".md":
            text = rewritten(path.read_text(encoding="utf-8"), f"docs/{name.as_posix()}")
        elif path.suffix in COPIED and name.as_posix() not in NOT_COPIED:
            text = ""
        else:
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if text:
            (target / name).write_text(text, encoding="utf-8")
        else:
            shutil.copy(path, target / name)
    for page in BESIDE:
        text = rewritten((ROOT / page).read_text(encoding="utf-8"), page)
        (target / page).write_text(text, encoding="utf-8")
    records = sorted(path.stem for path in (target / "design").glob("*.md"))
    (target / "design" / "index.md").write_text(design_index(records), encoding="utf-8")


def design_index(records: list[str]) -> str:
    """The list of design records."""
    lines = ["# Design records", "", "Decisions, with reasons and rejected alternatives.", ""]
    return "\n".join([*lines, "```{toctree}", ":maxdepth: 1", "", *records, "```", ""])


def rewritten(text: str, page: str) -> str:
    """The text of a page, given by its path in the repository, for the site."""
    lines, fence = [], ""
    for line in text.splitlines():
        opening = DIRECTIVE_OPTION.match(line)
        if opening and not fence:
            fence = opening[1]
        elif opening and opening[1].startswith(fence):
            fence = ""
        elif not fence:
            line = _line(line, page)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _line(line: str, page: str) -> str:
    """A line outside of code blocks; what is in backticks remains as it is."""
    spans = [found.span() for found in CODE.finditer(line)]

    def replaced(found: re.Match[str]) -> str:
        if any(a <= found.start() < b for a, b in spans):
            return found[0]
        target = on_site(found["target"], page)
        if target is None:
            return found["text"]
        return f"{found['image']}[{found['text']}]({target})"

    return LINK.sub(replaced, line)


def on_site(target: str, page: str) -> str | None:
    """Where a link of a page leads on the site; None if the site does not have it."""
    if re.match(r"[a-z]+:|#", target):
        return target
    path, sign, anchor = target.partition("#")
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
    if wanted == "README.md":
        place = "index.md"
    elif wanted in ("docs/design", "examples"):
        place = {"docs/design": "design/index.md", "examples": "gallery/index.md"}[wanted]
    elif wanted in BESIDE:
        place = wanted
    elif wanted.startswith("examples/") and wanted.endswith(".py"):
        place = f"gallery/{posixpath.basename(wanted)[:-3]}.md"
    elif wanted.startswith("docs/") and (ROOT / wanted).is_file():
        place = wanted.removeprefix("docs/")
    else:
        return None
    folder = posixpath.dirname(page.removeprefix("docs/"))
    return posixpath.relpath(place, folder or ".") + sign + anchor
