"""Every external symbol that generated code calls has an address, on any processor.

A processor without instructions for half precision has its conversions by functions of ours; a
name that nobody supplies is an error when a program is loaded, and not the end of the process.
"""

import platform
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.object_symbols import symbols_of
from wengert._engine.backends.llvm.runtime import runtime_library
from wengert.errors import BackendError

X86 = platform.machine().lower() in ("x86_64", "amd64")
PROGRAM = Path(__file__).with_name("half_precision_script.py")
# Of what we write, what LLVM makes a call of where an instruction is missing.
OPERATIONS = {
    **{f"llvm.{f}": 1 for f in "sqrt floor ceil trunc rint nearbyint roundeven fabs".split()},
    **{f"llvm.{f}": 2 for f in "copysign minnum maxnum minimum maximum".split()},
    "llvm.fma": 3,
    "frem": 2,
}


@pytest.mark.parametrize("cpu", [pytest.param("host", marks=pytest.mark.slow), "x86-64"])
def test_conversions_are_numpys_and_every_name_has_an_address(cpu: str) -> None:
    if cpu != "host" and not X86:
        pytest.skip("of another architecture")
    ran = subprocess.run(
        [sys.executable, str(PROGRAM), cpu], capture_output=True, text=True, timeout=280
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    names = set(ran.stdout.split())
    assert cpu == "host" or {"__truncsfhf2", "__extendhfsf2"} <= names  # the case is forced
    assert not {n for n in names - execution_engine.SUPPLIED if n.startswith("__")} & {
        *("__udivti3", "__umodti3", "__divti3", "__modti3", "__mulodi4", "__muloti4"),
    }


def _module_of(kind: str) -> str:
    lines = [execution_engine.heading()]
    for k, (name, count) in enumerate(OPERATIONS.items()):
        given = ", ".join(f"{kind} %x{j}" for j in range(count))
        types, letter = ", ".join([kind] * count), {"half": "16", "float": "32", "double": "64"}
        lines.append(f"define {kind} @f{k}({given}) {{")
        if name == "frem":
            lines.append(f"  %y = frem {given.replace(f', {kind}', ',')}")
        else:
            lines[1:1] = [f"declare {kind} @{name}.f{letter[kind]}({types})"]
            lines.append(f"  %y = call {kind} @{name}.f{letter[kind]}({given})")
        lines.append(f"  ret {kind} %y\n}}")
    others = [k for k in ("half", "float", "double") if k != kind]
    for other in others:
        order = ["half", "float", "double"]
        word = "fpext" if order.index(other) > order.index(kind) else "fptrunc"
        lines.append(
            f"define {other} @to_{other}({kind} %x) {{\n  %y = {word} {kind} %x to {other}"
        )
        lines.append(f"  ret {other} %y\n}}")
    for size in (1, 8, 16, 32, 64):
        lines.append(f"define {kind} @s{size}(i{size} %x) {{")
        lines.append(f"  %a = sitofp i{size} %x to {kind}\n  %b = uitofp i{size} %x to {kind}")
        lines.append(f"  %y = fadd {kind} %a, %b\n  ret {kind} %y\n}}")
        lines.append(f"define i{size} @w{size}({kind} %x) {{")
        lines.append(f"  %a = fptosi {kind} %x to i{size}\n  %b = fptoui {kind} %x to i{size}")
        lines.append(f"  %y = xor i{size} %a, %b\n  ret i{size} %y\n}}")
    return "\n".join(lines)


_WHOLE = """
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define i128 @wide(i64 %x, i64 %y, i128 %n) {
  %a = zext i64 %x to i128
  %b = zext i64 %y to i128
  %c = mul i128 %a, %b
  %d = shl i128 %c, %n
  %e = lshr i128 %d, 64
  %f = add i128 %e, %c
  ret i128 %f
}
define i1 @checked(i64 %x, i64 %y) {
  %p = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %x, i64 %y)
  %o = extractvalue { i64, i1 } %p, 1
  ret i1 %o
}
define void @moved(ptr %x, ptr %y, i64 %n) {
  call void @llvm.memcpy.p0.p0.i64(ptr %x, ptr %y, i64 %n, i1 false)
  call void @llvm.memmove.p0.p0.i64(ptr %x, ptr %y, i64 %n, i1 false)
  call void @llvm.memset.p0.i64(ptr %x, i8 0, i64 %n, i1 false)
  ret void
}
"""


@pytest.mark.sample(3)
@pytest.mark.skipif(not X86, reason="of another architecture")
@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "sapphirerapids"])
def test_what_llvm_makes_a_call_of_has_an_address(
    monkeypatch: pytest.MonkeyPatch, cpu: str
) -> None:
    monkeypatch.setattr(execution_engine, "cpu", lambda: cpu)
    monkeypatch.setattr(execution_engine, "_own_features", lambda: "")
    other = execution_engine._new_machine(2)
    images = []
    for text in (
        *map(_module_of, ("half", "float", "double")),
        execution_engine.heading() + _WHOLE,
    ):
        with execution_engine._LOCK:
            module = llvm.parse_assembly(text)
            module.verify()
            images.append(other.emit_object(module))
    names = set().union(*(symbols_of(image)[1] for image in images))
    monkeypatch.undo()
    for image in images:
        execution_engine.Code(image, {})  # raises for a name without address
    assert {"memcpy", "memmove", "memset", "fmod"} <= names
    assert ("__truncsfhf2" in names) == (cpu in ("x86-64", "x86-64-v2"))
    assert ("__truncdfhf2" in names) == (cpu != "sapphirerapids")


