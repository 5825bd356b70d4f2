"""The entries of the table of tuned thresholds (tuning.py).

Description   an entry
entry         makes one
TUNE, ...     the commands that measure the effect of thresholds
"""

from __future__ import annotations

from typing import Any, NamedTuple

TUNE = "wengert tune"
NATIVE = "python benchmarks/suites.py --only native"
LOOPS = "python benchmarks/suites.py --only loops"
CONVOLUTION = "python benchmarks/suites.py --only convolution"
LINALG = "python benchmarks/suites.py --only linalg"
LEARNING = "python benchmarks/suites.py --only learning"
EAGER = "python benchmarks/suites.py --only eager"
NPBENCH = "python benchmarks/suites.py --only npbench"
GROWTH = "python benchmarks/suites.py --only growth"
_BY_SUITE = "chosen with the benchmark suite; the values tried are not recorded"


class Description(NamedTuple):
    """The entry of a threshold.

    default : the value without a file for this machine.
    unit : of the value.
    decides : the decision that depends on it.
    found : how the default was found.
    command : measures its effect on this machine.
    least, most : the range of accepted values.
    """

    default: int
    unit: str
    decides: str
    found: str
    command: str
    least: int
    most: int


def entry(
    default: int, unit: str, decides: str, command: str, found: str = _BY_SUITE, least: int = 1
) -> Any:
    """An entry of the table; values of more than a thousand times the default are rejected."""
    most = max(default * 1000, 1000)
    return Description(default, unit, decides, found, command, least, most)
