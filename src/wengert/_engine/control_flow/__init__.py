"""Loops and branches whose bodies are graphs.

loops.py               scan, map
fori_while.py          fori_loop, while_loop
associative_scan.py    associative_scan
cond_switch.py         cond, switch
vectorized_loops.py    loops with independent steps, as operations on whole arrays: loop_plan.py
                       whether they are independent; loop_accesses.py what steps read and write;
                       sums_of_steps.py sums over all steps
loop_bodies.py         products for all steps of a loop, before it; the nodes of a step that become
                       a body with computed lengths
operations.py          the operations scan, while, cond, switch, and `sized`, a body with computed
                       lengths; verify.py checks their nodes
quadrature.py          an integral by QUADPACK
eager_loops.py         checks of loop arguments; iterations that run in Python
closure_conversion.py  a function as a subgraph, with captured values as operands
checkpointed_loop.py   a loop that stores some of its states; the backward pass from these states;
                       checkpoint_schedule.py which ones
vjp.py                 the backward pass of a loop
branch_vjp.py          the pullback of a branch; messages of branches, in their derivatives;
residuals.py           the residuals of the forward loop: the cheapest set of them; of inner loops
                       whose number of steps varies, in buffers
restoration.py         carried values that the backward loop restores instead of loading them
loop_accesses.py       which values are an array with some elements written
sparse_cotangents.py   cotangents with few nonzero elements
dependence.py          which carried values depend on which operands; bodies without the inputs
                       that they do not use
jvp.py                 forward mode: the loop with tangents in the carry; with the coefficients of
                       Taylor series
batching.py            loops over batches, without elements that need no result
custom_functions.py    custom_jvp, custom_vjp; custom_calls.py one call of such a function
custom_rules.py        rules as graphs; one call of a primitive
custom.py              the node of such a call; call_rule.py its rule, and the rule of a batch;
                       checkpointed functions, which their rule recomputes
message_carry.py       loops and branches that exchange messages with other processes
"""

from wengert._engine.core.lazy_import import public_dir

from . import checkpointed_loop as checkpointed_loop
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
