"""What `vmap` costs over rows that were put together by hand in NumPy.

    python benchmarks/vmap.py             measure, print, write results/vmap.json
    python benchmarks/vmap.py --quick     fewer repetitions, nothing written
    python benchmarks/vmap.py --render    write docs/benchmarks-vmap.md from results/vmap.json

The gradient of every example, for 1,000 rows in float64:

    logistic    log(1 + exp(-y x.w)) with 20 weights, by the weights
    softmax     cross-entropy of 10 classes behind a layer of 32 tanh units with 20 inputs, by all
                weights: 1,000 gradients of each
    gaussian    (x - m) S^-1 (x - m) with a 6 x 6 matrix for each row, by x

"by hand" is written for the whole batch, as one would who knows NumPy and the derivative.  "vmap"
writes one row down anew at each call; in "graph" that was done once, by `wg.trace`.  "loop" is
`wg.grad` for one row after the other.  JAX's and PyTorch's own `vmap` of a gradient are measured
where they are installed, compiled and not.  Before timing, every result is compared with the first.

All contestants run in one process, in turn; a number is the median over repetitions.  NumPy's
products use as many threads as its BLAS chooses, for all of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np

from _harness import (
    PAGES,
    RESULTS,
    interleave,
    load,
    machine,
    machine_line,
    save,
    settle,
    spread,
    table,
)

ROWS = 1_000
PACKAGES = ("wengert", "numpy", "scipy", "jax", "torch")
PAGE = "benchmarks-vmap.md"  # under docs
TARGET = 3.0  # times the rows put together by hand
Run = Callable[[], Any]


# ---- the functions of one row, in any library ----------------------------------------------------


def logistic(xp: Any) -> Callable[..., Any]:
    """Return the loss of one example by the weights."""
    return lambda w, x, y: xp.log1p(xp.exp(-y * xp.dot(x, w)))


def softmax(xp: Any) -> Callable[..., Any]:
    """Return the cross-entropy of one example by all weights."""

    def loss(p: Any, x: Any, y: Any) -> Any:
        scores = xp.tanh(x @ p[0] + p[1]) @ p[2] + p[3]
        return xp.log(xp.sum(xp.exp(scores))) - xp.sum(y * scores)

    return loss


def gaussian(xp: Any) -> Callable[..., Any]:
    """Return the squared distance of one point in a metric of its own."""
    return lambda x, m, s: xp.dot(x - m, xp.linalg.solve(s, x - m))


# ---- the same for all rows, with the derivative, by hand -----------------------------------------


def logistic_by_hand(w: Any, x: Any, y: Any) -> Any:
    """Gradients of all rows."""
    return (-y / (1.0 + np.exp(y * (x @ w))))[:, None] * x


def softmax_by_hand(p: Any, x: Any, y: Any) -> Any:
    """Gradients of all rows."""
    hidden = np.tanh(x @ p[0] + p[1])
    e = np.exp(hidden @ p[2] + p[3])
    t = e / e.sum(1, keepdims=True) - y
    t_hidden = (t @ p[2].T) * (1.0 - hidden * hidden)
    return [x[:, :, None] * t_hidden[:, None], t_hidden, hidden[:, :, None] * t[:, None], t]


def gaussian_by_hand(x: Any, m: Any, s: Any) -> Any:
    """Gradients of all rows."""
    d = (x - m)[..., None]
    return (np.linalg.solve(s, d) + np.linalg.solve(s.mT, d))[..., 0]


def problems() -> dict[str, tuple[Any, ...]]:
    """For each problem: function, by hand, in_axes, arguments."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 20))
    sign = np.where(rng.normal(size=ROWS) > 0, 1.0, -1.0)
    weights = [rng.normal(size=s) * 0.3 for s in ((20, 32), (32,), (32, 10), (10,))]
    hot = np.eye(10)[rng.integers(0, 10, ROWS)]
    s = rng.normal(size=(ROWS, 6, 6)) + 6.0 * np.eye(6)
    return {
        "logistic": (logistic, logistic_by_hand, (None, 0, 0), (rng.normal(size=20), x, sign)),
        "softmax": (softmax, softmax_by_hand, (None, 0, 0), (weights, x, hot)),
        "gaussian": (gaussian, gaussian_by_hand, (0, None, 0), (x[:, :6], x[0, :6], s)),
    }


# ---- the contestants -----------------------------------------------------------------------------


