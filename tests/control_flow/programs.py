"""Programs with loops that people write, for tests that compare ways of running and deriving them.

    PROGRAMS    by name: a function of arrays that returns a number, and its operands
    Program     the same with what its derivatives are taken by

All numbers are moderate and no operand is at a kink, so that finite differences are of use.
"""

from typing import Any, NamedTuple

import numpy as np

import wengert as wg


class Program(NamedTuple):
    """A function that returns a number; its operands; those that are no numbers to derive by."""

    f: Any
    args: tuple[Any, ...]
    fixed: tuple[Any, ...] = ()

    @property
    def of_args(self):
        """The function of what it can be derived by."""
        return lambda *args: self.f(*args, *self.fixed)


rng = np.random.default_rng(0)
PROGRAMS = {}


def program(*args, fixed=()):
    """Enter a function into the table (a decorator)."""

    def entered(f):
        PROGRAMS[f.__name__] = Program(f, args, fixed)
        return f

    return entered


# ---- along time --------------------------------------------------------------------------------


def rk4(f, y, h):
    a = f(y)
    b = f(y + 0.5 * h * a)
    c = f(y + 0.5 * h * b)
    d = f(y + h * c)
    return y + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)


@program(np.array([1.2, 0.8, 1.1]), np.array([10.0, 28.0, 8.0 / 3.0]))
def lorenz(y, p):
    def right(y):
        return np.stack(
            [p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]]
        )

    end, _ = wg.scan(lambda y, _: (rk4(right, y, 0.01), None), y, None, 12)
    return np.sum(end**2) * 1e-2


@program(np.float64(0.8), rng.uniform(0.5, 1.5, 6))
def recurrence(a, xs):
    def step(h, x):
        h = a * h + np.sin(x)
        return h, h * h

    end, ys = wg.scan(step, 0.0, xs)
    return end + np.sum(ys)


@program(np.float64(0.8), rng.uniform(0.5, 1.5, 6))
def recurrence_backwards(a, xs):
    end, ys = wg.scan(lambda h, x: (a * h + x, (h, x * h)), 0.3, xs, reverse=True)
    return end + ys[0] @ np.arange(6.0) + np.sum(ys[1] ** 2)


@program(rng.normal(size=(2, 2)) * 0.4, rng.normal(size=(2, 2)))
def matrix_carry(a, m):
    def step(i, m):
        return np.tanh(a @ m) + 0.1 * m.T

    return np.sum(wg.fori_loop(0, 4, step, m) ** 2)


@program(rng.normal(size=(4, 3)), rng.normal(size=(5, 2)), rng.normal(size=3) * 0.1)
def recurrent_network(w, xs, h):
    def step(state, x):
        h, c = state
        z = np.concatenate([x, h]) @ np.concatenate([w, w[:1]])
        c = np.tanh(z) + 0.5 * c
        return (np.tanh(c) * h + 0.1, c), {"h": h, "z": z[0]}

    (h, c), ys = wg.scan(step, (h, np.zeros(3)), xs)
    return np.sum(h * c) + np.sum(ys["h"] ** 2) + np.prod(ys["z"])


@program(rng.uniform(0.5, 1.0, 5))
def garch(returns):
    def step(v, r):
        v = 0.1 + 0.2 * r * r + 0.6 * v
        return v, np.log(v) + r * r / v

    return np.sum(wg.scan(step, np.float64(1.0), returns)[1])


# ---- elements ----------------------------------------------------------------------------------


@program(np.array([0.5, 1.5, -0.4]))
def written_elements(x):
    def step(i, y):
        y[i] = x[i % 3] * y[i - 1] + 0.1
        return y

    return np.sum(wg.fori_loop(1, 6, step, np.ones(6)) ** 2)


@program(np.array([0.5, 1.5, -0.4, 0.9]))
def read_elements(x):
    def step(i, s):
        return s * 0.5 + x[i] * x[3 - i]

    return wg.fori_loop(0, 4, step, 1.0)


@program(np.array([0.5, 1.5, -0.4, 0.9]))
def sieve(x):
    """Written with strides, read behind."""

    def outer(i, y):
        def inner(j, y):
            y[j] += 0.3 * y[i] * x[j]
            return y

        return wg.fori_loop(i + 1, 4, inner, y)

    return np.sum(wg.fori_loop(0, 3, outer, x.copy()))


@program(rng.normal(size=(3, 3)) + 3.0 * np.eye(3), rng.normal(size=3))
def back_substitution(a, b):
    def step(k, x):
        i = 2 - k
        x[i] = (b[i] - a[i] @ x) / a[i, i]
        return x

    return np.sum(wg.fori_loop(0, 3, step, np.zeros(3)) ** 2)


@program(rng.uniform(0.2, 0.9, (2, 3)), fixed=(np.array([0, 2, 2, 1]),))
def counted_rows(table, index):
    """Rows of a table by number; integers are carried beside."""

    def step(carry, i):
        total, count = carry
        total = total + np.sum(table[:, i] ** 2) * count
        return (total, count + 1), table[i % 2]

    (total, count), ys = wg.scan(step, (0.0, 1), index)
    return total + np.sum(ys**3) * count


# ---- as long as needed -------------------------------------------------------------------------


def root(a, x):
    def far(x):
        return np.abs(x * x - a) > 1e-13

    return wg.while_loop(far, lambda x: 0.5 * (x + a / x), x, max_steps=60)


@program(np.array([2.0, 3.0, 0.7]))
def newton_in_scan(a):
    end, ys = wg.scan(lambda x, v: (root(v * x, v), x), np.float64(1.3), a)
    return end + np.sum(ys)


