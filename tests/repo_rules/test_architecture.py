"""docs/architecture.md: its picture is current, and what it names is there."""

import ast
import importlib.util
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "wengert"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_picture_is_current():
    path = ROOT / "docs" / "generate" / "architecture.py"
    spec = importlib.util.spec_from_file_location("architecture_picture", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PICTURE.read_text(encoding="utf-8") == tool.picture(), f"run python {path}"


def test_functions_that_the_page_names_are_there():
    named = re.findall(r"`([\w/]+\.py): (\w+)`", PAGE)
    assert len(named) > 30
    for path, name in named:
        tree = ast.parse((PACKAGE / path).read_text(encoding="utf-8"))
        kinds = ast.FunctionDef, ast.ClassDef
        assert name in {n.name for n in ast.walk(tree) if isinstance(n, kinds)}, f"{path}: {name}"


def test_every_layer_of_the_engine_has_a_row():
    rows = re.findall(r"^\| `_engine/(\w+)` \|", PAGE, re.M)
    folders = {p.parent.name for p in (PACKAGE / "_engine").glob("*/__init__.py")}
    assert set(rows) == folders


def test_paths_that_the_page_names_are_there():
    text = re.sub(r"^\| `_engine/.*", "", PAGE, flags=re.M)  # the table: below
    for path in re.findall(r"`([\w/]+/[\w.]*)`", text):
        places = (ROOT / path, PACKAGE / path, PACKAGE.parent / path)
        assert any(p.exists() for p in places), path
    for folder, files in re.findall(r"^\| `(_engine/\w+)` \|[^|]*\|([^|]*)\|", PAGE, re.M):
        for file in re.findall(r"`([\w/]+\.py)`", files):
            assert (PACKAGE / folder / file).exists(), f"{folder}/{file}"


def test_the_table_of_the_page_has_every_layer():
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (table,) = re.findall(r"```text\nwengert\n(.*?)```", PAGE, re.S)
    named = set(re.findall(r"^ +(\w+)(?:  (\w+))?  ", table, re.M))
    named = {name for pair in named for name in pair if name} | {"_engine"}
    wanted = {"_engine"}
    for contract in configuration["tool"]["importlinter"]["contracts"]:
        if contract.get("containers") in (["wengert"], ["wengert._engine"]):
            for line in contract["layers"]:
                wanted |= set(line.replace("|", " ").split())
    assert named == wanted - {"__main__"}


def test_the_readme_has_two_screens():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 100
