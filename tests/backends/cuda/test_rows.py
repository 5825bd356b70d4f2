"""Rows by threads of a block together: reductions, row programs, barriers, parts of long rows."""

import math

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.cuda import EmulatedDevice, block_threads
from wengert._engine.backends.cuda.block_kernels import BlockKernel, lanes_for
from wengert._engine.backends.cuda.current_device import using
from wengert._engine.backends.cuda.kernel_codegen import DeviceKernel
from wengert._engine.backends.cuda.loaded_kernels import launch_of
from wengert._engine.backends.cuda.program import DeviceProgram
from wengert._engine.core import pytree

RNG = np.random.default_rng(0)
LENGTHS = (1, 2, 31, 32, 33, 255, 256, 257, 1000, 1024, 5000)
DTYPES = "f8 f4 f2 c16 i4 b1".split()
DEVICES = {}
MORE = "c8 i1 i2 i8 u1 u2 u4 u8".split()


def on_device(f, *args, seed=0):
    """The results on an emulated device, one for each seed: programs are compiled for a device."""
    if seed not in DEVICES:
        DEVICES[seed] = EmulatedDevice(seed=seed)
    with using(DEVICES[seed]):
        return wg.device_get(f(*args))


def kernels_of(f, *args):
    """The kernels of a function, if there is nothing else."""
    program = DeviceProgram(wg.trace(f)(*args).simplify(), EmulatedDevice())
    assert len(program.kernels) == len(program.stages)
    return program.kernels


