"""Gradients of NPBench's programs with respect to all real arguments, beside JAX.

The function that is differentiated is the sum of those results that NPBench's version for JAX
returns.  JAX compiles that version with its integers as static arguments, so that loops of known
length can be differentiated in reverse mode.
"""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any

import numpy as np

from .interleaved import Contestant, medians
from .one_program import in_process
from .program import Program, difference, limit, listed, names, program, results
from .values import jax_kernel

TITLE = "Gradients"
TEXT = (
    "Median time of the gradient of the sum of the results with respect to all real arguments, "
    "beside the value compiled by wengert. Arguments that a program overwrites are copied in the "
    "objective, because JAX's versions leave them as they are. *first*: the first call of the "
    "gradient in a fresh process, imports excluded, without files of earlier runs, and with them "
    "(*again*)."
)
TARGET = (
    "gradient at most 4 values; ahead of JAX everywhere, 20 times in programs with loops; first "
    "call at most 1 s, 0.2 s with files"
)
PEERS = ["JAX"]


def real_arguments(given: Program) -> tuple[int, ...]:
    """Positions of the arguments that a gradient is taken with respect to."""
    kinds = [isinstance(a, np.ndarray) and a.dtype.kind == "f" for a in given.arguments.values()]
    return tuple(i for i, real in enumerate(kinds) if real)


def chosen_results(given: Program, fun: Any) -> tuple[list[int], bool]:
    """Which of NumPy's real results the version for JAX returns, and whether there are any.

    All real ones if there are none, or no version.
    """
    wanted = results(fun, given.copied())
    real = [i for i, x in enumerate(wanted) if np.asarray(x).dtype.kind == "f"]
    try:
        kernel, arguments = jax_kernel(given)
        out = [np.asarray(x) for x in listed(kernel(*arguments()))]
    except Exception:
        return real, True
    common: list[int] = []
    for x in out:
        left = [i for i in real if i not in common]
        common += [i for i in left if difference(x, wanted[i]) < limit(wanted[i])][:1]
    return common or real, bool(common)


def objective(given: Program, fun: Any, places: list[int]) -> Any:
    """The sum of some results of a program, as a function of its arguments.

    It leaves its arguments as they are, as the objectives of JAX do: a gradient with respect to
    `A` need not compute the new content of `D`.
    """

    def total(*args: Any) -> Any:
        values = [a.copy() if getattr(a, "ndim", 0) else a for a in args]
        out = listed(fun(*values)) + values  # as `results` lists them
        numbers = [x for x in out if hasattr(x, "dtype") or isinstance(x, int | float | complex)]
        s: Any = 0.0
        for i in places:
            s = s + np.sum(numbers[i])
        return s

    return total


def disagreement(a: Any, b: Any) -> float:
    """The largest difference of two gradients, relative to the largest element.

    A gradient that is zero up to rounding has none: 1e6 units of rounding are the least scale.
    """
    b = np.asarray(b)
    if b.shape != a.shape:
        return float("inf")
    scale = max(float(np.abs(b).max(initial=0.0)), 1e6 * float(np.finfo(b.dtype).eps))
    return float(np.abs(a - b).max(initial=0.0)) / scale


def jax_objective(given: Program) -> Any:
    """The same for NPBench's version for JAX, its integers static."""
    import jax.numpy as jnp

    kernel, _ = jax_kernel(given)
    kernel = getattr(kernel, "__wrapped__", kernel)

    def total(*args: Any) -> Any:
        s: Any = 0.0
        for x in listed(kernel(*args)):
            if jnp.issubdtype(jnp.asarray(x).dtype, jnp.floating):
                s = s + jnp.sum(x)
        return s

    return total


def jax_gradient(given: Program, where: tuple[int, ...]) -> Any:
    """The compiled gradient by JAX, of the arrays among the arguments."""
    import jax

    total = jax_objective(given)
    arrays = [i for i, a in enumerate(given.arguments.values()) if isinstance(a, np.ndarray)]
    fixed = list(given.arguments.values())

    def of_arrays(*given_arrays: Any) -> Any:
        args = list(fixed)
        for i, a in zip(arrays, given_arrays, strict=True):
            args[i] = a
        return total(*args)

    return jax.jit(jax.grad(of_arrays, argnums=tuple(arrays.index(i) for i in where)))


def first_call(name: str, size: str) -> dict[str, float]:
    """Seconds of the first gradient call in this process."""
    import wengert as wg

    given = program(name, size)
    where = real_arguments(given)
    places = [int(i) for i in os.environ["NPBENCH_RESULTS"].split(",")]
    gradient = wg.jit(wg.grad(objective(given, given.implementation("numpy"), places), where))
    arguments = given.copied()
    start = time.perf_counter()
    gradient(*arguments)
    return {"seconds": time.perf_counter() - start}


def one(name: str, size: str, seconds: str) -> dict[str, Any]:
    """Measure one program in this process."""
    if seconds == "first":
        return first_call(name, size)
    import wengert as wg

    given = program(name, size)
    where = real_arguments(given)
    if not where:
        return {"case": name, "none": True, "contestants": {}}
    fun = given.implementation("numpy")
    places, comparable = chosen_results(given, fun)
    value = wg.jit(objective(given, fun, places))
    gradient = wg.jit(wg.grad(objective(given, fun, places), where))
    mine = [np.asarray(g) for g in gradient(*given.copied())]
    contestants = {
        "wengert": Contestant(gradient, given.copied),
        "value": Contestant(value, given.copied),
    }
    found: dict[str, dict[str, Any]] = {}
    if given.has("jax") and not comparable:
        found["JAX"] = {"cannot": "its version returns none of the real results"}
    elif given.has("jax"):
        try:
            import jax
            import jax.numpy as jnp

            theirs = jax_gradient(given, where)

            def arrays() -> list[Any]:
                return [jnp.array(a) for a in given.copied() if isinstance(a, np.ndarray)]

            error = max(disagreement(a, b) for a, b in zip(mine, theirs(*arrays()), strict=True))
            found["JAX"] = {"difference": error}
            contestants["JAX"] = Contestant(theirs, arrays, jax.block_until_ready)
        except Exception as error:
            found["JAX"] = {"cannot": str(error).strip().splitlines()[0][:150]}
    for label, median in medians(contestants, float(seconds)).items():
        found.setdefault(label, {})["median"] = median
    return {"case": name, "results": places, "contestants": found}


def measure(quick: bool, threads: int) -> list[dict[str, Any]]:
    """Measure all programs, each in a process of its own, and first calls in two more."""
    size = "tiny" if quick else os.environ.get("NPBENCH_SIZE", "S")
    seconds = os.environ["BENCHMARK_SECONDS"]
    cases = []
    for name in names():
        row = in_process("gradients", name, size, seconds)
        if "failed" in row:
            row = {"case": name, "contestants": {"wengert": row}}
        elif "none" not in row:
            with tempfile.TemporaryDirectory() as folder:
                variables = os.environ | {
                    "WENGERT_CACHE": folder,
                    "NPBENCH_RESULTS": ",".join(map(str, row["results"])),
                }
                for label in ("first", "again"):
                    call = in_process("gradients", name, size, "first", environment=variables)
                    row[label] = call.get("seconds")
        cases.append(row)
        print(f"  {name}", flush=True)
    return cases
