"""Patterns of the matrices of linear functions, which a higher layer finds (`wengert.sparse`).

PATTERNS   the full name of the module with `pattern_of`, set by wengert/__init__.py
patterns   that module, imported at first use
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

PATTERNS: list[str] = []


@functools.cache
def patterns() -> Any:
    """The module."""
    return import_module(PATTERNS[0])
