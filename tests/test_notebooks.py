"""Notebooks of the tutorials: valid JSON of nbformat 4, with the code of the pages in order.

The pages themselves are run by tests/test_docs.py; here a notebook is run as Jupyter would, cell
by cell, without Jupyter.
"""

import contextlib
import doctest
import io
import json
import re

import pytest

from tools.documentation import notebooks

from .test_docs import OPTIONS, Block, blocks_of, run_block

PAGES = notebooks.tutorials()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The notebooks by name, as read from the files."""
    folder = tmp_path_factory.mktemp("notebooks")
    notebooks.write(folder)
    return {p.stem: json.loads(p.read_text(encoding="utf-8")) for p in folder.glob("*.ipynb")}


def code_of(notebook):
    return ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]


def code_of_page(page):
    """The sources of a page, those of examples without prompts."""
    for block in blocks_of(page.read_text(encoding="utf-8"), page.name):
        examples = doctest.DocTestParser().get_examples(block.source)
        yield from [e.source for e in examples] or [block.source]


def test_there_are_five():
    assert len(PAGES) == 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_notebook_has_the_code_of_its_page_in_order(page, made):
    assert code_of(made[page.stem]) == [s.rstrip("\n") for s in code_of_page(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_notebook_has_the_format_of_jupyter(page, made):
    notebook = made[page.stem]
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook.keys() == {"cells", "metadata", "nbformat", "nbformat_minor"}
    cells = notebook["cells"]
    assert cells[0]["cell_type"] == "markdown" and cells[0]["source"][0].startswith("# ")
    names = [cell["id"] for cell in cells]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)
    common = {"id", "cell_type", "metadata", "source"}
    numbers = []
    for cell in cells:
        assert all(line.endswith("\n") for line in cell["source"][:-1])
        if cell["cell_type"] == "markdown":
            assert cell.keys() == common
            assert "```" not in "".join(cell["source"]) and ".md)" not in "".join(cell["source"])
            continue
        assert cell.keys() == common | {"execution_count", "outputs"}
        numbers.append(cell["execution_count"])
        for output in cell["outputs"]:
            keys = {
                "stream": {"name", "text"},
                "execute_result": {"execution_count", "metadata", "data"},
                "display_data": {"metadata", "data"},
            }
            assert output.keys() == {"output_type"} | keys[output["output_type"]]
    assert numbers == list(range(1, len(numbers) + 1))
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert sum(output["output_type"] == "display_data" for output in outputs) == 1


def test_a_notebook_runs_and_has_its_outputs(made, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="needs the extra `show`")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    namespace, checker = {"__name__": "__main__"}, doctest.OutputChecker()
    for number, cell in enumerate(made["curve-fitting"]["cells"]):
        if cell["cell_type"] != "code":
            continue
        source, printed = "".join(cell["source"]), io.StringIO()
        for output in cell["outputs"]:
            if output["output_type"] == "execute_result":
                value = repr(eval(source, namespace))
                wanted = "".join(output["data"]["text/plain"])
                assert checker.check_output(wanted + "\n", value + "\n", OPTIONS)
                break
        else:
            with contextlib.redirect_stdout(printed):
                run_block(Block(number, source + "\n"), "notebook", namespace)
            texts = ["".join(o["text"]) for o in cell["outputs"] if o["output_type"] == "stream"]
            assert checker.check_output("".join(texts), printed.getvalue(), OPTIONS)


def test_a_picture_is_the_output_of_the_cell_before_it(tmp_path):
    (tmp_path / "a.png").write_bytes(b"picture")
    text = "# T\n\n```python\nf = 1\n```\n\n![A](a.png)\n\nSee [b](b.md), [c](https://c.org/).\n"
    cells = notebooks.notebook(text, tmp_path)["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown"]
    assert cells[1]["outputs"][0]["data"] == {"image/png": "cGljdHVyZQ=="}
    assert cells[2]["source"] == ["See b, [c](https://c.org/)."]


def test_pages_of_the_site_link_to_their_notebooks(tmp_path):
    for page in PAGES:
        (tmp_path / page.name).write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    notebooks.publish(tmp_path)
    for page in PAGES:
        text = (tmp_path / page.name).read_text(encoding="utf-8")
        assert text.splitlines()[2] == f"[This page as a notebook]({page.stem}.ipynb)"
        assert (tmp_path / f"{page.stem}.ipynb").exists()
