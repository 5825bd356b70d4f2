"""The short cuts of a first compilation leave the same state behind as a full one."""

import os
import subprocess
import sys

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder
from wengert._engine.backends.llvm.program import Program


def printed(text, *arguments):
    """What a program prints in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", text, *arguments],
        env={**os.environ, "WENGERT_CACHE": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_scipy_is_whole_after_its_compiled_modules_were_loaded_alone():
    found = printed("""
import sys
from wengert._engine.backends.llvm.runtime.library_symbols import extension
blas = extension("scipy.linalg.cython_blas")
print("scipy.linalg" in sys.modules, "scipy.linalg.cython_blas" in sys.modules)
import scipy.linalg
import scipy.linalg.cython_blas
print(scipy.linalg.cython_blas is blas, scipy.linalg.solve([[2.0]], [4.0])[0])
print(extension("scipy.linalg.cython_lapack") is scipy.linalg.cython_lapack)
""")
    assert found == ["False", "False", "True", "2.0", "True"]


def test_a_module_that_is_not_there_is_an_import_error():
    from wengert._engine.backends.llvm.runtime.library_symbols import extension

    with pytest.raises(ImportError):
        extension("scipy.linalg.no_such_module")


# NumPy's generator is imported at its first use, which is here while the function is traced.
DRAWS = """
import sys, numpy as np, wengert as wg
functions = {
    "draws": lambda x: x * np.random.rand(312)[0],
    "seeds": lambda x: (np.random.seed(3), x)[1],
    "looks": lambda x: x * (np.random.RandomState is not None),
}
assert "numpy.random" not in sys.modules
try:
    wg.jit(functions[sys.argv[1]])(np.ones(2))
    print("compiled")
except wg.errors.TraceError:
    print("refused")
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "name, outcome", [("draws", "refused"), ("seeds", "refused"), ("looks", "compiled")]
)
def test_draws_from_a_generator_that_comes_while_tracing(name, outcome):
    assert printed(DRAWS, name) == [outcome]


def calling_halves():
    """One function that calls another and reads a constant, both in one module."""
    module = ModuleBuilder()
    module.constant("ten", "[1 x i64]", "[i64 10]")
    inner = Function(module, "inner-1", [("i64", "x")], "i64")
    ten = inner.body.value("load i64, ptr @ten")
    inner.body.write(f"ret i64 {inner.body.value(f'add i64 %x, {ten}')}")
    module.add(inner)
    outer = Function(module, "outer", [], "i64", linkage="")
    twice = outer.body.value("call i64 @inner-1(i64 1)")
    more = outer.body.value("load i64, ptr @ten")
    outer.body.write(f"ret i64 {outer.body.value(f'mul i64 {twice}, {more}')}")
    module.add(outer)
    return module


@pytest.mark.parametrize("names", [("outer",), ("inner-1",)])
def test_the_halves_of_a_module_call_each_other(names):
    import ctypes

    chosen, others = calling_halves().halves(names, execution_engine.heading())
    images = [execution_engine.object_of(others), execution_engine.object_of(chosen, quick=True)]
    code = execution_engine.Code(images, {})
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(code.address("outer"))() == 110


@pytest.mark.usefixtures("unconverted")
def test_a_long_kernel_is_compiled_apart_and_gives_the_same():
    def f(x, w):
        for k in range(60):
            x = np.tanh(x @ w) + np.sum(x, axis=0) * (k % 3)
            x = x / np.max(np.abs(x))
        return x

    x, w = np.linspace(-1, 1, 12).reshape(3, 4), np.linspace(0, 1, 16).reshape(4, 4)
    program = Program(wg.trace(f)(x, w))
    assert [quick for _, quick in program.modules] == [False, True]
    np.testing.assert_allclose(wg.jit(f)(x, w), f(x, w), rtol=1e-9)
    short = Program(wg.trace(lambda x: np.sin(x) * 2.0)(x))
    assert [quick for _, quick in short.modules] == [False]


def defined(text):
    return {line.split("@")[1].split("(")[0] for line in text.split("\n") if "define" in line}


def chained(x, k):
    for _ in range(k):
        x = x * 0.5 + x / (x + 2.0)
    return x


@pytest.mark.usefixtures("unconverted")
def test_long_code_that_runs_once_is_compiled_quickly():
    def f(x, xs):
        return chained(x, 200), np.sum(np.exp(xs) * xs)

    program = Program(wg.trace(f)(0.5, np.ones(1000)))
    (hot, quick), (cold, is_cold) = program.modules
    assert (quick, is_cold) == (False, True)
    (once,) = {name for name in defined(cold) if name.startswith("nest")}
    assert once not in defined(hot)
    assert any(name.startswith("nest") for name in defined(hot))  # the loop over 1,000 elements
    short = Program(wg.trace(lambda x: chained(x, 20))(0.5))
    assert [quick for _, quick in short.modules] == [False]


@pytest.mark.usefixtures("unconverted")
def test_long_code_in_a_loop_is_compiled_for_speed():
    def f(x):
        return wg.fori_loop(0, 1000, lambda i, x: np.sum(chained(x, 100)) + x, x)

    program = Program(wg.trace(f)(np.ones(5)))
    cold = [text for text, quick in program.modules if quick]
    assert not any(name.startswith("nest") for text in cold for name in defined(text))


@pytest.mark.slow
@pytest.mark.parametrize("lines", [10_000, 50_000])
def test_long_programs_compile(lines):
    def f(x):
        y = x
        for _ in range(lines // 4):
            y = np.sin(y) * 0.99 + x * 0.1
        return y

    x = np.linspace(0.0, 1.0, 10)
    np.testing.assert_allclose(wg.jit(f)(x), f(x), rtol=1e-9)
