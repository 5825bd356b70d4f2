"""Object files for other processors, run by qemu, and WebAssembly, run by node.

Tests need the tools that they name (Debian: gcc-aarch64-linux-gnu, gcc-riscv64-linux-gnu,
qemu-user, nodejs; and the package ziglang), and are skipped without them.
"""

import importlib.util
import json
import shutil
import subprocess

import numpy as np
import pytest
from tests.backends.llvm.random_programs import Bundle, differing

import wengert as wg
from wengert._engine.ops.random import tail_functions

from .c_drivers import compiled, run

CROSS = {
    "aarch64": ("aarch64-linux-gnu-gcc", "qemu-aarch64"),
    "riscv64": ("riscv64-linux-gnu-gcc", "qemu-riscv64"),
}
TARGETS = ("x86-64", "x86-64-v3", "x86-64-v4", "aarch64", "riscv64", "wasm32")


def mixed(x, a):
    y = np.exp(np.sin(x)) * np.log1p(x * x) + np.tanh(x) ** 3
    z = np.linalg.solve(a @ a.T + 4.0 * np.eye(4), y)
    return np.sum(np.sort(z) * np.arange(4.0)) + np.sum(np.abs(x) ** 1.7)


SPECS = wg.spec(4), wg.spec((4, 4))
VALUES = np.array([0.3, -1.5, 40.0, 2.0]), np.arange(16.0).reshape(4, 4) / 7


@pytest.mark.sample(2)
@pytest.mark.parametrize("target", TARGETS)
def test_objects_are_written(target, tmp_path):
    exported = wg.jit(mixed).export(
        tmp_path / "m.o", SPECS, target=target, derivatives=("value", "gradient")
    )
    assert exported.target == target
    magic = b"\0asm" if target == "wasm32" else b"\x7fELF"
    assert exported.path.read_bytes().startswith(magic)
    assert "no library" in exported.header.read_text()
    text = wg.jit(mixed).export(tmp_path / "m.ll", SPECS, target=target).path.read_text()
    assert "define i32 @mixed(ptr %in0, ptr %in1, ptr %out0, ptr %work, i64 %bytes)" in text


def test_triples(tmp_path):
    for triple, magic in (
        ("aarch64-apple-darwin", b"\xcf\xfa\xed\xfe"),
        ("x86_64-pc-windows-msvc", b"\x64\x86"),
    ):
        exported = wg.jit(mixed).export(tmp_path / "m.o", SPECS, target=triple)
        assert exported.path.read_bytes().startswith(magic)


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", CROSS)
def test_under_qemu(target, tmp_path):
    compiler, emulator = _tools(*CROSS[target])
    exported = wg.jit(mixed).export(
        tmp_path / "m.o", SPECS, target=target, derivatives=("value", "gradient")
    )
    for name, wanted in (("mixed", mixed(*VALUES)), ("mixed_gradient", wg.grad(mixed)(*VALUES))):
        program = compiled(exported, name, VALUES, compiler, "-static", "-Wall", "-Werror")
        (got,) = run(exported, name, VALUES, program, emulator)
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.sample(1, first=0)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("target", CROSS)
def test_random_programs_under_qemu(seed, target, tmp_path):
    compiler, emulator = _tools(*CROSS[target])
    bundle = Bundle(seed, named=seed % 3 == 2)
    exported = wg.jit(lambda *xs: bundle.values(*xs)).export(
        tmp_path / "f.o", tuple(bundle.specs), name="f", target=target
    )
    for world in bundle.worlds:
        program = compiled(exported, "f", world, compiler, "-static")
        got = run(exported, "f", world, program, emulator)
        with np.errstate(all="ignore"):
            assert not differing(got, bundle.values(*world), bundle.eps), str(bundle)


SCRIPT = """
const fs = require("fs");
const given = JSON.parse(fs.readFileSync(process.argv[2]));
const compiled = new WebAssembly.Module(fs.readFileSync(given.path));
if (WebAssembly.Module.imports(compiled).length) throw "it has imports";
const code = new WebAssembly.Instance(compiled, {}).exports;
const bytes = Number(code[given.name + "_work"](...given.sizes.map(BigInt)));
let next = (code.__heap_base.value + 63) & ~63;
const place = (count) => { const at = next; next += (count + 63) & ~63; return at; };
const inputs = given.inputs.map((x) => place(8 * x.length));
const outputs = given.outputs.map((n) => place(8 * n));
const work = place(bytes);
code.memory.grow(Math.ceil(next / 65536) - code.memory.buffer.byteLength / 65536 + 1);
const memory = new Float64Array(code.memory.buffer);
given.inputs.forEach((x, k) => memory.set(x, inputs[k] / 8));
const status = code[given.name](
  ...inputs, ...outputs, ...given.sizes.map(BigInt), work, BigInt(bytes));
console.log(JSON.stringify({status, outputs: given.outputs.map(
  (n, k) => Array.from(memory.slice(outputs[k] / 8, outputs[k] / 8 + n)))}));
"""


