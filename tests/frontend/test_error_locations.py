"""Errors name the file, the line and the column of the user's expression, and show it."""

import inspect
import re

import numpy as np
import pytest

import wengert as wg
from wengert.errors import TraceError

X = np.arange(5.0)


def line_of(f, text):
    """The number of the line of a function that contains a text."""
    lines, first = inspect.getsourcelines(f)
    return first + next(k for k, line in enumerate(lines) if text in line)


def loop(x):
    y = x[:2]
    while y.sum() < 10.0:
        y = np.append(y, 1.0)
    return y


def expression(x):
    é = x * 2.0
    return é + (x[:2] if é[0] > 1.0 else x[:3])


def a_list_in_a_branch(x):
    out = []
    same = out
    if x[0] > 1.0:
        out.append(x[1])
    return sum(same)


@pytest.mark.parametrize(
    "f, text, column, shown",
    [
        (loop, "while", 5, "while y.sum() < 10.0:"),
        (expression, "return", 17, "x[:2] if é[0] > 1.0 else x[:3]"),
        (a_list_in_a_branch, "if x[0]", 5, "if x[0] > 1.0:"),
    ],
    ids=["loop", "expression", "a_list_in_a_branch"],
)
def test_the_column_and_the_source(f, text, column, shown):
    with pytest.raises(TraceError) as caught:
        wg.jit(f)(X)
    message, source, marks = str(caught.value).rsplit("\n", 2)
    assert re.search(
        rf"test_error_locations.py:{line_of(f, text)}:{column}, in {f.__name__}\)", message
    )
    start = marks.index("^")
    assert source[start : len(marks)] == shown and set(marks[start:]) == {"^"}


def reads(x, k):
    y = x * 2.0
    return y[k]


def writes(x, k):
    y = x * 2.0
    y[k] = 1.0
    return y


def reads_in_a_loop(x, k):
    s = 0.0
    for i in range(k):
        s += x[i] ** 2
    return s


def selects(x, k):
    rows = np.array([0, 1]) + k
    return np.sum(x[rows])


@pytest.mark.parametrize(
    "f, text",
    [(reads, "return"), (writes, "] ="), (reads_in_a_loop, "s +="), (selects, "return")],
    ids=lambda x: x.__name__ if callable(x) else "",
)
def test_an_index_out_of_bounds_names_its_line(f, text):
    compiled = wg.jit(f)
    assert np.all(np.isfinite(compiled(X.copy(), 3)))
    message = r"^index \d is out of bounds for axis 0 with size 5 \(at .*error_locations.py:{},"
    with pytest.raises(IndexError, match=message.format(line_of(f, text))):
        compiled(X.copy(), 7)


def of_a_counter(x, rows):
    s = 0.0
    for k in rows:
        s = s + x[k] ** 2
    return s


def of_the_same_loop(x, rows):
    s = 0.0

    for i in range(20):
        k = rows[i]
        s = s + x[k] ** 2
    return s


@pytest.mark.parametrize("derive", [lambda f: f, wg.grad, wg.value_and_grad, wg.hessian])
def test_equal_loops_of_two_functions_name_their_own_lines(derive):
    x, rows = np.linspace(1.0, 2.0, 30), np.arange(20)
    wrong = np.where(rows == 13, 44, rows)
    for f in (of_a_counter, of_the_same_loop, of_a_counter):
        compiled = wg.jit(derive(f))
        compiled(x, rows)
        line = line_of(f, "x[k]")
        with pytest.raises(IndexError, match=rf"index 44 .*error_locations.py:{line},"):
            compiled(x, wrong)


def none_or_number(x):
    def root(v):
        if v < 0:
            return None
        return np.sqrt(v)

    return root(x) * 2


def one_of_two_functions(x):
    return (np.sin if x > 0 else np.cos)(x)


def halved(v):
    return v if v < 0.1 else halved(v * 0.5)


def tuple_or_number(x):
    if x > 0:
        return x, x
    return x


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (none_or_number, r"result of the function is None or float64\[\], depending on data. Give"),
        (one_of_two_functions, "conditional expression becomes the function sin where it was the"),
        (tuple_or_number, r"the function becomes a tuple of 2 where it was float64\[\]"),
        (lambda x: halved(x), r"recurses infinitely.*test_error_locations.py:\d+, in halved"),
    ],
)
def test_what_differs_is_named(f, text):
    with pytest.raises(wg.errors.TraceError, match=text):
        wg.jit(f)(0.5)
