"""The work of compiling a long straight program: in proportion to its length, and bounded per node.

What is counted is calls of functions, of Python's and of C's, and lines of LLVM's text; a clock
would say how busy the machine is.
"""

import math

import numpy as np
import pytest

import wengert as wg


def thomas(n):
    """Thomas' algorithm for n unknowns, unrolled, and arrays for it."""

    def f(a, b, c, d):
        c, d = c.copy(), d.copy()
        c[0], d[0] = c[0] / b[0], d[0] / b[0]
        for i in range(1, n):
            m = b[i] - a[i] * c[i - 1]
            c[i] = c[i] / m
            d[i] = (d[i] - a[i] * d[i - 1]) / m
        for i in range(n - 2, -1, -1):
            d[i] = d[i] - c[i] * d[i + 1]
        return np.sum(d**2)

    return f, (np.full(n, 0.5), np.full(n, 4.0), np.full(n, 0.25), np.arange(1.0, n + 1.0))


def chain(n):
    """Operations on one number, four for each step."""

    def f(x):
        y = x
        for k in range(n // 4):
            y = np.sin(y) * 0.9 + x
            y = y / (1.0 + 0.1 * k)
        return y

    return f, (0.3,)


def work(program, n, calls):
    """Calls, lines of text, and nodes of the function without its derivative."""
    f, args = program(n)
    compiled = wg.jit(wg.value_and_grad(f, argnums=tuple(range(len(args)))), source=False)
    count = calls(compiled, *args)
    lines = compiled.lower(*args).llvm_ir.count("\n")
    return count, lines, len(wg.jit(f, source=False).lower(*args).graph)


SIZES = [(5, 20), pytest.param((150, 600), marks=pytest.mark.slow)]


@pytest.mark.sample(1)
@pytest.mark.parametrize("scale", SIZES, ids=["short", "long"])
@pytest.mark.parametrize(
    # Of thomas, whose stores rules follow, 2360; 70 are for the keys of files, which are not
    # computed while sources are new; 60 are those of the first of several tests.
    "program, per_node, lines_per_node",
    [(thomas, 2600, 18), (chain, 2300, 25)],
)
def test_work_in_proportion_to_the_length(program, per_node, lines_per_node, scale, calls):
    unit = 1 if program is thomas else 17  # nodes for one of its sizes
    work(program, 3 * unit, calls)  # imports, and what is compiled once in a process
    (few_calls, few_lines, few), (calls_, lines, nodes) = [
        work(program, n * unit, calls) for n in scale
    ]
    assert calls_ < per_node * nodes
    assert lines < lines_per_node * nodes
    assert math.log(calls_ / few_calls) < 1.05 * math.log(nodes / few)
    assert math.log(lines / few_lines) < 1.05 * math.log(nodes / few)
