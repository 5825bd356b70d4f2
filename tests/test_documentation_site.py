"""The documentation site: its reference has every public name, links lead somewhere, and it builds
without warnings.

quick   the pages of reference as text, links, docstrings
slow    the whole site is built, and looked at in a browser
"""

import html.parser
import importlib
import posixpath
import re
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest
from tests import browsers

import wengert as wg

pytest.importorskip("numpydoc", reason="needs the extra `docs`")

from tools.documentation import docstrings, gallery, pages, public_names, reference

ROOT = Path(__file__).resolve().parents[1]
ALIASES = {"extend.op_library", "extend.operator_arithmetic", "extend.operator_library"}


@pytest.fixture(scope="module")
def places():
    return reference.first_places()


@pytest.mark.parametrize("module", public_names.MODULES)
def test_every_public_name_is_described(module, places):
    found = public_names.module(module)
    names = set(getattr(found, "__all__", [])) or {n for n in dir(found) if n[0] != "_"}
    assert reference.opening(module), "the index says what a module is"
    text = reference.page(module, places)
    for name in names:
        listed = f"`{name} <{module}.{name}>`" in text
        described = re.search(rf"^\.\. py:\w+:: {name}(\(|$)", text, re.MULTILINE)
        described = described or f":py:mod:`{module}.{name}`" in text
        assert listed and described, name


def test_every_public_module_has_a_page():
    public = {f"wengert.{name}" for name in {*wg.PACKAGES, *wg.ENGINE} - ALIASES}
    assert public - {"wengert.extend.operators"} <= set(public_names.MODULES)


def test_names_of_the_package_are_sorted_by_subject():
    subjects = public_names.subjects()
    assert subjects["derivatives of functions"][:2] == ["grad", "value_and_grad"]
    named = [name for names in subjects.values() for name in names]
    assert sorted(named) == sorted(public_names.names("wengert"))


def test_every_example_has_a_picture_data_and_a_time():
    names = [path.stem for path in gallery.programs()]
    assert names == sorted(gallery.DATA) == sorted(gallery.times())
    assert not [path.stem for path in gallery.programs() if not gallery.picture(path).exists()]
    text = gallery.page(gallery.EXAMPLES / "nile.py")
    assert "](../pictures/nile.png)" in text and "Data: flow of the Nile at Aswan" in text


@pytest.mark.slow
def test_pictures_of_examples_can_be_drawn(tmp_path, monkeypatch):
    pictures = pytest.importorskip("tools.documentation.example_pictures", reason="matplotlib")
    monkeypatch.setattr(pictures, "DOCS", tmp_path)
    (tmp_path / "pictures").mkdir()
    for name in pictures.DRAWINGS:
        pictures.draw(name)
    drawn = {path.stem: path.stat().st_size for path in (tmp_path / "pictures").iterdir()}
    assert sorted(drawn) == sorted(pictures.DRAWINGS) and min(drawn.values()) > 1000


@pytest.mark.parametrize(
    ("target", "page", "place"),
    [
        ("jit.md#captured-values", "docs/loops.md", "jit.md#captured-values"),
        ("../glossary.md", "docs/design/0001-engine.md", "../glossary.md"),
        ("../examples/nile.py", "docs/examples.md", "gallery/nile.md"),
        ("docs/jit.md", "CHANGELOG.md", "jit.md"),
        ("design/", "docs/benchmarks.md", "design/index.md"),
        ("../CONTRIBUTING.md", "docs/architecture.md", "CONTRIBUTING.md"),
        ("../tests/run.py", "docs/architecture.md", None),
        ("https://example.org/a.md", "docs/jit.md", "https://example.org/a.md"),
    ],
)
def test_links_lead_to_pages_of_the_site(target, page, place):
    assert pages.on_site(target, page) == place


def test_code_is_not_rewritten():
    text = "`[a](../src/b.py)` [c](../src/d.py)\n```python\nx[1](../src/e.py)\n```\n"
    assert pages.rewritten(text, "docs/jit.md") == text.replace("[c](../src/d.py)", "c")


