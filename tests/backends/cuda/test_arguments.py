"""What goes to a device and comes back: arguments, results, errors, updates, modified arrays."""

import copy
import pickle
import sys
import threading

import numpy as np
import pytest
from wengert.backends import emulated_device

import wengert as wg
from wengert.errors import BackendError, ConversionError, DtypeError, GuardError, ShapeError


@pytest.fixture(autouse=True)
def device():
    with emulated_device() as found:
        yield found


double = wg.jit(lambda x: 2.0 * x, backend="cuda")


def test_results_stay_on_the_device(device):
    y = double(np.arange(3.0))
    assert device.owns(y)
    assert device.owns(double(y))
    with pytest.raises(TypeError, match="implicitly"):
        np.asarray(y)
    assert np.array_equal(wg.device_get(double(y)), [0.0, 4.0, 8.0])


def test_nests_of_arrays_are_put_and_got():
    tree = {"a": np.arange(3), "b": [1.5, np.ones((2, 2), np.float32)]}
    back = wg.device_get(wg.device_put(tree))
    assert back["a"].dtype == np.int64
    assert back["b"][1].dtype == np.float32
    assert back["b"][0] == 1.5
    assert np.array_equal(wg.device_get(wg.device_put(wg.tensor([1.0, 2.0]))), [1.0, 2.0])


def test_any_layout_and_dtype():
    x = np.arange(12.0).reshape(3, 4)
    for y in (x.T, x[:, ::2], np.asfortranarray(x), x[::-1]):
        assert np.array_equal(wg.device_get(double(y)), 2.0 * y)
    for dtype in (np.float16, np.float32, np.complex64, np.int8, np.uint16):
        got = wg.device_get(double(x.astype(dtype)))
        assert got.dtype == (2.0 * x.astype(dtype)).dtype
        assert np.array_equal(got, 2.0 * x.astype(dtype))


def test_numbers_are_arguments():
    f = wg.jit(lambda x, a, b: a * x + b, backend="cuda")
    for a in (2, 2.5, 1 + 2j, np.float16(0.5), np.float32(3.0), True):
        assert np.allclose(wg.device_get(f(np.arange(3.0), a, 1.0)), a * np.arange(3.0) + 1.0)
    assert wg.device_get(f(wg.device_put(3.0), wg.device_put(2.0), 1.0)) == 7.0


def test_results_share_no_memory_with_arguments():
    x = wg.device_put(np.arange(3.0))
    same, again, flat = wg.jit(lambda x: (x, x, x.reshape(3, 1)), backend="cuda")(x)
    same[0] = again[1] = 9.0
    flat[2] = 8.0
    assert np.array_equal(x.get(), [0.0, 1.0, 2.0])
    assert np.array_equal(again.get(), [0.0, 9.0, 2.0])


def test_arguments_are_modified_in_place():
    def halve(x):
        x[1:] *= 0.5

    f = wg.jit(halve, backend="cuda")
    on_host = np.ones(3)
    on_device = wg.device_put(on_host)
    f(on_host)
    f(on_device)
    assert np.array_equal(on_host, [1.0, 0.5, 0.5])
    assert np.array_equal(on_device.get(), on_host)


def test_variables_are_updated():
    w = wg.variable(np.zeros(3), "w")
    x = wg.input("x", shape=3)
    train = wg.computation(np.sum(w * x), x, updates={w: w + x}, backend="cuda")
    for k in range(3):
        assert wg.device_get(train(np.ones(3))) == 3.0 * k
    assert np.array_equal(w.numpy(), [3.0, 3.0, 3.0])


def test_tensors_stay_on_the_host():
    t = wg.tensor(np.array([1.0, 2.0]), requires_grad=True)
    y = double(t).sum()
    y.backward()
    assert float(y) == 6.0
    assert np.array_equal(t.grad, [2.0, 2.0])


def test_transformations_of_compiled_functions():
    x = np.array([0.5, 1.0])
    f = wg.jit(lambda x: np.sum(np.sin(x)), backend="cuda")
    assert np.allclose(wg.grad(f)(x), np.cos(x))
    batch = wg.jit(wg.vmap(wg.grad(f)), backend="cuda")
    assert np.allclose(wg.device_get(batch(np.stack([x, 2 * x]))), np.cos([x, 2 * x]))


# ---- bad input -----------------------------------------------------------------------------------


