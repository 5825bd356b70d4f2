"""PTX: entries for a card, and (with NVIDIA's assembler) machine code of it."""

import importlib.util
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.backends.cuda.random_loops import Loops
from tests.backends.llvm.random_programs import Bundle

import wengert as wg
from wengert._engine.backends.cuda import EmulatedDevice
from wengert._engine.backends.cuda.block_kernels import finish_kernel
from wengert._engine.backends.cuda.program import DeviceProgram
from wengert._engine.backends.cuda.ptx import ptx_of


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
