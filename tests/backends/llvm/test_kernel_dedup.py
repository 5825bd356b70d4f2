"""Fused loops that the compiler takes for identical are: each is generated again and compared.

Beside that: what Python unrolls is written once, and what differs in anything is not shared.
"""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.codegen.loop_nests import LoopNest
from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.program import Program

from .random_programs import Bundle

X = np.linspace(0.1, 1.0, 12).reshape(3, 4)


def checked(program):
    """How many calls of nests there are, and how many nests, after writing all of them again."""
    for written, name in program.nests:
        stored = set(program.plan.stored)
        width = execution_engine.vector_bytes()
        again = LoopNest(program.language, written.fused, stored, width, program.runs_once)
        assert again.text(name) == program.module.parts[name]
        assert again.table == written.table
        assert (again.partial, again.spaces) == (written.partial, written.spaces)
        assert (again.may_fail, again.needs_runtime) == (written.may_fail, written.needs_runtime)
        assert again.group is written.group
    return len(program.nests), len({name for _, name in program.nests})


def counted(function, *arguments):
    return checked(Program(wg.trace(function)(*arguments)))


def unrolled(h, w, x, count=20):
    for _ in range(count):
        h = np.tanh(h @ w) * x + np.sum(h, axis=1, keepdims=True)
    return h


@pytest.mark.usefixtures("unconverted")
def test_an_unrolled_loop_is_written_once():
    calls, nests = counted(unrolled, X, np.eye(4), X)
    assert calls >= 20
    assert nests <= 6


def by_elements(a):
    """Elements in terms of others, and sums of products of parts of rows."""
    a = a * 1.0
    for i in range(1, 6):
        for j in range(1, 6):
            a[i, j] = (a[i - 1, j] - np.dot(a[i, :3], a[j, 1:4])) / a[i, (j + 1) % 6]
    return a


@pytest.mark.usefixtures("unconverted")
def test_nests_that_read_other_elements_are_one():
    a = np.random.default_rng(0).uniform(1.0, 2.0, size=(6, 6))
    calls, nests = counted(by_elements, a)
    assert calls >= 45
    assert nests <= 12
    np.testing.assert_allclose(wg.jit(by_elements)(a), by_elements(a), rtol=1e-12)
    f = lambda a: np.sum(np.sin(by_elements(a)))  # noqa: E731
    np.testing.assert_allclose(wg.jit(wg.grad(f))(a), wg.grad(f)(a), rtol=1e-9, atol=1e-12)


def test_a_long_loop_reads_an_array_by_one_address():
    program = Program(wg.trace(lambda x: x[2:] - 2.0 * x[1:-1] + x[:-2])(np.ones(1000)))
    ((nest, _),) = program.nests
    assert len(nest.table) == 2


def test_a_program_made_from_shared_nests_gives_the_right_numbers():
    expected = wg.grad(lambda *a: np.sum(unrolled(*a)))(X, np.eye(4) / 3, X)
    got = wg.jit(wg.grad(lambda *a: np.sum(unrolled(*a))))(X, np.eye(4) / 3, X)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def with_constant(x, c):
    return np.cumsum(np.sin(x) * c, axis=1)


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    "one, two",
    [
        (lambda x: np.sin(x) * 2.0, lambda x: np.sin(x) * 3.0),
        (lambda x: np.sin(x) * 0.0, lambda x: np.sin(x) * -0.0),
        (lambda x: np.sin(x) + 1.0, lambda x: np.cos(x) + 1.0),
        (lambda x: np.sin(x.T) + x.T, lambda x: np.sin(x[:, ::-1].T) + x.T),
        (lambda x: np.sin(x) * x[:, :1], lambda x: np.sin(x) * x[:, 1:2]),
        (lambda x: np.sum(np.exp(x), axis=0), lambda x: np.sum(np.exp(x), axis=1)),
        (lambda x: np.max(np.exp(x), axis=1), lambda x: np.min(np.exp(x), axis=1)),
        (lambda x: x[[0, 2]] * 2.0, lambda x: x[[0, 1]] * 2.0),
        (lambda x: np.clip(x, 0.2, 0.5) + x, lambda x: np.clip(x, 0.2, 0.6) + x),
        (
            lambda x: x.astype(np.float32) + np.float32(1),
            lambda x: x.astype(np.int32) + np.int32(1),
        ),
        (lambda x: np.roll(x, 1, 1) * x, lambda x: np.roll(x, 2, 1) * x),
        (lambda x: np.var(x, axis=1, ddof=0), lambda x: np.var(x, axis=1, ddof=1)),
        (lambda x: np.exp(x) * np.exp(x), lambda x: np.exp(x) * np.exp(x + 1.0)),
    ],
)
def test_what_differs_is_not_shared(one, two):
    def both(x):  # with a step between, so that loops are not joined
        y = with_constant(x, 1.5)
        return one(y), two(with_constant(y, 1.5))

    counted(both, X)
    got = wg.jit(both)(X)
    for a, b in zip(got, both(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6 if a.dtype == np.float32 else 1e-12)


@pytest.mark.sample(1)
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_random_programs(seed, named):
    bundle = Bundle(seed, 6, named)
    calls = nests = 0
    for function in (bundle.values, bundle.gradient):
        more = counted(function, *bundle.specs)
        calls, nests = calls + more[0], nests + more[1]
    assert 0 < nests <= calls


def test_a_sum_in_each_row_that_is_read_at_another_place_of_its_row():
    """It needs a buffer of a row: a register has the result of one place."""
    bundle = Bundle(141, 10)
    bundle.programs = bundle.programs[7:9]
    graph = wg.trace(bundle.gradient)(*bundle.specs)
    found = graph.run(*bundle.worlds[0], backend="llvm")
    wanted = graph.run(*bundle.worlds[0])
    for a, b in zip(found, wanted, strict=True):
        scale = np.max(np.abs(b), where=np.isfinite(b), initial=1.0)
        np.testing.assert_allclose(a / scale, b / scale, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 150))
def test_many_random_programs(seed):
    bundle = Bundle(seed, 10, seed % 2 == 0)
    for function in (bundle.values, bundle.gradient, bundle.second):
        counted(function, *bundle.specs)
