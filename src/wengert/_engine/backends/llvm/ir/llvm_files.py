"""LLVM text in files: functions that depend on the machine, but not on the program.

    read         the text of the file `NAME.ll` beside a module, with values for its $names
    functions    its functions by name, for `ModuleBuilder.parts`

A file has its module's name.  tests/backends/llvm/test_llvm_files.py has LLVM verify each of them.
"""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from typing import Any


def read(module_file: str, **values: Any) -> str:
    """The text of the file beside a module.

    Parameters
    ----------
    module_file : str
        The module's ``__file__``.
    **values
        What stands for ``$name`` in the file.
    """
    text = Path(module_file).with_suffix(".ll").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def functions(module_file: str, **values: Any) -> dict[str, str]:
    """The functions of such a file by name, without the comments before them."""
    found = re.findall(r"^define .*?^}", read(module_file, **values), re.MULTILINE | re.DOTALL)
    return {text.split("@", 1)[1].split("(", 1)[0]: text for text in found}