def differences(got, wanted):
    """The largest relative difference of each result."""
    found = []
    for a, b in zip(pytree.flatten(got)[0], pytree.flatten(wanted)[0], strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        if b.dtype.kind in "biu":
            found.append(float(not np.array_equal(a, b)))
            continue
        assert np.array_equal(np.isnan(a), np.isnan(b))
        known = np.isfinite(b)
        assert np.array_equal(a[~known], b[~known], equal_nan=True)
        scale = np.max(np.abs(b[known]), initial=1.0)
        found.append(float(np.max(np.abs(a[known] - b[known]), initial=0.0) / scale))
    return found


# ---- reductions ----------------------------------------------------------------------------------


def reductions(x):
    made = [np.any(x, axis=1), np.all(x, axis=1), np.sum(x, axis=1), np.sum(x)]
    if x.dtype.kind != "c":
        made += [np.max(x, axis=1), np.min(x, axis=0), np.max(x)]
        made += [np.argmax(x, axis=1), np.argmin(x, axis=1), np.argmin(x, axis=0), np.argmax(x)]
    made += [np.sum(x, axis=0), np.prod(x, axis=1)]
    return made


def drawn(dtype, shape, rng):
    """Values whose sums and products are exact in integers, and moderate in floats."""
    if dtype.kind == "b":
        return rng.random(shape) < 0.9
    if dtype.kind in "iu":
        return rng.integers(0, 4, shape).astype(dtype)
    x = rng.uniform(0.97, 1.03, shape)
    if dtype.kind == "c":
        x = x * np.exp(1j * rng.normal(size=shape))
    return x.astype(dtype)


@pytest.mark.parametrize(
    "code", [*DTYPES, *[pytest.param(code, marks=pytest.mark.slow) for code in MORE]]
)
def test_reductions_of_all_lengths(code):
    dtype, rng = np.dtype(code), np.random.default_rng(1)
    spec = wg.spec(("m", "n"), dtype)
    run = wg.computation(wg.trace(reductions)(spec).simplify(), backend="cuda")
    eps = 0.0 if dtype.kind in "biu" else 40 * np.finfo(dtype).eps
    for n in LENGTHS:
        x = drawn(dtype, (3, n), rng)
        got, wanted = on_device(run, x), reductions(x)
        assert max(differences(got, wanted)) <= eps, n


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_positions_and_extremes_with_nan_and_ties(dtype):
    def f(x):
        return [g(x, axis=1) for g in (np.argmax, np.argmin, np.max, np.min, np.any, np.all)]

    run = wg.computation(wg.trace(f)(wg.spec(("m", "n"), dtype)).simplify(), backend="cuda")
    for n in (1, 33, 300, 1000):
        x = RNG.integers(-3, 4, (6, n)).astype(dtype)
        x[1, n // 2] = x[1, n // 3] = x[2, -1] = x[3, 0] = np.nan
        x[4, n // 2], x[5, n // 3] = np.inf, -np.inf
        assert max(differences(on_device(run, x), f(x))) == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_long_rows_have_parts(seed):
    def f(x):
        return [np.sum(x), np.max(x), np.argmin(x), np.sum(x, axis=0), np.sum(x, axis=1)]

    x = np.random.default_rng(2).normal(size=(2, 30001))
    x[1, 17] = x[0, 29999] = -9.0
    got = on_device(wg.jit(f, backend="cuda"), x, seed=seed)
    assert abs(got[0] - math.fsum(x.reshape(-1))) <= 1e-14 * np.sum(np.abs(x)) * 2**-4
    assert np.array_equal(got[1], np.max(x))
    assert got[2] == 29999
    assert np.array_equal(got[3], np.sum(x, axis=0))
    assert np.allclose(got[4], [math.fsum(row) for row in x], rtol=1e-14, atol=1e-13)
    again = on_device(wg.jit(f, backend="cuda"), x, seed=seed + 10)
    assert all(np.array_equal(a, b) for a, b in zip(got, again, strict=True))


def test_long_rows_of_other_dtypes():
    z = RNG.normal(size=20000) + 1j * RNG.normal(size=20000)
    h = RNG.uniform(0.0, 1.0, 20000).astype(np.float16)
    f = wg.jit(lambda z, h, b: (np.sum(z), np.sum(h), np.any(b), np.all(b)), backend="cuda")
    got = on_device(f, z, h, h < 0.5)
    assert np.allclose(got[0], np.sum(z), rtol=1e-13)
    assert abs(float(got[1]) - math.fsum(h.astype(float))) <= np.spacing(np.float16(got[1]))
    assert got[2:] == (np.True_, np.False_)


def test_sums_of_columns_are_read_in_order():
    """Neighboring threads read neighboring columns, and neighboring rows if those are few."""
    for shape in ((3000, 3), (400, 70)):
        (kernel,) = kernels_of(lambda x: np.sum(np.sin(x), axis=0), np.ones(shape))
        assert kernel.most_lanes == 1
        x = RNG.normal(size=shape)
        got = on_device(wg.jit(lambda x: np.sum(np.sin(x), axis=0), backend="cuda"), x)
        assert np.allclose(got, np.sum(np.sin(x), axis=0), rtol=1e-13)


def test_reduced_axes_that_are_not_neighbors():
    x = RNG.normal(size=(5, 3, 70))
    f = wg.jit(lambda x: (np.sum(x, axis=(0, 2)), np.max(x, axis=(0, 2))), backend="cuda")
    got = on_device(f, x)
    assert np.allclose(got[0], np.sum(x, axis=(0, 2)), rtol=1e-13)
    assert np.array_equal(got[1], np.max(x, axis=(0, 2)))
    short = RNG.normal(size=(40, 3, 7))
    assert np.allclose(on_device(f, short)[0], np.sum(short, axis=(0, 2)), rtol=1e-13)


def test_the_number_of_lanes():
    device = EmulatedDevice()
    device.block, device.blocks = 256, 1056
    found = [lanes_for(1 << 20, n, device) for n in (1, 4, 5, 33, 128, 129, 1024, 1025)]
    assert found == [1, 1, 2, 16, 32, 32, 32, 256]
    assert lanes_for(8, 1000, device) == 256  # few rows, each by a block


def test_an_index_out_of_range_in_a_row():
    f = wg.jit(lambda x, i: np.sum(x[i] ** 2, axis=1), backend="cuda")
    x, i = np.arange(5.0), np.zeros((3, 70), int)
    assert np.array_equal(on_device(f, x + 1.0, i), np.full(3, 70.0))
    assert np.array_equal(on_device(f, x[:0], i[:, :0]), np.zeros(3))
    for bad in (5, -6):
        i[1, 40] = bad
        with pytest.raises(IndexError, match=f"index {bad} is out of bounds"):
            on_device(f, x, i)
        with pytest.raises(IndexError, match="out of bounds"):
            on_device(f, x[:0], i)


# ---- row programs --------------------------------------------------------------------------------


def softmax(x):
    return wg.scipy.special.softmax(x, axis=1)


def log_softmax(x):
    return wg.scipy.special.log_softmax(x, axis=-1)


def logsumexp(x):
    return wg.scipy.special.logsumexp(x, axis=1)


def layer_norm(x):
    mean = np.mean(x, axis=1, keepdims=True)
    variance = np.mean((x - mean) ** 2, axis=1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * np.cos(x[0])


def rms_norm(x):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def attention(x):
    visible = np.arange(x.shape[1]) <= np.arange(x.shape[0])[:, None] + 1
    scores = np.where(visible, x * 0.125, -np.inf)
    e = np.exp(scores - np.max(scores, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def standardized(x):
    return (x - np.min(x, axis=1, keepdims=True)) / np.std(x, axis=1, keepdims=True)


ROWS = (softmax, log_softmax, logsumexp, rms_norm, attention, standardized)


@pytest.mark.parametrize("f", ROWS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_program_is_one_kernel(f, dtype):
    def pulled_back(x, w):
        y, back = wg.vjp(f, x)
        return y, back(w[:, 0] if y.ndim == 1 else w)

    spec = wg.spec(("m", "n"), dtype)
    graph = wg.trace(pulled_back)(spec, spec).simplify()
    program = DeviceProgram(graph, EmulatedDevice())
    assert len(program.kernels) == len(program.stages) == 1
    run = wg.computation(graph, backend="cuda")
    for n in (2, 33, 300, 1500):
        x, w = [RNG.normal(size=(3, n)).astype(dtype) for _ in range(2)]
        got = on_device(run, x, w)
        assert max(differences(got, pulled_back(x, w))) <= 100 * np.finfo(dtype).eps, n


def test_the_gradient_of_a_softmax_is_its_closed_form():
    x, w = RNG.normal(size=(4, 700)), RNG.normal(size=(4, 700))
    (got,) = on_device(wg.jit(lambda x, w: wg.vjp(softmax, x)[1](w), backend="cuda"), x, w)
    p = np.exp(x - np.max(x, axis=1, keepdims=True))
    p /= np.sum(p, axis=1, keepdims=True)
    assert np.allclose(got, p * (w - np.sum(w * p, axis=1, keepdims=True)), rtol=1e-12, atol=1e-17)


def test_rows_that_read_other_elements():
    """Results of other lanes, which need a barrier: a row backwards, after its normalization."""

    def f(x):
        y = np.exp(x - np.max(x, axis=1, keepdims=True))
        z = y[:, ::-1] / np.sum(y, axis=1, keepdims=True)
        return z - np.sum(z * np.sqrt(y), axis=1, keepdims=True)

    assert len(kernels_of(f, np.ones((5, 40)))) == 1
    for n in (40, 90, 700, 3000):
        x = RNG.normal(size=(5, n))
        for seed in range(3):
            got = on_device(wg.jit(f, backend="cuda"), x, seed=seed)
            assert np.allclose(got, f(x), rtol=1e-12, atol=1e-14)


def test_batches_of_rows():
    x = RNG.normal(size=(2, 3, 4, 50))
    f = lambda x: wg.scipy.special.softmax(x, axis=-1)  # noqa: E731
    assert len(kernels_of(f, x)) == 1
    assert np.allclose(on_device(wg.jit(f, backend="cuda"), x), f(x), rtol=1e-13)
    g = lambda x: wg.scipy.special.softmax(x, axis=0)  # noqa: E731
    assert np.allclose(on_device(wg.jit(g, backend="cuda"), x[0, 0].T), g(x[0, 0].T), rtol=1e-13)


def normalization_loss(x, scale, shift, w):
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return np.sum(((x - mean) / np.sqrt(variance + 1e-5) * scale + shift) * w)


def test_parameters_of_a_normalization_are_in_its_kernel():
    """Sums over rows, of enough columns, are computed with the rows, and merged."""
    f = wg.grad(normalization_loss, argnums=(0, 1, 2))
    spec, row = wg.spec(("m", "n")), wg.spec(("n",))
    graph = wg.trace(f)(spec, row, row, spec).simplify()
    assert len(DeviceProgram(graph, EmulatedDevice()).kernels) == 1
    run = wg.computation(graph, backend="cuda")
    for m, n in ((1, 2), (40, 20), (100, 70), (3, 300), (50, 1500)):
        x, w = RNG.normal(size=(m, n)), RNG.normal(size=(m, n))
        args = x, RNG.normal(size=n), RNG.normal(size=n), w
        for seed in range(2):
            assert max(differences(on_device(run, *args, seed=seed), f(*args))) < 1e-13, (m, n)
    few = [RNG.normal(size=shape) for shape in ((30, 40), (40,), (40,), (30, 40))]
    assert len(kernels_of(f, *few)) == 3  # one of rows, two of columns
    assert max(differences(on_device(wg.jit(f, backend="cuda"), *few), f(*few))) < 1e-13
    empty = [np.ones(shape) for shape in ((0, 80), (80,), (80,), (0, 80))]
    assert max(differences(on_device(wg.jit(f, backend="cuda"), *empty), f(*empty))) == 0.0
    deep = [RNG.normal(size=shape) for shape in ((3, 5, 80), (80,), (80,), (3, 5, 80))]
    assert len(kernels_of(f, *deep)) == 1
    assert max(differences(on_device(wg.jit(f, backend="cuda"), *deep), f(*deep))) < 1e-13


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_reductions_over_rows_of_any_kind(dtype):
    def f(x):
        y = x - np.max(x, axis=1, keepdims=True)
        z = np.sum(y * y, axis=1, keepdims=True)
        return [np.max(y, axis=0), np.any(y < -2.0, axis=0), np.sum(1j * y, axis=0), y / z]

    run = wg.computation(wg.trace(f)(wg.spec(("m", "n"), dtype)).simplify(), backend="cuda")
    for m, n in ((40, 70), (21, 700)):
        x = RNG.normal(size=(m, n)).astype(dtype)
        x[m // 2, 5] = np.nan
        got = on_device(run, x)
        assert max(differences(got, f(x))) <= 8 * np.finfo(dtype).eps, (m, n)


# ---- barriers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [20, 40, 700])
def test_a_missing_barrier_is_found(n, monkeypatch):
    def f(x):
        y = np.exp(x - np.max(x, axis=1, keepdims=True))
        return y[:, ::-1] + 2.0 * y

    assert len(kernels_of(f, np.ones((7, n)))) == 1
    x = RNG.normal(size=(7, n))
    assert np.allclose(on_device(wg.jit(f, backend="cuda"), x), f(x), rtol=1e-13)
    monkeypatch.setattr(block_threads.LaneGroup, "barrier", lambda self, section: None)
    found = [on_device(wg.jit(f, backend="cuda"), x, seed=seed) for seed in range(4)]
    assert not all(np.allclose(y, f(x), rtol=1e-13) for y in found)


def written(condition):
    """A kernel in which some threads wait for the block."""
    numbers = "parts lanes row_bytes local_bytes | tid ntid ctaid nctaid"
    listed = ", ".join("ptr %shared" if n == "|" else f"i64 %{n}" for n in numbers.split())
    text = f"""define void @waiting(ptr %x, {listed}) #1 {{
entry:
  %some = icmp {condition}
  br i1 %some, label %wait, label %leave
wait:
  call void @block.barrier()
  br label %leave
leave:
  ret void
}}"""
    return DeviceKernel("waiting", {"waiting": text}, (), 0, False, True)


@pytest.mark.parametrize(
    ("condition", "lanes", "is_fault"),
    [
        ("eq i64 %tid, 3", 64, True),  # one thread of a warp
        ("slt i64 %tid, 32", 64, True),  # one warp of the block
        ("sge i64 %tid, 0", 32, True),  # groups of a warp would not wait for each other
        ("sge i64 %tid, 0", 64, False),
    ],
)
def test_a_barrier_that_some_threads_do_not_reach(condition, lanes, is_fault):
    device = EmulatedDevice()
    launch = launch_of(device, condition, lambda: written(condition))
    given = [device.put(np.zeros(1)), *map(np.int64, (1, lanes, 0, 0))]
    if is_fault:
        with pytest.raises(RuntimeError, match="wait at different places"):
            launch(given, 64)
    else:
        launch(given, 64)


def test_rows_of_loops_are_kernels_of_blocks():
    assert isinstance(kernels_of(softmax, np.ones((5, 40)))[0], BlockKernel)
    assert not isinstance(kernels_of(lambda x: np.sin(x), np.ones((5, 40)))[0], BlockKernel)


def test_a_few_long_rows_are_divided():
    """Loops over few rows are not fused, so that each row has parts."""
    f = wg.computation(wg.trace(softmax)(wg.spec(("m", "n"))).simplify(), backend="cuda")
    device = EmulatedDevice()
    device.blocks = 20
    for rows, n in ((3, 3000), (8, 3000), (3, 300)):
        x = RNG.normal(size=(rows, n))
        with using(device):
            got = wg.device_get(f(x))
        assert np.allclose(got, softmax(x), rtol=1e-13)
    program = wg.backends.backend("cuda").loaded(f.graph, device)
    assert len(program.kernels) == 1
    ((few, other),) = program._for_few_rows.items()
    assert few == {0}
    assert len(other.kernels) == 3
