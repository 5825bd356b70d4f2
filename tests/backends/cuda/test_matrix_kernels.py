"""Small matrices on a device: kernels in which a thread computes each matrix of a batch."""

import subprocess

import numpy as np
import pytest
from tests.backends.cuda.test_ptx import assembler
from wengert.backends import emulated_device

import wengert as wg
from wengert._engine.backends.cuda import EmulatedDevice, library_calls
from wengert._engine.backends.cuda.program import DeviceProgram, _Run
from wengert._engine.backends.cuda.ptx import ptx_of
from wengert._engine.core import pytree

BATCH = 13


def batch(n, columns=2):
    """Matrices, definite ones, and right-hand sides."""
    rng = np.random.default_rng(n)
    a = rng.normal(size=(BATCH, n, n)) + n * np.eye(n)
    return a, a @ a.mT + np.eye(n), rng.normal(size=(BATCH, n, columns))


def definite(s):
    return (s + s.mT) / 2


OPERATIONS = {
    "solve": lambda a, s, b: np.linalg.solve(a, b),
    "inv": lambda a, s, b: np.linalg.inv(a),
    "det": lambda a, s, b: np.linalg.det(a),
    "slogdet": lambda a, s, b: tuple(np.linalg.slogdet(a)),
    "cholesky": lambda a, s, b: np.linalg.cholesky(definite(s)),
    "lower": lambda a, s, b: wg.scipy.linalg.solve_triangular(a, b, lower=True),
    "transposed": lambda a, s, b: wg.scipy.linalg.solve_triangular(a, b, trans=1),
    "eigh": lambda a, s, b: tuple(np.linalg.eigh(definite(s))),
    "product": lambda a, s, b: np.tanh(a @ b) + b,
    "congruence": lambda a, s, b: a @ s @ a.mT,
}


def weighted(f):
    """A number that depends on all results of a function."""

    def total(*args):
        return sum(np.sum(y * np.cos(np.arange(y.size)).reshape(y.shape))
                   for y in pytree.flatten(f(*args))[0])  # fmt: skip

    return total


@pytest.fixture(autouse=True)
def no_library(monkeypatch):
    """An error instead of a call of the library; a fixture that tests can undo."""

    def refuse(program, node, *rest):
        if node.op.kind in ("contraction", "opaque"):
            raise AssertionError(f"{node.op.name} was computed by the library")
        return called(program, node, *rest)

    called = library_calls.called
    monkeypatch.setattr("wengert._engine.backends.cuda.program.called", refuse)


def agrees(got, wanted, tolerance):
    """Whether nests of arrays agree."""
    pairs = zip(pytree.flatten(got)[0], pytree.flatten(wanted)[0], strict=True)
    return all(
        np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=tolerance, atol=tolerance)
        for a, b in pairs
    )


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_values_and_gradients(name, n):
    if (name, n) == ("eigh", 1):
        pytest.skip("a matrix of one row is left to the library")
    f = OPERATIONS[name]
    args = batch(n)
    slope = wg.grad(weighted(f), argnums=(0, 1, 2))
    with emulated_device(threads=4, seed=n):
        got = wg.device_get(wg.jit(f, backend="cuda")(*args))
        slopes = wg.device_get(wg.jit(slope, backend="cuda")(*args))
    assert agrees(got, f(*args), 1e-11)
    assert agrees(slopes, slope(*args), 1e-9)


def stages(f, *args):
    """The listing of a program."""
    return wg.jit(f, backend="cuda").lower(*args).loops.splitlines()


def test_each_operation_is_one_kernel():
    a, _, b = batch(5)
    assert stages(np.linalg.solve, a, b) == ["1 kernel", "kernel0 for each of 13 matrices: solve"]
    assert stages(lambda a, b: np.tanh(a @ b) * 2.0, a, b)[0] == "1 kernel"
    assert stages(lambda a, b: a @ b.mT @ a.mT, a, np.ones((5, 5)))[0] == "2 kernels"


def test_larger_matrices_are_computed_by_the_library():
    a, b = np.eye(24) * np.ones((9, 1, 1)), np.ones((9, 24, 16))
    assert stages(np.linalg.solve, a, b) == ["0 kernels", "call solve"]
    assert stages(np.matmul, a, b) == ["0 kernels", "call matmul"]
    assert stages(np.linalg.inv, np.eye(2) * (1 + 1j)) == ["0 kernels", "call inv"]


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_other_dtypes(dtype):
    a = np.array([[[2, 1], [0, 3]], [[1, 0], [1, 1]]]).astype(dtype)
    with emulated_device():
        got = wg.device_get(wg.jit(np.linalg.inv, backend="cuda")(a))
    assert got.dtype == np.linalg.inv(a).dtype
    assert np.allclose(got, np.linalg.inv(a), rtol=1e-6)


