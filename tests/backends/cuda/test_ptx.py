"""PTX: entries for a card, and (with NVIDIA's assembler) machine code of it."""

import importlib.util
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.backends.cuda.counting_device import Recording
from tests.backends.cuda.random_loops import Loops
from tests.backends.cuda.test_loops_inside import PROGRAMS, P, X, of_rows, stiff
from tests.backends.llvm.random_programs import Bundle

import wengert as wg
from wengert import random
from wengert._engine.backends.cuda import EmulatedDevice
from wengert._engine.backends.cuda.block_kernels import finish_kernel
from wengert._engine.backends.cuda.current_device import using
from wengert._engine.backends.cuda.program import DeviceProgram
from wengert._engine.backends.cuda.ptx import ptx_of
from wengert.nn import functional


def kernels(graph):
    """The kernels of a graph."""
    return DeviceProgram(graph, EmulatedDevice()).kernels


def assembler():
    """The path of ptxas in NVIDIA's wheel (nvidia-cuda-nvcc-cu12), or None."""
    try:
        found = importlib.util.find_spec("nvidia.cuda_nvcc")
    except ModuleNotFoundError:
        return None
    places = (
        [Path(p, "bin", "ptxas") for p in found.submodule_search_locations or ()] if found else []
    )
    return next((p for p in places if p.exists()), None)


def layer(x, w):
    y = np.tanh(x @ w)
    return np.sum(y / (1.0 + np.sum(y**2, axis=1, keepdims=True)))


def test_entries():
    gradient = lambda x, w: (np.exp(wg.grad(layer)(x, w)), np.tanh(w))  # noqa: E731
    made = kernels(wg.trace(gradient)(np.ones((5, 4)), np.ones((4, 3))))
    text = ptx_of(made)
    assert ".target sm_70" in text
    assert text.count(".entry") == len(made) > 1
    assert ".visible .entry kernel0(" in text
    assert "ld.global" in text  # addresses of parameters are known to be those of global memory
    assert "call.uni" not in text  # everything is inlined
    assert ptx_of(made, 90).count(".target sm_90") == 1
    assert ".target sm_80" in ptx_of(made, 86)


def normalized(x, w):
    """The gradient of a softmax after a normalization: several loops for each row."""
    y = x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + 1e-6)
    return wg.vjp(lambda y: wg.scipy.special.softmax(y, axis=1), y)[1](w)


def reduced(x, w):
    return np.sum(x), np.argmax(x, axis=1), np.max(x * w, axis=0), np.sum(x * 1j, axis=1)


def test_threads_of_a_block_work_together():
    spec = wg.spec(("m", "n"))
    made = kernels(wg.trace(normalized)(spec, spec).simplify())
    assert len(made) == 1
    text = ptx_of(made)
    assert "shfl.sync.idx.b32" in text
    assert "bar.sync" in text
    assert "bar.warp.sync" in text
    assert ".extern .shared" in text
    assert "call.uni" not in text


