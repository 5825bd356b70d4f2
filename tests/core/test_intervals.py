"""Bounds of integers that are computed from counters: all their values are inside."""

import itertools

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.traced_inputs import interval

RANGES = [(-7, 5), (-3, -1), (0, 6), (2, 9), (4, 4)]
FUNCTIONS = {
    "sum": lambda a, b: a + 2 * b - 3,
    "product": lambda a, b: a * b,
    "maximum": lambda a, b: np.maximum(a, b),
    "minimum": lambda a, b: np.minimum(a, -b),
    "remainder": lambda a, b: a % 3 + b,
    "remainder of a range": lambda a, b: a % (b % 2 + 4),
    "quotient": lambda a, b: a // 3 - b,
    "quotient of a range": lambda a, b: a // (b % 2 + 2),
    "choice": lambda a, b: np.where(a > b, a, b + 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_values_are_inside(name):
    f = FUNCTIONS[name]
    graph = wg.trace(f)(1, 1)
    for a, b in itertools.product(RANGES, RANGES):
        graph.inputs[0].note(interval=a)
        graph.inputs[1].note(interval=b)
        low, high = interval(graph.outputs[0])
        grid = np.meshgrid(np.arange(a[0], a[1] + 1), np.arange(b[0], b[1] + 1))
        values = f(*grid)
        assert low is not None and high is not None
        assert low <= values.min() and values.max() <= high


def test_a_single_value_is_exact():
    graph = wg.trace(lambda a: (17 - (a % 2 + 1)) // 2)(1)
    graph.inputs[0].note(interval=(0, 100))
    assert interval(graph.outputs[0]) == (7, 8)


@pytest.mark.parametrize("divisor", [0, -2])
def test_other_divisors_give_no_bounds(divisor):
    graph = wg.trace(lambda a, b: (a % b, a // b))(1, 1)
    graph.inputs[0].note(interval=(1, 5))
    graph.inputs[1].note(interval=(divisor, 3))
    assert [interval(x) for x in graph.outputs] == [(None, None)] * 2
