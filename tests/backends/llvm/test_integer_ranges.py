"""Ranges of integers in loops: checks of indices that are left out, and none that is needed."""

import linecache
import random
import re

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.schedule.integer_ranges import IntegerRange, Integers
from wengert.errors import TraceError

N = 9


def triangle(x):
    for i in range(N - 1, -1, -1):
        for j in range(i + 1, N):
            x[i, j] += x[i + 1, j - 1]
            for k in range(i + 1, j):
                x[i, j] = max(x[i, j], x[i, k] + 0.5 * x[k + 1, j])
    return x


def steps_of_two(x):
    for i in range(1, N - 1, 2):
        for j in range(N - 2, 0, -3):
            x[i, j] = x[i - 1, j + 1] + x[i + 1, (j + 3 * i) % N]
    return x


def always_true(x):
    for i in range(2, N):
        for j in range(i, N):
            if j - i >= 0 and i - 2 >= 0:
                x[i, j] = x[i - 2, j - i]
    return x


def checks_in(program, *args):
    ir = wg.jit(program).lower(*args).llvm_ir
    return len(re.findall(r"icmp uge i64", ir))


@pytest.mark.parametrize("program, most", [(triangle, 2), (steps_of_two, 0), (always_true, 1)])
def test_indices_in_bounds_are_not_checked(program, most):
    """Some remain: of an element that is read before a loop, of a difference of two counters."""
    x = np.random.default_rng(1).uniform(size=(N, N))
    np.testing.assert_allclose(wg.jit(program)(x.copy()), program(x.copy()), rtol=1e-14)
    assert checks_in(program, x) <= most


def test_what_is_not_known_is_checked():
    def program(x, n):
        for i in range(n):
            x[i] += x[i - 1]
        return x

    assert checks_in(program, np.ones(4), np.array(3)) > 0
    compiled = wg.jit(program)
    np.testing.assert_allclose(compiled(np.ones(4), np.array(3)), [2.0, 3.0, 4.0, 1.0])
    with pytest.raises(IndexError):
        compiled(np.ones(4), np.array(5))


def test_constant_indices_in_loops_are_in_bounds_for_all_sizes_of_a_program():
    """Sizes for which they are not are no sizes of the program for all sizes."""

    def program(x, n):
        for i in range(n):
            x[i] = x[i] + x[6]
        return x

    compiled = wg.jit(program)
    for length in (7, 8, 9):
        x = np.arange(float(length))
        np.testing.assert_allclose(compiled(x.copy(), np.array(2)), program(x.copy(), 2))
    with pytest.raises((IndexError, TraceError), match="out of bounds"):
        compiled(np.arange(6.0), np.array(2))


def test_all_sizes():
    """The program that serves all sizes: lengths are symbolic."""

    def program(x):
        n = x.shape[0]
        for i in range(n):
            for j in range(1, n - i):
                x[i + j, j - 1] += x[n - 1 - i, j]
        return x

    compiled = wg.jit(program)
    for n in (12, 15, 18):
        x = np.random.default_rng(2).uniform(size=(n, n))
        np.testing.assert_allclose(compiled(x.copy()), program(x.copy()), rtol=1e-14)


@pytest.mark.parametrize(
    "function, low, high",
    [
        (lambda i: i + 3, 3, 8),
        (lambda i: 3 - i, -2, 3),
        (lambda i: np.maximum(i - 2, 0), 0, 3),
        (lambda i: np.maximum(1, i), 1, 5),
        (lambda i: (i - 9) % 4, 0, 3),
        (lambda i: i * i, None, None),
    ],
)
def test_ranges(function, low, high):
    graph = wg.trace(function)(wg.spec((), np.int64))
    (i,) = graph.inputs
    known = Integers(graph.nodes, {i: Integers([i]).value(i)}, [IntegerRange(0, 5)])
    assert known.range_of(graph.outputs[0]) == IntegerRange(low, high)


# ---- random programs: values of Python, or IndexError where Python raises it ---------------------


def random_index(rng, counters):
    text = rng.choice(counters)
    offset = rng.randint(-2, 2)
    if rng.random() < 0.2:
        return f"({text} + {offset}) % {rng.randint(2, 5)}"
    if rng.random() < 0.2 and len(counters) > 1:
        return f"{text} - {rng.choice(counters)}"
    return f"{text} + {offset}"


def random_source(rng):
    lines, indent, counters = ["def program(x, n):"], "    ", []
    lines.append(indent + "m = x.shape[0]")
    for k in range(rng.randint(1, 3)):
        ends = [*counters, "m", "n", str(rng.randint(0, 8))]
        start = f"{rng.choice([*counters, '0', '1'])} + {rng.randint(-1, 2)}"
        stop = f"{rng.choice(ends)} + {rng.randint(-2, 1)}"
        step = rng.choice(["1", "1", "1", "2", "-1", "-2"])
        if step.startswith("-"):
            start, stop = stop, start
        lines.append(f"{indent}for c{k} in range({start}, {stop}, {step}):")
        counters.append(f"c{k}")
        indent += "    "
        if rng.random() < 0.3:
            test = f"{rng.choice(counters)} + {rng.randint(-2, 2)} {rng.choice(['<', '<=', '>='])}"
            lines.append(f"{indent}if {test} {rng.choice([*counters, 'm', '3'])}:")
            indent += "    "
        i, j = random_index(rng, counters), random_index(rng, counters)
        lines.append(f"{indent}x[{i}] = 0.5 * x[{j}] + x[{random_index(rng, counters)}]")
    return "\n".join([*lines, "    return x"]) + "\n"


@pytest.mark.sample(8)
@pytest.mark.parametrize("seed", range(40))
def test_random_loops(seed):
    rng = random.Random(seed)
    text = random_source(rng)
    name = f"<ranges {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {}
    exec(compile(text, name, "exec"), space)
    program = space["program"]
    compiled = wg.jit(program)
    for length in (7, 6):
        for n in (np.array(5), np.array(8)):
            x = np.random.default_rng(seed).uniform(size=length)
            try:
                wanted = program(x.copy(), n)
            except IndexError:
                with pytest.raises((IndexError, TraceError), match="out of bounds"):
                    compiled(x.copy(), n)
                continue
            np.testing.assert_allclose(compiled(x.copy(), n), wanted, rtol=1e-13, err_msg=text)