@pytest.mark.slow
@pytest.mark.skipif(assembler() is None, reason="needs nvidia-cuda-nvcc-cu12")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("function", [normalized, reduced])
def test_values_of_rows_are_in_registers(function, dtype, tmp_path):
    """No stack and no spills, and so few registers that three blocks fit a multiprocessor."""
    spec = wg.spec(("m", "n"), dtype)
    made = kernels(wg.trace(function)(spec, spec).simplify())
    states = [
        (r.rule.monoid, r.operands[0].dtype, r.dtype)
        for k in made
        for r, _ in getattr(k, "states", ())
    ]
    made += [finish_kernel(*of) for of in dict.fromkeys(states)]
    path = tmp_path / "k.ptx"
    path.write_text(ptx_of(made))
    done = subprocess.run(
        [assembler(), "-v", "-arch=sm_75", path, "-o", tmp_path / "k.cubin"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[:2000]
    assert done.stderr.count("0 bytes stack frame, 0 bytes spill stores") == len(made)
    assert max(map(int, re.findall(r"Used (\d+) registers", done.stderr))) <= 80


@pytest.mark.slow
@pytest.mark.skipif(assembler() is None, reason="needs nvidia-cuda-nvcc-cu12")
@pytest.mark.parametrize("seed", range(30))
def test_random_programs_are_assembled(seed, tmp_path):
    bundle = Bundle(seed, named=seed % 3 == 2)
    graph = wg.trace(lambda *xs: bundle.values(*xs))(*bundle.specs).simplify()
    assemble(kernels(graph), tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(assembler() is None, reason="needs nvidia-cuda-nvcc-cu12")
@pytest.mark.parametrize("seed", range(12))
def test_random_loops_are_assembled(seed, tmp_path):
    program = Loops(seed)
    for function in (program.values, program.gradient):
        assemble(kernels(wg.trace(function)(*program.args).simplify()), tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(assembler() is None, reason="needs nvidia-cuda-nvcc-cu12")
@pytest.mark.parametrize("name", [*PROGRAMS, "stiff"])
def test_backward_passes_of_loops_inside_are_assembled(name, tmp_path):
    graph = wg.trace(of_rows(PROGRAMS.get(name, stiff), 0, 1))(X, P).simplify()
    assemble(kernels(graph), tmp_path)


def implicit(a, y):
    return wg.fori_loop(0, 2, lambda i, y: np.linalg.solve(a, y), y)


def network(x, w):
    y = functional.max_pool2d(functional.conv2d(x, w, padding=1), 2)
    return np.sum(functional.avg_pool2d(y, 2, stride=1) ** 2)


def put(x, k):
    x[k] = 2.0 * x[k]
    np.add.at(x, k, 1.0)
    return x


def drawn(key):
    own, other = random.split(random.fold_in(key, 3))
    return random.uniform(own, (9,)), random.randint(other, (9,), 0, 7), random.bits(other, (3,))


def norm(x, g):
    return functional.layer_norm(x, x.shape[-1:], g)


def layer_norm_gradient(x, g):
    return wg.grad(lambda x, g: np.sum(norm(x, g) ** 2), (0, 1))(x, g)


RNG = np.random.default_rng(0)
KINDS = {  # a program, its arguments, and a part of the name of a kernel or of its text
    "a map": (lambda x: np.exp(x) + 1.0, (np.ones(5),), "kernel0"),
    "a reduction": (np.sum, (np.ones(30000),), "finish_sum"),
    "rows of a block": (
        lambda x: wg.scipy.special.softmax(x, axis=1), (np.ones((9, 700)),), "shared",
    ),
    "a loop of a batch": (
        wg.vmap(lambda y: wg.fori_loop(0, 5, lambda i, y: np.sin(y) * i, y)),
        (np.ones((6, 3)),), "kernel0",
    ),
    "small matrices": (np.linalg.inv, (np.eye(3) * np.ones((5, 1, 1)),), "kernel0"),
    "writes": (put, (np.zeros(6), np.array([0, 5, 5])), "segments"),
    "random numbers": (drawn, (np.array([1, 2], np.uint64),), "random_uniform"),
    "normal numbers": (
        lambda: random.Stream(1).normal(shape=(700,)), (), "normal_",
    ),
    "sums over rows": (layer_norm_gradient, (RNG.normal(size=(64, 128)), np.ones(128)), "state0"),
    "convolution": (
        wg.grad(network, (0, 1)),
        (RNG.normal(size=(2, 3, 6, 6)), RNG.normal(size=(2, 3, 3, 3))), "windows_",
    ),
    "factors": (implicit, (np.eye(20), np.ones(20)), "order_of_rows"),
    "a batch of factors": (
        wg.vmap(implicit), (np.eye(20) * np.ones((3, 1, 1)), np.ones((3, 20, 1))), "lu_f8",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(assembler() is None, reason="needs nvidia-cuda-nvcc-cu12")
@pytest.mark.parametrize("name", KINDS)
def test_kernels_of_each_kind_are_assembled(name, tmp_path):
    function, args, part = KINDS[name]
    with using(Recording()) as device:
        wg.jit(function, backend="cuda")(*args)
    made = device.kernels
    assert any(part in k.name or part in "".join(k.text.values()) for k in made)
    for kernel in made:  # each alone: those of single operations may share names
        assemble([kernel], tmp_path)


def assemble(kernels, tmp_path):
    """Assemble kernels for two architectures."""
    for capability in (70, 90):
        path = tmp_path / "k.ptx"
        path.write_text(ptx_of(kernels, capability))
        done = subprocess.run(
            [assembler(), f"-arch=sm_{max(capability, 75)}", path, "-o", tmp_path / "k.cubin"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[:2000]
        assert (tmp_path / "k.cubin").stat().st_size > 0
