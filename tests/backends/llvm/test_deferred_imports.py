"""Deferred imports: the tables of their modules are complete, and nothing imports them early."""

import importlib
import os
import pkgutil
import subprocess
import sys

import pytest

from wengert._engine.backends.llvm import kernels, vector_math
from wengert._engine.backends.llvm.kernels import index, kernel_call
from wengert._engine.backends.llvm.vector_math import registry


def entered_by(package, registry, home_of):
    """For each name of a registry the module that enters it, all modules being imported."""
    prefix = f"{package.__name__}."
    for module in pkgutil.walk_packages(package.__path__, prefix):
        importlib.import_module(module.name)
    return {
        name: home_of(entry).__module__.removeprefix(prefix) for name, entry in registry.items()
    }


def test_every_kernel_is_found():
    assert entered_by(kernels, kernel_call.KERNELS, lambda k: k.write) == index.KERNEL_MODULES


def test_every_leaf_is_found():
    found = entered_by(vector_math, registry._LEAVES, lambda entry: entry[0])
    # Bodies that NumPy runs, too, stand with the operations; erf_and_gamma.py enters them.
    places = {
        name: home.replace("wengert._engine.ops.random.tail_functions", "erf_and_gamma")
        for name, home in found.items()
    }
    assert places == registry._HOMES


LATE = """
    wengert.show wengert._engine.serialization.save_load wengert.extend wengert.nn
    wengert._engine.diagnostics wengert.extend.op_classes.transformers
    wengert._engine.backends.cost_report wengert._engine.backends.interpreter_profile
    wengert._engine.backends.llvm.profile.program_summary
    wengert._engine.backends.llvm.kernels.linalg.lu_solve
    wengert._engine.backends.llvm.vector_math.complex_functions
    wengert._engine.backends.llvm.vector_math.erf_and_gamma
    wengert._engine.backends.llvm.loops.control_flow wengert._engine.control_flow.operations
    wengert._engine.frontend.running wengert._engine.rewrite.loops.driver decimal fractions
    wengert._engine.backends.llvm.runtime.thread_pool importlib.metadata numpy.random scipy.linalg
    scipy.special
""".split()


@pytest.mark.sample(1)
@pytest.mark.parametrize("of_matrices", [False, True])
def test_a_first_compilation_imports_what_it_needs(of_matrices):
    result = "np.sum(np.exp(x) @ x)" if of_matrices else "np.sum(np.exp(x) * x)"
    text = f"""
import sys, numpy as np, wengert as wg
before = set(sys.modules)
wg.jit(wg.grad(lambda x: {result}))(np.ones((3, 3)))
print(sorted(set({LATE}) & set(sys.modules) - before))
"""
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "WENGERT_CACHE": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