def test_docstrings_become_text_without_accidental_markup():
    link = {"grad": "wengert.grad"}.get
    text = "The `grad` of `x` in x**2 * y_ |z|.\n\na_ * b_::\n\n    c_ * d_\n"
    assert docstrings.rendered(text, link).splitlines() == [
        r"The :py:obj:`grad <wengert.grad>` of ``x`` in x\*\*2 \* y\_ \|z\|.",
        "",
        r"a\_ \* b\_::",
        "",
        "    c_ * d_",
    ]
    assert docstrings.summary("*Cost.* See :ref:`this`.\n\nMore.", link) == "*Cost.* See ``this``."


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    pytest.importorskip("sphinx", reason="needs the extra `docs`")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "tools.documentation.build", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return out / "html"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_site_has_every_name_and_can_be_searched(site):
    inventory = importlib.import_module("sphinx.util.inventory").InventoryFile
    found = inventory.loads((site / "objects.inv").read_bytes(), uri="")
    known = {name for kind in found.data for name in found.data[kind]}
    for module in public_names.MODULES:
        assert {f"{module}.{name}" for name in public_names.names(module)} <= known | set(
            public_names.MODULES
        )
    assert "value_and_grad" in (site / "searchindex.js").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_links_of_the_site_lead_to_places_that_are_there(site):
    pages = {path.relative_to(site).as_posix(): Anchors(path) for path in site.rglob("*.html")}
    assert len(pages) > 150
    broken = []
    for name, page in pages.items():
        for link in page.links:
            path, _, anchor = link.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            known = pages.get(target if path else name)
            if known is None:
                found = (site / target).is_file()
            else:
                found = urllib.parse.unquote(anchor) in known.ids
            if not found:
                broken.append(f"{name}: {link}")
    assert not broken, broken[:20]


class Anchors(html.parser.HTMLParser):
    """The links of a page to other pages of the site, and the places that links may name."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids = set(), {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids |= {given.get("id") or "", (tag == "a" and given.get("name")) or ""}
        for name in ("href", "src"):
            link = given.get(name)
            if link and not re.match(r"[a-z]+:|//", link):
                self.links.add(link.split("?")[0] if "#" not in link else link)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_site_in_a_browser(site):
    playwright = browsers.driver()
    names = [path.relative_to(site) for path in site.rglob("*.html")]
    troubles = []
    with playwright.sync_playwright() as driver:
        browser = browsers.launched(driver)
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.on("console", lambda m: troubles.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda r: r.url.startswith("file:") or troubles.append(r.url))
        wide = {}
        for name in names:
            page.goto((site / name).as_uri())
            width = page.evaluate("document.documentElement.scrollWidth")
            if width > 390:
                wide[name.as_posix()] = width
        assert not wide, f"wider than a phone: {wide}"
        page.goto((site / "coverage.html").as_uri())
        page.fill("#coverage-filter", "logsumexp")
        assert page.inner_text("#coverage-count").startswith("1 of ")
        page.fill("#coverage-filter", "")
        assert page.inner_text("#coverage-count") == ""
        assert not troubles
        # Summaries of what was found are fetched, which browsers refuse for files.
        for words, target in SEARCHES.items():
            query = urllib.parse.urlencode({"q": words})
            page.goto((site / "search.html").as_uri() + f"?{query}")
            # Results are added one by one; an error after 30 seconds if this one is not there.
            page.wait_for_selector(f"#search-results a[href*='{target}']", state="attached")
        page.set_viewport_size({"width": 1280, "height": 1000})
        page.goto((site / "index.html").as_uri())
        picture = page.locator("article img").first.bounding_box()
        assert picture["y"] + picture["height"] < 1000, "the landing page is one screen"
        browser.close()


SEARCHES = {
    "value_and_grad": "wengert.value_and_grad",
    "checkpointing": "loops.html",
    "static arguments": "jit.html",
    "MutatedError": "mistakes.html",
}
