"""Arguments that differ in each call, in a digit that no comparison sees.

wengert keeps factors of matrices, and finds them again by their values: with equal arguments it
would factorize in the first call alone.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

from native.case import Call

STEP = 1e-12  # relative change from call to call


def each_call(call: Call) -> Call:
    """The call, whose first argument is scaled by a factor that is new in each."""
    numbers, (first, *rest) = count(), call.arguments

    def run(*_: Any) -> Any:
        return call.function(first * (1.0 + STEP * next(numbers)), *rest)

    return replace(call, function=run, arguments=())
