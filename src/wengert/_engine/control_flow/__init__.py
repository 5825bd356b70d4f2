"""Control: loops and choices whose bodies are lists.

loops.py        as users write them: scan, map
repeating.py    fori_loop, while_loop
prefixes.py     associative_scan
choices.py      cond, switch
stepping.py     what loops are given, checked; steps as Python runs them
closing.py      a function as a body, and what it takes from outside
operations.py   the operations: scan, while, cond, switch; valid.py what their lines must be
room.py         how much memory the way back may take, as users say it
checkpointing.py  a loop that leaves some of its states for the way back
replaying.py    the way back from these; schedule.py which to keep
reverse.py      their pullbacks: a loop backwards (residuals.py: what the forward loop keeps
                for it, by the cheapest of cuts.py;
                inplace.py: cotangents that touch few elements)
dependence.py   what moves in a loop when some of its operands do
forward.py      their tangents: the same loop with tangents beside the carry
many.py         many rows at once
custom_functions.py  custom_jvp, custom_vjp: functions with rules; custom_calls.py a call of one;
                primitive_calls.py of a primitive
recomputing.py  checkpointed calls: their rule computes them again
custom.py       the line of such a call; custom_rules.py rules for many rows, and as lists
examples.py     lines that the laws check
"""

from wengert._engine.core.late import public_dir

from . import examples as examples
from .choices import cond, switch
from .custom_functions import custom_jvp, custom_vjp
from .loops import map, scan
from .prefixes import associative_scan
from .repeating import fori_loop, while_loop

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
