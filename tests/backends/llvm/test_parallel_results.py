"""Threads change the order of sums, and nothing else.

For one number of threads results are the same to the last bit from run to run, whoever comes first;
for different numbers they agree to rounding.  Arrays are large enough to be shared among threads.
"""

import os
import threading

import numpy as np
import pytest

import wengert as wg

N = 400_000


def rows(x):
    return np.exp(x - np.max(x, axis=1, keepdims=True))


FUNCTIONS = {
    "elementwise": lambda x: np.exp(np.sin(x)) / (1.0 + x * x),
    "sum": lambda x: np.sum(np.exp(x)),
    "rows": lambda x: rows(x) / np.sum(rows(x), axis=1, keepdims=True),
    "columns": lambda x: np.sum(np.sin(x) * np.exp(x), axis=0),
    "extremes": lambda x: (np.max(np.sin(x)), np.min(np.exp(x), axis=0), np.max(np.cos(x), axis=1)),
    "variance": lambda x: (np.var(np.exp(x), axis=1), np.var(np.exp(x), axis=0)),
    "places": lambda x: (np.argmax(np.sin(x), axis=1), np.argmax(np.exp(np.sin(x)))),
    "product": lambda x: np.prod(1.0 + 1e-3 * np.sin(x), axis=0),
    "columns first": lambda x: np.exp(x) / np.sum(np.exp(x), axis=0),
    "count": lambda x: np.count_nonzero(np.sin(x) > 0.5, axis=0),
    "gradient": wg.grad(
        lambda x: np.sum(rows(x) / np.sum(rows(x), axis=1, keepdims=True) * np.sin(x))
    ),
    "product of matrices": lambda x: x.T @ np.sin(x),
}
SHAPES = ((N // 100, 100), (100, N // 100), (3, N // 2), (N // 2, 3), (N // 2 + 1, 1), (1, N))


def leaves(x):
    return [np.asarray(y) for y in (x if isinstance(x, tuple) else (x,))]


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_number_of_threads_changes_rounding_only(name, rng):
    f = FUNCTIONS[name]
    for shape in SHAPES[:: 1 if name in ("sum", "columns", "rows") else 3]:
        if name == "product of matrices" and shape[1] > 1000:
            continue
        x = rng.normal(size=shape)
        with np.errstate(all="ignore"):
            wanted = leaves(f(x))
        for threads in (1, 2, 3):
            g = wg.jit(f, backend="llvm", threads=threads)
            first = leaves(g(x))
            for a, b in zip(first, wanted, strict=True):
                assert a.dtype == b.dtype and a.shape == b.shape
                scale = float(np.max(np.abs(b)))
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13 * scale)
            for _ in range(3):
                for a, b in zip(leaves(g(x)), first, strict=True):
                    np.testing.assert_array_equal(a, b)


def test_many_threads_of_python_call_at_once(rng):
    """Functions that use threads themselves, of several sizes, first calls among them."""
    f = wg.jit(lambda x: (np.sum(np.exp(x), axis=1), np.exp(np.sin(x))), backend="llvm", threads=2)
    inputs = [rng.normal(size=(n, 50)) for n in (3, 40, 1000, 20_000)]
    wanted = [(np.sum(np.exp(x), axis=1), np.exp(np.sin(x))) for x in inputs]
    wrong, start = [], threading.Barrier(8)

    def call(k):
        start.wait()
        for turn in range(25):
            n = (k + turn) % len(inputs)
            for a, b in zip(f(inputs[n]), wanted[n], strict=True):
                if not np.allclose(a, b, rtol=1e-12, atol=0):
                    wrong.append((k, turn))

    workers = [threading.Thread(target=call, args=(k,)) for k in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_threads_compute(rng):
    """The child has one thread, and compiles and computes as the parent does."""
    f = wg.jit(lambda x: np.sum(np.exp(x), axis=1), backend="llvm", threads=2)
    x = rng.normal(size=(20_000, 50))
    wanted, stop = f(x), threading.Event()

    def busy():
        while not stop.is_set():
            f(x)

    worker = threading.Thread(target=busy)
    worker.start()
    try:
        for k in range(4):
            child = os.fork()
            if child == 0:
                try:
                    same = np.array_equal(f(x), wanted)
                    g = wg.jit(lambda x, k=k: np.cos(x) * k, backend="llvm")
                    os._exit(0 if same and np.allclose(g(x), np.cos(x) * k) else 1)
                except BaseException:
                    os._exit(2)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        worker.join()


PRODUCTS = {
    "rows behind each other": lambda a, b, c: a @ b,
    "of a transpose": lambda a, b, c: a.T.copy().T @ b,
    "by a transpose": lambda a, b, c: a @ b.T.copy().T,
    "both": lambda a, b, c: a.T.copy().T @ b.T.copy().T,
    "added": lambda a, b, c: c + a @ b,
    "of three axes": lambda a, b, c: a.reshape(-1, 1, a.shape[1]) @ b,
    "gradient": wg.grad(lambda a, b, c: np.sum((a @ b - c) ** 2), (0, 1)),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_that_threads_share(name, dtype, rng):
    """Blocks of rows: the same bits on two threads and on three, as the blocks are the same."""
    f = PRODUCTS[name]
    for m, k, n in ((97, 512, 200), (529, 130, 128), (4001, 64, 40))[:: 1 if dtype == "f4" else 2]:
        a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
        c = rng.normal(size=(m, n)).astype(dtype)
        runs = [leaves(wg.jit(f, threads=t)(a, b, c)) for t in (1, 2, 3)]
        wanted = leaves(f(*(x.astype("f8") for x in (a, b, c))))
        for one, two, three, exact in zip(*runs, wanted, strict=True):
            np.testing.assert_array_equal(two, three)
            near = np.max(np.abs(exact)) * 60 * np.finfo(dtype).eps
            np.testing.assert_allclose(one, exact, rtol=0, atol=near)
            np.testing.assert_allclose(two, exact, rtol=0, atol=near)


BATCHES = {
    "matmul": lambda q, k, c: np.swapaxes(q, 1, 2) @ np.moveaxis(k, 1, 3) + c,
    "einsum": lambda q, k, c: np.einsum("bthd,bshd->bhts", q, k),
    "one axis for all": lambda q, k, c: np.einsum("bthd,shd->bhts", q, k[0]),
    "rows are summed": lambda q, k, c: np.einsum("bthd,bthe->bhde", q, k),
    "scaled and added": lambda q, k, c: 0.5 * np.einsum("bthd,bshd->bhts", q, k) + c,
    "transposed result": lambda q, k, c: np.einsum("bthd,bshd->bsth", q, k),
    "gradient": wg.grad(lambda q, k, c: np.sum(np.einsum("bthd,bshd->bhts", q, k) ** 2), (0, 1)),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", BATCHES)
def test_batches_of_products_that_threads_share(name, rng):
    """Each product is that of one thread, bit for bit, also where parts do not divide a batch."""
    for b, t, h, d in ((8, 64, 4, 32), (7, 40, 3, 33), (40, 16, 1, 100), (5, 1, 3, 7)):
        q, k = (rng.normal(size=(b, t, h, d)).astype("f") for _ in "qk")
        c = rng.normal(size=(b, h, t, t)).astype("f")
        one, *others = (leaves(wg.jit(BATCHES[name], threads=n)(q, k, c)) for n in (1, 2, 3))
        wanted = leaves(BATCHES[name](*(x.astype("f8") for x in (q, k, c))))
        for n, exact in enumerate(wanted):
            near = np.max(np.abs(exact)) * 200 * np.finfo("f").eps
            np.testing.assert_allclose(one[n], exact, rtol=0, atol=near)
            for other in others:
                np.testing.assert_array_equal(other[n], one[n])
