"""The interpreter: it gives what eager gives, lets memory go, and says where it failed."""

import threading
import weakref

import numpy as np
import pytest
from wengert.backends import Interpreter

import wengert as wg
from wengert._engine.backends import interpreter
from wengert._engine.backends.interpreter import InterpretedProgram
from wengert.errors import MatrixError


def program(graph, sizes=()):
    return InterpretedProgram(Interpreter(), graph, dict(sizes))


def mixed(x):
    a = np.sin(x)
    b = a * x
    view = b.reshape(2, -1)
    c = b + 1.0
    d = c * c
    e = np.exp(d * 0.01)
    kept = wg.debug.retrieve(e, "kept")
    f = kept * b
    return f + a, np.sum(view * 2.0), c.T, np.where(d > 1.0, f, 0.0)


@pytest.mark.parametrize("n", [4, 20_000])
@pytest.mark.parametrize("limit", [1, 1 << 40])
def test_same_numbers_as_eager_with_and_without_memory_used_again(monkeypatch, n, limit):
    monkeypatch.setattr(interpreter, "LIMIT", limit)
    x = np.linspace(-2.0, 2.0, n)
    graph = wg.trace(mixed)(x)
    for _ in range(2):
        first = graph(x)
        for got, want in zip(first, mixed(x), strict=True):
            np.testing.assert_array_equal(got, want)
    second = graph(2.0 * x)
    for got, want in zip(first, mixed(x), strict=True):  # what was returned is not written to
        np.testing.assert_array_equal(got, want)
    for got, want in zip(second, mixed(2.0 * x), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(x, np.linspace(-2.0, 2.0, n))


@pytest.mark.parametrize("limit", [1, 1 << 40])
def test_gradients_with_and_without_memory_used_again(monkeypatch, limit):
    monkeypatch.setattr(interpreter, "LIMIT", limit)
    x = np.linspace(0.1, 2.0, 30)

    def f(x):
        return np.sum(np.log(x) * np.tanh(x) / (1.0 + x * x) + x**3 * np.sin(x))

    for value, want in zip(
        wg.trace(wg.value_and_grad(f))(wg.spec("n"))(x), wg.value_and_grad(f)(x), strict=True
    ):
        np.testing.assert_allclose(value, want, rtol=1e-14)


def test_random_programs(monkeypatch):
    rng = np.random.default_rng(0)
    unary = [np.sin, np.negative, np.cos, np.tanh, np.transpose, np.ravel, np.cumsum]
    for trial in range(60):
        monkeypatch.setattr(interpreter, "LIMIT", 1 if trial % 2 else 1 << 40)
        choices = rng.integers(0, 1 << 30, size=(25, 3))

        def f(x, y, choices=choices):
            have = [x, y, x * 1.5]
            for kind, i, j in choices:
                a, b = have[i % len(have)], have[j % len(have)]
                if kind % 3 == 0:
                    have.append(np.tanh(unary[kind % len(unary)](a).reshape(6) * 0.3))
                elif kind % 3 == 1:
                    have.append(a * b + 0.1)
                else:
                    have.append(a - b)
            return have[-1], have[len(have) // 2], have[5]

        x, y = rng.normal(size=6), rng.normal(size=6)
        graph = wg.trace(f)(x, y)
        for got, want in zip(graph(x, y), f(x, y), strict=True):
            np.testing.assert_array_equal(got, want)
        for got, want in zip(graph(x, y), f(x, y), strict=True):
            np.testing.assert_array_equal(got, want)


def test_values_are_let_go_when_nobody_needs_them():
    class Tracked(np.ndarray):
        pass

    alive = []

    @wg.primitive
    def tracked(x):
        out = (x + 0.0).view(Tracked)
        alive.append((weakref.ref(out), sum(ref() is not None for ref, _ in alive)))
        return out

    def f(x):
        for _ in range(6):
            x = tracked(x)
        return np.sum(x)

    graph = wg.trace(f)(np.ones(3))
    alive.clear()
    assert graph(np.ones(3)) == 3.0
    assert len(alive) == 6
    assert max(count for _, count in alive) <= 1  # the operand, and nothing before it
    assert all(ref() is None for ref, _ in alive)


def test_an_array_that_somebody_holds_is_not_written_to():
    held = [np.ones((30, 1000))]
    step = interpreter.into_free_memory(np.negative, (0,), (0,), (30, 1000), np.dtype(float))
    keep = held[0]
    out = step([held[0], {}])
    assert out is not keep
    assert (keep == 1.0).all()
    slots = [np.ones((30, 1000)), {}]
    mine = id(slots[0])
    assert id(step(slots)) == mine
    view = [np.ones((30, 1000)), {}]
    part = view[0][0]
    step(view)
    assert (part == 1.0).all()


def test_memory_set_aside_is_used_again_once():
    key = ((4,), np.dtype(float))
    slots = [np.zeros(4), np.full(4, 2.0), {}]
    first = id(slots[0])
    slots[0] = interpreter.set_aside(0, key)(slots)
    assert [id(a) for a in slots[-1][key]] == [first]
    step = interpreter.into_free_memory(np.square, (1,), (), *key)
    out = step(slots)
    assert id(out) == first
    assert out.tolist() == [4.0] * 4
    assert id(step(slots)) != first


def test_slots_are_used_again():
    def f(x):
        for _ in range(100):
            x = np.sin(x) * 2.0
        return x

    assert len(program(wg.trace(f)(np.ones(3))).start) < 8


def test_errors_name_line_operation_and_source():
    def f(a):
        b = a * 2.0
        return np.linalg.inv(b)  # the line

    graph = wg.trace(f)(wg.spec((2, 2)))
    with pytest.raises(MatrixError) as caught:
        graph(np.zeros((2, 2)))
    assert "%3 = inv of float64[2,2]" in str(caught.value)
    assert f"test_interpreter.py:{f.__code__.co_firstlineno + 2}, in f" in str(caught.value)


def test_errors_of_users_operations():
    class Odd(Exception):
        pass

    @wg.primitive
    def failing(x):
        if x[0] == 0.0:
            raise Odd("no")
        if x[0] == 3.0:
            raise ValueError("three")
        return x

    graph = wg.trace(lambda x: failing(x * 2.0))(np.ones(2))
    with pytest.raises(Odd, match="no") as caught:
        graph(np.zeros(2))
    assert any("failing of float64[2]" in note for note in caught.value.__notes__)
    assert any("test_interpreter.py" in note for note in caught.value.__notes__)
    with pytest.raises(ValueError, match=r"^three") as other:
        graph(np.full(2, 1.5))
    assert any("failing of float64[2]" in note for note in other.value.__notes__)
    assert graph(np.ones(2)).tolist() == [2.0, 2.0]


def test_several_outputs_of_one_line():
    graph = wg.trace(lambda a: np.linalg.qr(a)[1] * 2.0)(wg.spec((3, 2)))
    a = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(graph(a), np.linalg.qr(a)[1] * 2.0)


def test_no_warnings_of_branches_not_taken():
    graph = wg.trace(lambda x: np.where(x > 0, np.log(x), 0.0))(wg.spec(2))
    assert graph(np.array([-1.0, 1.0])).tolist() == [0.0, 0.0]


def test_threads_share_a_program():
    x = np.linspace(0.0, 1.0, 50_000)
    graph = wg.trace(mixed)(x)
    want = [[np.array(v) for v in mixed(k * x)] for k in range(4)]
    wrong = []

    def work(k):
        for _ in range(5):
            for got, expected in zip(graph(k * x), want[k], strict=True):
                if not np.array_equal(got, expected):
                    wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
