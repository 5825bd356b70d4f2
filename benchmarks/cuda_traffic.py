"""Memory traffic of kernels of a graphics card, computed from their programs: no card is needed.

    python benchmarks/cuda_traffic.py              a table for row programs and reductions
    python benchmarks/cuda_traffic.py --rows 1000 --length 4096

For each program: its kernels; the bytes that they have to read from and write to the card's memory,
each array once in each kernel, with the states of parts of sums, written and read; the least
possible, every argument once and every result once; and the reads of all loops, of which those
beyond the first of an array are served by caches or shared memory as long as a row stays there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wengert as wg
from wengert._engine.backends.cuda import EmulatedDevice
from wengert._engine.backends.cuda.block_kernels import block_launch
from wengert._engine.backends.cuda.program import DeviceProgram
from wengert._engine.backends.llvm.lowering.loop_ir import Expr
from wengert._engine.backends.llvm.schedule.fusion import FusedLoops, roots_of
from wengert._engine.core import pytree


def softmax(x: Any) -> Any:
    """A softmax of each row."""
    return wg.scipy.special.softmax(x, axis=1)


def log_softmax(x: Any) -> Any:
    """Its logarithm."""
    return wg.scipy.special.log_softmax(x, axis=1)


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    """A normalization of each row."""
    mean = np.mean(x, axis=1, keepdims=True)
    variance = np.mean((x - mean) ** 2, axis=1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * scale + shift


def rms_norm(x: Any) -> Any:
    """The same without a mean."""
    return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + 1e-6)


def attention(scores: Any) -> Any:
    """The weights of causal attention."""
    rows, length = scores.shape
    visible = np.arange(length) <= np.arange(rows)[:, None]
    return softmax(np.where(visible, scores * 0.125, -np.inf))


def pulled_back(f: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient with respect to all arguments, given that with respect to the result."""
    return lambda w, *args: wg.vjp(f, *args)[1](w)


def programs(x: Any) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The programs, with their arguments."""
    row = wg.spec(x.shape[1:], x.dtype)
    return {
        "sum of all": (np.sum, (x,)),
        "sum of rows": (lambda x: np.sum(x, axis=1), (x,)),
        "sum of columns": (lambda x: np.sum(x, axis=0), (x,)),
        "largest of rows": (lambda x: np.max(x, axis=1), (x,)),
        "logsumexp": (lambda x: wg.scipy.special.logsumexp(x, axis=1), (x,)),
        "softmax": (softmax, (x,)),
        "softmax, gradient": (pulled_back(softmax), (x, x)),
        "log-softmax": (log_softmax, (x,)),
        "log-softmax, gradient": (pulled_back(log_softmax), (x, x)),
        "layer norm": (layer_norm, (x, row, row)),
        "layer norm, gradient of rows": (
            lambda w, x, a, b: wg.vjp(lambda x: layer_norm(x, a, b), x)[1](w), (x, x, row, row),
        ),
        "layer norm, all gradients": (pulled_back(layer_norm), (x, x, row, row)),
        "RMS norm": (rms_norm, (x,)),
        "RMS norm, gradient": (pulled_back(rms_norm), (x, x)),
        "attention": (attention, (x,)),
        "attention, gradient": (pulled_back(attention), (x, x)),
    }  # fmt: skip


def traffic(f: Callable[..., Any], args: Sequence[Any]) -> tuple[int, int, int, int]:
    """The kernels; bytes of memory, the least possible, and those of the reads of all loops."""
    graph = wg.trace(f)(*args).simplify()
    device = EmulatedDevice()
    device.block, device.blocks, device.shared_bytes = 256, 8 * 132, 48 << 10  # as an H200's
    program = DeviceProgram(graph, device)
    memory = reads = 0
    for stage, number in program.stages:
        assert isinstance(stage, FusedLoops), "a library function"
        own = set(roots_of(stage))
        entries = {x for x in program.kernels[number].entries if isinstance(x, Expr)}
        memory += sum(map(size, entries)) + 2 * states(program.kernels[number], device)
        for group in stage.groups:
            read = {a.expr for root in group.roots for a in program.plan.accesses(root)}
            reads += sum(size(x) for x in read & entries - own)
    made = pytree.flatten([graph.outputs])[0]
    least = sum(size(x) for x in (*graph.inputs, *made))
    return len(program.kernels), memory, least, reads


def states(kernel: Any, device: EmulatedDevice) -> int:
    """The bytes of the states of parts of rows, or of sums over rows."""
    if not getattr(kernel, "states", ()):
        return 0
    plan = block_launch(kernel, kernel.elements, kernel.length, kernel.local_rows, device)
    counts = kernel.columns or [kernel.elements] * len(kernel.states)
    parts = plan.groups(device) if kernel.columns else plan.parts
    if parts == 1:
        return 0
    pairs = zip(kernel.states, counts, strict=True)
    return sum(parts * n * sum(d.itemsize for d in dtypes) for (_, dtypes), n in pairs)


def size(x: Any) -> int:
    """The bytes of an array."""
    spec = getattr(x, "spec", x)
    return int(np.prod(spec.shape, dtype=np.int64)) * spec.dtype.itemsize


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    x = wg.spec((options.rows, options.length), np.dtype(options.dtype))
    print("| program | kernels | memory, MB | least, MB | ratio | read by loops, MB |")
    print("|---|---|---|---|---|---|")
    for name, (f, args) in programs(x).items():
        count, memory, least, reads = traffic(f, args)
        numbers = [f"{n / 1e6:.1f}" for n in (memory, least)]
        print(f"| {name} | {count} | {' | '.join(numbers)} | {memory / least:.2f} | "
              f"{reads / 1e6:.1f} |")  # fmt: skip


if __name__ == "__main__":
    main()
