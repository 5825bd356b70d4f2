"""Kernels of random numbers: the same bits as the NumPy implementation, at any key."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder
from wengert._engine.backends.llvm.kernels.philox import block, schedule
from wengert._engine.core.op import lookup

from .kernel_driver import run

STATES = [
    [0, 0, 0],
    [1, 2, 3],
    [2**64 - 1, 2**63, 2**64 - 1],
    [0x123456789ABCDEF0, 0xFEDCBA9876543210, 2**63 + 5],
]
RANGES = [(-3, 4), (0, 2**32), (-5, 2**31), (0, 2**63 - 1)]


def check(name, state, shape, dtype, number=0, **more):
    state, dtype = np.array(state, np.uint64), np.dtype(dtype)
    params = {"number": number, "shape": shape, "dtype": dtype, **more}
    wanted = np.asarray(lookup(name).run(state, **params))
    status, (found,) = run(name, state, outputs=[wanted], **params)
    assert status == 0
    assert found.dtype == wanted.dtype
    assert found.tobytes() == wanted.tobytes()


def test_a_block_is_that_of_the_paper():
    """Computed again with Python's own integers."""
    module = ModuleBuilder()
    function = Function(
        module, "words", [("ptr", "to"), *(("i64", n) for n in "cpkl")], "void", linkage=""
    )
    s = function.body
    for k, word in enumerate(block(s, "%c", "%p", schedule(s, ["%k", "%l"]))):
        s.write(f"store i64 {word}, ptr {s.value(f'getelementptr i64, ptr %to, i64 {k}')}")
    s.write("ret void")
    module.add(function)
    code = execution_engine.Code(
        execution_engine.object_of(module.text(execution_engine.heading())), {}
    )
    made = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_uint64] * 4)(code.address("words"))
    whole = 2**64 - 1
    for given in ([0, 0, 0, 0], [whole] * 4, [3, 5, 2**63 + 1, 77]):
        found = (ctypes.c_uint64 * 4)()
        made(ctypes.addressof(found), *given)
        counter, keys = [given[0], given[1], 0, 0], given[2:]
        for _ in range(10):
            a, b = counter[0] * 0xD2E7470EE14C6C93, counter[2] * 0xCA5A826395121157
            counter = [
                b >> 64 ^ counter[1] ^ keys[0],
                b & whole,
                a >> 64 ^ counter[3] ^ keys[1],
                a & whole,
            ]
            weyl = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
            keys = [(k + w) & whole for k, w in zip(keys, weyl, strict=True)]
        assert list(found) == counter


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", ["random_uniform", "random_normal"])
def test_numbers_are_those_of_numpy(name, dtype):
    check(name, STATES, (1000,), dtype, number=7)
    for count in (0, 1, 31, 32, 33, 65):
        check(name, STATES[1], (count,), dtype)
    check(name, STATES[2], (), dtype, number=3)  # the position goes round
    check(name, STATES[3], (3, 0, 2), dtype)
    check(name, [STATES, STATES[::-1]], (3, 5), dtype, number=1)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_many_normal_numbers(dtype):
    check("random_normal", STATES[3], (400_000,), dtype)  # some are from the tail


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["i8", "u8", "i4", "u4", "i2", "u2", "i1", "u1"])
def test_integers_are_those_of_numpy(dtype):
    limits = np.iinfo(dtype)
    least, most = int(limits.min), int(limits.max)
    ranges = [(least, most + 1), (most, most + 1), (least, least + 3)]
    ranges += [r for r in RANGES if least <= r[0] and r[1] - 1 <= most]
    for low, high in ranges:
        check("random_integers", STATES, (27,), dtype, number=2, low=low, high=high)
    check("random_integers", STATES[1], (), dtype, low=0, high=100)


def test_streams_compiled_draw_what_they_draw_eagerly():
    streams = [wg.random.Stream(5), wg.random.Stream(5)]

    def draw(stream, x):
        return x + stream.normal(x.shape), stream.integers(0, 10, 3), stream.uniform((2, 2), 1, 3)

    eager = lambda x: draw(streams[0], x)  # noqa: E731
    compiled = wg.jit(lambda x: draw(streams[1], x), backend="llvm", host_callbacks="forbid")
    for n in (3, 3, 8, 5):  # of several lengths one program
        for a, b in zip(eager(np.zeros(n)), compiled(np.zeros(n)), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("width", [16, 32])
def test_on_processors_with_shorter_vectors(width, monkeypatch):
    monkeypatch.setattr(execution_engine, "vector_bytes", lambda: width)
    for name in ("random_uniform", "random_normal"):
        for dtype in ("f8", "f4"):
            check(name, STATES, (45,), dtype)
    check("random_integers", STATES[2], (45,), "i8", low=-3, high=2**40)
