"""Object files in memory: of all functions outside that they call there is an address near them.

A module that calls more of them than fit beside its data is loaded in another way; both are tried
at the border, in one object file and in two that call each other.
"""

from __future__ import annotations

import ctypes

import pytest

from wengert._engine.backends.llvm.ir import execution_engine

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