def test_layouts_and_broadcast_operands():
    a, _, b = batch(3)
    x = np.ascontiguousarray(a.transpose(1, 2, 0))
    cases = {
        "batch last": (lambda x, b: np.linalg.solve(x.transpose(2, 0, 1), b), x, b),
        "one matrix": (np.linalg.solve, a[0], b),
        "one right-hand side": (np.linalg.solve, a, b[:1]),
        "a vector": (np.linalg.solve, a, b[0, :, 0]),
        "no batch": (np.linalg.solve, a[0], b[0]),
        "two batch axes": (np.linalg.solve, a[:12].reshape(3, 4, 3, 3), b[:4]),
        "part of an array": (lambda a: np.linalg.inv(a[::2, :2, 1:]), a),
        "nothing": (np.linalg.inv, a[:0]),
    }
    for name, (f, *args) in cases.items():
        with emulated_device():
            got = wg.device_get(wg.jit(f, backend="cuda")(*args))
        assert agrees(got, f(*args), 1e-12), name


def test_one_kernel_for_all_batches():
    f = wg.trace(lambda a: np.linalg.inv(a)[:, 0] * 2.0)(wg.spec(("n", 3, 3)))
    run = wg.computation(f, backend="cuda")
    for n in (1, 2, 40):
        a = np.eye(3) + np.arange(n)[:, None, None] * np.ones((3, 3))
        with emulated_device():
            assert np.allclose(wg.device_get(run(a)), np.linalg.inv(a)[:, 0] * 2.0)


def by_library(monkeypatch):
    """The numbers of runs that the library repeats."""
    monkeypatch.setattr("wengert._engine.backends.cuda.program.called", library_calls.called)
    repeated = []
    init = _Run.__init__

    def recorded(self, program, sizes, by_library=False):
        repeated.append(by_library)
        init(self, program, sizes, by_library)

    monkeypatch.setattr(_Run, "__init__", recorded)
    return repeated


def test_a_singular_matrix_is_an_error_with_the_line(monkeypatch):
    repeated = by_library(monkeypatch)
    a = np.eye(3) * np.ones((BATCH, 1, 1))
    f = wg.jit(lambda a: np.sum(np.linalg.inv(a)), backend="cuda")
    with emulated_device():
        assert wg.device_get(f(a)) == 3.0 * BATCH
        a[7, 2, 2] = 0.0
        with pytest.raises(wg.errors.SingularError, match=r"ingular.*test_matrix_kernels"):
            f(a)
        a[7, 2, 2] = 0.5
        assert wg.device_get(f(a)) == 3.0 * BATCH + 1.0
    assert repeated == [False, False, True, False]


def test_a_matrix_that_is_not_definite_is_an_error(monkeypatch):
    by_library(monkeypatch)
    f = wg.jit(np.linalg.cholesky, backend="cuda")
    with emulated_device(), pytest.raises(wg.errors.MatrixError, match="test_matrix_kernels"):
        f(np.diag([1.0, -1.0]) * np.ones((4, 1, 1)))


def test_a_nearly_singular_matrix_is_computed_by_the_library(monkeypatch):
    repeated = by_library(monkeypatch)
    a = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-15]]) * np.ones((4, 1, 1))
    with emulated_device():
        got = wg.device_get(wg.jit(np.linalg.inv, backend="cuda")(a))
    assert np.array_equal(got, np.linalg.inv(a))
    assert repeated == [False, True]


@pytest.mark.slow
@pytest.mark.skipif(assembler() is None, reason="needs nvidia-cuda-nvcc-cu12")
@pytest.mark.parametrize("n", [3, 8])
def test_matrices_are_in_registers(n, tmp_path):
    a, s, b = batch(n, 1)
    for name in ("solve", "cholesky", "det", "lower"):
        graph = wg.trace(OPERATIONS[name])(a, s, b).simplify()
        path = tmp_path / "k.ptx"
        path.write_text(ptx_of(DeviceProgram(graph, EmulatedDevice()).kernels, 90))
        done = subprocess.run(
            [assembler(), "-arch=sm_90", "-v", path, "-o", tmp_path / "k.cubin"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert " 0 bytes stack frame" in done.stderr.replace("\n", " ")
        assert "call.uni" not in path.read_text()
