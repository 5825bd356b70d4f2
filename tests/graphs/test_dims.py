"""Symbolic sizes: arithmetic is that of integers, decisions hold for all sizes."""

import itertools
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wengert._engine.core.symbolic.constraints import (
    broadcast,
    demands,
    dim,
    require_at_least,
    require_equal,
    solve,
)
from wengert._engine.core.symbolic.dim import Dim, bounds, divided, valued
from wengert.errors import ShapeError, TracedBranchError

n, m, k = dim("n"), dim("m"), dim("k")


@st.composite
def expressions(draw, depth=3):
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["n", "m", "k", "1", "2", "3", "7"]))
    left, right = draw(expressions(depth=depth - 1)), draw(expressions(depth=depth - 1))
    sign = draw(st.sampled_from(["+", "-", "*", "//"]))
    if sign == "//":
        right = draw(st.sampled_from(["1", "2", "3", "n"]))
    return f"({left} {sign} {right})"


@settings(max_examples=300, deadline=None)
@given(expressions(), st.tuples(*[st.integers(1, 30)] * 3))
def test_arithmetic_is_that_of_integers(text, values):
    sizes = dict(zip("nmk", values, strict=True))
    assert valued(dim(text), sizes) == eval(text, {}, sizes)


@settings(max_examples=300, deadline=None)
@given(expressions())
def test_text_reads_back(text):
    size = dim(text)
    assert dim(str(size)) == size
    assert pickle.loads(pickle.dumps(size)) == size


@settings(max_examples=200, deadline=None)
@given(expressions(), st.integers(-5, 5))
def test_what_is_decided_holds_for_all_sizes(text, number):
    size = dim(text)
    try:
        decided = size > number
    except TracedBranchError:
        return
    for values in itertools.product([1, 2, 3, 10], repeat=3):
        assert (valued(size, dict(zip("nmk", values, strict=True))) > number) == decided


@settings(max_examples=200, deadline=None)
@given(expressions(depth=2), expressions(depth=2))
def test_exact_quotients(a, b):
    a, b = dim(a), dim(b)
    if b == 0:
        return
    quotient = divided(a * b, b)
    assert quotient is None or quotient == a


def test_equality_is_of_expressions():
    assert n + n == 2 * n and (n + 1) ** 2 == n**2 + 2 * n + 1
    assert n != m and n != 3 and n - n == 0 and type(n * 0) is int
    assert hash(n + m) == hash(m + n)
    assert (n * m * 6) // (2 * n) == 3 * m and (4 * n + 2) // 2 == 2 * n + 1
    assert n % 1 == 0 and (3 * n) % 3 == 0 and (n // 2) * 2 != n


def test_bounds():
    assert bounds(n) == (1, None) and bounds(n * m - n) == (0, None) and bounds(2 - n) == (None, 1)
    assert n >= 1 and n * m >= n and bool(n) and not (n < 1)
    with pytest.raises(TracedBranchError, match=r"n > 3 depends on the sizes"):
        bool(n > 3)


def test_a_size_is_no_number():
    for use in (int, float, range, lambda x: [0] * x, lambda x: "abc"[x]):
        with pytest.raises(TracedBranchError, match="not known while a graph is built"):
            use(n)


@pytest.mark.parametrize(
    "text", ["", "n+", "n.a", "f(n)", "1.5*n", "n**m", "n**-1", "n//0", "(" * 300]
)
def test_other_text_is_refused(text):
    with pytest.raises(ShapeError, match="is not a size"):
        dim(text)


def test_broadcasting():
    assert broadcast((n, 1, 3), (m, 1)) == (n, m, 3)
    assert broadcast((), (n,), (1,)) == (n,)
    with pytest.raises(ValueError, match=r"n and m are not known to be equal"):
        broadcast((n,), (m,))
    with pytest.raises(ValueError, match=r"\(n,\) and \(3,\)"):
        broadcast((n,), (3,))


def test_demands_are_collected_where_they_cannot_be_decided():
    with demands() as found:
        require_at_least(n, 1, "always")
        require_equal(2 * n, n + n, "always")
        require_at_least(n, 4, "sometimes")
        require_equal(n, m, "sometimes")
    assert [str(r.length) for r in found.needs] == ["n - 4", "n - m"]
    assert found.needs[0].holds({"n": 4}) and not found.needs[0].holds({"n": 3})
    assert found.needs[1].holds({"n": 4, "m": 4}) and not found.needs[1].holds({"n": 4, "m": 5})
    with pytest.raises(ValueError, match="never"):
        require_at_least(0 - n, 0, "never")
    with pytest.raises(ValueError, match="never"):
        require_equal(n, 0, "never")


def test_solving():
    assert solve([(n, 5, "a"), (2 * m + n, 11, "b")]) == {"n": 5, "m": 3}
    assert solve([(n * m, 12, "a"), (m, 4, "b")]) == {"m": 4, "n": 3}
    for pairs, match in [
        ([(2 * n, 5, "axis 0 of x")], "axis 0 of x has length 5"),
        ([(n, 5, "a"), (n, 6, "axis 1 of y")], r"axis 1 of y has length 6, but n = 5"),
        ([(n * m, 6, "a")], "cannot be determined"),
        ([(n * n, 9, "a")], "cannot be determined"),
        ([(n // 2, 3, "a")], "cannot be determined"),
        ([(n + 5, 3, "a")], "at least 1"),
        ([(n, 0, "a")], "at least 1"),
    ]:
        with pytest.raises(ShapeError, match=match):
            solve(pairs)


def test_what_does_not_divide_stays_a_quotient():
    half = (n + 1) // 2
    assert isinstance(half, Dim) and valued(half, {"n": 7}) == 4
    assert str(half) == "((n + 1)//2)" and dim(str(half)) == half
