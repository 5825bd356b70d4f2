"""Graph rewriting: passes that simplify a graph without changing the function it computes.

pass_manager         simplify; the order of passes, and their verification
driver               applies rules to each node until a fixed point; large constants that are equal
                     become one node
rule                 rules as data: Rule (two NumPy functions), rule (a function of a node); the
                     interface between rules and the driver that applies them
pattern              NumPy functions as patterns, and matching
rule_index           which rules can apply to a node
value_properties     properties of values: finite, positive, symmetric ...; assume: properties
                     stated by the user
whole_graph          removal of unused nodes, and of writes that are overwritten unread; numbers
                     from messages, after the sums that they multiply; functions with custom
                     derivatives, inlined before execution
pass_history         the history of a simplification; verification of the result of a pass
loops/               passes over loops and branches
rules/               rewrite rules, by subject

How to write a rule and a pass: docs/rewriting.md.
"""

from wengert._engine.core.graph_copies import rebuilt
from wengert._engine.core.graph_fingerprint import equals
from wengert._engine.core.lazy_import import public_dir

from .pass_history import PassHistory, PassRun
from .pass_manager import DEFAULT, Pass, Passes, passes, register_pass, simplify
from .rule import Match, NodeRule, Rule, rule
from .value_properties import assume
from .whole_graph import without_calls

__all__ = [
    "DEFAULT",
    "NodeRule",
    "Match",
    "Pass",
    "PassHistory",
    "PassRun",
    "Passes",
    "Rule",
    "assume",
    "equals",
    "passes",
    "rebuilt",
    "register_pass",
    "rule",
    "simplify",
    "without_calls",
]

__dir__ = public_dir(__name__)
