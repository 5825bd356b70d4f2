"""All code in the documentation runs.

Pages: README.md and docs/**/*.md.  The ```python blocks of a page run in order, in one namespace,
in an empty working directory.  A block with `>>>` prompts is a doctest, whose output is compared.
Other blocks are executed and must not raise.  No block is exempt: a fence such as
```python no-run, ```py or ```pycon is an error, because it would not run.

Modules: the examples in the docstrings of every module, class, function and operation of
src/wengert.  `np`, `wg` and `wnp` need no import there.

A failure names the page or file and the line.
"""

import doctest
import importlib
import inspect
import linecache
import re
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "wengert"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.stem != "__main__"
}
WITH_EXAMPLES = [n for n, path in MODULES.items() if ">>> " in path.read_text(encoding="utf-8")]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(r"^(?P<indent>\s*)(?P<mark>`{3,}|~{3,})\s*(?P<info>[^`]*)$")


@dataclass
class Block:
    line: int  # of the first line of code, counted from 1
    source: str


class PageError(Exception):
    """A page whose blocks cannot be read, or a block that failed."""


def blocks_of(text, page="page"):
    """The ```python blocks of a Markdown text; similar fences that would not run are errors."""
    blocks, lines = [], iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        opening = FENCE.match(line)
        if not opening:
            continue
        indent, mark, info = opening["indent"], opening["mark"], opening["info"].strip()
        closing = re.compile(rf"^\s*{re.escape(mark[0])}{{{len(mark)},}}\s*$")
        body = []
        for _, inner in lines:
            if closing.match(inner):
                break
            body.append(inner.removeprefix(indent))
        else:
            raise PageError(f"{page}:{number}: this block is never closed")
        if info == "python":
            blocks.append(Block(number + 1, "\n".join(body) + "\n"))
        elif re.match(r"\{?\.?py", info, re.IGNORECASE):
            raise PageError(
                f"{page}:{number}: a block opened with ```{info} would not run; write ```python "
                "and make it run (an expected error goes into a >>> block with its Traceback)"
            )
    return blocks


def run_block(block, page, namespace):
    """Run one block in the namespace of its page."""
    if re.search(r"^\s*>>> ", block.source, re.MULTILINE):
        run_examples(block.source, page, block.line - 1, namespace, page)
        return
    # As in a notebook, each block is a file, so that its functions have their source. They cannot
    # be one file: how CPython compiles `np.f()` depends on whether the file imports `np`.
    file = f"block-at-{block.line}/{page}"
    try:
        source = "\n" * (block.line - 1) + block.source
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
        exec(compile(source, file, "exec"), namespace)
    except Exception as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
        line = lines[-1] if lines else getattr(error, "lineno", None) or block.line
        raise PageError(f"{page}:{line}: {type(error).__name__}: {error}") from error


def run_examples(source, name, line, namespace, where):
    """Run the `>>>` examples of a text in a namespace; `line` is the line before the text."""
    examples = doctest.DocTestParser().get_doctest(source, {}, name, where, line)
    examples.globs = namespace  # DocTest copies its globals, but blocks of a page share names
    out = []
    result = doctest.DocTestRunner(optionflags=OPTIONS).run(
        examples, out=out.append, clear_globs=False
    )
    if result.failed:
        raise PageError("".join(out))
    return result.attempted


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_page(page, tmp_path, monkeypatch):
    name, text = page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8")
    if "import matplotlib" in text:
        pytest.importorskip("matplotlib", reason="needs the extra `show`")
        monkeypatch.setenv("MPLBACKEND", "Agg")
    if "import nutpie" in text:
        for library in ("nutpie", "walnutpie", "arviz"):
            pytest.importorskip(library, reason="needs the extra `samplers`")
    if 'method="CVODE"' in text:
        pytest.importorskip("sksundae", reason="needs the extra `sundials`")
    for library in ("pandas", "xarray", "pint"):
        if f"import {library}" in text:
            pytest.importorskip(library, reason=f"needs {library}")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in blocks_of(text, name):
        run_block(block, name, namespace)


