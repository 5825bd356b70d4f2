"""Patterns of loops that read and write elements at positions given by their counters.

Positions that do not depend on data are computed step by step, so the pattern has exactly the
entries that the dense Jacobian has at one of several points.  Random programs are generated as
source: nested loops, slices and strides that depend on counters, integers that are carried from
step to step, branches on them, and loops with a condition.  Their entries are counted by running
them on numbers that know what they depend on (`dependences`): products of many small derivatives
underflow to zero.
"""

import linecache

import numpy as np
import pytest

import wengert as wg

LENGTH = 9


class Generator:
    """Random source text of a function of a vector."""

    def __init__(self, rng):
        self.rng, self.lines = rng, []

    def pick(self, *choices):
        return choices[int(self.rng.integers(len(choices)))]

    def number(self, low, high):
        return int(self.rng.integers(low, high))

    def position(self, counters):
        k = self.pick(*counters, "p")
        return self.pick(
            k, f"({k} + {self.number(1, 4)}) % {LENGTH}", f"{LENGTH - 1} - {k}", f"{k} // 2",
            f"(2 * {k} + p) % {LENGTH}", f"{k} - 1", f"order[{self.pick(*counters)}]",
        )  # fmt: skip

    def value(self, counters):
        a, b = self.pick("x", "y"), self.pick("x", "y")
        i, j, k = self.position(counters), self.position(counters), self.pick(*counters)
        return self.pick(
            f"np.sin({a}[{i}])",
            f"np.sin({a}[{i}] + {b}[{j}] * {self.number(1, 3)})",
            f"np.sum(np.sin({a}[{k}::{self.number(2, 4)}]))",
            f"np.sum(np.sin({a}[{k} // 2 : {k} // 2 + 3]))",
            f"np.sin(s) * {a}[{i}]",
            f"np.sin({a}[{i}]) * table[{k}]",
        )

    def statement(self, indent, counters, depth):
        pad = "    " * indent
        kind = self.number(0, 9 if depth else 6)
        if kind <= 1:
            at = self.position(counters)
            before = self.pick("", f"0.5 * y[{at}] + ")
            self.lines.append(f"{pad}y[{at}] = {before}{self.value(counters)}")
        elif kind == 2:
            self.lines.append(f"{pad}s = {self.pick('', '0.5 * s + ')}{self.value(counters)}")
        elif kind == 3:
            step = f"(p * {self.number(1, 3)} + {self.number(0, 4)}) % {LENGTH}"
            self.lines.append(f"{pad}p = {step}")
        elif kind == 4:
            k = self.pick(*counters)
            self.lines.append(f"{pad}y[{k} // 2 : {k} // 2 + 2] = np.sin(x[{k} // 2 + 1 :][:2])")
        elif kind == 5:
            k = self.pick(*counters, "p")
            self.lines.append(f"{pad}if {k} % {self.number(2, 4)} == {self.number(0, 2)}:")
            self.statement(indent + 1, counters, 0)
            if self.number(0, 2):
                self.lines.append(f"{pad}else:")
                self.statement(indent + 1, counters, 0)
        elif kind <= 7:
            name, outer = f"k{len(counters)}", self.pick(*counters)
            low, high = self.pick(
                ("0", f"{outer} + 1"), (f"max(0, {outer} - 2)", f"min({LENGTH}, {outer} + 2)"),
                (outer, str(LENGTH)), ("0", "3"),
            )  # fmt: skip
            self.lines.append(f"{pad}for {name} in range({low}, {high}):")
            self.block(indent + 1, [*counters, name], depth - 1)
        else:
            self.lines.append(f"{pad}q = {self.number(0, 3)}")
            self.lines.append(f"{pad}while q < {LENGTH - 1}:")
            self.block(indent + 1, [*counters, "q"], depth - 1)
            self.lines.append(f"{pad}    q = q + {self.number(1, 4)}")

    def block(self, indent, counters, depth):
        for _ in range(self.number(1, 4)):
            self.statement(indent, counters, depth)

    def program(self):
        self.lines = ["def f(x):", "    y = x * x", "    s = x[0]", f"    p = {self.number(0, 4)}"]
        for _ in range(self.number(1, 3)):
            self.lines.append(f"    for k in range({self.number(0, 3)}, {LENGTH}):")
            self.block(2, ["k"], 1)
        return "\n".join([*self.lines, "    return y", ""])


def defined(text):
    """The function, whose source can be read."""
    name = f"<loops-{abs(hash(text))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {
        "np": np,
        "order": np.random.default_rng(1).permutation(LENGTH),
        "table": np.random.default_rng(2).normal(size=LENGTH),
    }
    exec(compile(text, name, "exec"), space)
    return space["f"]


def reached(f, n, rng):
    """Where the dense Jacobian is not zero at one of three points."""
    points = 0.5 + rng.random((3, n))
    return np.any([wg.jacobian(f)(x) != 0 for x in points], axis=0)


