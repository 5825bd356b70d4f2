"""Correctness on a card: every operation, and random programs, against eager execution.

    NAMES       what is checked
    checked     the message of what differs, or None

The same laws run with an emulated device in the tests (wengert.testing.laws.native_code).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import wengert as wg
import wengert.nn
import wengert.random
import wengert.scipy.linalg
import wengert.scipy.signal
import wengert.scipy.special
from wengert._engine.backends.cuda.current_device import current
from wengert._engine.core.lazy_import import load_families
from wengert._engine.core.op import REGISTRY
from wengert.errors import ShapeError
from wengert.testing.laws import native_code
from wengert.testing.laws.native_code import native_values

# Vectors are unique up to signs or phases, which are those of cuSOLVER in larger matrices.
SIGNS = frozenset({"eig", "eigh", "svd", "qr", "completing_columns", "linalg.schur_form"})
_PROGRAMS = 30
_SOME = ("exp", "sum", "matmul", "getitem", "scatter", "solve_triangular", "random_uniform")


class StrictCard(native_code.StrictDevice):
    """The device in use, without fallback to the interpreter."""

    def __init__(self) -> None:
        self.device: Any = current()


def names(quick: bool) -> list[str]:
    """Operations, then random programs."""
    load_families()
    seeds = range(100, 101 if quick else 100 + _PROGRAMS)
    programs = [f"program {seed}: {kind}" for seed in seeds for kind in ("values", "gradient")]
    return [*(_SOME if quick else sorted(REGISTRY)), *programs]


def checked(name: str) -> str | None:
    """What differs from eager execution, or None."""
    try:
        if name.startswith("program "):
            _run_program(int(name.split()[1].rstrip(":")), name.split()[2])
        else:
            load_families()
            rng = np.random.default_rng(0)
            native_values(REGISTRY[name], rng, thorough=False, alone=StrictCard)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    return None


def _run_program(seed: int, kind: str) -> None:
    """Run a random program of the tests."""
    root = str(Path(__file__).resolve().parents[2])
    if root not in sys.path:
        sys.path.append(root)
    from tests.backends.llvm.random_programs import Bundle, differing, is_differentiable

    bundle = Bundle(seed, named=seed % 3 == 2)
    if kind == "gradient" and not is_differentiable(bundle):
        return
    function = getattr(bundle, kind)
    graph = wg.trace(lambda *xs: function(*xs))(*bundle.specs).simplify()
    run = wg.computation(graph, backend="cuda")
    for world in bundle.worlds:
        with np.errstate(all="ignore"):
            wanted = function(*world)
        try:
            got = wg.device_get(run(*world))
        except ShapeError as error:  # assumed of the sizes that it was traced for
            if "not valid for the sizes" not in str(error):
                raise
            continue
        wanted = list(wanted) if isinstance(wanted, tuple | list) else [wanted]
        eps = bundle.eps if kind == "values" else bundle.coarse
        assert not differing(got, wanted, eps), f"{kind} of random program {seed} differ"
