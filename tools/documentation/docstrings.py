"""Numpydoc docstrings as reStructuredText.

    rendered    the text of a docstring below its signature
    summary     the first paragraph in one line, for tables
    signature   the arguments, without annotations: types are in the docstring

Names in single backticks become links if they are public, and literals otherwise. Stars, bars and
final underscores of prose are escaped, since in docstrings they are operators.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from numpydoc.docscrape_sphinx import SphinxDocString

Link = Callable[[str], str | None]
SECTION = re.compile(r"^(\S[\w ]*)\n-{3,}\s*$", re.MULTILINE)
CONFIG = {"show_class_members": False, "use_plots": False, "attributes_as_param_list": True}
EMPHASIS = re.compile(r"(?<![\w*])(\*{1,2}[^\s*](?:[^*\n]*[^\s*])?\*{1,2})(?![\w*])")
MARKUP = re.compile(r"(``(?:[^`]|`(?!`))+``|(?<![`:\w])`[^`\n]+`(?![`_])|:[\w:]+:`[^`]+`|\\.)")
REFERENCE = re.compile(r":ref:`([^<`]*?)(?:\s*<[^>]*>)?`")
ROLE = re.compile(r":[\w:]+:`")


def rendered(docstring: str, link: Link) -> str:
    """A docstring as reStructuredText."""
    text = REFERENCE.sub(r"\1", inspect.cleandoc(docstring))  # labels of NumPy's pages
    text = _numbered(_marked(text, link))
    if SECTION.search(text):
        text = str(SphinxDocString(text, config=CONFIG))
    return text.strip()


def summary(docstring: str | None, link: Link) -> str:
    """The first paragraph of a docstring, as one line."""
    paragraph = inspect.cleandoc(docstring or "").split("\n\n")[0]
    if SECTION.search(paragraph):
        return ""
    line = ROLE.sub("`", " ".join(paragraph.split()))
    return _marked(line.removesuffix("::"), link)


def signature(thing: Any) -> str:
    """The signature of a callable; "(...)" if Python does not know it."""
    try:
        found = inspect.signature(thing)
    except (ValueError, TypeError):
        return "(...)" if callable(thing) else ""
    plain = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    text = str(found.replace(parameters=plain, return_annotation=found.empty))
    return re.sub(r"<([\w.]+)[^<>]*>", "...", text)


def _marked(text: str, link: Link) -> str:
    """Prose with links and escaped marks; literal blocks and examples remain as they are."""
    lines: list[str] = []
    prose: list[str] = []
    literal = -1  # the indentation of the line that announces a literal block
    names = False  # in the section of names and what they are, which numpydoc reads
    for line in text.split("\n"):
        names = line == "See Also" or (names and (not line or line[0] in "- " or ":" in line))
        indent = len(line) - len(line.lstrip())
        if literal >= 0 and line.strip() and indent <= literal:
            literal = -1
        example = line.lstrip().startswith((">>>", "..."))
        if literal < 0 and not example and (not names or line.startswith(" ")):
            prose.append(line)
            literal = indent if line.rstrip().endswith("::") else -1
        else:
            lines += [*_prose(prose, link), line]
            prose = []
    return "\n".join([*lines, *_prose(prose, link)])


def _prose(lines: list[str], link: Link) -> list[str]:
    return _line("\n".join(lines), link).split("\n") if lines else []


def _line(line: str, link: Link) -> str:
    parts = MARKUP.split(line)
    for i, part in enumerate(parts):
        if i % 2 == 0:
            parts[i] = _escaped(part)
        elif part[0] == "`" and part[1] != "`":
            target = link(part[1:-1])
            parts[i] = f":py:obj:`{part[1:-1]} <{target}>`" if target else f"`{part}`"
    return "".join(parts)


def _escaped(text: str) -> str:
    """A text in which stars, bars and final underscores stand for themselves."""
    parts = EMPHASIS.split(text)
    text = "".join(p if i % 2 else p.replace("*", r"\*") for i, p in enumerate(parts))
    text = text.replace("|", r"\|").replace("`", r"\`")
    return re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", text)


def _numbered(text: str) -> str:
    """References as a numbered list: labels would have to be unique on a page."""
    text = re.sub(r"\[(\d+)\]\\?_", r"[\1]", text)
    return re.sub(r"^( *)\.\. \[(\d+)\] ", r"\1\2. ", text, flags=re.MULTILINE)
