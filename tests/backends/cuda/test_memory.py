"""Memory on a device: epilogues of products are one kernel, which is written over the product."""

import numpy as np
import pytest
from wengert.backends import emulated_device

import wengert as wg
from wengert._engine.backends.cuda import EmulatedDevice, library_calls
from wengert._engine.backends.cuda.device_emulation import DeviceArray
from wengert._engine.backends.cuda.memory import is_apart
from wengert._engine.backends.cuda.program import _Run


def erf(x):
    return wg.scipy.special.erf(x)


EPILOGUES = {
    "bias": lambda x, w, b, r: x @ w + b,
    "activation": lambda x, w, b, r: np.maximum(x @ w + b, 0.0),
    "gelu": lambda x, w, b, r: (x @ w + b) * 0.5 * (1.0 + erf((x @ w + b) * 0.7071)),
    "residual": lambda x, w, b, r: r + np.tanh(x @ w + b),
    "scaling": lambda x, w, b, r: 0.1 * (x @ w) + 0.9 * r,
}


@pytest.fixture
def allocated(monkeypatch):
    """The shapes of new arrays."""
    found = []
    empty = EmulatedDevice.empty

    def recorded(self, shape, dtype):
        found.append(shape)
        return empty(self, shape, dtype)

    monkeypatch.setattr(EmulatedDevice, "empty", recorded)
    return found


def layer():
    rng = np.random.default_rng(0)
    return [rng.normal(size=s) for s in ((40, 30), (30, 50), (50,), (40, 50))]


@pytest.mark.parametrize("name", EPILOGUES)
def test_an_epilogue_is_one_kernel_without_new_memory(name, allocated):
    f, args = wg.jit(EPILOGUES[name], backend="cuda"), layer()
    stages = f.lower(*args).loops.splitlines()
    assert stages[:2] == ["1 kernel", "call matmul"]
    assert len(stages) == 3
    with emulated_device():
        got = wg.device_get(f(*args))
    assert allocated == []
    assert np.allclose(got, EPILOGUES[name](*args), rtol=1e-13)


def test_products_that_are_needed_later_are_kept(allocated):
    cases = {
        "as a result": lambda x, w, b, r: (x @ w, np.tanh(x @ w + b)),
        "elsewhere": lambda x, w, b, r: (x @ w)[::-1] + b,
        "in two kernels": lambda x, w, b, r: np.sum(np.tanh(x @ w), axis=1)[:, None] * (x @ w),
        "twice": lambda x, w, b, r: (x @ w) + (x @ w)[:, ::-1],
        "its transpose": lambda x, w, b, r: np.sum((x @ w).T, axis=1) + (x @ w),
    }
    args = layer()
    for name, f in cases.items():
        with emulated_device(threads=16):
            got = wg.device_get(wg.jit(f, backend="cuda")(*args))
        wanted = f(*args)
        pairs = zip(got, wanted, strict=True) if isinstance(got, tuple) else [(got, wanted)]
        assert all(np.allclose(a, b, rtol=1e-12) for a, b in pairs), name
        assert allocated, name
        allocated.clear()


def test_arguments_are_not_written_over():
    with emulated_device():
        x, w, b, r = map(wg.device_put, layer())
        before = [y.get() for y in (x, w, b, r)]
        wg.jit(lambda x, w, b, r: (r + 1.0, np.sin(b), x @ w + r), backend="cuda")(x, w, b, r)
    assert all(np.array_equal(a, y.get()) for a, y in zip(before, (x, w, b, r), strict=True))


def test_products_of_half_precision_are_summed_in_single():
    rng = np.random.default_rng(1)
    x, w = (rng.uniform(size=s).astype(np.float16) for s in ((3, 6), (6, 5)))
    with emulated_device():
        got = wg.device_get(wg.jit(np.matmul, backend="cuda")(x, w))
    wanted = (x.astype(np.float32) @ w.astype(np.float32)).astype(np.float16)
    assert got.dtype == np.float16
    assert np.array_equal(got, wanted)


