"""Graph rewriting: passes that simplify a graph without changing the function it computes.

pass_manager         simplify; the order of passes, and their verification
driver               applies rules to each node until a fixed point
rewrite_context      the interface between rules and the driver that applies them
rule                 rules as data: Rule (two NumPy functions), rule (a function of a node)
pattern              NumPy functions as patterns, and matching
rule_index           which rules can apply to a node
value_properties     properties of values: finite, positive, symmetric ...
assume               assume: properties stated by the user
inline_custom_calls  functions with custom derivatives, inlined before execution
pass_history         the history of a simplification; verification of the result of a pass
equal_constants      large constants that are equal become one node
message_factors      numbers from messages, after the sums that they multiply
prune                removal of unused nodes, and of writes that are overwritten unread
loops/               passes over loops and branches
rules/               rewrite rules, by subject

How to write a rule and a pass: docs/rewriting.md.
"""

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.graph_fingerprint import equals
from wengert._engine.core.lazy_import import public_dir

from .assume import assume
from .inline_custom_calls import without_calls
from .pass_history import PassHistory, PassRun
from .pass_manager import DEFAULT, Pass, Passes, passes, register_pass, simplify
from .rule import Match, NodeRule, Rule, rule

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
