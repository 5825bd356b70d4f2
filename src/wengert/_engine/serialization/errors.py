"""Errors of the decoders: how a file is invalid.

Decoders raise `Damage`, which describes the fault without the file's name; `load` converts it to a
`FileError` with the name of the file and the user's line.

need             raises `Damage` unless a condition holds
index            checks an index
parsed, written  JSON, read strictly: without repeated keys, fractions and NaN
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NoReturn


class Damage(Exception):
    """A file is damaged or invalid."""


def need(condition: int, message: str) -> None:
    """Raise `Damage` unless the condition holds."""
    if not condition:
        raise Damage(message)


def index(x: Any, count: int, what: str) -> int:
    """An integer from 0 to count - 1."""
    if type(x) is not int or not 0 <= x < count:
        raise Damage(f"{what} is {brief(x)}, which is not an integer from 0 to {count - 1}")
    return x


def brief(x: Any) -> str:
    """The repr of `x`, shortened for a message."""
    try:
        text = repr(x)
    except ValueError:  # an integer with more digits than Python converts to text
        text = "a huge number"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        counts = Counter(k for k, _ in pairs)
        repeated = next(k for k, n in counts.items() if n > 1)
        raise Damage(f"the key {brief(repeated)} is repeated")
    return result


def _no_fraction(text: str) -> NoReturn:
    raise Damage(f"{brief(text)} is not an integer")


def parsed(text: str, what: str) -> Any:
    """The value of a JSON text."""
    try:
        return json.loads(
            text,
            object_pairs_hook=_without_repeated_keys,
            parse_float=_no_fraction,
            parse_constant=_no_fraction,
        )
    except ValueError as error:
        raise Damage(f"{what} is not JSON ({error})") from error


def written(x: Any) -> str:
    """Canonical JSON: compact, ASCII, the same bytes for equal objects."""
    return json.dumps(x, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
