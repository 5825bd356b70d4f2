"""Every page of docs/ is listed once in the contents of the site, docs/index.md. One that is
not listed could not be found there."""

import fnmatch
import re

from .sources import ROOT

DOCS = ROOT / "docs"
INDEX = (DOCS / "index.md").read_text(encoding="utf-8")
CONTENTS = "\n".join(re.findall(r"^```\{toctree\}\n(.*?)^```$", INDEX, re.MULTILINE | re.DOTALL))
LISTED = [line for line in CONTENTS.splitlines() if line and not line.startswith(":")]
WRITTEN = {"api/index", "gallery/index", "design/index", "CONTRIBUTING", "CHANGELOG"}  # when built


def test_every_page_is_in_the_contents():
    pages = {p.relative_to(DOCS).with_suffix("").as_posix() for p in DOCS.rglob("*.md")}
    pages -= {"index"} | {page for page in pages if page.startswith("design/")}
    listed = {page: [e for e in LISTED if fnmatch.fnmatch(page, e)] for page in pages}
    assert {page: found for page, found in listed.items() if len(found) != 1} == {}, (
        "list each page once in a toctree of docs/index.md"
    )
    plain = {entry for entry in LISTED if "*" not in entry}
    assert plain - pages == WRITTEN


def test_the_changelog_can_be_read():
    """An automatic merge of branches may bring back lines that were removed or shortened."""
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    entries = [line for line in lines if line.startswith("- ")]
    assert len(set(entries)) == len(entries), "entries stand there twice"
    assert len(lines) <= 150, "too long: remove what a merge brought back; sort entries by area"
