"""Which cases of a function are run by default (tests/selection.py).

A sample has each value of each parameter, if it has as many cases as there are values.
"""

from types import SimpleNamespace

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
