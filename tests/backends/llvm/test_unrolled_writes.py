"""Unrolled loops in native code: many writes into one array, many arrays joined.

What a loop writes position after position is compared with NumPy, and that the code for it grows
with the number of writes and not with its square.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert._engine.backends.llvm.compiled_programs import LoadedProgram
from wengert._engine.backends.llvm.lowering import lowered
from wengert._engine.backends.llvm.lowering.loop_ir import Expr
from wengert._engine.backends.llvm.program import Program
from wengert._engine.backends.registry import backend
from wengert._engine.core.op import lookup
from wengert._engine.ops.indexing.getitem import scatter


def program_of(function, *args):
    graph = wg.trace(function)(*args)
    program = Program(graph.simplify())
    assert not program.host_callbacks, program.host_callbacks
    return program


def native(function, *args):
    """The results of a traced function, in machine code without host callbacks."""
    return LoadedProgram(program_of(function, *args)).run(list(args), {})


def steps_of(program):
    """The names of what is no loop."""
    return [s.node.op.name for s in program.plan.stages if isinstance(s, Expr)]


# ---- writes --------------------------------------------------------------------------------------


SLICES = [
    (slice(1, -1), slice(1, -1)),
    (slice(None), 0),
    (slice(1, None), -1),
    (0, slice(None)),
    (slice(None, None, 2), slice(1, 4)),
    (slice(None, None, -1), slice(None, None, 3)),
    (2, slice(4, 1, -1)),
    (slice(3, 3), slice(None)),
    (slice(None), slice(2, 3)),
    (1, 2),
]


def slice_values(z, rng):
    """Two arrays for each slice."""
    indices = [index for index in SLICES for _ in range(2)]
    return indices, [(rng.normal(size=z[i].shape) * 3).astype(z.dtype) for i in indices]


def shared_functions(program):
    """The functions that store slices; each is written once, however many slices there are."""
    assert steps_of(program) == ["writes"] and "call void @rows." in program.text
    return len(re.findall(r"define internal void @rows[.]", program.text))


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8", "?"])
def test_chains_of_slices_share_their_functions(dtype):
    """Rows, columns and strided elements, from arrays, from one number, from broadcast rows."""
    rng = np.random.default_rng(5)
    z = (rng.normal(size=(6, 7)) * 3).astype(dtype)
    indices, values = slice_values(z, rng)
    one, row = np.ones((), dtype), (rng.normal(size=7) * 3).astype(dtype)

    def function(z, one, row, *values):
        z = z.copy()
        for index, value in zip(indices, values, strict=True):
            z[index] = value
        for k in range(1, 6):
            z[k:] = row
            z[k : k + 2, k:] = one
        return z

    program = program_of(function, z, one, row, *values)
    assert shared_functions(program) <= 3
    result = LoadedProgram(program).run([z, one, row, *values], {})[0]
    np.testing.assert_array_equal(result, function(z, one, row, *values))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_slices_that_are_added_share_their_functions(dtype):
    rng = np.random.default_rng(6)
    z = rng.normal(size=(6, 7)).astype(dtype)
    indices, values = slice_values(z, rng)

    def function(z, *values):
        total = 0.0
        for index, value in zip(indices, values, strict=True):
            total = total + np.sum(z[index] * value)
        return total

    gradient = wg.grad(function)
    program = program_of(gradient, z, *values)
    assert shared_functions(program) <= 3
    result = LoadedProgram(program).run([z, *values], {})[0]
    np.testing.assert_allclose(result, gradient(z, *values), rtol=1e-5, atol=1e-5)


def drawn_program(rng, shape, count):
    """A function of an array and of numbers, which writes, adds and reads in a random order."""
    actions = []
    for _ in range(count):
        kind = ["set", "set", "add", "get"][rng.integers(0, 4)]
        index = tuple(int(rng.integers(-n, n)) for n in shape)
        if rng.random() < 0.15:
            index = (*index[:-1], slice(*sorted(rng.integers(0, shape[-1] + 1, 2).tolist())))
        elif rng.random() < 0.1:
            index = (slice(None, None, int(rng.choice([-2, 2, -1]))), *index[1:])
        actions.append((kind, index, int(rng.integers(0, 4))))

    def function(x, v):
        z, out = x * 1.0, []
        for kind, index, k in actions:
            if kind == "set":
                z[index] = v[k] * 2.0
            elif kind == "add":
                z = z + scatter(wnp.broadcast_to(v[k], np.zeros(shape)[index].shape), index=index,
                                shape=shape)  # fmt: skip
            else:
                out.append((z[index] * v[k]).sum())
                v = v + out[-1] * 0.1
        return (z, *out)

    return function


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [3, 7, 30])
def test_writes_and_reads_in_any_order(seed, count):
    rng = np.random.default_rng(100 * seed + count)
    shape = [(5,), (3, 4), (2, 3, 2)][seed % 3]
    function = drawn_program(rng, shape, count)
    x, v = rng.normal(size=shape), rng.normal(size=4)

    def gradient(x, v):
        return wg.grad(lambda x, v: sum((o**2).sum() for o in function(x, v)), argnums=(0, 1))(x, v)

    for program in (function, gradient):
        graph = wg.trace(program)(x, v)
        wanted = backend("interpret").compile(graph, {})([x, v])
        for got, want in zip(native(program, x, v), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


def filled(x):
    z = np.zeros(x.shape) + x * 0.0
    z[0] = x[0]
    for i in range(1, len(x)):
        z[i] = z[i - 1] * 0.9 + x[i]
    return z


@pytest.mark.usefixtures("unconverted")
def test_an_array_that_a_loop_fills_is_made_once():
    x = np.linspace(0, 1, 60)
    program = program_of(filled, x)
    assert steps_of(program) == ["writes"]
    np.testing.assert_allclose(LoadedProgram(program).run([x], {})[0], filled(x), rtol=1e-13)


def test_code_grows_with_the_number_of_writes():
    def work(n):
        x = np.linspace(0, 1, n)
        return len(program_of(lambda x: wg.grad(lambda x: (filled(x) ** 2).sum())(x), x).text)

    assert work(160) < 2.5 * work(80)


def test_sums_of_many_scatters_are_one_step():
    x = np.linspace(0.5, 1, 50)

    def gradient(x):
        return wg.grad(lambda x: sum(x[i] * x[i + 1] for i in range(49)))(x)

    program = program_of(gradient, x)
    assert steps_of(program) == ["writes"]
    wanted = np.concatenate([x[1:2], x[:-2] + x[2:], x[-2:-1]])
    np.testing.assert_allclose(LoadedProgram(program).run([x], {})[0], wanted, rtol=1e-14)


def test_written_values_are_cast():
    x, v = np.zeros(9, np.float32), np.linspace(0, 1, 9)

    def function(x, v):
        z = x + np.float32(1)
        total = 0.0
        for i in range(9):
            z[i] = v[i]
            total = total + z[i]
        return z, total

    z, total = native(function, x, v)
    assert z.dtype == total.dtype == np.float32
    np.testing.assert_array_equal(z, v.astype(np.float32))
    np.testing.assert_allclose(total, v.astype(np.float32).sum(), rtol=1e-6)


# ---- many arrays joined --------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("count", [1, 2, 8, 9, 40])
def test_stacked_and_concatenated(count):
    rng = np.random.default_rng(count)
    for shape in [(), (3,), (2, 3)]:
        parts = [rng.normal(size=shape) for _ in range(count)]
        for axis in range(len(shape) + 1):
            (found,) = native(lambda *p, axis=axis: wnp.stack(p, axis=axis) * 1.0, *parts)
            np.testing.assert_array_equal(found, np.stack(parts, axis=axis))
        for axis in range(len(shape)):
            mixed = [p.astype(rng.choice(["f8", "f4", "i2"])) for p in parts]
            mixed = [p[tuple(slice(k % 3) if a == axis else slice(None) for a in range(p.ndim))]
                     for k, p in enumerate(mixed)]  # fmt: skip
            (found,) = native(lambda *p, axis=axis: wnp.concatenate(p, axis=axis), *mixed)
            wanted = np.concatenate(mixed, axis=axis)
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)


def test_a_thousand_numbers_are_stacked_in_one_step():
    def loop(x):
        out = []
        for _ in wg.unroll(range(1000)):
            x = x * 0.99 + 0.5
            out.append(x)
        return wnp.stack(out)

    program = program_of(loop, np.float64(1.0))
    assert steps_of(program) == ["stack"]
    assert len(program.text) < 1_500_000
    np.testing.assert_allclose(
        LoadedProgram(program).run([np.float64(1.0)], {})[0], loop(np.float64(1.0)), rtol=1e-13
    )


def test_views_are_joined_from_where_they_are():
    x = np.arange(24.0).reshape(4, 6)

    def function(x):
        return wnp.concatenate([x[k % 4, ::-1] for k in wg.unroll(range(12))] + [x.T[1]])

    program = program_of(function, x)
    assert steps_of(program) == ["concatenate"]
    np.testing.assert_array_equal(LoadedProgram(program).run([x], {})[0], function(x))


# ---- moved ---------------------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("shift", [0, 1, -1, 5, -9, (1, -2), (7, 1)])
def test_rolled(shift):
    for shape in [(5,), (3, 4), (2, 3, 4), (0, 3), (3, 0)]:
        x = np.arange(float(np.prod(shape))).reshape(shape)
        axes = [None] if isinstance(shift, int) else []
        axes += [(0, 1), 0] if len(shape) > 1 else [0]
        for axis in axes:
            (found,) = native(lambda x, axis=axis: wnp.roll(x, shift, axis) * 1.0, x)
            np.testing.assert_array_equal(found, np.roll(x, shift, axis))


@pytest.mark.parametrize("shift", [0, 3, -1, -40])
def test_rolled_for_all_lengths(shift):
    graph = wg.trace(lambda x: wnp.roll(x, shift, 0))(wg.spec(("n", 2)))
    compiled = LoadedProgram(Program(graph))
    assert not compiled.program.host_callbacks
    for n in (0, 1, 2, 7, 100):
        x = np.arange(2.0 * n).reshape(n, 2)
        np.testing.assert_array_equal(compiled.run([x], {"n": n})[0], np.roll(x, shift, 0))


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["f8", "c8", "i4", "?"])
def test_shifted(dtype):
    op = lookup("shift")
    for shape in [(1,), (6,), (3, 4), (0, 2)]:
        x = (np.arange(np.prod(shape)).reshape(shape) % 3).astype(dtype)
        for axis in range(len(shape)):
            for by in (1, -1):
                (found,) = native(lambda x, axis=axis, by=by: op(x, axis=axis, by=by), x)
                assert found.dtype == x.dtype
                np.testing.assert_array_equal(found, op.run(x, axis=axis, by=by))


def test_what_is_written_and_read_by_a_step():
    """A step is given arrays, and none that waits to be made."""

    def f(x):
        y = x.copy()
        y[1] = 5.0
        return y[np.zeros(0, int)], np.sort(y)

    graph = wg.trace(f)(np.ones(3))
    for got, want in zip(graph.run(np.ones(3), backend="llvm"), f(np.ones(3)), strict=True):
        assert np.array_equal(got, want)


# ---- writes in place -----------------------------------------------------------------------------


def cholesky(a):
    """The factor, element by element, with slices of the rows that are done."""
    a = a * 1.0
    for i in wg.unroll(range(len(a))):
        for j in wg.unroll(range(i)):
            a[i, j] = (a[i, j] - np.dot(a[i, :j], a[j, :j])) / a[j, j]
        a[i, i] = np.sqrt(a[i, i] - np.dot(a[i, :i], a[i, :i]))
    return np.tril(a)


def test_an_array_that_is_written_and_read_by_turns_stays_in_its_place():
    a = np.random.default_rng(0).normal(size=(9, 9))
    a = a @ a.T + 9.0 * np.eye(9)
    program = program_of(cholesky, a)
    np.testing.assert_allclose(native(cholesky, a)[0], np.linalg.cholesky(a), rtol=1e-12)
    assert steps_of(program).count("writes") > 30
    assert program.workspace < 10 * a.nbytes


def test_a_version_that_is_read_later_is_not_written_over():
    def f(a):
        a, old = a * 1.0, []
        for k in wg.unroll(range(20)):
            a[k % 5, k % 7] = np.sum(a[k % 3, : k % 8]) + k
            old.append(a.copy())
            a[k % 4] = a[(k + 1) % 5]
        return (a, *[np.sin(x) for x in old])

    a = np.random.default_rng(0).normal(size=(5, 8))
    for found, right in zip(native(f, a), f(a), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-12)


def test_derivatives_of_writes_and_reads_by_turns():
    a = np.random.default_rng(1).normal(size=(6, 6))
    a = a @ a.T + 6.0 * np.eye(6)
    f = wg.grad(lambda a: np.sum(np.sin(cholesky(a))))
    np.testing.assert_allclose(wg.jit(f, source=False)(a), f(a), rtol=1e-10, atol=1e-12)


def test_the_plan_of_a_program_with_many_writes_can_be_shown():
    shown = str(wg.jit(cholesky, source=False).lower(np.eye(5)).loops)
    assert "call writes" in shown


def test_reading_an_element_back_is_no_search(calls):
    """As many calls of functions for each element, however many are written before."""

    def lower(n):
        def f(x):
            for i in wg.unroll(range(1, n)):
                x[i] = x[i] * 0.5 + x[i - 1]
            return x

        graph = wg.trace(lambda x: f(x * 1.0))(np.ones(n)).simplify()
        return calls(lowered, graph) / n

    assert lower(300) < 1.1 * lower(75)
