"""Masked loads read what their masks select, when they stand in the IR, and nothing else.

LLVM 22 makes other programs of them (ir/simd_value.py).  The testers are tested: without what
prevents that, they find all three.
"""

import ctypes

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm import program
from wengert._engine.backends.llvm.ir import execution_engine, simd_value
from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder

from .random_programs import Bundle, is_differentiable
from .unmasked_loads import excess

pytestmark = pytest.mark.skipif(
    execution_engine.vector_bytes() < 64, reason="masks are flags with AVX-512 only"
)
KIND = "<8 x double>"


def backwards(s, loaded, other):
    """The loaded elements in reverse order."""
    lanes = ", ".join(f"i32 {k}" for k in range(15, 7, -1))
    return s.value(f"shufflevector {KIND} {other}, {KIND} {loaded}, <8 x i32> <{lanes}>")


def overwritten(s, loaded, _):
    """The loaded elements, after others were stored in their place."""
    s.write(f"store {KIND} zeroinitializer, ptr %x, align 8")
    return loaded


def selected(use):
    """What `use` makes of 8 elements, of which those below 5 are loaded; other elements beyond."""
    module = ModuleBuilder()
    f = Function(module, "f", [("ptr", x) for x in ("x", "y", "count", "out")], linkage="")
    s = f.body
    counts = s.value("load <8 x i64>, ptr %count, align 8")
    lanes = ", ".join(f"i64 {k}" for k in range(8))
    mask = s.value(f"icmp slt <8 x i64> <{lanes}>, {counts}")
    loaded = simd_value.masked_load(module, s, "double", 8, "%x", 8, mask)
    other = s.value(f"load {KIND}, ptr %y, align 8")
    used = use(s, loaded, other)
    made = s.value(f"select <8 x i1> {mask}, {KIND} {used}, {KIND} {other}")
    s.write(f"store {KIND} {made}, ptr %out, align 8")
    s.write("ret void")
    module.add(f)
    image = execution_engine.object_of(module.text(execution_engine.heading()))
    code = execution_engine.Code(image, {})
    x, y, count, out = np.arange(1.0, 9.0), -np.arange(1.0, 9.0), np.full(8, 5), np.zeros(8)
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(code.address("f"))
    run(*(each.ctypes.data for each in (x, y, count, out)))
    return out.tolist()


CASES = {
    backwards: [0.0, 0.0, 0.0, 5.0, 4.0, -6.0, -7.0, -8.0],
    overwritten: [1.0, 2.0, 3.0, 4.0, 5.0, -6.0, -7.0, -8.0],
}


@pytest.mark.parametrize("use", CASES)
def test_a_selection_by_the_same_mask(use):
    assert selected(use) == CASES[use]


def text_of(f, *args):
    return program.Program(wg.trace(f)(*args), 1, "").text


def programs(n):
    """Loops of which the last vector is partial, and all that loops do with it."""
    a, x = np.ones((7, n)), np.ones(n)
    yield lambda a, x: a @ x, np.ones((n, 1)), x[:1]
    yield lambda a, x: a @ x, a, x
    yield lambda a: np.sum(np.exp(a) * a, axis=1), a
    yield lambda a: np.max(a * 2.0, axis=1) + np.prod(a + 1.0, axis=1), a
    yield lambda a: np.argmax(a * a, axis=1), a
    yield lambda x, y: np.where(x > 0.0, y * x, x[::-1]), x, x
    yield lambda x: np.sum(np.pad(x, (1, 2)) * 3.0), x
    yield lambda x, y: np.concatenate([x, y]) * np.sum(x * y), x, x
    yield wg.grad(lambda a, x: np.sum(np.tanh(a @ x) ** 2)), a, x
    yield wg.hessian(lambda x: np.sum(x**3) * np.sum(np.sin(x))), x


@pytest.mark.parametrize("n", [5, 9])
def test_what_has_a_mask_keeps_it(n):
    for f, *args in programs(n):
        assert not excess(text_of(f, *args))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("first", range(30_120, 30_180, 10))
def test_what_has_a_mask_keeps_it_in_random_programs(first):
    for seed in range(first, first + 10):
        bundle = Bundle(seed, named=seed % 3 == 2)
        for f in [bundle.values, bundle.gradient][: 1 + is_differentiable(bundle)]:
            assert not excess(text_of(f, *bundle.specs)), bundle


def test_the_testers_find_what_llvm_does(monkeypatch):
    monkeypatch.setattr(simd_value, "_fenced", lambda *given: given[-1])
    if execution_engine.llvm.llvm_version_info[0] != 22:
        pytest.skip("other versions of LLVM do not do this")
    assert excess(text_of(lambda a, x: a @ x, np.ones((5, 1)), np.ones(1)))
    for use, right in CASES.items():
        assert selected(use) != right