def contestants(make: Any, by_hand: Any, in_axes: Any, args: Any) -> dict[str, Run]:
    """Return functions that compute the gradients of all rows."""
    import wengert as wg
    import wengert.numpy as wnp

    gradient = wg.grad(make(wnp))
    rows = wg.vmap(gradient, in_axes)
    graph = wg.trace(rows)(*args)
    found: dict[str, Run] = {
        "by hand": lambda: by_hand(*args),
        "wengert, vmap": lambda: rows(*args),
        "wengert, vmap in a graph": lambda: graph(*args),
        "wengert, loop": lambda: _looped(gradient, in_axes, args),
    }
    for library, add in (("jax", _with_jax), ("torch", _with_torch)):
        if find_spec(library):
            found |= add(make, in_axes, args)
    return found


def _looped(gradient: Any, in_axes: Any, args: Any) -> Any:
    found = []
    for i in range(ROWS):
        row = [a if axis is None else a[i] for a, axis in zip(args, in_axes, strict=True)]
        found.append(gradient(*row))
    if isinstance(found[0], list):
        return [np.stack(column) for column in zip(*found, strict=True)]
    return np.stack(found)


def _with_jax(make: Any, in_axes: Any, args: Any) -> dict[str, Run]:
    import jax

    jax.config.update("jax_enable_x64", True)
    rows = jax.vmap(jax.grad(make(jax.numpy)), in_axes)
    compiled = jax.jit(rows)
    given = jax.tree.map(jax.numpy.asarray, args)
    from native.libraries import Ready

    ready = Ready().of(compiled(*given))
    return {
        "jax, vmap": lambda: ready(rows(*given)),
        "jax, vmap and jit": lambda: ready(compiled(*given)),
    }


def _with_torch(make: Any, in_axes: Any, args: Any) -> dict[str, Run]:
    import torch

    torch.set_num_threads(1)
    rows = torch.func.vmap(torch.func.grad(make(torch)), in_axes)
    given = [[torch.tensor(x) for x in a] if isinstance(a, list) else torch.tensor(a) for a in args]
    return {"torch, vmap": lambda: rows(*given)}


def _flat(result: Any) -> Any:
    parts = result if isinstance(result, list | tuple) else [result]
    return np.concatenate([np.asarray(x).ravel() for x in parts])


def measure(repetitions: int) -> dict[str, Any]:
    """Milliseconds of each contestant at each problem."""
    found: dict[str, Any] = {}
    for name, problem in problems().items():
        runs = contestants(*problem)
        want = _flat(runs["by hand"]())
        for who, run in runs.items():
            np.testing.assert_allclose(_flat(run()), want, rtol=1e-9, atol=1e-12, err_msg=who)
        slow = runs.pop("wengert, loop")
        settle()
        samples = interleave({who: _timed(run) for who, run in runs.items()}, repetitions)
        samples |= interleave({"wengert, loop": _timed(slow)}, max(3, repetitions // 40), 1)
        found[name] = {who: spread(times, 1e3) for who, times in samples.items()}
    return found


def _timed(run: Run) -> Callable[[], float]:
    def timed() -> float:
        begin = perf_counter()
        run()
        return perf_counter() - begin

    return timed


# ---- the page ------------------------------------------------------------------------------------


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-vmap.md for saved results."""
    parts = [
        "# Benchmarks: vmap",
        "Written by `python benchmarks/vmap.py --render` from `benchmarks/results/vmap.json`. Read "
        "the ratios: times are one machine's.",
        machine_line(results["machine"]),
        f"The gradient of every example, {ROWS:,} rows in float64, in milliseconds: the median, "
        "and in brackets the quartiles. *by hand* is NumPy written for the whole batch, with the "
        "derivative written by hand too; *vmap* writes one row down anew at each call, which "
        "costs some microseconds an operation whatever the number of rows; *in a graph* that was "
        f"done once. Target: at most {TARGET:g} times by hand.",
    ]
    for name, times in results["gradients"].items():
        hand = times["by hand"]["median"]
        rows = [
            [who, f"{t['median']:.3g} ({t['low']:.3g}-{t['high']:.3g})", t["median"] / hand]
            for who, t in times.items()
        ]
        parts += [f"## {name}", table(["", "ms", "over by hand"], rows)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, or render."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few repetitions, nothing written")
    parser.add_argument("--render", action="store_true", help=f"write docs/{PAGE}")
    options = parser.parse_args()
    if options.render:
        if not (RESULTS / "vmap.json").exists():
            print("nothing measured yet; python benchmarks/vmap.py measures")
            return
        (PAGES / PAGE).write_text(render(load("vmap")))
        print(f"wrote docs/{PAGE}")
        return
    results = {"machine": machine(PACKAGES), "gradients": measure(20 if options.quick else 200)}
    print(render(results))
    if not options.quick:
        save("vmap", results)
        print("wrote benchmarks/results/vmap.json")


if __name__ == "__main__":
    main()
