"""Write a function of a module, and derivatives of it, as a file for other languages.

run       the command
parsed    a spec from its text: float64[n,3]
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

import wengert as wg
from wengert.errors import ArgumentError

_SPEC = re.compile(r"(?P<dtype>[a-z]\w*)?\[(?P<shape>[^\]]*)\]")


def run(options: Any) -> None:
    """Export a function."""
    function = _function(options.function)
    specs = tuple(parsed(text) for text in options.specs)
    found = wg.compiling.export(
        function,
        options.out,
        specs,
        derivatives=options.derivatives.split(","),
        format=options.format,
        target=options.target,
        name=options.name,
        argnums=_numbers(options.argnums),
        linker=options.linker,
        workspace=options.workspace,
        blas=options.blas,
        casadi=options.casadi,
    )
    print(found)


def parsed(text: str) -> Any:
    """A spec from its text.

    Examples
    --------
    >>> parsed("float32[n,3]").shape
    (Dim('n'), 3)
    >>> parsed("[]").dtype
    dtype('float64')
    """
    match = _SPEC.fullmatch(text.replace(" ", ""))
    if match is None:
        raise ArgumentError(
            f"{text!r} is not a spec. Write a dtype and the lengths of the axes: 'float64[n,3]', "
            "'float32[10]', 'float64[]' for a number."
        )
    lengths = [n for n in match["shape"].split(",") if n]
    shape = tuple(int(n) if n.isdigit() else wg.dim(n) for n in lengths)
    try:
        dtype = np.dtype(match["dtype"] or "float64")
    except TypeError as error:
        raise ArgumentError(f"{match['dtype']!r} is not a dtype of NumPy.") from error
    return wg.spec(shape, dtype)


def _numbers(text: str) -> Any:
    numbers = [int(n) for n in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


def _function(place: str) -> Any:
    """The function of a module: ``package.module:function``, or ``model.py:function``."""
    module_name, colon, name = place.rpartition(":")
    if not colon or not name:
        raise ArgumentError(
            f"{place!r} does not say which function. Write MODULE:FUNCTION, or model.py:FUNCTION."
        )
    sys.path.insert(0, "")
    if module_name.endswith(".py"):
        path = Path(module_name).resolve()
        if not path.is_file():
            raise ArgumentError(f"there is no file {module_name!r}.")
        sys.path.insert(0, str(path.parent))
        module_name = path.stem
    found: Any = importlib.import_module(module_name)
    for part in name.split("."):
        if not hasattr(found, part):
            raise ArgumentError(f"{module_name!r} has no function {name!r}.")
        found = getattr(found, part)
    return found
