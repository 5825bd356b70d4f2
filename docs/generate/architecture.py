"""Write docs/architecture.svg: the layers, from pyproject.toml and the docstrings of the packages.

The layers are those that import-linter checks (`[[tool.importlinter.contracts]]` of type "layers");
the description of a layer is the first sentence of its docstring.
tests/repo_rules/test_architecture.py fails if the picture is out of date.

    python docs/generate/architecture.py
"""

import ast
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
PICTURE = ROOT / "docs" / "architecture.svg"
ROW, GAP, MARGIN, WIDTH, TITLE = 46, 6, 12, 940, 26
COLORS = ("#e8f0fb", "#eaf6ec", "#fdf1e3")


def contracts():
    """Yield each container with its layers from top to bottom, as lists of independent modules."""
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in configuration["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers":
            for container in contract["containers"]:
                yield container, [line.replace("|", " ").split() for line in contract["layers"]]


def summary(module):
    """The first sentence of the docstring of a module, without its final stop."""
    path = SOURCE.joinpath(*module.split("."))
    file = path / "__init__.py" if (path / "__init__.py").exists() else path.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].removesuffix(".")


def wrapped(text, width):
    """Wrap a text to at most two lines of `width` characters."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if len(longer) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    if len(lines) > 2:
        lines = [lines[0], lines[1].rstrip(",;:") + " ..."]
    return lines


def box(x, y, width, name, text, color):
    """Yield the SVG elements of one layer: its name and description."""
    yield (
        f'<rect x="{x:g}" y="{y}" width="{width:g}" height="{ROW}" rx="4" fill="{color}" '
        'stroke="#8896a8"/>'
    )
    yield f'<text x="{x + 8:g}" y="{y + 15}" class="name">{escape(name)}</text>'
    for k, line in enumerate(wrapped(text, int((width - 16) / 5.7))):
        yield f'<text x="{x + 8:g}" y="{y + 27 + 12 * k}">{escape(line)}</text>'


def picture():
    """The SVG text."""
    parts, y = [], MARGIN
    for color, (container, layers) in zip(COLORS, contracts(), strict=True):
        parts.append(f'<text x="{MARGIN}" y="{y + 14}" class="title">{escape(container)}</text>')
        y += TITLE
        for names in layers:
            width = (WIDTH - 2 * MARGIN - GAP * (len(names) - 1)) / len(names)
            for k, name in enumerate(names):
                text = summary(f"{container}.{name}")
                parts += box(MARGIN + k * (width + GAP), y, width, name, text, color)
            y += ROW + GAP
        y += GAP
    style = "text{font:10.5px sans-serif;fill:#333}.name{font-weight:bold}.title{font-size:14px}"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" '
        f'height="{y}">'
    )
    lines = [head, f"<style>{style}</style>", '<rect width="100%" height="100%" fill="#fff"/>']
    return "\n".join([*lines, *parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