def _by_node(exported, name, values, counts, sizes=()):
    folder = exported.path.parent
    (folder / "run.cjs").write_text(SCRIPT)
    given = {
        "path": str(exported.path),
        "name": name,
        "inputs": [np.ravel(v).tolist() for v in values],
        "outputs": counts,
        "sizes": list(sizes),
    }
    (folder / "given.json").write_text(json.dumps(given))
    done = subprocess.run(
        ["node", str(folder / "run.cjs"), str(folder / "given.json")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["status"] == 0
    return [np.array(x, float) for x in found["outputs"]]


def test_webassembly_in_node(tmp_path):
    _tools("node")
    _ziglang()
    exported = wg.jit(mixed).export(
        tmp_path / "m.wasm", SPECS, derivatives=("value", "gradient", "hessian")
    )
    for name, count, wanted in (
        ("mixed", 1, mixed(*VALUES)),
        ("mixed_gradient", 4, wg.grad(mixed)(*VALUES)),
        ("mixed_hessian", 16, np.ravel(wg.hessian(mixed)(*VALUES))),
    ):
        (got,) = _by_node(exported, name, VALUES, [count])
        np.testing.assert_allclose(got, np.ravel(wanted), rtol=1e-11)


def test_elementary_functions_in_node(tmp_path):
    """The same vector functions as in this process: nearly all results have the same bits."""
    _tools("node")
    _ziglang()
    functions = (np.exp, np.log, np.sin, np.cos, np.tan, np.tanh, np.arctan, np.cbrt, np.expm1)

    def f(x):
        return np.stack([g(x) for g in functions])

    x = np.concatenate([np.random.default_rng(0).uniform(0.01, 50.0, 200), [1e-300, 1e5, 1e15]])
    exported = wg.jit(f).export(tmp_path / "f.wasm", wg.spec("n"))
    (got,) = _by_node(exported, "f", [x], [len(functions) * len(x)], [len(x)])
    wanted = np.ravel(wg.jit(f)(x))
    finite = np.isfinite(wanted)
    assert np.all(np.abs(got - wanted)[finite] <= 4e-16 * np.abs(wanted[finite]))
    assert np.mean(got == wanted) > 0.9


def test_random_numbers_in_node(tmp_path):
    """Functions of tail probabilities have the bits of NumPy, without fma in instructions, too."""
    _tools("node")
    _ziglang()
    functions = [getattr(tail_functions, name) for name in tail_functions.__all__]

    def f(v):
        return np.stack([g(v) for g in functions])

    rng = np.random.default_rng(0)
    v = 2.0 ** rng.uniform(-64.0, -1.0, 400) * rng.choice([-1.0, 1.0], 400)
    exported = wg.jit(f).export(tmp_path / "f.wasm", wg.spec("n"))
    (got,) = _by_node(exported, "f", [v], [len(functions) * len(v)], [len(v)])
    assert np.array_equal(got, np.ravel(f(v)))


@pytest.mark.slow  # zig compiles its libraries at the first use
def test_shared_libraries_by_zig(tmp_path):
    _ziglang()
    exported = wg.jit(mixed).export(tmp_path / "m.so", SPECS, target="aarch64")
    assert exported.path.read_bytes().startswith(b"\x7fELF")


def test_no_linker(tmp_path, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda n, *a: None if n == "ziglang" else real(n, *a)
    )
    with pytest.raises(wg.errors.BackendError, match=r"pip install wengert\[cross\]"):
        wg.jit(mixed).export(tmp_path / "m.wasm", SPECS)
    with pytest.raises(wg.errors.ArgumentError, match="for the target 'wasm32'"):
        wg.jit(mixed).export(tmp_path / "m.wasm", SPECS, target="aarch64")


def _tools(*names):
    missing = [n for n in names if shutil.which(n) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    return names


def _ziglang():
    pytest.importorskip("ziglang")
