"""Formatting of bytes, seconds and counts, with one to three digits before the point.

duration   seconds: ``1.86 ms``
memory     bytes: ``2.4 MB``, in units of 10**6
count      anything else: ``3.2 million``
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

_MEMORY = ("bytes", "kB", "MB", "GB", "TB")
_COUNTS = ("", "thousand", "million", "billion")


def duration(seconds: float) -> str:
    """A time.

    Examples
    --------
    >>> duration(0.00186), duration(2.5e-7)
    ('1.86 ms', '250 ns')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def memory(n: float) -> str:
    """A number of bytes.

    Examples
    --------
    >>> memory(2_400_000), memory(64)
    ('2.4 MB', '64 bytes')
    """
    return count(n, _MEMORY)


def count(n: float, units: Sequence[str] = _COUNTS) -> str:
    """A number in the unit in which it has one to three digits before the point.

    Examples
    --------
    >>> count(3.2e6), count(12)
    ('3.2 million', '12')
    """
    k = 0 if n < 1000 else min(int(log10(n) / 3 + 1e-9), len(units) - 1)
    number = f"{n:.0f}" if k == 0 else f"{n / 1000**k:.3g}"
    return f"{number} {units[k]}".strip()
