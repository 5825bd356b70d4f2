"""Values of NPBench's programs: compiled by wengert, by NumPy, by numba and by JAX.

numba and JAX run NPBench's own versions of the programs, of numba the fastest of those in nopython
mode; JAX compiles them as they are decorated there.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .interleaved import Contestant, medians
from .one_program import in_process
from .program import Program, agrees, difference, limit, listed, names, program, results

TITLE = "Values"
TEXT = (
    "Median time of a call, of programs whose source is NPBench's; numba and JAX run NPBench's own "
    "versions for them (numba: the fastest of its versions in nopython mode)."
)
TARGET = "at most 1.5 times numba's time in the geometric mean, no program slower than NumPy"
PEERS = ["numba"]
NUMBA = ("numba_n", "numba_np", "numba_npr")
NOT_AT_THIS_SIZE = "not measured at this size"
MUCH_SLOWER = 5.0  # JAX's time over wengert's at the smaller size


def right(found: list[Any], wanted: list[Any]) -> float:
    """The largest difference between results."""
    if len(found) != len(wanted):
        return float("inf")
    return max((difference(a, b) for a, b in zip(found, wanted, strict=True)), default=0.0)


def jax_kernel(given: Program) -> tuple[Any, Any]:
    """NPBench's version for JAX, and what makes its arguments."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def arguments() -> list[Any]:
        return [jnp.array(a) if isinstance(a, np.ndarray) else a for a in given.copied()]

    return given.implementation("jax"), arguments


def agrees_with_jax(out: Any, wanted: list[Any], stated: float) -> bool:
    """Whether each result of a JAX function is one of NumPy's results."""
    found = [np.asarray(x) for x in listed(out)]
    return bool(found) and all(
        any(difference(x, w) < limit(w, stated) for w in wanted) for x in found
    )


def one(name: str, size: str, seconds: str, larger: str = "") -> dict[str, Any]:
    """Measure one program in this process, at one size, and at a larger one if given.

    At the larger size only numba's fastest version takes part, and JAX where it is not much slower.
    """
    import wengert as wg

    given = program(name, size)
    calls = {"wengert": wg.jit(given.implementation("numpy"))}
    failed = {}
    for suffix in NUMBA:
        if given.has(suffix):
            try:
                calls[suffix] = given.implementation(suffix)
            except Exception as error:
                failed[suffix] = {"failed": str(error).strip().splitlines()[0][:150]}
    found = at_size(given, calls, failed, float(seconds))
    row = {"case": name, "contestants": found}
    if larger:
        given = program(name, larger)
        version = found.get("numba", {}).get("version")
        calls = {n: c for n, c in calls.items() if n in ("wengert", version)}
        times = [found.get(n, {}).get("median") for n in ("JAX", "wengert")]
        slow = None not in times and times[0] > MUCH_SLOWER * times[1]
        failed = {"JAX": {"cannot": NOT_AT_THIS_SIZE}} if slow else {}
        row["larger"] = at_size(given, calls, failed, float(seconds))
    return row


def at_size(
    given: Program, calls: dict[str, Any], failed: dict[str, dict[str, Any]], seconds: float
) -> dict[str, dict[str, Any]]:
    """Measure the functions of a program, and NPBench's for NumPy and JAX, for its arguments."""
    fun = given.implementation("numpy")
    wanted = results(fun, given.copied())
    found = dict(failed)
    contestants = {"NumPy": Contestant(fun, given.copied)}
    for label, call in calls.items():
        try:
            out = results(call, given.copied())
        except Exception as error:
            found[label] = {"failed": str(error).strip().splitlines()[0][:150]}
            continue
        if agrees(out, wanted, given.stated_limit):
            contestants[label] = Contestant(call, given.copied)
        else:
            found[label] = {"wrong": right(out, wanted)}
    if given.has("jax") and "JAX" not in failed:
        try:
            kernel, arguments = jax_kernel(given)
            import jax

            if agrees_with_jax(kernel(*arguments()), wanted, given.stated_limit):
                contestants["JAX"] = Contestant(kernel, arguments, jax.block_until_ready)
            else:
                found["JAX"] = {"wrong": float("inf")}
        except Exception as error:
            found["JAX"] = {"failed": str(error).strip().splitlines()[0][:150]}
    for label, median in medians(contestants, seconds).items():
        found[label] = {"median": median}
    return merged(found)


def merged(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """With the fastest version for numba in the place of all of them."""
    times = {n: c["median"] for n, c in found.items() if n in NUMBA and "median" in c}
    others = {n: c for n, c in found.items() if n not in NUMBA}
    if times:
        best = min(times, key=lambda n: times[n])
        return others | {"numba": {"median": times[best], "version": best}}
    failed = [c for n, c in found.items() if n in NUMBA]
    return others | ({"numba": failed[0]} if failed else {})


def measure(quick: bool, threads: int) -> list[dict[str, Any]]:
    """Measure all programs, each in a process of its own."""
    size, larger = ("tiny", "S") if quick else (os.environ.get("NPBENCH_SIZE", "S"), "M")
    seconds = os.environ["BENCHMARK_SECONDS"]
    cases = []
    for name in names():
        row = in_process("values", name, size, seconds, larger)
        cases.append(row if "case" in row else {"case": name, "contestants": {"wengert": row}})
        print(f"  {name}", flush=True)
    return cases
