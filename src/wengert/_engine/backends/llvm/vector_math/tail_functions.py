"""Random numbers as functions of a tail probability: the bodies of ops/random/tail_functions.py.

Each body is a vector function, so its instructions and its table are in a module once.  They are
those of the body, in its order: no multiplication is contracted with an addition, so the bits are
those of NumPy.
"""

from __future__ import annotations

from wengert._engine.ops.random import tail_functions

from .registry import leaf

for _name in tail_functions.__all__:
    leaf(_name)(getattr(tail_functions, _name).body)
