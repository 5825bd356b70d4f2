"""Operands that are not arrays: strings, None, objects.

Eager nodes accept any operand.  In a graph an operand has a shape and a dtype, so others are stored
as parameters of the node, and restored when the function or its rule is called.

    separated    numeric operands; parameters that include the other operands
    joined       all operands, and the parameters of the user's function
    of_numbers   the cotangents of numeric operands, from those of all operands
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle

NAME = "static_operands"
_NUMBERS = (Handle, np.ndarray, np.generic, bool, int, float, complex, list, tuple)


def separated(args: Sequence[Any], params: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Numeric operands, and parameters that include the others with their positions."""
    static = tuple([(k, x) for k, x in enumerate(args) if not isinstance(x, _NUMBERS)])
    if not static:
        return list(args), params
    return [x for x in args if isinstance(x, _NUMBERS)], {**params, NAME: static}


def joined(
    args: Sequence[Any], params: dict[str, Any], keep: bool = True
) -> tuple[list[Any], dict[str, Any]]:
    """All operands, and the parameters without them; static operands are None unless `keep`."""
    full = list(args)
    for k, x in params.get(NAME, ()):
        full.insert(k, x if keep else None)
    return full, {k: x for k, x in params.items() if k != NAME}


def of_numbers(found: Any, params: dict[str, Any]) -> Any:
    """The cotangents of numeric operands, from a sequence with one for each operand."""
    static = {k for k, _ in params.get(NAME, ())}
    if not static or not isinstance(found, list | tuple):
        return found
    return tuple([bar for k, bar in enumerate(found) if k not in static])