def test_which_arrays_share_memory():
    x = DeviceArray(np.arange(24.0).reshape(4, 6))
    parts = {"first": x[:2], "last": x[2:], "backwards": x[1::-1], "none": x[:0]}
    assert is_apart(parts["first"], [parts["last"]])
    assert not is_apart(parts["first"], [parts["last"], parts["backwards"]])
    assert is_apart(parts["backwards"], [parts["last"], parts["none"]])
    assert not is_apart(x, [x[1:2, ::-1]])


def test_arrays_with_other_axes_are_not_copied(allocated):
    a, b = np.eye(3) * np.arange(1.0, 5.0)[:, None, None], np.ones((4, 3))
    f = wg.jit(lambda a, b: np.linalg.solve(a, b[..., None])[..., 0], backend="cuda")
    stages = f.lower(a, b).loops.splitlines()
    assert stages[0] == "1 kernel"
    assert stages[2].startswith("no copy")
    with emulated_device():
        assert np.array_equal(wg.device_get(f(a, b)), np.linalg.solve(a, b[..., None])[..., 0])
    assert allocated == [(4, 3, 1)]
    others = {
        "transposed": lambda a, b: np.linalg.inv(a).mT,
        "part": lambda a, b: np.linalg.inv(a)[1:],
        "backwards": lambda a, b: np.linalg.inv(a)[::-1],
        "needed": lambda a, b: (np.linalg.inv(a).reshape(4, 9), np.linalg.inv(a).reshape(12, 3)),
        "repeated": lambda a, b: np.broadcast_to(np.linalg.inv(a[:1]), (4, 3, 3)),
    }
    for name, g in others.items():
        with emulated_device():
            got = wg.device_get(wg.jit(g, backend="cuda")(a, b))
        wanted = g(a, b)
        pairs = zip(got, wanted, strict=True) if isinstance(got, tuple) else [(got, wanted)]
        assert all(np.allclose(x, y, rtol=1e-14) for x, y in pairs), name


def products():
    """Gradients that contain products with strong zeros; of a matrix that is finite, and not."""
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(20, 30)), rng.normal(size=(30, 40))
    infinite = w.copy()
    infinite[4, 5] = np.inf
    infinite[6, 7] = np.nan

    def f(x, w):
        y = x @ w
        return np.sum(np.where(np.isfinite(y), y, 0.0) ** 2)

    return wg.grad(f), x, w, infinite


def test_strong_zeros(monkeypatch):
    slope, x, w, infinite = products()
    runs = []
    results = _Run.results
    monkeypatch.setattr(
        _Run, "results", lambda self, *values: (runs.append(1), results(self, *values))[1]
    )

    def refuse(program, node, *rest):
        raise AssertionError(f"{node.op.name} was computed on the host")

    f = wg.jit(slope, backend="cuda")
    assert "strong_einsum" in f.lower(x, w).loops
    with emulated_device():
        with monkeypatch.context() as patch:
            patch.setattr(library_calls, "_on_host", refuse)
            assert np.allclose(wg.device_get(f(x, w)), slope(x, w), rtol=1e-13)
        assert len(runs) == 1
        with np.errstate(invalid="ignore"):
            wanted = slope(x, infinite)
            got = wg.device_get(f(x, infinite))
    assert len(runs) == 3  # by the library the second time
    assert np.isfinite(wanted).all()
    assert np.allclose(got, wanted, rtol=1e-13)


def test_an_argument_that_there_is_no_memory_for_is_named():
    f = wg.jit(lambda a, points: np.sum(points) * a, backend="cuda")
    with (
        emulated_device(memory=1000),
        pytest.raises(wg.errors.DeviceMemoryError, match=r"8\.0 kB\), the argument points: "),
    ):
        f(2.0, np.ones(1000))


def test_operations_without_memory_are_those_of_the_program():
    f = wg.jit(lambda x: np.sort(np.outer(x, x)), backend="cuda")
    with (
        emulated_device(memory=1000),
        pytest.raises(wg.errors.DeviceMemoryError, match="the result of einsum: "),
    ):
        f(np.ones(100))
