"""The checkpoint schedule of native loops: traced from control_flow/checkpoint_schedule.py.

The Python functions and the native ones are compared over many lengths, slots and blocks; that the
schedule is optimal is tested in tests/control_flow/test_memory.py.
"""

from __future__ import annotations

import ctypes
import random

import pytest

from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder
from wengert._engine.backends.llvm.loops.checkpoint_storage import schedule_call
from wengert._engine.control_flow import checkpoint_schedule

NAMES = ("advance", "reverses_next", "distance")


@pytest.fixture(scope="module")
def native():
    """The native functions of the schedule, as functions of three integers."""
    module = ModuleBuilder()
    arguments = [("i64", n) for n in ("length", "slots", "block")]
    for name in NAMES:
        function = Function(module, f"test_{name}", arguments, "i64", linkage="")
        found = schedule_call(name, module, function.body, *[f"%{n}" for _, n in arguments])
        function.body.write(f"ret i64 {found}")
        module.add(function)
    image = execution_engine.object_of(module.text(execution_engine.heading()), quick=True)
    code = execution_engine.Code(image, {})
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)
    yield {name: kind(code.address(f"test_{name}")) for name in NAMES}
    del code


@pytest.mark.parametrize("name", NAMES)
def test_native_schedule_is_the_interpreters(native, name):
    rng = random.Random(20)
    given = [(n, s, b) for n in range(1, 40) for s in range(1, 8) for b in (1, 2, 5)]
    given += [
        (rng.randrange(1, 10 ** rng.randrange(1, 10)), rng.randrange(2, 2000), rng.randrange(1, 50))
        for _ in range(500)
    ]
    function = getattr(checkpoint_schedule, name)
    for numbers in given:
        assert native[name](*numbers) == int(function(*numbers)), numbers
