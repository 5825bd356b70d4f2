"""Random programs of several processes.

    program_of    a function of a vector, whose source is random; the same in all processes
    run           values and derivatives of one program, eager and compiled
    outcomes      run many programs in several processes, each with a time limit
    main          python tests/distributed/random_programs.py PROCESSES FIRST LAST

The programs have loops, branches inside each other, results that some processes do not use,
operands that are constants in some processes, messages between pairs and in groups of processes,
batches, checkpoints and functions with a rule of their own.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from tests.distributed.launch import process_of

import wengert as wg
from wengert import distributed as d

_CURVATURE_EVERY = 4  # second derivatives of one program of so many


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
                f"d.allreduce({x}, 'mean', comm=neighbors)",
                f"d.bcast({x}, 0, comm=others)",
                f"pair({x})",
            ]
        )
    )


def _function(rng: np.random.Generator, name: str = "a") -> str:
    """A function of a vector, with a message or without."""
    body = _message(rng, [name]) if rng.random() < 0.7 else _expression(rng, [name])
    return f"lambda {name}: {body}"


def _call(rng: np.random.Generator, name: str, other: str) -> list[str]:
    """Statements that call a transformation or a loop of the library."""
    f, g, h = (_function(rng) for _ in range(3))
    limit = f"{rng.normal():.3f}"
    sum_of = f"d.allreduce(np.sum({name}))"
    cond = f"wg.cond(d.allreduce(np.sum(a)) > {limit}, {f}, {g}, a)"
    options: list[list[str]] = [
        [f"{name} = wg.cond({sum_of} > {limit}, {f}, {g}, {name})"],
        [
            f"s = {sum_of}",
            f"{name} = wg.switch((s > {limit}) * 1 + (s > 0.5) * 1, [{f}, {g}, {h}], {name})",
        ],
        [f"{name} = wg.cond({sum_of} > {limit}, {f}, lambda a: {cond}, {name})"],
        [f"{name} = wg.fori_loop(0, {int(rng.integers(4))}, lambda i, a: ({f})(a), {name})"],
        [f"{name} = wg.fori_loop(0, 2, lambda i, a: {cond}, {name})"],
        [
            f"k, {name} = wg.while_loop("
            "lambda c: (c[0] < 4) & (d.allreduce(np.sum(c[1] ** 2)) < 9.0), "
            f"lambda c: (c[0] + 1, 1.2 * c[1] + 0.1 * ({f})(c[1])), (0, {name}))"
        ],
        [
            f"{name}, ys = wg.scan(lambda a, b: (({f})(a) + 0.1 * b, ({g})(a)), {name}, "
            f"np.stack([{other}, 0.5 * {name}]))",
            f"{other} = {other} + 0.1 * np.sum(ys, axis=0)",
        ],
        [f"{name} = 0.5 * np.sum(wg.vmap({f})(np.stack([{name}, {other}])), axis=0)"],
        [f"{name} = 0.5 * np.sum(wg.vmap(lambda a: {cond})(np.stack([{name}, {other}])), axis=0)"],
        [f"{name} = wg.checkpoint({f})({name})"],
        [f"{name} = wg.checkpoint(lambda a: {cond})({name})"],
        [f"{name} = with_rule({name})"],
    ]
    return options[int(rng.integers(len(options)))]


def _block(rng: np.random.Generator, names: list[str], depth: int, indent: str) -> list[str]:
    lines: list[str] = []
    for _ in range(int(rng.integers(1, 4))):
        name, other = (names[int(rng.integers(len(names)))] for _ in range(2))
        kinds = ["plain", "message", "unused", "loop", "branch", "while", "element", "call"]
        kind = rng.choice(kinds)
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
        elif kind == "call":
            lines += [indent + line for line in _call(rng, name, other)]
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
    lines += ["    return d.allreduce(np.sum(np.tanh(x * y)) + np.sum(np.sin(z)))"]
    source = "\n".join(lines) + "\n"
    file = f"<random program {seed}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    module = _names()
    exec(compile(source, file, "exec"), module)
    return module["program"], source


_common: dict[str, Any] = {}


def _names() -> dict[str, Any]:
    """The names that programs use."""
    comm = d.world()
    if not _common:
        _common["neighbors"] = comm.split(comm.rank // 2)
        _common["others"] = comm.split(comm.rank % 2)
    n, r = comm.size, comm.rank

    def pair(x: Any) -> Any:
        if r % 2:
            return d.recv(x, r - 1)
        if r + 1 < n:
            d.send(x, r + 1)
        return x

    @wg.custom_vjp
    def with_rule(x: Any) -> Any:
        return np.tanh(d.allreduce(x, "mean"))

    def forward(x: Any) -> Any:
        y = np.tanh(d.allreduce(x, "mean"))
        return y, y

    with_rule.defvjp(forward, lambda y, t: (d.allreduce((1.0 - y**2) * t, "mean"),))
    rows = 1.0 + 0.3 * np.arange(n)[:, None]
    return {"np": np, "wg": wg, "d": d, "r": r, "n": n, "rows": rows} | _common | {
        "pair": pair, "with_rule": with_rule,
    }  # fmt: skip


def _all(comm: d.Communicator, x: Any) -> float:
    return float(sum(comm.mpi.allgather(float(x))))


def run(seed: int) -> str:
    """ "right", or what is wrong; refusals begin with "refused"."""
    comm = d.world()
    f, source = program_of(seed)
    rng = np.random.default_rng((seed, comm.rank))
    x, v = 0.5 * rng.normal(size=3), rng.normal(size=3)
    with np.errstate(all="ignore"):
        value = f(x)
    if not all(comm.mpi.allgather(bool(np.isfinite(value)))):
        return "not finite"
    try:
        compiled = wg.jit(f)(x)
        g, gj = wg.grad(f)(x), wg.jit(wg.grad(f))(x)
        dot = None
        if "with_rule" not in source:  # whose rule is that of reverse mode
            dot = wg.jit(lambda x: wg.jvp(f, (x,), (v,))[1])(x)
        products = [] if seed % _CURVATURE_EVERY else _second_order(f, x, v, dot is not None)
    except wg.WengertError as error:
        return f"refused: {type(error).__name__} {str(error)[:200]}"
    with np.errstate(all="ignore"):  # values overflow, and the result does not depend on them
        tangent = 0.0 if dot is None else wg.jvp(f, (x,), (v,))[1]
    if not all(comm.mpi.allgather(bool(np.all(np.isfinite(g)) and np.isfinite(tangent)))):
        return "not finite"
    results = {"value": abs(compiled - value) / (1 + abs(value))}
    scale = 1 + _all(comm, np.max(np.abs(g)))
    results["gradient"] = float(np.max(np.abs(g - gj))) / scale
    along = _all(comm, np.vdot(g, v))
    if dot is not None:
        results["tangent"] = abs(along - dot) / (scale + abs(dot))
    if products:
        scale_of = 1 + _all(comm, np.max(np.abs(products[0])))
        results["curvature"] = max(np.max(np.abs(p - products[0])) for p in products) / scale_of
    h = 1e-6
    difference = (f(x + h * v) - f(x - h * v)) / (2 * h)
    # Or a kink is near. A chaotic program has no differences.
    differs = scale < 1e6 and abs(difference - along) / (scale + abs(along)) > 1e-4
    wrong = [name for name, error in results.items() if not error < 1e-8]
    every = sorted({name for names in comm.mpi.allgather(wrong) for name in names})
    if every:
        return f"wrong: {', '.join(every)} {results}"
    return "differs from differences" if any(comm.mpi.allgather(differs)) else "right"


def _second_order(f: Any, x: Any, v: Any, forward: bool) -> list[Any]:
    """Hessian products, eager and compiled, in each order of the two modes."""
    if not forward:
        twice = wg.grad(lambda x: _inner(wg.grad(f)(x), v))
        return [twice(x), wg.jit(twice)(x)]
    over_forward = wg.grad(lambda x: wg.jvp(f, (x,), (v,))[1])
    product = wg.hvp(f, (x,), (v,))
    return [product, wg.jit(lambda x: wg.hvp(f, (x,), (v,)))(x), wg.jit(over_forward)(x)]


def _inner(a: Any, b: Any) -> Any:
    return d.allreduce(np.sum(a * b))


def _work(first: int, last: int) -> None:
    """Run programs; the first process prints each outcome."""
    comm = d.world()
    for seed in range(first, last):
        try:
            outcome = run(seed)
        except Exception as error:  # the others may wait
            print(f"failed {seed} {type(error).__name__} {str(error)[:300]}", flush=True)
            raise
        if comm.rank == 0:
            print(f"outcome {seed} {outcome}", flush=True)


def outcomes(count: int, first: int, last: int, seconds: float = 120.0) -> dict[int, str]:
    """The outcome of each program in `count` processes.

    A program without an outcome after `seconds` is "waiting"; one that ends its processes "failed".
    """
    found: dict[int, str] = {}
    while first < last:
        process = process_of(count, Path(__file__), "work", str(first), str(last))
        lines: queue.Queue[str | None] = queue.Queue()
        reader = threading.Thread(target=_read, args=(process.stdout, lines), daemon=True)
        reader.start()
        end = time.monotonic() + seconds
        message = ""
        while True:
            try:
                line = lines.get(timeout=max(end - time.monotonic(), 0.1))
            except queue.Empty:
                found[first] = "waiting"
                break
            if line is None:
                if first < last:
                    found[first] = f"failed {message}"
                break
            if line.startswith("outcome "):
                _, seed, outcome = line.split(" ", 2)
                found[int(seed)] = outcome.strip()
                first, end = int(seed) + 1, time.monotonic() + seconds
            elif line.startswith("failed "):
                message = line.strip()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if first in found:
            first += 1
    return found


def _read(stream: Any, lines: queue.Queue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def main(count: int, first: int, last: int) -> None:
    """Run programs in groups of 20, and print those that are not right, and the counts."""
    counts: dict[str, int] = {}
    for start in range(first, last, 20):
        for seed, outcome in outcomes(count, start, min(start + 20, last)).items():
            kind = outcome.partition(":")[0].partition(" ")[0]
            counts[kind] = counts.get(kind, 0) + 1
            if kind not in ("right", "not"):
                print(seed, outcome, flush=True)
        print(f"{start + 20} of {last}: {counts}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "work":
        _work(int(sys.argv[2]), int(sys.argv[3]))
    else:
        main(*map(int, sys.argv[1:]))
