"""Size: long chains, wide fans, deep nesting, many threads; linear time, bounded memory."""

import gc
import threading
import tracemalloc

import numpy as np
import pytest

import wengert as wg
from wengert._engine.kinds.opaque import Opaque


def chain(x, n):
    for _ in range(n):
        x = x * 1.0000001
    return x


@pytest.mark.parametrize("length", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_long_chain_of_operations(length):
    x = wg.tensor(1.0, requires_grad=True)
    y = chain(x, length)
    y.backward()
    assert abs(x.grad.item() - 1.0000001**length) < 1e-9
    del y
    gc.collect()


def test_a_fan_out_of_thirty_thousand():
    x = wg.tensor(np.array([1.0, 2.0]), requires_grad=True)
    terms = [x * float(k) for k in range(30_000)]
    total = terms[0]
    for t in terms[1:]:
        total = total + t
    total.sum().backward()
    assert x.grad.tolist() == [449985000.0] * 2


def diamonds(n):
    x = wg.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(n):
        y = y + y
    y.backward()
    return x.grad.item()


def test_diamonds_are_walked_once():
    assert diamonds(1000) == 2.0**1000


def test_each_line_is_handed_its_complete_cotangent_once():
    handed = []

    def rule(t, out, x):
        handed.append(float(t))
        return (t * 3.0,)

    thrice = Opaque(lambda x: x * 3.0, name="thrice", vjp=rule)
    x = wg.tensor(1.0, requires_grad=True)
    y = thrice(x)
    z = y
    for _ in range(10):
        z = z + y * 2.0
    (z * z).backward()
    assert handed == [2 * 63.0 * 21.0] and x.grad.item() == 3 * handed[0]
    wg.grad(lambda x: thrice(x) * thrice(x))(2.0)
    assert handed[1:] == [6.0, 6.0]


def test_backward_work_is_linear_in_the_length(calls):
    def measure(n):
        return calls(chain(wg.tensor(1.0, requires_grad=True), n).backward)

    measure(10)
    assert measure(8_000) < 11 * measure(800)


def test_only_what_lies_between_is_visited():
    a = wg.tensor(2.0, requires_grad=True)
    side = chain(a, 20_000)
    visited = []
    side.register_hook(visited.append)

    def f(x):
        return x * x + wg.stop_gradient(side)

    assert float(wg.grad(f)(3.0)) == 6.0
    assert not visited


def test_memory_of_a_chain():
    n = 5_000
    x = wg.tensor(np.ones(1), requires_grad=True)
    gc.collect()
    tracemalloc.start()
    y = chain(x, n)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del y
    array = 112 + 16  # the array header and its data are the value
    assert used / n - array < 400


def test_nesting_ten_deep():
    f = np.exp
    for _ in range(8):
        f = wg.grad(f)
    assert float(f(1.0)) == pytest.approx(np.e, rel=1e-14)


def test_threads_do_not_disturb_each_other():
    errors = []

    def work(k):
        try:
            for _ in range(50):
                if k % 2:
                    with wg.no_grad():
                        assert not (wg.tensor(1.0, requires_grad=True) * 2.0).requires_grad
                else:
                    g = wg.grad(lambda x: np.sum(np.sin(x * k)))(np.ones(5))
                    np.testing.assert_allclose(g, k * np.cos(k))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and wg.is_recording()


def test_the_order_of_accumulation_is_deterministic():
    def run():
        x = wg.tensor(np.linspace(0.1, 1.0, 7), requires_grad=True)
        y = sum(np.sin(x * k) for k in range(1, 30))
        y.sum().backward()
        return x.grad.numpy().tobytes()

    assert len({run() for _ in range(5)}) == 1