class Dependent:
    """The set of the elements of x that a number depends on, as the bits of an integer."""

    def __init__(self, bits):
        self.bits = bits

    def _with(self, other):
        return Dependent(self.bits | getattr(other, "bits", 0))

    __add__ = __radd__ = __mul__ = __rmul__ = _with

    def sin(self):  # called by np.sin for arrays of objects
        return self


def dependences(f, n):
    """Which elements of x each element of f(x) depends on, by running f on plain NumPy."""
    y = f(np.array([Dependent(1 << k) for k in range(n)], dtype=object))
    return np.array([[bool(getattr(v, "bits", 0) >> k & 1) for k in range(n)] for v in y])


def check_program(text, rng):
    f = defined(text)
    pattern = wg.sparsity(f)(wg.spec(LENGTH)).toarray()
    np.testing.assert_array_equal(pattern, dependences(f, LENGTH))
    assert not np.any(reached(f, LENGTH, rng) & ~pattern), "entries are missing"


def check(f, n, rng):
    pattern, dense = wg.sparsity(f)(wg.spec(n)).toarray(), reached(f, n, rng)
    assert not np.any(dense & ~pattern), "entries are missing"
    np.testing.assert_array_equal(pattern, dense)


def strided(x):
    sums = np.zeros(12)
    for k in range(12):
        sums[k] = np.sum(x[k::12] ** 2)
    return sums


def windows(x):
    sums = np.zeros(len(x) - 2)
    for k in range(len(x) - 2):
        sums[k] = np.prod(x[k : k + 3])
    return sums


def every_second(x):
    y, i = np.zeros(len(x)), 0
    while i < len(x):
        y[i] = x[i] ** 2
        i += 2
    return y


def rows_in_reverse(x):
    def step(c, k):
        return 0.5 * c + x[k], (c * x[k - 1], k)

    return wg.scan(step, x[0], np.arange(len(x)), reverse=True)[1][0]


def chosen_by_counter(x):
    def step(k, y):
        return wg.cond(k % 2 == 0, lambda: y, lambda: np.roll(y, 1) * x[k])

    return wg.fori_loop(0, len(x), step, x)


@pytest.mark.parametrize(
    ("f", "n", "count"),
    [(strided, 48, 48), (windows, 40, 114), (every_second, 30, 15), (rows_in_reverse, 12, None),
     (chosen_by_counter, 9, None)],
)  # fmt: skip
def test_positions_in_loops(rng, f, n, count):
    check(f, n, rng)
    if count is not None:
        assert wg.sparsity(f)(wg.spec(n)).nnz == count


def test_entries(rng):
    x = rng.normal(size=48)
    for f in (strided, windows, rows_in_reverse):
        jac = wg.sparse_jacobian(f)
        np.testing.assert_allclose(jac(x).toarray(), wg.jacobian(f)(x), rtol=1e-12)
    plan = wg.sparse_jacobian(windows).plan(x)
    assert plan.passes == 3

    def energy(x):
        return np.sum(windows(x) ** 2)

    hess = wg.sparse_hessian(energy)(x)
    np.testing.assert_allclose(hess.toarray(), wg.hessian(energy)(x), rtol=1e-10, atol=1e-12)
    assert hess.nnz == 5 * 48 - 6


def test_positions_that_depend_on_data(rng):
    def f(x, k):
        y = 1.0 * x
        for _ in range(9):
            y[k] = y[k] * x[k - 1]
            k = (k + 2) % 9
        return y

    assert wg.sparsity(f)(np.ones(9), 3).nnz == 81
    assert wg.sparsity(lambda x: f(x, np.floor(x[0]).astype(int)))(np.ones(9)).nnz == 81


def test_many_steps_have_a_pattern_for_all_steps():
    """Above a number of steps the pattern is that of all positions together."""

    def f(x):
        y = x[:2] * 1.0
        for k in range(20_000):
            y[k % 2] = y[k % 2] * x[k % 3]
        return y

    pattern = wg.sparsity(f)(wg.spec(4)).toarray()
    assert pattern[:, :3].all()


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(20))
def test_random_loops(rng, seed):
    check_program(Generator(rng).program(), rng)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(500))
def test_many_random_loops(rng, seed):
    check_program(Generator(rng).program(), rng)


def test_derivatives_that_underflow_have_entries(rng):
    """y[2] depends on x[0], although its derivative is the product of 500 small ones."""
    text = """def f(x):
    y, s = x * x, x[0]
    for k in range(500):
        s = 0.5 * np.sin(s) * x[1]
    y[2] = s
    return y
"""
    check_program(text, rng)
    f = defined(text)
    assert wg.sparsity(f)(wg.spec(LENGTH)).toarray()[2, :3].tolist() == [True, True, False]
    assert wg.jacobian(f)(np.full(LENGTH, 1e-3))[2, 0] == 0.0
