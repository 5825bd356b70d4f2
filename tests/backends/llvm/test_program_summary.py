"""The summary of a program: its nests, calls, host callbacks and buffers."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import BackendError


def layer(x, w):
    h = np.tanh(x @ w)
    return np.sum(h / np.sum(h * h, axis=1, keepdims=True))


def test_nests_calls_and_buffers_are_listed():
    told = wg.explain(wg.grad(layer, argnums=1), backend="llvm")(
        wg.spec(("n", 30)), np.ones((30, 40))
    )
    program = told.program
    assert [s.title for s in program.calls] == ["matmul", "einsum"]
    assert program.host_callbacks == () and len(program.nests) >= 1
    assert all(s.flops is not None for s in program.calls)
    assert str(program.calls[0].flops) == "2400*n"
    assert "Program" in str(told) and "nest over the rows of [n]" in str(told)
    assert "<pre>" in told._repr_html_()


def test_host_callbacks_name_the_line_of_the_user():
    @wg.primitive(callback=True)
    def odd(x):
        return np.sort(x)[::-1].copy()

    graph = wg.trace(lambda x: np.sum(odd(x * 2.0)))(wg.spec((3,)))
    program = wg.explain(graph, backend="llvm")().program
    (callback,) = program.host_callbacks
    assert "odd" in callback.title and "test_program_summary.py" in callback.where


def test_loops_of_a_compiled_function_are_its_summary():
    f = wg.jit(lambda x: np.sum(np.exp(x)))
    text = f.lower(np.ones(5)).loops
    assert text.startswith("1 nest, 0 calls, 0 host callbacks") and "sum" in text


def test_a_backend_without_programs_says_so():
    with pytest.raises(BackendError, match="does not compile programs"):
        wg.explain(np.sin, backend="interpret")(1.0)
