"""All workloads of benchmarks/cuda.py, in the order of the table.

WORKLOADS    by name
"""

from __future__ import annotations

from . import elementwise, loops, matrices, networks, rows

WORKLOADS = {
    w.name: w for module in (elementwise, rows, loops, matrices, networks) for w in module.WORKLOADS
}
