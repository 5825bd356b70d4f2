"""Machine code of tests: most of it runs once, and is made in a quarter of the time.

    quick_code      until it is undone, programs are compiled without LLVM's optimization passes
    is_quick        whether a test may have such code
    kernel_object   the object file of one kernel (tests/backends/llvm/kernel_driver.py)
    begin           to be called first: which tests are run

LLVM is given the same program either way.  The code that users run is tested by every test of
`make test-all`, by those of OPTIMIZED, which are of what LLVM makes of a program or compare bits
with those of other processes, by one in FULLY_COMPILED of the other tests in tests/backends and of
the operations in the law of native values, chosen by their names, and by one in FULLY_COMPILED of
the kernels that run alone, chosen by their text.
"""

import functools
import importlib
import zlib

from wengert.backends import backends

FULLY_COMPILED = 6
NATIVE_VALUES = "test_native_values_agree.py"
OPTIMIZED = {
    f"test_{name}.py"
    for name in (
        "accuracy_of_sums",
        "deferred_graphs",
        "deterministic",
        "disk_cache",
        "erf_gamma_softplus",
        "execution_engine",
        "exponential",
        "first_compilation",
        "float_formats",
        "fma_fusion",
        "guard_pages",
        "half_precision_symbols",
        "hyperbolic",
        "integers",
        "kernels_gemm",
        "matrix_scaling",
        "parallel_results",
        "partial_vectors",
        "program_cache",
        "program_summary",
        "rounding",
        "small_dtypes",
        "strip_mining",
        "sums",
        "sums_dask",
        "trigonometric",
        "tuning",
        "underflow",
    )
}


class _Run:
    """The run of pytest."""

    leaves_out_slow_tests = False


has_llvm = functools.cache(lambda: "llvm" in backends())  # which reads files of all packages


def begin(config):
    """Whether tests are left out is known from the marks that are given to pytest."""
    _Run.leaves_out_slow_tests = bool(config.option.markexpr)


def is_quick(item):
    """Whether programs of a test may be compiled in a hurry."""
    name = item.path.name
    if not _Run.leaves_out_slow_tests or not has_llvm() or name in OPTIMIZED:
        return False
    if "backends" in item.path.parts or name == NATIVE_VALUES:
        return zlib.crc32(item.name.encode()) % FULLY_COMPILED != 0
    return True


def quick_code():
    """Compile in a hurry from now on; what is returned undoes it."""
    programs = importlib.import_module("wengert._engine.backends.llvm.compiled_programs")
    compiled, key_of = programs.cached_object, programs.key_of
    programs.cached_object = lambda text, _=False: compiled(text, quick=True)
    programs.key_of = lambda text, _=False: key_of(text, quick=True)  # as records name them

    def undo():
        programs.cached_object, programs.key_of = compiled, key_of

    return undo


def kernel_object(text):
    """The object file of a kernel."""
    engine = importlib.import_module("wengert._engine.backends.llvm.ir.execution_engine")
    is_chosen = zlib.crc32(text.encode()) % FULLY_COMPILED == 0
    return engine.object_of(text, quick=_Run.leaves_out_slow_tests and not is_chosen)
