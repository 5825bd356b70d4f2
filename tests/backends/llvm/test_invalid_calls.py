"""Invalid calls of native code: none crashes, none gives a wrong number.

Arrays that overlap, that are freed by another thread during the call, objects that lie about their
shape, positions out of range, results and arguments in strange layouts.
"""

import array
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import wengert as wg


def compiled(f):
    return wg.jit(f, backend="llvm")


def total(x, y):
    return np.exp(-x) * y + np.sum(x * y)


@pytest.mark.parametrize("n", [2, 9, 40, 1000])
def test_arguments_that_overlap(n, rng):
    f, x = compiled(total), rng.normal(size=n)
    for a, b in ((x, x), (x[1:], x[:-1]), (x[::2][: n // 2], x[1::2]), (x, x[::-1]), (x[:1], x)):
        np.testing.assert_allclose(f(a, b), total(a, b), rtol=1e-13, atol=1e-13)


def test_results_are_nobody_elses(rng):
    f = compiled(lambda x: (x, x.reshape(-1), x[::-1], x * 1.0, x + np.zeros(3)))
    x = rng.normal(size=(4, 3))
    before = x.copy()
    for y in f(x):
        y[...] = 7.0
    np.testing.assert_array_equal(x, before)
    assert not any(np.shares_memory(a, b) for a, b in zip(f(x), f(x), strict=True))


class WrongShape(np.ndarray):
    @property
    def shape(self):
        return (1_000_000,)


class WrongDtype(np.ndarray):
    @property
    def dtype(self):
        return np.dtype(np.int8)


class WrongStrides(np.ndarray):
    @property
    def strides(self):
        return (1 << 40,)


class Twofold:
    """An array of another shape each time it is asked."""

    shape, dtype, count = (3,), np.dtype(float), 0

    def __array__(self, dtype=None, copy=None):
        self.count += 1
        return np.ones(3 + 10_000 * self.count)


LIARS = {
    "shape": lambda x: x.view(WrongShape),
    "dtype": lambda x: x.view(WrongDtype),
    "strides": lambda x: x.view(WrongStrides),
    "twofold": lambda x: Twofold(),
    "interface": lambda x: type(
        "Interface", (), {"__array_interface__": {**x.__array_interface__, "shape": (2,)}}
    )(),
    "memoryview": memoryview,
    "array of Python": lambda x: array.array("d", x),
    "bytes": lambda x: bytearray(x.tobytes()),
    "other bytes": lambda x: x.astype(x.dtype.newbyteorder()),
    "not aligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype),
    "read only": lambda x: np.broadcast_to(x[:1], (5,)),
    "masked": lambda x: np.ma.array(x, mask=x > 0),
    "part of records": lambda x: np.zeros(5, [("a", "u1"), ("b", float)])["b"],
    "objects": lambda x: x.astype(object),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", LIARS)
def test_what_is_no_plain_array_is_refused_or_right(name, rng):
    f, x = compiled(lambda x: np.sum(np.exp(x)) + x), rng.normal(size=5)
    for _ in range(3):
        f(x)
        odd = LIARS[name](x)
        try:
            found = f(odd)
        except (wg.errors.WengertError, TypeError):
            continue
        plain = np.asarray(odd).view(np.ndarray)
        if name != "twofold":
            np.testing.assert_allclose(found, np.sum(np.exp(plain)) + plain, rtol=1e-13)


@pytest.mark.sample(1)
@pytest.mark.parametrize("position", [5, -6, 2**62, -(2**63)])
def test_positions_out_of_range(position, rng):
    x, where = rng.normal(size=(5, 3)), np.array([0, 4, position])
    takes = [
        lambda x, k: x[k],
        lambda x, k: x[:, None][k, 0] * 2.0,
        lambda x, k: np.take(x, k, axis=0) + 1.0,
        lambda x, k: np.take_along_axis(x, k[:, None], 0),
        lambda x, k: np.sum(np.exp(x[k])),
    ]
    for take in takes:
        f = compiled(take)
        np.testing.assert_allclose(f(x, where[:2]), take(x, where[:2]), rtol=1e-13)
        with pytest.raises(IndexError):
            f(x, where)
        with pytest.raises(IndexError):
            compiled(wg.grad(lambda x, k, take=take: np.sum(take(x, k))))(x, where)


def test_arguments_that_are_freed_by_another_thread():
    """Native code holds what it reads, whoever else lets go of it."""
    f = compiled(lambda x: np.sum(np.sin(x) * x) + x[0])
    holder, stop, wrong = [np.full(60_000, 1.0)], threading.Event(), []

    def change():
        k = 0
        while not stop.is_set():
            k += 1
            holder[0] = np.full(60_000, float(k % 7))
            if k % 200 == 0:
                gc.collect()

    thread = threading.Thread(target=change)
    thread.start()
    expected = {float(k): np.sin(k) * k * 60_000 + k for k in range(7)}
    try:
        for _ in range(100):
            found = f(holder[0])
            if not any(np.isclose(found, v, rtol=1e-9, atol=1e-9) for v in expected.values()):
                wrong.append(found)
    finally:
        stop.set()
        thread.join()
    assert not wrong


OF_NUMBERS = {
    "sum": lambda x: np.sum(x, axis=0),
    "nanmin": lambda x: np.nanmin(x, axis=0),
    "argmax": lambda x: np.argmax(x, axis=-1),
    "argsort": lambda x: np.argsort(x, axis=0),
    "cumsum": np.cumsum,
    "any": lambda x: np.any(x, axis=-1),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", OF_NUMBERS)
@pytest.mark.parametrize("x", [2.0, np.float32(-1.5), np.int8(3)], ids=str)
def test_numbers_have_an_axis_for_numpy(name, x):
    f = OF_NUMBERS[name]
    found = wg.trace(f)(x).run(x, backend="llvm")
    np.testing.assert_array_equal(found, f(x))
    assert np.shape(found) == np.shape(f(x))


@pytest.mark.parametrize(
    "f",
    [np.exp, np.sum, lambda x: np.round(x, 2), np.linalg.norm],
    ids=str.split("exp sum round norm"),
)
def test_programs_go_with_their_graphs(f):
    graph = wg.trace(f)(np.ones(3))
    graph.run(np.ones(3), backend="llvm")
    gone = weakref.ref(wg.backends.backend("llvm").compiled(graph))
    del graph
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)], ids=str)
def test_shares_of_nothing(shape):
    f = wg.grad(lambda x: np.sum(np.exp(x) / np.sum(np.exp(x)) * x))
    assert compiled(f)(np.zeros(shape)).shape == shape


def test_a_computation_can_be_pickled():
    f = wg.computation(wg.input("x", shape=3) * 2.0, backend="llvm")
    again = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(again(np.arange(3.0)), [0.0, 2.0, 4.0])
    assert again.backend is wg.backends.backend("llvm")


@pytest.mark.parametrize("step", [-3, -1, 0, 2])
def test_strides_of_any_sign(step, rng):
    """Where BLAS would want another first element, or takes no vector at all."""
    base, a = rng.normal(size=400), rng.normal(size=(80, 70))
    x = np.lib.stride_tricks.as_strided(base[220:], (70,), (8 * step,))
    op = wg._engine.core.op.lookup("strong_einsum")
    for f in (lambda a, x: a @ x, lambda a, x: op(a, x, subscripts=("ab", "b", "a"))):
        graph = wg.trace(f)(a, x)
        found = wg.backends.backend("llvm").compiled(graph, "CS").run([a, x], {})[0]
        np.testing.assert_allclose(found, a @ x, rtol=1e-12, atol=1e-12)
