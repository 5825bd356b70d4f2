"""Object files in memory: every external function they call has an address near them.

A module that calls more of them than fit beside its data is loaded in another way; both are tried
at the border, in one object file and in two that call each other.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.object_symbols import code_of, has_wrong_register

SYMBOL = "test_engine_outside_%d"


def calling(name: str, count: int, more: str = "") -> bytes:
    """An object file with a function that adds what so many functions outside return."""
    names = [SYMBOL % k for k in range(count)] + [more] * bool(more)
    lines = [execution_engine.heading(), *(f"declare i64 @{n}()" for n in names)]
    lines += [f"define i64 @{name}() nounwind {{", "  %s0 = add i64 0, 0"]
    for k, n in enumerate(names):
        lines += [f"  %r{k} = call i64 @{n}()", f"  %s{k + 1} = add i64 %s{k}, %r{k}"]
    lines += [f"  ret i64 %s{len(names)}", "}"]
    return execution_engine.object_of("\n".join(lines), quick=True)


@pytest.mark.sample(4)
@pytest.mark.parametrize("count", [0, 1, 500, 999, 1000, 1100])
def test_any_number_of_functions_outside(count: int) -> None:
    one = ctypes.CFUNCTYPE(ctypes.c_int64)(lambda: 1)
    address = ctypes.cast(one, ctypes.c_void_p).value
    assert address is not None
    images = [calling("first", count), calling("second", count, "first")]
    code = execution_engine.Code(images, {SYMBOL % k: address for k in range(count)})
    run = ctypes.CFUNCTYPE(ctypes.c_int64)
    assert run(code.address("first"))() == count
    assert run(code.address("second"))() == 2 * count


FAR = """
import ctypes
import llvmlite.binding as llvm
import numpy as np
import wengert as wg

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
loaded, number = llvm.ObjectFileRef.from_data, 0

def reserved(size):
    private_anonymous_noreserve = 0x2 | 0x20 | 0x4000
    return libc.mmap(None, size, 0, private_anonymous_noreserve, -1, 0)

def far_from_the_last(data):
    global number
    number += 1
    end = reserved(4 << 30)
    while reserved(1 << 14) > end:  # the next object file goes below, not into a gap above
        pass
    return loaded(data)

llvm.ObjectFileRef.from_data = far_from_the_last

def f(*xs):  # an entry of so many arguments is compiled quickly, in an object file of its own
    return sum((x * (k + 1) for k, x in enumerate(xs)), start=np.sin(xs[0]))

xs = [np.full(3, 0.1 * k) for k in range(80)]
np.testing.assert_allclose(wg.jit(f)(*xs), f(*xs), rtol=1e-12)
assert number > 2, number
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reserves memory as Linux does")
def test_object_files_that_lie_far_from_each_other() -> None:
    """Calls between two of a program's reach any distance: 32 bits of it would end the process."""
    done = subprocess.run([sys.executable, "-c", FAR], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_masks_in_registers_that_older_instructions_do_not_have() -> None:
    """Whether any lane of a mask of broadcast conditions is set, where many registers are used."""
    c = np.arange(1.0, 11.0)

    def f(A: np.ndarray, x: np.ndarray) -> np.ndarray:
        z, Z = np.zeros(10), np.zeros((12, 12))
        z[::-1] = c * np.cosh(x[1:11]) ** -2
        Z[1:11, 11] = z
        return A + Z

    A, x = np.random.default_rng(0).normal(size=(12, 12)), np.linspace(-1, 1, 12)
    np.testing.assert_allclose(wg.jit(f)(A, x), f(A, x), rtol=1e-12)


WRONG = "c4a17c50cf"  # VMOVMSKPS with ymm23 encoded as ymm7: its bit X is not 1


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (WRONG, True),
        ("c4a17dd7c7", True),  # VPMOVMSKB
        ("c5fc50cf", False),  # ymm7
        ("c4c17c50cf", False),  # ymm15
        ("c5f950c8", False),  # the sign of a double
        ("62a27d2858ff", False),  # VPBROADCASTD, which has ymm23
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="sections of ELF files")
def test_wrong_registers_are_found_in_code(code: str, expected: bool) -> None:
    """Not in constants."""
    data = ", ".join(f"i8 {b}" for b in bytes.fromhex(WRONG))
    lines = [execution_engine.heading(), f"@c = constant [5 x i8] [{data}]"]
    plain = execution_engine.object_of("\n".join([*lines, "define i64 @f() { ret i64 1 }"]))
    assert bytes.fromhex(WRONG) in plain
    assert not has_wrong_register(plain)
    given = code_of(plain)
    other = bytes.fromhex(code).ljust(len(given), b"\x90")[: len(given)]
    assert given
    assert has_wrong_register(plain.replace(given, other)) is expected
