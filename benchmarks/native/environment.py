"""The variables that tell every library how many threads to use.

They are read when a library is imported, so a workload runs in a process started with them.
One thread is asked for in each library's own way; measure.py counts the processor time beside the
elapsed time, so that a library that does not listen is seen.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

SCRATCH = Path(tempfile.gettempdir()) / "wengert-benchmarks"
POOLS = "OMP OPENBLAS MKL NUMBA NUMEXPR".split()
XLA = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def environment(threads: int, fresh: str | None = None, keep: bool = True) -> dict[str, str]:
    """Return the variables for a number of threads.

    With ``fresh``, a folder that was empty, a library finds what it has compiled in runs with this
    folder only; without ``keep`` those that have such an option keep nothing.
    """
    folder = Path(fresh) if fresh else SCRATCH
    variables = dict(os.environ)
    variables |= {f"{pool}_NUM_THREADS": str(threads) for pool in POOLS}
    variables |= {
        "NPROC": str(threads),  # the pool of XLA
        "WENGERT_THREADS": str(threads),
        "JAX_PLATFORMS": "cpu",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "PYTENSOR_FLAGS": f"base_compiledir={folder / 'pytensor'}",
        "WENGERT_CACHE": str(folder / "wengert") if keep else "0",
    }
    if fresh and keep:
        variables |= {
            "JAX_COMPILATION_CACHE_DIR": str(folder / "jax"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
    if threads == 1:
        variables["XLA_FLAGS"] = XLA
    return variables


def threads() -> int:
    """Return the number of threads that this process was started with."""
    return int(os.environ.get("OMP_NUM_THREADS", "1"))
