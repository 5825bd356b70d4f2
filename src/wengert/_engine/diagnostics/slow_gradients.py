"""Slow gradients: causes of slow differentiation.

    slow     found in the graph: loops, repetitions, large arrays, copies
    timed    measured: every node is run again, forward and backward

The thresholds are chosen so that a program that takes a millisecond gets no finding.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.node import Node, Watched
from wengert._engine.core.node_properties import frozen
from wengert._engine.core.op import Op, RuleContext

from .findings import Finding, named
from .recorded_pass import ancestors, contributions, plain

if TYPE_CHECKING:
    from wengert._engine.core.spec import Spec

LOOP = 300  # operations on small arrays at one line of the program
SMALL_SIZE = 64  # elements
REPEATED = 1 << 20  # bytes computed more than once
SPREAD = 1 << 24  # bytes of one array made by broadcasting ...
SPREAD_BY = 64  # ... which has this many times the elements of its largest operand
COPIES = 16  # assignments at one line that had to copy a large array
READ = 1 << 26  # bytes of constants that are checked for changes, over all uses
SHARE = 0.3  # share of the measured time from which a line is reported
RUNS = 3  # of each operation, of which the fastest counts


def slow(outputs: Sequence[Node], wasted: int = REPEATED) -> list[Finding]:
    """Slow parts of the graph of some outputs, without measuring.

    Parameters
    ----------
    outputs : sequence of Node
    wasted : int
        The number of bytes from which a repeated computation is reported.
    """
    nodes = [n for n in ancestors(outputs) if isinstance(n.op, Op) and n.args]
    findings = [*_loops(nodes), *_repeated(nodes, wasted), *_spread(nodes), *_copied(nodes)]
    return [*findings, *_watched(nodes), *_wide(nodes)]


def _finding(kind: str, message: str, node: Node) -> Finding:
    return Finding(kind, message, node, node.where, "slow")


def _by_line(nodes: Sequence[Node]) -> dict[str, list[Node]]:
    lines: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        lines[node.where or ""].append(node)
    return lines


def _loops(recorded: Sequence[Node]) -> list[Finding]:
    findings = []
    for nodes in _by_line([n for n in recorded if _size(n) <= SMALL_SIZE]).values():
        if len(nodes) >= LOOP:
            message = (
                f"{len(nodes)} operations on at most {SMALL_SIZE} numbers each: a Python loop, in "
                "which each operation costs microseconds and its arithmetic nanoseconds. Use whole "
                "arrays, or compile the function (wengert.jit) with wengert.scan or fori_loop"
            )
            findings.append(_finding("loop", message, nodes[0]))
    return findings


def _repeated(recorded: Sequence[Node], minimum: int) -> list[Finding]:
    """The same operation on the same operands, more than once."""
    groups: dict[Any, list[Node]] = defaultdict(list)
    for node in recorded:
        # Repetitions inside derivatives are not under the user's control.
        if node.op.aliasing.view or node.level:
            continue
        operands = tuple(id(a) if isinstance(a, Node | np.ndarray) else repr(a) for a in node.args)
        groups[(node.op, operands, frozen(node.params) if node.params else None)].append(node)
    findings = []
    for nodes in groups.values():
        wasted = _bytes(nodes[0]) * (len(nodes) - 1)
        if len(nodes) > 1 and wasted >= minimum:
            lines = Counter(n.where for n in nodes[1:] if n.where)
            repeats = f"; again at {', '.join(lines)}" if lines else ""
            message = (
                f"{named(nodes[0])} is computed {len(nodes)} times from the same operands"
                f"{repeats}. Store the result in a variable"
            )
            findings.append(_finding("repeated", message, nodes[0]))
    return findings


def _spread(nodes: Sequence[Node]) -> list[Finding]:
    findings = []
    for node in nodes:
        if node.op.kind != "elementwise" or _bytes(node) < SPREAD:
            continue
        largest = max((_operand_size(a) for a in node.args), default=0)
        if _size(node) >= SPREAD_BY * max(largest, 1):
            message = (
                f"{named(node)} takes {_bytes(node) >> 20} MiB, made by broadcasting operands of "
                f"at most {largest} elements. If it is summed afterwards, a product (np.einsum, @) "
                "needs no such array"
            )
            findings.append(_finding("broadcast", message, node))
    return findings


def _copied(recorded: Sequence[Node]) -> list[Finding]:
    findings = []
    written = [n for n in recorded if n.op.name == "setitem" and _bytes(n) >= 4096]
    copies = [n for n in written if isinstance(n.args[0], Node) and not n.args[0].is_outdated]
    for nodes in _by_line(copies).values():
        if len(nodes) >= COPIES:
            message = (
                f"{len(nodes)} assignments to elements of {named(nodes[0])}, each of which copied "
                "the whole array, because something else still refers to its memory (another "
                "variable, a view, numpy()). Collect the parts and np.stack them, or delete these "
                "references"
            )
            findings.append(_finding("copies", message, nodes[0]))
    return findings


def _watched(recorded: Sequence[Node]) -> list[Finding]:
    uses: dict[int, list[Node]] = defaultdict(list)
    size: Counter[int] = Counter()
    for node in recorded:
        for a in node.args:
            if isinstance(a, Watched):
                array = a.array
                uses[id(array)].append(node)
                size[id(array)] += array.nbytes
    findings = []
    for key, nodes in uses.items():
        if size[key] >= READ and len(nodes) > 1:
            message = (
                f"a plain array is used {len(nodes)} times, and each time read to check whether it "
                f"has changed ({size[key] >> 20} MiB in total). Make it a tensor once, "
                "wengert.tensor(array), or read-only, array.flags.writeable = False"
            )
            findings.append(_finding("watched", message, nodes[0]))
    return findings


def _wide(nodes: Sequence[Node]) -> list[Finding]:
    for node in nodes:
        spec = node.spec
        if not isinstance(spec, tuple) and spec.dtype in (np.longdouble, np.clongdouble):
            message = f"{named(node)}: there are no fast instructions for {spec.dtype}. Use float64"
            if spec.dtype not in (np.float64, np.complex128):
                return [_finding("wide", message, node)]
    return []


def _size(node: Node) -> int:
    spec = node.spec
    if isinstance(spec, tuple):
        return max((_count(s) for s in spec if s is not None), default=0)
    return _count(spec)


def _count(spec: Spec) -> int:
    size = spec.size
    return size if isinstance(size, int) else 1 << 62  # a symbolic size may be large


def _operand_size(a: Node) -> int:
    return _size(a) if isinstance(a, Node) else int(np.size(a))


def _bytes(node: Node) -> int:
    spec = node.spec
    if isinstance(spec, tuple):
        return 0
    if not isinstance(spec.size, int):
        return 1  # a symbolic size is not zero
    return int(spec.size * spec.dtype.itemsize)


# ---- measured ----------------------------------------------------------------------------------


def timed(outputs: Sequence[Node], cotangents: dict[Node, Any]) -> list[Finding]:
    """The lines that take the most time: each node is run again, forward and backward."""
    spent: dict[str, float] = defaultdict(float)
    first_node: dict[str, Node] = {}
    for node in ancestors(outputs):
        if not isinstance(node.op, Op) or not node.args or node.op.aliasing.transparent:
            continue
        key = node.where or node.op.name
        first_node.setdefault(key, node)
        spent[key] += _seconds(node, cotangents.get(node))
    total = sum(spent.values())
    findings = []
    for key, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        if seconds >= SHARE * total:
            message = (
                f"{seconds / total:.0%} of the time of all operations and their derivatives "
                f"({seconds * 1e3:.3g} of {total * 1e3:.3g} ms) is spent here"
            )
            findings.append(_finding("time", message, first_node[key]))
    return findings


def _seconds(node: Node, t: Any) -> float:
    """The least of some runs: the first may load code, and any may be interrupted."""
    values = [plain(a) for a in node.args]
    op: Any = node.op
    runs = []
    with np.errstate(all="ignore"):
        for _ in range(RUNS):
            start = time.perf_counter()
            op.run(*values, **node.params)
            if t is not None:
                contributions(node, t, RuleContext())
            runs.append(time.perf_counter() - start)
    return min(runs)
