"""Which cases of a function are run by default (tests/selection.py).

A sample has each value of each parameter, if it has as many cases as there are values.
"""

from types import SimpleNamespace

import pytest
from tests import selection
from tests.selection import parameters, spread


def cases_of(first, second):
    """As pytest makes them of two marks: it numbers the cases, not the values of each mark."""
    pairs = [(a, b) for a in first for b in second]
    numbered = [({"a": a, "b": b}, {"a": k, "b": k}) for k, (a, b) in enumerate(pairs)]
    return [SimpleNamespace(callspec=SimpleNamespace(params=p, indices=i)) for p, i in numbered]


def test_a_sample_has_each_value_of_each_parameter():
    functions, names = [abs, len, max, min], ["one", "two", "three", "four"]
    for first, second in ((functions, names), (names, functions), (functions, [int, str])):
        cases = [parameters(case) for case in cases_of(first, second)]
        chosen = [cases[k] for k in spread(cases, len(first))]
        assert [len({case[k] for case in chosen}) for k in (0, 1)] == [len(first), len(second)]


def test_functions_of_the_same_cases_take_different_ones():
    """By their names; the first where the mark says so, and where all are taken all of them."""

    def chosen(name, *marks, **options):
        mark = pytest.mark.sample(*marks, **options).mark
        cases = [Case(name, {"method": k}, mark) for k in range(5)]
        selection.sampled(cases, quick=False)
        return [k for k, case in enumerate(cases) if not case.is_slow]

    names = [f"test_{k}" for k in range(40)]
    assert {tuple(chosen(name, 1)) for name in names} == {(k,) for k in range(5)}
    assert [chosen(name, 1) for name in names] == [chosen(name, 1) for name in names]
    assert all(chosen(name, 1, first=0) == [0] and len(chosen(name, 5)) == 5 for name in names)
    assert all(chosen(name, 2) == [0, 4] for name in names)


class Case:
    """What `sampled` reads and writes of an item of pytest."""

    path = selection.TESTS / "test_any.py"

    def __init__(self, name, params, mark):
        self.originalname, self.is_slow = name, False
        self.callspec, self.mark = SimpleNamespace(params=params), mark

    def get_closest_marker(self, name):
        return self.mark if name == self.mark.name else None

    def add_marker(self, mark):
        self.is_slow = mark.name == "slow"