def test_an_array_of_a_device_is_not_taken_by_other_backends():
    x = wg.device_put(np.arange(3.0))
    with pytest.raises(ConversionError, match=r"backend='cuda'.*device_get"):
        wg.jit(lambda x: 2.0 * x)(x)
    with pytest.raises(ConversionError, match="backend='cuda'"):
        wg.trace(lambda x: 2.0 * x)(np.arange(3.0))(x)


def test_shapes_and_dtypes_are_checked():
    graph = wg.trace(lambda x: 2.0 * x)(np.arange(3.0))
    run = wg.computation(graph, backend="cuda")
    with pytest.raises(ShapeError, match=r"x has shape \(4,\)"):
        run(wg.device_put(np.arange(4.0)))
    with pytest.raises(DtypeError, match="complex128"):
        run(wg.device_put(np.arange(3) * 1j))
    assert np.array_equal(wg.device_get(run(wg.device_put(np.arange(3)))), [0.0, 2.0, 4.0])


def test_an_index_out_of_range_is_an_error_with_the_line():
    f = wg.jit(lambda x, i: np.sum(x[i] ** 2), backend="cuda")
    assert wg.device_get(f(np.arange(3.0), np.array([-1, 1]))) == 5.0
    with pytest.raises(IndexError, match=r"index 3 is out of bounds.*test_arguments"):
        f(np.arange(3.0), np.array([0, 3]))
    assert wg.device_get(f(np.arange(3.0), np.array([-1, 1]))) == 5.0


def test_a_singular_matrix_is_an_error():
    f = wg.jit(np.linalg.inv, backend="cuda")
    with pytest.raises(wg.errors.MatrixError, match="ingular"):
        f(np.ones((2, 2)))


def test_a_loop_without_end_is_an_error():
    f = wg.jit(
        lambda x: wg.while_loop(lambda s: s > 0, lambda s: s + 1, x, max_steps=10), backend="cuda"
    )
    with pytest.raises(GuardError, match="max_steps=10"):
        f(1.0)


def test_without_cupy_the_message_says_what_to_install(monkeypatch):
    from wengert._engine.backends.cuda import current_device

    token = current_device._CURRENT.set(None)
    monkeypatch.setitem(sys.modules, "cupy", None)
    try:
        with pytest.raises(BackendError, match=r"needs CuPy.*pip install 'wengert\[cuda\]'"):
            double(np.ones(2))
    finally:
        current_device._CURRENT.reset(token)


def test_only_numbers_are_put_on_a_device():
    with pytest.raises(wg.errors.ArgumentError, match="not numeric"):
        wg.device_put({"a": "text"})


def test_values_that_are_not_finite_are_found():
    f = wg.jit(lambda x: np.sum(np.log(x)), backend="cuda")
    with wg.debug(nan=True), pytest.raises(wg.errors.NotFiniteError, match="log"):
        f(wg.device_put(np.array([1.0, -1.0])))
    assert np.isnan(wg.device_get(f(wg.device_put(np.array([1.0, -1.0])))))


def test_kernels_are_shown_without_a_device():
    def f(x, w):
        return np.sum(np.tanh(x @ w), axis=1)

    lowered = wg.jit(f, backend="cuda").lower(wg.spec(("n", 40)), wg.spec((40, 3)))
    assert lowered.loops.splitlines()[:2] == ["1 kernel", "call matmul"]
    assert "kernel0 over (n, 3), reduced along (1,): " in lowered.loops
    assert ".visible .entry kernel0(" in lowered.assembly
    assert "define void @kernel0(" in lowered.llvm_ir
    rows = wg.jit(lambda x: wg.fori_loop(0, 40, lambda i, s: s * 0.5 + 1.0, x), backend="cuda")
    assert "a loop of 50 rows: scan" in rows.lower(np.ones(50)).loops


def test_the_backend_is_pickled_and_compiled_functions_are_copied():
    backend = wg.backends.backend("cuda")
    assert pickle.loads(pickle.dumps(backend)) is backend
    assert np.array_equal(wg.device_get(copy.deepcopy(double)(np.ones(2))), [2.0, 2.0])


def test_several_threads():
    failures = []

    def work(seed):
        try:
            with emulated_device(seed=seed):
                for k in range(5):
                    assert np.array_equal(wg.device_get(double(np.full(3, k))), np.full(3, 2.0 * k))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
