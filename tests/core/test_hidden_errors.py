"""Errors of ours that a function of C replaces by its own, and tensors that are hashed."""

import array
import decimal
import functools
import itertools
import json
import random
import statistics
import struct

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ConversionError, TraceError
from wengert.nn import Parameter

# What is refused in functions that are not converted.
pytestmark = pytest.mark.usefixtures("unconverted")

X = np.array([0.5, 1.5])


def plain():
    return np.array([1.0, 2.0])


def store(target, key, value):
    target[key] = value
    return 0.0


def memory():
    return memoryview(bytearray(8)).cast("d")


NUMBERS = {
    "flat": lambda t: store(plain().flat, 0, t[0]),
    "struct double": lambda t: struct.pack("d", t[0]),
    "struct single": lambda t: struct.pack("<f", t[0]),
    "memoryview": lambda t: store(memory(), 0, t[0]),
    "element": lambda t: store(plain(), 0, t[0]),
    "elements": lambda t: store(plain(), slice(None), t),
    "fill": lambda t: plain().fill(t[0]),
    "put": lambda t: plain().put(0, t[0]),
    "np.put": lambda t: np.put(plain(), 0, t[0]),
    "np.copyto": lambda t: np.copyto(plain(), t),
    "np.place": lambda t: np.place(plain(), plain() > 0, t),
    "array.array": lambda t: array.array("d").append(t[0]),
    "array of array": lambda t: store(array.array("d", [0.0]), 0, t[0]),
    "np.array": lambda t: np.array(t),
    "np.float64": lambda t: np.float64(t[0]),
    "complex": lambda t: complex(t[0]),
    "% f": lambda t: "%f" % t[0],  # noqa: UP031
    "normal": lambda t: np.random.default_rng(0).normal(t[0]),
}
INTEGERS = {
    "struct": lambda n: struct.pack("q", n),
    "bytes": lambda n: bytes(n),
    "bytearray": lambda n: bytearray(n),
    "% d": lambda n: "%d" % n,  # noqa: UP031
    "islice": lambda n: list(itertools.islice([1, 2], n)),
    "list times": lambda n: [1, 2] * n,
    "times list": lambda n: n * [1, 2],
    "tuple times": lambda n: (1, 2) * n,
    "times tensors": lambda n: [n, n] * n,
    "slice": lambda n: [1, 2][:n],
    "element": lambda n: [1, 2][n],
    "range": lambda n: range(n),
    "key": lambda n: {1: 2.0}[n],
    "get": lambda n: {1: 2.0}.get(n, 3.0),
    "tuple as key": lambda n: {(1, 1): 2.0}.get((1, n), 3.0),
    "member": lambda n: n in {1, 2},
    "set": lambda n: {n, n},
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_leaves_is_refused_by_us(name):
    f = NUMBERS[name]
    for error, call in (
        (ConversionError, wg.grad),
        (ConversionError, lambda f: lambda x: wg.jvp(f, (x,), (x,))),
        ((TraceError, ConversionError), wg.jit),  # of traced values that would be written
        ((TraceError, ConversionError), lambda f: wg.jit(wg.grad(f))),
    ):
        with pytest.raises(error, match=r"tensor|np\.|wengert\.") as caught:
            call(lambda t: (f(t), np.sum(t))[1])(X)
        assert "test_hidden_errors.py" in str(caught.value)


@pytest.mark.parametrize("name", INTEGERS)
def test_a_traced_integer_names_static_argnames(name):
    f = INTEGERS[name]
    for call in (wg.jit, wg.trace):
        with pytest.raises(TraceError, match=r"static_argnames='n'.*test_hidden_errors\.py"):
            call(lambda n: (f(n), 1.0)[1])(1)
    wg.jit(lambda n: (f(n), 1.0)[1], static_argnames="n")(1)  # and that works


def test_an_error_of_the_users_own_is_not_ours():
    def number(x):
        try:
            return float(x)
        except TypeError:
            return 0.0

    def packed(x):
        number(x)
        return struct.pack("d", "text")

    def both(x):
        for value in (x, "text"):
            try:
                struct.pack("d", value)
            except struct.error as error:
                last = error
        raise last

    def raised(x):
        number(x)
        raise ValueError("required argument is not a float")

    for f, error in ((packed, struct.error), (raised, ValueError)):
        with pytest.raises(error, match="required argument") as caught:
            wg.grad(f)(1.0)
        assert not isinstance(caught.value, ConversionError)
    with pytest.raises((struct.error, ConversionError)):
        wg.grad(both)(1.0)
    with pytest.raises(ValueError, match="could not convert"):
        wg.grad(lambda x: x * sum(float(v) for v in map(number, (x,))) * float("text"))(1.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda t: decimal.Decimal(t[0]),
        lambda t: statistics.mean(t),
        lambda t: json.dumps(t[0]),
        lambda t: random.seed(t[0]),
        lambda t: np.nditer(t),
        lambda t: np.frombuffer(t),
    ],
)
def test_what_never_asks_the_tensor_gets_a_note(f):
    for call in (wg.grad(f), wg.jit(f), wg.jit(wg.grad(f))):
        with pytest.raises(TypeError) as caught:
            call(X)
        (note,) = caught.value.__notes__
        assert "x.detach().item()" in note and "test_hidden_errors.py" in note


