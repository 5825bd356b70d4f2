"""Diagnosis: why a derivative is None, zero, not a number, huge, tiny or slow; what a graph does.

findings.py      Finding and Findings: what was found, as text and for programs
ancestry.py      the lines that a value depends on, derivatives or not
backward.py      the sweep from y to x, kept line by line
connection.py    no way from y back to x: where it was lost
zeros.py         a gradient of exact zeros: where the cotangent died, and of what
elements.py      one element of zero: where it stopped to count
values.py        where a NaN or an infinity appeared first, forward
slopes.py        the same backward: the slope that was singular or too large
remedies.py      what to write instead
growth.py        a gradient that is very large or very small: where it grew or shrank
slowness.py      loops of small operations, repetitions, copies
unrolled.py      the loops of a graph, step by step
examine.py       all of these questions, asked of one y and some x
notes.py         what is worth knowing about the lines of a graph
explanation.py   Explanation: a function, line by line of its program
words.py         how lines are called in a sentence
reasons.py       why: all of these questions
explaining.py    explain: what a function does, line by line of its program
debug.py         wengert.debug: print, keep, log and check values on their way
"""

from typing import TYPE_CHECKING

from wengert._engine.core.late import late_names

if TYPE_CHECKING:
    from .explaining import explain
    from .reasons import why

__all__ = ["explain", "why"]

__getattr__ = late_names(__name__, {"explain": ".explaining", "why": ".reasons"})
