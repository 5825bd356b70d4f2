"""Graph rewriting: passes that simplify a graph without changing the function it computes.

assume               what users know of them
driver               one walk in which every line takes its simplest form
inline_custom_calls  functions with rules of their own, written out once nobody differentiates
pass_history         what was done, step by step
pass_manager         simplify; the pass manager, which watches and verifies
pattern              functions read as patterns, and compared with lines
rule                 rules as data: Rule (two functions of NumPy), rule (a function of a line)
rule_index           which rules can apply to a line
value_properties     what is known of values: finite, positive, symmetric,
verify_pass          whether what a pass returned is a graph of the same function
loops/               Passes over loops and branches
rules/               Rewrite rules, by subject

How to write a rule and a pass: docs/rewriting.md.
"""

from wengert._engine.core.lazy_import import public_dir

from .assume import assume
from .inline_custom_calls import without_calls
from .pass_history import History, Step
from .pass_manager import DEFAULT, Pass, Passes, passes, register_pass, simplify
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
