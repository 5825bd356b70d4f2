"""Derivatives that higher layers add to those that are exported (jit/exporting.py).

LATE    full names of modules that register derivatives, set by wengert/__init__.py; they are
        imported when a derivative of an unknown name is asked for
"""

from __future__ import annotations

LATE: list[str] = []