# ---- keys --------------------------------------------------------------------------------------


def test_a_number_that_is_differentiated_is_no_key():
    table = {2.0: 3.0}
    for f in (
        lambda x: table.get(x, 1.0) * x,
        lambda x: table[x] * x,
        lambda x: x * (x in {2.0}),
        lambda x: functools.lru_cache(lambda v: v * v)(x),
    ):
        with pytest.raises(ConversionError, match=r"table\[x\.detach\(\)\.item\(\)\]"):
            wg.grad(f)(2.0)
        with pytest.raises(ConversionError, match=r"table\[x\.detach\(\)\.item\(\)\]"):
            wg.jvp(f, (2.0,), (1.0,))
        for call in (wg.jit(f), wg.trace(f), wg.jit(wg.grad(f))):
            with pytest.raises(TraceError, match=r"wengert\.switch"):
                call(2.0)
    assert wg.grad(lambda x: table[x.detach().item()] * x)(2.0) == 3.0
    values = np.array([3.0, 5.0])
    assert wg.jit(lambda i: wg.numpy.take(values, i))(1) == 5.0  # what the message says
    assert wg.jit(lambda i: wg.switch(i, [np.sin, np.square], 3.0))(1) == 9.0


def test_what_was_there_before_is_found_by_identity():
    w = wg.tensor(2.0, requires_grad=True)
    p = Parameter(2.0)
    for x in (w, p):
        held = {x: 3.0}
        assert x in {x} and held[x] == 3.0 and wg.grad(lambda v, x=x, h=held: h[x] * v)(1.0) == 3.0

        def step(v, x=x, held=held):
            y = (x * v) ** 2
            x.zero_grad()
            y.backward()
            with wg.no_grad():
                x[...] = x - held[x] * x.grad
            return held[x] * x

        assert wg.jit(step)(1.0) == 3.0 * (2.0 - 3.0 * 4.0)
    assert wg.grad(lambda v: np.sum({v: v}[v]))(X).tolist() == [1.0, 1.0]  # an array: by identity


def test_inputs_of_graphs_built_by_hand_are_fed_as_keys():
    x, y = wg.input("x"), wg.input("y")
    f = wg.computation(x * y, x, y)
    assert f({x: 3.0, y: 2.0}) == 6.0
    assert wg.jit(lambda t: f({x: t, y: 2.0}))(3.0) == 6.0
    assert wg.grad(lambda t: f({x: t, y: 2.0}))(3.0) == 2.0
    assert {x * y: 1.0} and x * y not in {x: 1.0}


def test_in_the_body_of_a_loop():
    table = {1: 2.0}
    for f in (
        lambda n: wg.fori_loop(0, 3, lambda i, s: s + table.get(i, 0.0), 0.0),
        lambda n: wg.fori_loop(0, 3, lambda i, s: s + table.get(n, 0.0), 0.0),
        lambda n: wg.vmap(lambda v: v * table.get(v, 0.0))(np.ones(2)),
    ):
        with pytest.raises(TraceError, match="a dict or set"):
            wg.jit(f)(1)


# ---- lists that are repeated -------------------------------------------------------------------


def test_a_list_times_a_integer_is_numpys():
    three, number = wg.tensor([3, 2])[0], wg.tensor(3)
    assert type(three.node.value) is np.int64 and type(number.node.value) is np.ndarray
    assert [1, 2] * three == three * [1, 2] == [1, 2] * np.int64(3)
    assert (1, 2) * three == (1, 2) * np.int64(3)
    items = [1]
    items *= three
    assert items == [1, 1, 1]
    assert np.array_equal(([1, 2] * number).numpy(), [1, 2] * np.array(3))
    assert np.array_equal(wg.jit(lambda n: [1, 2] * n)(np.array([3, 4])), [3, 8])
    assert np.array_equal(wg.jit(lambda x: [1, 2] * x)(0.5), [0.5, 1.0])


def test_the_method_clip_of_a_plain_array():
    bounds = np.array([0.5, 3.0])
    for f, g in (
        (lambda t: plain().clip(t, 4.0), lambda t: np.clip(plain(), t, 4.0)),
        (lambda t: plain().clip(0.0, t[0]), lambda t: np.clip(plain(), 0.0, t[0])),
        (lambda t: plain().clip(min=t), lambda t: np.clip(plain(), t, None)),
    ):
        assert np.array_equal(wg.jit(f)(bounds), f(bounds))
        for mode in (wg.jacobian, lambda f: wg.jit(wg.jacobian(f))):
            assert np.array_equal(mode(f)(bounds), mode(g)(bounds))
