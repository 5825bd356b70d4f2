"""Loops and branches whose bodies are graphs.

loops.py               scan, map
fori_while.py          fori_loop, while_loop
associative_scan.py    associative_scan
cond_switch.py         cond, switch
eager_loops.py         arguments of loops, checked; iterations that run in Python
closure_conversion.py  a function as a subgraph, with what it captures as operands
operations.py          the operations scan, while, cond, switch; verify.py what their nodes must be
checkpoint_budget.py   how much memory the backward pass may take (`memory=`)
checkpointed_loop.py   a loop that keeps some of its states; checkpoint_schedule.py which ones
recompute.py           the backward pass from these states
vjp.py                 the backward pass of a loop
residuals.py           what the forward loop keeps for it; min_cut.py the cheapest choice
sparse_cotangents.py   cotangents that are zero but for few elements
dependence.py          which carried values depend on which operands
jvp.py                 forward mode: the loop with tangents beside the carry
batching.py            loops over batches
custom_functions.py    custom_jvp, custom_vjp; custom_calls.py one call of such a function
primitive_calls.py     one call of a primitive
custom.py              the node of such a call; call_rule.py its rule, and that of a batch
custom_rules.py        rules as graphs
checkpointed_call.py   checkpointed functions: their rule computes them again
law_examples.py        examples for the laws
"""

from wengert._engine.core.lazy_import import public_dir

from . import law_examples as law_examples
from .associative_scan import associative_scan
from .cond_switch import cond, switch
from .custom_functions import custom_jvp, custom_vjp
from .fori_while import fori_loop, while_loop
from .loops import map, scan

__all__ = [
    "associative_scan",
    "cond",
    "custom_jvp",
    "custom_vjp",
    "fori_loop",
    "map",
    "scan",
    "switch",
    "while_loop",
]

__dir__ = public_dir(__name__)
