"""A graphics card: all operations and some programs, if there is one.

`benchmarks/cuda.py --part checks` is the same for all operations, by several processes.
"""

from pathlib import Path

import numpy as np
import pytest
import scipy.special

import wengert as wg
from wengert._engine.backends.cuda.cupy_device import cupy_device
from wengert._engine.backends.cuda.emulated_limits import has_ufunc
from wengert._engine.core.op import REGISTRY
from wengert.errors import BackendError

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def missing():
    """Why there is no card; an empty string if there is one."""
    try:
        cupy_device()
    except BackendError as error:
        return str(error)
    return ""


if reason := missing():
    pytest.skip(f"needs a graphics card: {reason[:60]}", allow_module_level=True)
pytestmark = pytest.mark.card


@pytest.fixture
def correctness(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from cuda_cases import correctness

    return correctness


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_operations(name, correctness):
    found = correctness.checked(name)
    if name in correctness.SIGNS and found:
        pytest.xfail("signs of vectors are those of cuSOLVER")
    assert found is None


@pytest.mark.parametrize("seed", range(100, 112))
@pytest.mark.parametrize("kind", ["values", "gradient"])
def test_random_programs(seed, kind, correctness):
    assert correctness.checked(f"program {seed}: {kind}") is None


def test_results_are_the_same_each_time():
    x = np.random.default_rng(0).normal(size=(300, 500))
    f = wg.jit(lambda x: (np.sum(x), np.sum(x, axis=0), np.max(x, axis=1), x @ x.T), backend="cuda")
    first = wg.device_get(f(x))
    for _ in range(3):
        assert all(np.array_equal(a, b) for a, b in zip(wg.device_get(f(x)), first, strict=True))


def test_elementary_functions_are_those_of_the_processor():
    x = np.random.default_rng(0).uniform(0.1, 3.0, size=10_000)
    f = lambda x: np.exp(np.sin(x)) / np.sqrt(x) + np.log(x)  # noqa: E731
    found = wg.device_get(wg.jit(f, backend="cuda")(x))
    assert np.allclose(found, wg.jit(f)(x), rtol=4e-16, atol=0)


def test_tensors_of_pytorch_are_not_copied():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no CUDA")
    x = torch.arange(4.0, dtype=torch.float64, device="cuda")
    put = wg.device_put(x)
    assert put.data.ptr == x.data_ptr()
    y = wg.jit(lambda x: 2.0 * x, backend="cuda")(x)
    assert torch.equal(torch.from_dlpack(y), 2.0 * x)


def test_matrices_that_are_singular_are_errors_with_the_line():
    for n in (3, 20):
        a = np.eye(n) * np.ones((5, 1, 1))
        f = wg.jit(np.linalg.inv, backend="cuda")
        assert np.array_equal(wg.device_get(f(a)), a)
        a[3] = 0.0
        with pytest.raises(wg.errors.SingularError, match=r"ingular.*test_card"):
            f(a)


def test_the_emulated_device_has_what_cupy_has():
    cupy = pytest.importorskip("cupy")
    special = pytest.importorskip("cupyx.scipy.special")
    ufuncs = [u for u in vars(scipy.special).values() if isinstance(u, np.ufunc)]
    for u in [*ufuncs, *[u for u in vars(np).values() if isinstance(u, np.ufunc)]]:
        name = u.__name__
        assert has_ufunc(u, "__call__") == (hasattr(cupy, name) or hasattr(special, name)), name
