"""Rewrite: graph to graph, the same function with fewer, cheaper and more accurate lines.

    passes.py   simplify; the pass manager, which watches and verifies
    rule.py     rules as data: Rule (two functions of NumPy), rule (a function of a line)
    pattern.py  functions read as patterns, and compared with lines
    index.py    which rules can apply to a line
    walk.py     one walk in which every line takes its simplest form
    check.py    whether what a pass returned is a graph of the same function
    history.py  what was done, step by step

    the rules        fold.py algebra.py stabilise.py exponentials.py shapes.py writes.py
                     derivatives.py matrices.py contractions.py

    overflows.py     rules for recorded lists in which a value has overflowed

    loops.py   what is done with loops and choices as a whole; by loop.py (a line taken
               apart), leaving.py, trimming.py, written_out.py, factored.py, afterwards.py,
               laid_out.py, in_step.py
    bodies.py  their bodies, simplified by the same passes

    calls.py         functions with rules of their own, written out once nobody differentiates

    properties.py  what is known of values: finite, positive, symmetric, ...
    assume.py      what users know of them

How to write a rule and a pass: docs/rewriting.md.
"""

from wengert._engine.core.lazy_import import public_dir

from .assume import assume
from .calls import without_calls
from .history import History, Step
from .passes import DEFAULT, Pass, Passes, passes, register_pass, simplify
from .rule import LineRule, Match, Rule, rule

__all__ = [
    "DEFAULT",
    "History",
    "LineRule",
    "Match",
    "Pass",
    "Passes",
    "Rule",
    "Step",
    "assume",
    "passes",
    "register_pass",
    "rule",
    "simplify",
    "without_calls",
]

__dir__ = public_dir(__name__)
