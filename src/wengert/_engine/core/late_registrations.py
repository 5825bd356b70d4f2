"""Derivatives that higher layers add to those that are exported (jit/exporting.py).

LATE    full names of modules that register derivatives, set by wengert/__init__.py; they are
        imported when a derivative of an unknown name is asked for

Patterns of the matrices of linear functions, which a higher layer finds (`wengert.sparse`).

PATTERNS   the full name of the module with `pattern_of`, set by wengert/__init__.py
patterns   that module, imported at first use
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

LATE: list[str] = []

PATTERNS: list[str] = []


@functools.cache
def patterns() -> Any:
    """The module."""
    return import_module(PATTERNS[0])
