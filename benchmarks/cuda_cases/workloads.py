"""All workloads of benchmarks/cuda.py, in the order of the table.

WORKLOADS    by name
"""

from __future__ import annotations

from typing import Any

from . import convolutions, elementwise, loops, matrices, networks, rows

_MODULES: tuple[Any, ...] = (elementwise, rows, loops, matrices, networks, convolutions)
WORKLOADS = {w.name: w for module in _MODULES for w in module.WORKLOADS}