def test_the_runtime_has_all_its_names() -> None:
    runtime_library.symbols()  # loaded: engine.Code has found every name
    defined, _ = symbols_of(execution_engine.object_of(runtime_library.text(), quick=True))
    assert "wengert_alloc" in defined


def test_a_name_without_address_is_an_error_when_it_is_loaded() -> None:
    text = "declare double @nobody_has_this(double)\ndefine double @f(double %x) {\n"
    text += "  %y = call double @nobody_has_this(double %x)\n  ret double %y\n}"
    image = execution_engine.object_of(f"{execution_engine.heading()}\n{text}")
    assert symbols_of(image) == ({"f"}, {"nobody_has_this"})
    with pytest.raises(BackendError, match=r'nobody_has_this, which neither.*backend="interpret"'):
        execution_engine.Code(image, {})


@pytest.mark.skipif(not X86, reason="of another architecture")
@pytest.mark.parametrize("system", ["linux-gnu", "apple-darwin", "pc-windows-msvc"])
def test_names_are_read_from_every_format(system: str) -> None:
    triple = f"x86_64-{system}"
    text = f'target triple = "{triple}"\n@data = external global i64\n'
    text += "declare double @a_name_longer_than_eight(double)\ndeclare void @short()\n"
    text += "define internal void @own() noinline {\n  call void @short()\n  ret void\n}\n"
    text += "define double @f(double %x) {\n  call void @own()\n  %n = load i64, ptr @data\n"
    text += "  %m = sitofp i64 %n to double\n"
    text += "  %y = call double @a_name_longer_than_eight(double %m)\n  ret double %y\n}"
    execution_engine.machine()
    with execution_engine._LOCK:
        target = llvm.Target.from_triple(triple).create_target_machine(reloc="pic")
        image = target.emit_object(llvm.parse_assembly(text))
    defined, needed = symbols_of(image)
    assert defined == {"f"} and needed == {"data", "a_name_longer_than_eight", "short"}
    assert "own" not in defined | needed


def test_what_is_no_object_file_is_said() -> None:
    with pytest.raises(ValueError, match="not an ELF, Mach-O or COFF object file"):
        symbols_of(b"\0" * 100)


def test_the_reported_case() -> None:
    found = wg.jit(lambda x: x.astype(np.float16), backend="llvm")(np.ones(3))
    assert found.dtype == np.float16 and found.tolist() == [1.0] * 3