@program(np.float64(1.7), np.float64(0.3))
def while_with_captured(a, b):
    value = wg.while_loop(
        lambda c: (c[0] < 6.0) & (c[1] < 30),
        lambda c: (c[0] * a + b * c[2], c[1] + 1, c[2] * b),
        (b, 0, a),
    )
    return value[0] * value[2] + value[1]


@program(np.array([0.2, 0.6, 0.9]))
def while_in_while(x):
    def inner(c):
        return wg.while_loop(lambda d: np.sum(d) < 2.0, lambda d: d * 1.3 + 0.1 * c, c)

    def outer(c):
        return inner(c[0]) * x, c[1] * x[1]

    return np.sum(wg.while_loop(lambda c: c[1] > 0.5, outer, (x, x.sum()))[0])


@program(np.array([0.7, 1.1]), fixed=(4,))
def bound_from_outside(x, n):
    return np.sum(wg.fori_loop(n - 3, n + 1, lambda i, y: np.sin(y * i) + x, x))


# ---- choices -----------------------------------------------------------------------------------


@program(rng.normal(size=6), np.float64(0.4))
def cond_in_scan(xs, a):
    def step(c, x):
        c = wg.cond(
            x > 0.0, lambda c: c * x + a, lambda c: wg.cond(c > 0.5, np.sin, np.cos, c) * a, c
        )
        return c, c

    end, ys = wg.scan(step, 0.3, xs)
    return end + np.sum(ys**2)


@program(np.array([0.5, 1.5, -0.4]))
def switch_in_while(x):
    branches = [lambda y: np.sin(y) * x, lambda y: y + x[0], lambda y: np.roll(y, 1) * 1.2]
    end, _ = wg.while_loop(
        lambda c: c[1] < 7, lambda c: (wg.switch(c[1] % 4, branches, c[0]), c[1] + 1), (x, 0)
    )
    return np.sum(end**2)


@program(np.float64(-0.5), np.array([1.0, 4.0]))
def branch_not_taken(x, y):
    """The other branch has no finite derivative here."""
    value = wg.cond(np.sum(y) > 0.0, lambda: x * x * y, lambda: np.sqrt(x) * y)
    return np.sum(value * wg.cond(x > 0.0, np.log, np.exp, x))


# ---- containers, dtypes ------------------------------------------------------------------------


@program(np.array([0.5, 1.5, -0.4]), np.float64(0.8))
def complex_carry(x, a):
    def step(z, v):
        return z * z * 0.3 + (a + 1j) * v, np.abs(z) ** 2

    end, ys = wg.scan(step, 0.1 + 0.2j, x)
    return end.real * end.imag + np.sum(ys)


class Pair(NamedTuple):
    mean: Any
    rest: Any


@program(np.array([0.5, 1.5, -0.4]))
def containers(x):
    def step(c, row):
        mean = 0.5 * c.mean + row["a"] * row["b"][0]
        return Pair(mean, {"n": c.rest["n"] + 1, "none": None, "k": [mean * x]}), (row["b"], None)

    start = Pair(x[0], {"n": 0, "none": None, "k": [x]})
    end, ys = wg.scan(step, start, {"a": x, "b": (x * x, None)})
    return end.mean * end.rest["n"] + np.sum(end.rest["k"][0]) + np.sum(ys[0][0] ** 2)


# ---- many, prefixes ----------------------------------------------------------------------------


@program(rng.uniform(0.5, 1.5, (3, 2)), np.float64(0.7))
def many_in_scan_in_many(m, a):
    def of_row(row):
        def step(c, v):
            inner = wg.vmap(lambda u: wg.fori_loop(0, 2, lambda i, t: t * a + u, u * c))(row)
            return np.sum(inner) * 0.3, v * c

        end, ys = wg.scan(step, a, row)
        return end + np.sum(ys)

    return np.sum(wg.vmap(of_row)(m) ** 2)


@program(rng.uniform(0.5, 1.5, (3, 2)))
def rows_that_end_apart(m):
    def of_row(row):
        steps = wg.while_loop(lambda c: np.sum(c) < 9.0, lambda c: c * row + 1.0, row)
        return wg.cond(row[0] > 1.0, np.sin, np.square, steps)

    return np.sum(wg.vmap(of_row)(m))


@program(rng.uniform(0.5, 1.5, (5, 2)))
def mapped_rows(m):
    return np.sum(wg.map(lambda r: np.outer(r, r) @ r, m) * wg.map(np.sin, m, batch_size=2))


@program(rng.uniform(0.5, 0.9, (5, 2)), rng.normal(size=(5, 2)))
def prefixes(a, b):
    def then(p, q):
        return p[0] * q[0], p[1] * q[0] + q[1]

    first, second = wg.associative_scan(then, (a, b))
    back = wg.associative_scan(then, (b, a), reverse=True)
    across = wg.associative_scan(np.multiply, a, axis=-1)
    return np.sum(first * second) + np.sum(np.tanh(back[1])) + np.sum(across**2)


@program(rng.normal(size=(4, 2, 2)))
def products_of_matrices(m):
    ends = wg.associative_scan(np.matmul, m, axis=0)
    back = wg.associative_scan(np.matmul, m, reverse=True)
    return np.sum(np.tanh(ends)) + np.sum(back[0])


# ---- no steps ----------------------------------------------------------------------------------


@program(np.array([0.5, 1.5]), fixed=(np.zeros((0, 2)), 0))
def no_steps(x, rows, n):
    end, ys = wg.scan(lambda c, r: (c * r, c + r), x, rows)
    known = wg.fori_loop(3, 1, lambda i, c: c * x, x)
    counted = wg.fori_loop(2, n, lambda i, c: c * x, x)
    until = wg.while_loop(lambda c: np.sum(c) < 0.0, lambda c: c * x, x)
    return np.sum(end * known * counted * until) + np.sum(ys)
