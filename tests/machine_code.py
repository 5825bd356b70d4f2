"""Machine code of tests: most of it runs once, and is made in a quarter of the time.

    quick_code    until it is undone, programs are compiled without LLVM's choice of instructions
    is_quick      whether a test may have such code

The tests of tests/backends and the law of native values have the code that users run, and so has
every test of `make test-all`: they find what is wrong in LLVM's choice of instructions.  The other
tests are of what happens before: LLVM is given the same program.
"""

import functools
import importlib

from wengert.backends import backends

OPTIMISED = {"test_native_values_agree.py"}
has_llvm = functools.cache(lambda: "llvm" in backends())  # which reads files of all packages


def is_quick(item):
    """Whether programs of a test may be compiled in a hurry."""
    is_all = not item.config.option.markexpr
    in_backends = "backends" in item.path.parts
    return not (is_all or in_backends or item.path.name in OPTIMISED or not has_llvm())


def quick_code():
    """Compile in a hurry from now on; what is returned undoes it."""
    programs = importlib.import_module("wengert._engine.backends.llvm.program_cache")
    compiled = programs.cached_object
    programs.cached_object = lambda text, _=False: compiled(text, quick=True)
    return lambda: setattr(programs, "cached_object", compiled)
