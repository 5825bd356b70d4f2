"""LLVM IR in files: functions that depend on the machine, but not on the program.

    read         the text of the file `NAME.ll` beside a module, with values for its $names
    functions    its functions by name, for `ModuleBuilder.parts`; the file has nothing else

A file is named like its module.  tests/backends/llvm/test_llvm_files.py verifies them with LLVM.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def read(module_file: str, **values: Any) -> str:
    """The text of the file beside a module.

    Parameters
    ----------
    module_file : str
        The module's ``__file__``.
    **values
        The replacement of each ``$name`` in the file.

    Raises
    ------
    KeyError
        A name has no value.
    """
    text = Path(module_file).with_suffix(".ll").read_text(encoding="utf-8")
    for name in sorted(values, reverse=True):  # "$length_of" before "$length"
        text = text.replace(f"${name}", str(values[name]))
    if "$" in text:
        raise KeyError(text[text.index("$") :].split(None, 1)[0])
    return text


def functions(module_file: str, **values: Any) -> dict[str, str]:
    """The functions of a file that contains nothing else, by name."""
    found = [f"define {text.rstrip()}" for text in read(module_file, **values).split("define ")[1:]]
    return {text.split("@", 1)[1].split("(", 1)[0]: text for text in found}
