"""Files of LLVM text (`.ll`): LLVM verifies each of them, with the values of this system."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import wengert
from wengert._engine.backends.llvm.abi import (
    array_fingerprint,
    cpython_layout,
    guarded_entries,
    python_function,
)
from wengert._engine.backends.llvm.export import object_code, workspace
from wengert._engine.backends.llvm.ir import execution_engine, llvm_types
from wengert._engine.backends.llvm.ir.ir_builder import ModuleBuilder
from wengert._engine.backends.llvm.profile import instrumented
from wengert._engine.backends.llvm.runtime import runtime_library

FOLDER = Path(wengert.__file__).parent / "_engine" / "backends" / "llvm"


def of_timers():
    module = ModuleBuilder()
    clock = instrumented.Clock(module)
    for name, kinds in (("wengert_alloc", ("ptr", ["i64"])), ("wengert_free", ("void", ["ptr"]))):
        module.declare(name, *kinds)
        counting, text = instrumented.counted(name)
        module.parts[counting] = text
    clock.finish()
    return module.text(execution_engine.heading())


def with_heading(text):
    return f"{execution_engine.heading()}\n{text}"


TEXTS = {
    "abi/capture_guards.ll": lambda: with_heading(guarded_entries.guards_text()),
    "abi/dispatch.ll": lambda: with_heading(guarded_entries.dispatch_text()),
    "abi/python_function.ll": lambda: with_heading(python_function.writing_text()),
    "export/object_code.ll": lambda: with_heading("\n".join(object_code.c_library().values())),
    "export/workspace.ll": lambda: with_heading("\n".join(workspace.RUNTIME.values())),
    "ir/execution_engine.ll": lambda: execution_engine.float16_text(execution_engine.heading()),
    "profile/instrumented.ll": of_timers,
    "abi/array_fingerprint.ll": array_fingerprint.text,
    "runtime/os_calls.ll": runtime_library.text,
    "runtime/thread_pool.ll": runtime_library.text,
}


def test_every_file_is_tested():
    assert {p.relative_to(FOLDER).as_posix() for p in FOLDER.rglob("*.ll")} == set(TEXTS)


@pytest.mark.parametrize("name", TEXTS)
def test_llvm_verifies(name):
    text = TEXTS[name]()
    for function in re.findall(r"^define .*(@[\w.]+)\(", (FOLDER / name).read_text("utf-8"), re.M):
        assert re.search(rf"^define .*{re.escape(function)}\(", text, re.M)
    assert "$" not in text
    assert execution_engine.object_of(text, quick=True)


def test_a_missing_value_is_an_error():
    with pytest.raises(KeyError, match="head"):
        path = Path(guarded_entries.__file__).with_name("dispatch")
        llvm_types.read(path, layout=1, **cpython_layout.OFFSETS)
