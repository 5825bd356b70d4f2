"""Machine code of tests: most of it runs once, and is made in a quarter of the time.

    quick_code    until it is undone, programs are compiled without LLVM's choice of instructions
    is_quick      whether a test may have such code

The tests of tests/backends have the code that users run, and so have one operation in
`FULLY_COMPILED` in the law of native values and every test of `make test-all`: they find what is
wrong in LLVM's choice of instructions.  The other tests are of what happens before: LLVM is given
the same program.
"""

import functools
import importlib
import zlib

from wengert.backends import backends

NATIVE_VALUES = "test_native_values_agree.py"
FULLY_COMPILED = 3  # one operation in so many has the machine code that users run
has_llvm = functools.cache(lambda: "llvm" in backends())  # which reads files of all packages


def is_quick(item):
    """Whether programs of a test may be compiled in a hurry."""
    is_all = not item.config.option.markexpr
    in_backends = "backends" in item.path.parts
    is_chosen = zlib.crc32(item.name.encode()) % FULLY_COMPILED == 0
    of_values = item.path.name == NATIVE_VALUES and is_chosen
    return not (is_all or in_backends or of_values or not has_llvm())


def quick_code():
    """Compile in a hurry from now on; what is returned undoes it."""
    programs = importlib.import_module("wengert._engine.backends.llvm.program_cache")
    compiled = programs.kept_object_of
    programs.kept_object_of = lambda text, _=False: compiled(text, quick=True)
    return lambda: setattr(programs, "kept_object_of", compiled)
