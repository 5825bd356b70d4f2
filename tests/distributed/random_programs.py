"""Random programs of several processes.

    program_of    a function of a vector, whose source is random; the same in all processes
    run           values and derivatives of one program, eager and compiled
    main          many programs: mpirun -n 2 python tests/distributed/random_programs.py 0 1000

The programs have loops, branches, results that some processes do not use, and operands that are
constants in some processes.
"""

from __future__ import annotations

import linecache
import sys
from typing import Any

import numpy as np

import wengert as wg
from wengert import distributed as d


def _expression(rng: np.random.Generator, names: list[str]) -> str:
    a, b = (names[int(rng.integers(len(names)))] for _ in range(2))
    return str(
        rng.choice(
            [
                f"np.sin({a}) + 0.5 * {b}",
                f"0.7 * {a} * {b}",
                f"np.tanh({a} - {b})",
                f"{a} / (1.0 + {b} ** 2)",
                f"({a} if r == 0 else 0.3 * {b})",
                f"np.exp(-{a} ** 2)",
                f"np.cumsum({a}) * 0.3",
            ]
        )
    )


def _message(rng: np.random.Generator, names: list[str]) -> str:
    x = _expression(rng, names)
    root = int(rng.integers(4))
    return str(
        rng.choice(
            [
                f"d.allreduce({x}, 'mean')",
                f"d.allreduce({x}, 'max')",
                f"d.allreduce(np.tanh({x}), 'prod')",
                f"d.bcast({x} if r == {root} % n else np.ones(3), {root} % n)",
                f"d.shift({x})",
                f"np.mean(d.allgather({x}), axis=0) * {names[0]}",
                f"d.reduce({x}, root={root} % n)",
                f"d.reduce_scatter(rows * ({x}))",
                f"np.sum(d.alltoall(rows * ({x})), axis=0)",
                f"d.sendrecv({x}, r + 1 if r < n - 1 else None, r - 1 if r else None)",
                f"np.sum(d.gather({x}, {root} % n), axis=0) * 0.2",
                f"d.scatter(rows * ({x}) if r == {root} % n else np.zeros(3), {root} % n)",
                f"d.scan({x})",
            ]
        )
    )


def _block(rng: np.random.Generator, names: list[str], depth: int, indent: str) -> list[str]:
    lines: list[str] = []
    for _ in range(int(rng.integers(1, 4))):
        name = names[int(rng.integers(len(names)))]
        kind = rng.choice(["plain", "message", "unused", "loop", "branch", "while", "element"])
        if depth == 0 and kind in ("loop", "branch", "while"):
            kind = "message"
        if kind == "plain":
            lines.append(f"{indent}{name} = {_expression(rng, names)}")
        elif kind == "message":
            lines.append(f"{indent}{name} = {_message(rng, names)}")
        elif kind == "unused":
            lines.append(f"{indent}{_message(rng, names)}")
        elif kind == "element":
            lines.append(f"{indent}{name} = {name} * 1.0")
            lines.append(f"{indent}{name}[1] = np.sum({_message(rng, names)})")
        elif kind == "loop":
            lines.append(f"{indent}for i in range({int(rng.integers(0, 14))}):")
            lines += _block(rng, names, depth - 1, indent + "    ")
        elif kind == "branch":
            lines.append(f"{indent}if d.allreduce(np.sum({name})) > {rng.normal():.3f}:")
            lines += _block(rng, names, depth - 1, indent + "    ")
            if rng.random() < 0.5:
                lines.append(f"{indent}else:")
                lines += _block(rng, names, depth - 1, indent + "    ")
        else:
            k = f"k{depth}"  # each loop has a counter of its own
            lines.append(f"{indent}{k} = 0")
            lines.append(f"{indent}while {k} < 12 and d.allreduce(np.sum({name} ** 2)) < 9.0:")
            lines += _block(rng, names, depth - 1, indent + "    ")
            lines.append(f"{indent}    {name} = {name} * 1.3")
            lines.append(f"{indent}    {k} += 1")
    return lines


def program_of(seed: int) -> tuple[Any, str]:
    """A random function of a vector of three elements, and its source."""
    rng = np.random.default_rng(seed)
    names = ["x", "y", "z"]
    lines = ["def program(x):", "    y = 0.5 * x", "    z = np.cos(x)"]
    lines += _block(rng, names, 2, "    ")
    lines += ["    return d.allreduce(np.sum(x * y) + np.sum(np.sin(z)))"]
    source = "\n".join(lines) + "\n"
    comm = d.world()
    file = f"<random program {seed}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    rows = 1.0 + 0.3 * np.arange(comm.size)[:, None]
    names_of_module = {"np": np, "d": d, "r": comm.rank, "n": comm.size, "rows": rows}
    exec(compile(source, file, "exec"), names_of_module)
    return names_of_module["program"], source


def _all(comm: d.Communicator, x: Any) -> float:
    return float(sum(comm.mpi.allgather(float(x))))


def run(seed: int) -> str:
    """ "right", or what is wrong; refusals begin with "refused"."""
    comm = d.world()
    f, _ = program_of(seed)
    rng = np.random.default_rng((seed, comm.rank))
    x, v = 0.5 * rng.normal(size=3), rng.normal(size=3)
    value = f(x)
    if not all(comm.mpi.allgather(bool(np.isfinite(value)))):
        return "not finite"
    try:
        compiled = wg.jit(f)(x)
        g, gj = wg.grad(f)(x), wg.jit(wg.grad(f))(x)
        dot = wg.jit(lambda x: wg.jvp(f, (x,), (v,))[1])(x)
    except wg.WengertError as error:
        return f"refused: {type(error).__name__} {str(error)[:200]}"
    results = {"value": abs(compiled - value) / (1 + abs(value))}
    scale = 1 + _all(comm, np.max(np.abs(g)))
    results["gradient"] = float(np.max(np.abs(g - gj))) / scale
    results["tangent"] = abs(_all(comm, np.vdot(g, v)) - dot) / (scale + abs(dot))
    h = 1e-6
    difference = (f(x + h * v) - f(x - h * v)) / (2 * h)
    differs = abs(difference - dot) / (scale + abs(dot)) > 1e-4  # or a kink is near
    wrong = [name for name, error in results.items() if not error < 1e-9]
    every = sorted({name for names in comm.mpi.allgather(wrong) for name in names})
    if every:
        return f"wrong: {', '.join(every)} {results}"
    return "differs from differences" if any(comm.mpi.allgather(differs)) else "right"


def main(first: int, last: int) -> None:
    """Run programs, and print the number of each outcome."""
    comm = d.world()
    counts: dict[str, int] = {}
    for seed in range(first, last):
        outcome = run(seed)
        kind = outcome.partition(":")[0]
        counts[kind] = counts.get(kind, 0) + 1
        if comm.rank == 0 and kind not in ("right", "not finite"):
            print(seed, outcome, flush=True)
    if comm.rank == 0:
        print(counts, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
