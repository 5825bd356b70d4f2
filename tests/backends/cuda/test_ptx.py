"""PTX: entries for a card, and (with NVIDIA's assembler) machine code of it."""

import importlib.util
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.backends.cuda.random_loops import Loops
from tests.backends.llvm.random_programs import Bundle

import wengert as wg
from wengert._engine.backends.cuda import EmulatedDevice
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
    made = kernels(wg.trace(wg.grad(layer))(np.ones((5, 4)), np.ones((4, 3))))
    text = ptx_of(made)
    assert ".target sm_70" in text
    assert text.count(".entry") == len(made) > 1
    assert ".visible .entry kernel0(" in text
    assert "ld.global" in text  # addresses of parameters are known to be those of global memory
    assert "call.uni" not in text  # everything is inlined
    assert ptx_of(made, 90).count(".target sm_90") == 1
    assert ".target sm_80" in ptx_of(made, 86)


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