class Finder(doctest.DocTestFinder):
    """Also finds the examples of classes whose `__module__` is the public module."""

    def _from_module(self, module, thing):
        if inspect.isclass(thing) and thing.__module__ != module.__name__:
            own = rf"^class {thing.__name__}\b"
            return re.search(own, inspect.getsource(module), re.MULTILINE) is not None
        if inspect.isfunction(thing) and thing.__module__ == module.__name__:
            return True  # also if another module made it (nn.functional.by_dimension)
        return super()._from_module(module, thing)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_docstrings(name, tmp_path, monkeypatch):
    import numpy as np

    import wengert as wg
    import wengert.numpy as wnp

    module = importlib.import_module(name)
    monkeypatch.chdir(tmp_path)
    shared = {"np": np, "wg": wg, "wnp": wnp}
    finder = Finder(exclude_empty=True)
    for found in finder.find(module, name, globs={**shared, **vars(module)}):
        if not found.examples:
            continue
        examples = doctest.DocTestRunner(optionflags=OPTIONS)
        out = []
        if examples.run(found, out=out.append).failed:
            raise PageError("".join(out))
    source = Path(module.__file__).read_text(encoding="utf-8")
    for key, docstring in operations_of(module):
        if docstring.strip().partition("\n")[0] in source:  # defined here, not imported
            file = Path(module.__file__).relative_to(ROOT).as_posix()
            run_examples(docstring, f"{name}.{key}", 0, {**shared, **vars(module)}, file)


def test_every_module_can_be_imported():
    for name in MODULES:
        importlib.import_module(name)


def operations_of(module):
    """Docstrings with examples of objects that doctest ignores, such as operations."""
    for key, value in list(vars(module).items()):
        if callable(value) and type(value).__module__.startswith("wengert."):
            docstring = getattr(value, "__doc__", None)
            if docstring and docstring != type(value).__doc__ and ">>>" in docstring:
                yield key, docstring


# ---- the runner itself -------------------------------------------------------------------------


def run_page(text):
    namespace = {}
    for block in blocks_of(text, "page.md"):
        run_block(block, "page.md", namespace)
    return namespace


def test_blocks_of_a_page_share_names():
    page = "```python\na = 1\n```\ntext\n```python\n>>> a + 1\n2\n>>> b = a\n```\n"
    assert run_page(page)["b"] == 1


def test_functions_of_earlier_blocks_have_their_source():
    first = "```python\ndef f(x):\n    return x\n```\n"
    page = first + "```python\nimport inspect\ns = inspect.getsource(f)\n```\n"
    assert run_page(page)["s"] == "def f(x):\n    return x\n"


def test_an_indented_block_runs():
    assert run_page("- item\n\n  ```python\n  if True:\n      a = 1\n  ```\n")["a"] == 1


def test_other_languages_and_quoted_fences_do_not_run():
    assert run_page("```sh\nexit 1\n```\n````markdown\n```python no-run\n```\n````\n") == {}


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("```python no-run\n1\n```", r"page\.md:1: a block opened with ```python no-run"),
        ("```pycon\n>>> 1\n1\n```", r"page\.md:1: a block opened with ```pycon"),
        ("text\n```python\n1", r"page\.md:2: this block is never closed"),
        ("```python\na = 1\n1 / 0\n```", r"page\.md:3: ZeroDivisionError"),
        ("```python\na = 1\nb = = 2\n```", r"page\.md:3: SyntaxError"),
        ("text\n\n```python\n>>> 1 + 1\n3\n```", r'(?s)"page\.md", line 4.*Got:\s+2'),
    ],
)
def test_a_wrong_page_is_reported_with_its_line(page, message):
    with pytest.raises(PageError, match=message):
        run_page(page)


def test_a_warning_fails_a_page():
    with pytest.raises(PageError, match="UserWarning"):
        run_page("```python\nimport warnings\nwarnings.warn('old', stacklevel=1)\n```")


def test_the_package_under_test_is_this_one():
    import wengert

    assert Path(wengert.__file__).resolve().is_relative_to(ROOT), sys.path
