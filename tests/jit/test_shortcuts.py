"""Calls with containers: the fast path gives what the slow path gives, and nothing else does.

The slow path is that of a fresh function, which has no shortcut yet.
"""

import threading
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import optree
import pytest

import wengert as wg
from wengert._engine.core import pytree
from wengert._engine.jit.entry_dispatch import MISSED, Shortcut

Pair = namedtuple("Pair", "a b")
X = np.arange(3.0)


def doubled(x, **more):
    return pytree.tree_map(lambda leaf: None if leaf is None else leaf * 2.0, (x, more))


def same(found, wanted):
    (leaves, structure), (others, other) = pytree.flatten(found), pytree.flatten(wanted)
    assert structure == other and repr(leaves) == repr(others)


@pytest.fixture
def short(monkeypatch):
    """The shortcuts that served calls."""
    served = []
    plain = Shortcut.__call__

    def counted(self, args, kwargs):
        found = plain(self, args, kwargs)
        if found is not MISSED:
            served.append(self)
        return found

    monkeypatch.setattr(Shortcut, "__call__", counted)
    return served


NESTED = [
    {"w": X, "b": 1.0},
    {"b": 1.0, "w": X},
    OrderedDict(w=X, b=1.0),
    OrderedDict(b=1.0, w=X),
    defaultdict(list, w=X, b=1.0),
    [X, 1.0],
    (X, 1.0),
    Pair(X, 1.0),
    [X],
    [X, None],
    [X, X[:2]],
    [X.astype(np.float32), 1.0],
    {"w": [X, {"b": (X,)}], "c": Pair(X, [X])},
    {"w": [X, OrderedDict(b=(X,))], "c": Pair(X, [X])},
    {"w": X},
    {},
    [],
    {1: X, 0: 2.0},
    {(1, 2): X},
    [[[X]]],
    [wg.tensor(X), 1.0],
    {"w": X[::2], "b": 2},
]


def test_what_is_nested_otherwise_is_not_mistaken(short, compiler):
    wanted = [wg.jit(doubled)(x) for x in NESTED]
    count = 0
    for first in NESTED:
        f = wg.jit(doubled)
        short.clear()
        f(first)
        f(first)
        for shortcut in short[:1]:
            for x, w in zip(NESTED, wanted, strict=True):
                found = shortcut((x,), {})
                if found is not MISSED:
                    same(found, w)
                    count += 1
                assert shortcut((x,), {"y": X}) is MISSED and shortcut((), {"x": x}) is MISSED
    assert count >= 16 if compiler == "llvm" else count == 0


def test_a_call_like_the_one_before_takes_the_fast_path(short, compiler):
    f = wg.jit(doubled)
    for x in ({"w": X, "b": 1.0}, [X, {"c": X}], (X, None), Pair(X, X)):
        f(x)
        short.clear()
        f(x)
        assert len(short) == (compiler == "llvm"), x
    g = wg.jit(lambda x, y: x["w"] * y)
    g({"w": X}, y=X)
    short.clear()
    np.testing.assert_array_equal(g({"w": X}, y=X + 1), X * (X + 1))
    assert len(short) == (compiler == "llvm")


def test_several_shapes_and_dtypes(short, compiler):
    f = wg.jit(lambda p: np.sum(p["a"]) * p["b"])
    cases = [{"a": np.ones(n, t), "b": b} for n in (2, 3, 5) for t in "fd" for b in (2.0, 3)]
    wanted = [np.sum(c["a"]) * c["b"] for c in cases]
    for _ in range(3):
        for c, w in zip(cases, wanted, strict=True):
            found = f(c)
            assert found == w and found.dtype == w.dtype
    assert bool(short) == (compiler == "llvm")


def test_what_is_not_fed_counts_by_its_value(short, compiler):
    f = wg.jit(lambda x, mode: x["a"] * 2 if mode is None else x["a"] + len(mode))
    x = {"a": X}
    for _ in range(2):
        np.testing.assert_array_equal(f(x, None), X * 2)
        np.testing.assert_array_equal(f(x, "abc"), X + 3)
        np.testing.assert_array_equal(f(x, "".join(["a", "b"])), X + 2)
    assert bool(short) == (compiler == "llvm")


def test_what_may_change_its_value_takes_the_slow_path():
    f = wg.jit(lambda x, names: x["a"] * len(names))
    names = {"b"}
    np.testing.assert_array_equal(f({"a": X}, names), X)
    names.add("c")
    np.testing.assert_array_equal(f({"a": X}, names), 2 * X)


def test_tensors_and_derivatives_of_what_has_a_shortcut():
    f = wg.jit(lambda p: np.sum(p["a"] ** 2))
    f({"a": X})
    t = wg.tensor(X, requires_grad=True)
    f({"a": t}).backward()
    np.testing.assert_array_equal(t.grad, 2 * X)
    np.testing.assert_array_equal(wg.grad(f)({"a": X})["a"], 2 * X)
    np.testing.assert_array_equal(wg.vmap(f)({"a": np.stack([X, X])}), [5.0, 5.0])
    assert len(wg.trace(f)({"a": X}).nodes) > 2


def test_it_is_forgotten_with_the_programs():
    f = wg.jit(doubled)
    f([X])
    f.clear_cache()
    same(f([X]), doubled([X]))
    assert f.cache_info().traces == 1


def test_results_are_new_each_time():
    f = wg.jit(lambda p: {"sum": p["a"] + p["b"], "none": None})
    p = {"a": X, "b": X}
    first = f(p)
    second = f(p)
    third = f(p)
    second["sum"][0] = 7.0
    assert first["sum"][0] == third["sum"][0] == 0.0 and second["none"] is None


def test_many_structures_and_threads():
    f = wg.jit(doubled)
    cases = [{"a": X, "b": [X] * n} for n in range(6)]
    wanted = [repr(doubled(c)) for c in cases]
    wrong = []

    def work():
        for _ in range(30):
            wrong.extend(c for c, w in zip(cases, wanted, strict=True) if repr(f(c)) != w)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_is_not_an_array_is_refused_as_before():
    f = wg.jit(lambda p: p["a"] * 2.0)
    f({"a": X})
    f({"a": X})
    with pytest.raises(TypeError):
        f({"a": object()})
    with pytest.raises(KeyError):
        f({"b": X})
    with pytest.raises(TypeError):
        f()


class Headed(list):
    """A list whose second element is not looked at; registered so by its user."""


optree.register_pytree_node(
    Headed,
    lambda x: (x[:1], None, None),
    lambda _, x: Headed([*x, "rest"]),
    namespace=pytree.NAMESPACE,
)


def test_a_user_says_what_is_in_a_subclass():
    f = wg.jit(lambda x: x[0] * 2.0)
    for _ in range(3):
        np.testing.assert_array_equal(f(Headed([X, "rest"])), X * 2)


def test_policies_are_seen():
    f = wg.jit(lambda p: p["a"] * np.float64(2.0))
    p = {"a": X.astype("f4")}
    for _ in range(2):
        assert f(p).dtype == np.float64
    with wg.policy(max_float="float32"):
        assert f(p).dtype == np.float32
    assert f(p).dtype == np.float64
