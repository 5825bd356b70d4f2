"""Programs in the styles of scientific Python: state in lists, dicts and objects, exits, iterators.

The compiled function has NumPy's value, and its gradient is that of the eager tape and of
differences.
"""

import collections
import functools
import itertools
from typing import NamedTuple

import numpy as np
import pytest

import wengert as wg

N = 30
X = np.linspace(0.2, 1.2, N)


class Point(NamedTuple):
    a: object
    b: object


class Network:
    def __init__(self, x):
        self.h, self.n = [x[i] for i in range(12)], 0

    def forward(self, v):
        for i in range(12):
            self.h[i] = self.h[i] * 0.5 + v
            self.n += 1
        return self.h[-1]


def momentum(x):
    parameters, velocities = [x[k : k + 3] * 1.0 for k in range(12)], [np.zeros(3)] * 12
    for _ in range(20):
        for k in range(12):
            velocities[k] = 0.9 * velocities[k] - 0.1 * 2 * parameters[k]
            parameters[k] += velocities[k]
    return sum(np.sum(p * p) for p in parameters)


def insertion_sort(x):
    a = [x[i] for i in range(12)]
    for i in range(1, 12):
        key = a[i] * (i % 5)
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return sum(v * (i + 1) for i, v in enumerate(a))


def counts_and_sums(x):
    s = [(0.0, 0)] * 12
    for i in range(N):
        a, b = s[i % 12]
        s[i % 12] = (a + x[i], b + 1)
    return sum(a * b for a, b in s)


def replaced_tuples(x):
    points = [Point(x[i], x[i + 1]) for i in range(12)]
    for i in range(1, 12):
        points[i] = points[i]._replace(a=points[i - 1].a * 0.5 + points[i].b)
    return sum(p.a * p.b for p in points)


def dicts_in_a_list(x):
    d = [{"h": x[i], "c": x[i + 1]} for i in range(12)]
    for i in range(1, 12):
        d[i]["h"] = d[i - 1]["h"] * 0.5 + d[i]["c"]
    return sum(p["h"] * p["c"] for p in d)


def a_ring(x):
    s, n = [0.0] * 12, 0
    for i in range(N):
        if x[i] > 0.5:
            s[n % 12] = x[i]
            n += 1
    return sum(s) * n + s[-1]


def copies_of_a_list(x):
    s = [x[k] for k in range(12)]
    for k in range(12):
        t = s[:]
        t[k] = t[k] * 2
        s[k] = t[k] + t[0]
    return sum(s)


def a_list_of_an_object(x):
    network, total = Network(x), 0.0
    for i in range(N):
        total += network.forward(x[i])
    return total + sum(network.h) * network.n


def for_with_else(x):
    s = 0.0
    for i in range(N):
        if x[i] > 1:
            break
        s += x[i] ** 2
    else:
        s = s * 2
    for j in range(N):
        if x[j] > 5:
            break
        s += x[j]
    else:
        s = s * 3
    return s + i


def while_with_else(x):
    s, k = x[0], 0
    while s < 3:
        s = s * 1.3
        k += 1
        if k > 100:
            break
    else:
        s = s + x[1]
    return s


def a_named_condition(x):
    s = 0.0
    for i in range(N):
        if (y := x[i] ** 2) > 0.5:
            s += y
    return s + y


def cases(x):
    s = 0.0
    for i in range(12):
        match i % 3:
            case 0:
                s += x[i]
            case 1:
                s += x[i] ** 2
            case _:
                s *= 0.9
    return s


def iterators(x):
    s = functools.reduce(lambda a, b: a * 0.9 + b * b, x, 1.0)
    for a, b in itertools.pairwise(x):
        s += (b - a) * a
    for i, j in itertools.product(range(3), range(4)):
        s += x[i] * x[j] * (i - j)
    return s + sum(itertools.accumulate(x[:6]))


def a_generator(x):
    def values(n):
        v = x[0]
        for i in range(n):
            v = v * 0.9 + x[i]
            yield v

    return sum(values(N))


def entries_made_when_read(x):
    d = collections.defaultdict(float)
    for i in range(N):
        d[i % 3] += x[i]
    return d[0] * d[1] + d[2]


def newton(x):
    r = x[0]
    for _ in range(50):
        step = (r**3 - x[1] * 2) / (3 * r**2)
        r = r - step
        if abs(step) < 1e-12:
            break
    return r


def negative_steps(x):
    y = x[::-1] * 1.0
    y[::2] = y[::-2] * x[::2]
    y[-1:0:-3] *= 2
    return np.sum(y * np.arange(N))


def unpacked(x):
    a, *b, c = x
    first, *rest = x[:5]
    return a * c + sum(b) + sum(v**2 for v in rest) * first


def caught_in_a_loop(x):
    s, d = 0.0, {1: 2.0, 3: 4.0}
    for i in range(5):
        try:
            s += d[i] * x[i]
        except KeyError:
            s += x[i]
    return s


def decorated_inside(x):
    def scaled(g):
        @functools.wraps(g)
        def h(v):
            return g(v) * x[1]

        return h

    def square(v):
        return v * v

    @functools.wraps(newton)
    def outer(v):
        return scaled(square)(v) + x[2]

    total = 0.0
    for k in range(3):
        total = total + outer(x[k])
    return total


PROGRAMS = [
    momentum, insertion_sort, counts_and_sums, replaced_tuples, dicts_in_a_list, a_ring,
    copies_of_a_list, a_list_of_an_object, for_with_else, while_with_else, a_named_condition, cases,
    iterators, a_generator, entries_made_when_read, newton, negative_steps, unpacked,
    caught_in_a_loop, decorated_inside,
]  # fmt: skip


@pytest.mark.sample(4)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_gradients(f):
    np.testing.assert_allclose(wg.jit(f)(X), f(X), rtol=1e-11)
    gradient = wg.grad(f)(X)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X), gradient, rtol=1e-9, atol=1e-11)
    h = 1e-6 * np.eye(N)
    differences = [(f(X + h[k]) - f(X - h[k])) / 2e-6 for k in range(N)]
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-6)
