"""Independent parts of a loop group are split where they are identical, and only there."""

import numpy as np
import pytest
from wengert.backends import backend

import wengert as wg
from wengert._engine.backends.llvm.program import Program
from wengert._engine.backends.llvm.schedule.fusion import LoopGroup, split_loops

N = 200


def program(f, *arrays):
    graph = wg.trace(f)(*arrays).simplify()
    made = Program(graph)
    found = backend("llvm").compile(graph, {})(list(arrays))
    for mine, expected in zip(found, f(*arrays), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-13)
    return made


def spaces(made):
    return [len(s.roots) for w in made.plan.stages for s in getattr(w, "groups", ())]


def moved(p, g):
    m = 0.9 * p + 0.1 * g
    return m / (np.sqrt(g * g) + 1e-3), m


def arrays(count, size=N):
    random = np.random.default_rng(5)
    return [random.standard_normal(size) for _ in range(count)]


def test_updates_of_many_parameters_are_one_nest():
    given = arrays(10)

    def f(*xs):
        return [y for k in range(0, 10, 2) for y in moved(xs[k], xs[k + 1])]

    made = program(f, *given)
    assert spaces(made) == [2] * 5
    assert len({name for _, name in made.nests}) == 1


def test_what_shares_an_array_stays_together():
    given = arrays(6)
    made = program(lambda *xs: [np.exp(x) * xs[0] for x in xs], *given)
    assert spaces(made) == [6]


def test_few_small_or_different_ones_stay_together():
    assert spaces(program(lambda *xs: [np.exp(x) for x in xs], *arrays(3))) == [3]
    assert spaces(program(lambda *xs: [np.exp(x) for x in xs], *arrays(8, 8))) == [8]


def test_of_others_the_rest_is_one_loop():
    def f(*xs):
        return [np.exp(x) for x in xs[:4]] + [xs[4] * xs[4] * 3.0, xs[5] + 2.0]

    assert spaces(program(f, *arrays(6))) == [1, 1, 1, 1, 2]


def test_sums_and_what_needs_them_keep_their_order():
    def f(*xs):
        return [y for x in xs for y in (x * np.sum(x), np.max(x) - x)]

    made = program(f, *arrays(5))
    assert len({name for _, name in made.nests}) < len(made.nests)


def test_a_gradient_of_many_identical_loops_is_the_same():
    def loss(*xs):
        return sum(np.sum(np.tanh(x) ** 2) for x in xs)

    given = arrays(6)
    f = wg.jit(wg.grad(loss, argnums=tuple(range(6))))
    for x, found in zip(given, f(*given), strict=True):
        t = np.tanh(x)
        np.testing.assert_allclose(found, 2 * t * (1 - t * t), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_stages_that_are_not_loop_groups_stay(count):
    stages = [object() for _ in range(count)]
    assert split_loops(stages, lambda root: []) == stages
    assert split_loops([LoopGroup((N,))], lambda root: [])[0].roots == []
