"""A page of reference for each public module: every public name with signature and docstring.

    write       writes the pages to a folder
    page        the text of one page
    entry       the text of one name

A name that is another public name of the same object refers to it. What NumPy, SciPy and
Python define is described in a line that links to their documentation.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import docstrings, public_names

THEIRS = "numpy", "scipy", "builtins"
Places = dict[int, str]


def write(folder: Path) -> None:
    """Write all pages, and their index."""
    folder.mkdir(parents=True, exist_ok=True)
    places = first_places()
    lines = ["API reference", "=============", "", INTRODUCTION, ""]
    for group, listed in public_names.GROUPS.items():
        lines += [group, "-" * len(group), "", ".. toctree::", "   :hidden:", ""]
        lines += [f"   {name}" for name in listed.split()] + [""]
        lines += [".. list-table::", "   :widths: 30 70", "   :class: names", ""]
        for name in listed.split():
            lines += [f"   * - :doc:`{name}`", f"     - {opening(name)}"]
        lines.append("")
    (folder / "index.rst").write_text("\n".join(lines), encoding="utf-8")
    for name in public_names.MODULES:
        (folder / f"{name}.rst").write_text(page(name, places), encoding="utf-8")


INTRODUCTION = (
    "All public names, by module. ``import wengert as wg``, then ``wg.grad``, ``wg.nn.Linear``; "
    "modules are imported at first use. What works for each function of NumPy and SciPy is in "
    ":doc:`the table of coverage <../coverage>`."
)


def first_places() -> Places:
    """For each object, by identity, the public name under which it is described."""
    found: Places = {}
    for module in public_names.MODULES:
        for name in public_names.names(module):
            thing = public_names.get(module, name)
            if not isinstance(thing, str | bool | float | int | tuple | types.NoneType):
                found.setdefault(id(thing), f"{module}.{name}")
    return found


def opening(module: str) -> str:
    """What a module is, in the first sentence of its docstring."""
    first = inspect.cleandoc(public_names.module(module).__doc__ or "").split("\n\n")[0]
    return docstrings.summary(first, lambda name: None)


def page(module: str, places: Places) -> str:
    """The text of the page of a module."""
    lines = [module, "=" * len(module), "", opening(module), "", f".. py:module:: {module}", ""]
    if module == "wengert":
        sections = public_names.subjects()
    else:
        sections = {"": public_names.names(module)}
    for title, names in sections.items():
        if title:
            title = title[0].upper() + title[1:]
            lines += [title, "-" * len(title), ""]
        lines += table(module, names)
    lines += ["Details", "-------", ""]
    for names in sections.values():
        for name in names:
            lines += [*entry(module, name, places), ""]
    return "\n".join(lines) + "\n"


def table(module: str, names: list[str]) -> Iterator[str]:
    """A table of names and what they are, in a sentence each."""
    yield from (".. list-table::", "   :widths: 30 70", "   :class: names", "")
    for name in names:
        thing = public_names.get(module, name)
        said = docstrings.summary(documentation(thing), linker(module))
        role = "py:mod" if isinstance(thing, types.ModuleType) else "py:obj"
        if isinstance(thing, types.ModuleType) and f"{module}.{name}" not in public_names.MODULES:
            role = "py:data"
        yield f"   * - :{role}:`{name} <{module}.{name}>`"
        yield f"     - {said}"
    yield ""


def linker(module: str) -> docstrings.Link:
    """What finds the public name that a word in a docstring of this module means."""
    names = set(public_names.names(module))

    def link(word: str) -> str | None:
        word = word.removesuffix("()")
        if not re.fullmatch(r"[A-Za-z_][\w.]*", word):
            return None
        if word in names:
            return f"{module}.{word}"
        full = word if word.startswith("wengert.") else f"wengert.{word}"
        owner, _, name = full.rpartition(".")
        known = owner in public_names.MODULES and name in public_names.names(owner)
        return full if known else None

    return link


def entry(module: str, name: str, places: Places) -> Iterator[str]:
    """The description of one name."""
    thing, full = public_names.get(module, name), f"{module}.{name}"
    if isinstance(thing, types.ModuleType):
        yield from module_entry(full, thing)
        return
    first = places.get(id(thing), full)
    is_class = inspect.isclass(thing)
    kind = "py:class" if is_class else "py:function" if callable(thing) else "py:data"
    arguments = docstrings.signature(thing) if callable(thing) else ""
    yield f".. {kind}:: {name}{arguments}"
    yield ""
    if owner := library_of(thing):
        said = docstrings.summary(documentation(thing), lambda word: None)
        theirs = getattr(thing, "__name__", name)
        if owner == "builtins":
            yield from indented(f"Python's :py:obj:`{theirs}`.")
        else:
            yield from indented(f"{said}\n\n:py:obj:`{owner}.{theirs}` itself.".strip())
    elif first != full:
        yield from indented(f"The same as :py:obj:`{first}`.")
    else:
        text = docstrings.rendered(documentation(thing), linker(module))
        yield from indented(text or f"The value ``{thing!r}``.")
        if is_class:
            for part in members(thing, module):
                yield from indented(part)


def module_entry(full: str, thing: types.ModuleType) -> Iterator[str]:
    """The description of a submodule: its page, or its first sentence."""
    if full in public_names.MODULES:
        yield f":py:mod:`{full}` has its own page: :doc:`{full}`."
        return
    yield f".. py:data:: {full.rpartition('.')[2]}"
    yield "   :type: module"
    yield ""
    yield from indented(docstrings.summary(thing.__doc__, lambda word: None) or "A module.")


def documentation(thing: Any) -> str:
    """The docstring of an object, and nothing for values without one of their own."""
    if isinstance(thing, str | bool | float | int | tuple | dict | list | types.NoneType):
        return ""
    if isinstance(thing, types.SimpleNamespace):
        return "A namespace with the functions of NumPy's module of this name."
    return thing.__doc__ or ""


def library_of(thing: Any) -> str | None:
    """The module of NumPy, SciPy or Python that defines a function or class, or None."""
    if not callable(thing):
        return None
    name = getattr(thing, "__module__", None) or type(thing).__module__
    if type(thing).__name__ == "ufunc":
        name = "numpy" if hasattr(__import__("numpy"), thing.__name__) else "scipy.special"
    if not isinstance(name, str) or name.split(".")[0] not in THEIRS:
        return None
    return ".".join(part for part in name.split(".") if not part.startswith("_"))


@functools.cache
def classes() -> frozenset[int]:
    """The public classes, by identity."""
    things = (public_names.get(m, n) for m in public_names.MODULES for n in public_names.names(m))
    return frozenset(id(thing) for thing in things if inspect.isclass(thing))


def members(cls: type, module: str) -> Iterator[str]:
    """The methods and properties of a class and of those bases that are not public themselves."""
    public, link, seen = classes(), linker(module), set()
    for base in cls.__mro__:
        if not base.__module__.startswith("wengert") or (base is not cls and id(base) in public):
            continue
        for name, member in sorted(vars(base).items()):
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            inner = getattr(member, "__func__", member)
            if isinstance(member, property) and member.__doc__:
                text = docstrings.rendered(member.__doc__, link)
                yield "\n".join((f".. py:property:: {name}", "", *indented(text), ""))
            elif inspect.isroutine(inner) and inner.__doc__:
                text = docstrings.rendered(inner.__doc__, link)
                arguments = without_self(docstrings.signature(inner))
                yield "\n".join((f".. py:method:: {name}{arguments}", "", *indented(text), ""))


def without_self(arguments: str) -> str:
    """The signature of a method as it is called."""
    return re.sub(r"^\((?:self|cls|this)(?:, /)?(?:, )?", "(", arguments)


def indented(text: str) -> Iterator[str]:
    """The lines of a text, three columns to the right, and an empty line."""
    for line in text.splitlines():
        yield f"   {line}" if line.strip() else ""
    yield ""
