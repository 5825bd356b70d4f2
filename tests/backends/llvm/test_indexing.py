"""Index arrays in native code, compared with NumPy: reading, writing, adding, and their errors.

Indices are drawn at random: slices, numbers, None, Ellipsis and index arrays of every dtype, in any
mixture; no node may be a host callback.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert._engine.backends.llvm.compiled_programs import LoadedProgram
from wengert._engine.backends.llvm.program import Program
from wengert._engine.backends.registry import backend
from wengert._engine.core.op import lookup
from wengert._engine.ops.indexing.getitem import scatter, split_index, written

DTYPES = ["f8", "f4", "f2", "c16", "c8", "i8", "i4", "i1", "u1", "u8", "?"]
INDICES = ["i8", "i4", "i2", "i1", "u1", "u4", "u8"]


def draw(rng, shape, dtype):
    """Numbers of a dtype."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) > 0.5
    if dtype.kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.kind == "c" else x).astype(dtype)


def native(function, *args):
    """The results of a traced function, in machine code alone; None if it fails."""
    graph = wg.trace(function)(*args)
    compiled = LoadedProgram(Program(graph))
    assert not compiled.program.host_callbacks, compiled.program.host_callbacks
    return compiled.run(list(args), {})


def drawn_slice(rng, n):
    bounds = [None if rng.random() < 0.4 else int(rng.integers(-n - 1, n + 2)) for _ in range(2)]
    return slice(*bounds, int(rng.choice([1, 1, 1, 2, 3, -1, -2])))


def drawn_index(rng, shape):
    """Some index that NumPy takes, at least one element of every axis."""
    together = tuple(rng.integers(1, 4, rng.integers(0, 3)))
    parts, axis, ellipsis = [], 0, False
    while axis < len(shape):
        kind, n = rng.random(), shape[axis]
        if kind < 0.1:
            parts.append(None)
            continue
        if kind < 0.2 and not ellipsis:
            ellipsis = True
            parts.append(Ellipsis)
            axis += int(rng.integers(0, len(shape) - axis + 1))
            continue
        if kind < 0.45:
            part = drawn_slice(rng, n)
            part = part if len(range(*part.indices(n))) else slice(None)
        elif kind < 0.6:
            part = int(rng.integers(-n, n))
        else:
            own = tuple(1 if rng.random() < 0.2 else m for m in together)
            dtype = str(rng.choice(INDICES))
            part = np.asarray(rng.integers(0 if dtype[0] == "u" else -n, n, own)).astype(dtype)
        parts.append(part)
        axis += 1
    return parts


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(6))
def test_indices_at_random_are_numpys(seed):
    """Reading, writing, and adding what was read, for all kinds of indices and dtypes."""
    rng = np.random.default_rng(seed)
    for turn in range(12):
        shape = tuple(int(n) for n in rng.choice([1, 2, 3, 5, 19], rng.integers(1, 5)))
        x = draw(rng, shape, DTYPES[(12 * seed + turn) % len(DTYPES)])
        parts = drawn_index(rng, shape)
        arrays = [p for p in parts if isinstance(p, np.ndarray)]
        constant = turn % 3 == 0

        def filled(given, parts=parts):
            left = iter(given)
            return tuple(next(left) if isinstance(p, np.ndarray) else p for p in parts)

        v = draw(rng, x[filled(arrays)].shape if turn % 2 else (), x.dtype)

        def program(x, v, *given, arrays=arrays, constant=constant, filled=filled):
            index = filled(arrays if constant else given)
            template, operands = split_index(index)
            y = x[index]
            added = scatter(y, *operands, index=template, shape=x.shape)
            return y, written(x, index, v), added

        found = native(program, x, v, *arrays)
        index = filled(arrays)
        put = x.copy()
        put[index] = v
        template, operands = split_index(index)
        added = scatter.run(x[index], *operands, index=template, shape=shape)
        for got, wanted in zip(found, (x[index], put, added), strict=True):
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted, str(parts))


def test_gradients_with_duplicates_accumulate():
    rng = np.random.default_rng(0)
    x, i = rng.normal(size=(7, 5)), rng.integers(-7, 7, (4, 3))
    g = rng.normal(size=(4, 3, 5))
    (found,) = native(lambda x, i, g: wg.grad(lambda x: (x[i] * g).sum())(x), x, i, g)
    wanted = np.zeros_like(x)
    np.add.at(wanted, i, g)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    k = rng.integers(0, 5, 19)
    t = rng.normal(size=(7, 19))
    (found,) = native(lambda x, k, t: wg.grad(lambda x: (x[:, k] * t).sum())(x), x, k, t)
    wanted = np.zeros_like(x)
    np.add.at(wanted, (slice(None), k), t)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_second_derivatives_pass_through_indices():
    x, i = np.linspace(0.5, 2, 6), np.array([0, 3, 3, -1])

    def second(x, i):
        return wg.grad(lambda x: (wg.grad(lambda x: (x[i] ** 3).sum())(x) ** 2).sum())(x)

    (found,) = native(second, x, i)
    np.testing.assert_allclose(found, second(x, i), rtol=1e-13)


def test_the_last_of_several_writes_stays_and_alone_has_a_gradient():
    x, i = np.zeros(4), np.array([2, 0, 2, 2, -4])
    v = np.arange(1.0, 6.0)

    def put(x, i, v):
        return written(x, i, v)

    (found,) = native(put, x, i, v)
    np.testing.assert_array_equal(found, [5, 0, 4, 0])
    (found,) = native(lambda x, i, v: wg.grad(lambda v: (put(x, i, v) ** 2).sum())(v), x, i, v)
    np.testing.assert_array_equal(found, [0, 0, 0, 8, 10])


def test_a_value_is_cast_and_its_leading_axes_of_one_are_dropped():
    x, i = np.zeros((3, 4), np.int16), np.array([2, 0])
    for v in (np.array([[[1.9, -2.7, 3.2, 4.1]]]), np.float32(7.5), np.arange(2)[:, None] == 1):
        (found,) = native(lambda x, i, v: written(x, i, v), x, i, v)
        wanted = x.copy()
        wanted[i] = v
        np.testing.assert_array_equal(found, wanted)


# ---- along one axis ------------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", DTYPES)
def test_along_an_axis(dtype):
    rng = np.random.default_rng(3)
    for shape, axis in [((3, 7), 1), ((3, 7), 0), ((2, 3, 19), -2), ((5,), 0)]:
        x = draw(rng, shape, dtype)
        n = shape[axis]
        p = rng.integers(
            -n, n, tuple(4 if k == axis % len(shape) else m for k, m in enumerate(shape))
        )
        (found,) = native(functools.partial(lookup("gather_along"), axis=axis), x, p)
        np.testing.assert_array_equal(found, np.take_along_axis(x, p, axis))
        t = draw(rng, p.shape, dtype)
        params = {"axis": axis, "length": n}
        (found,) = native(functools.partial(lookup("scatter_along"), **params), t, p)
        np.testing.assert_array_equal(found, lookup("scatter_along").run(t, p, **params))
        wide = p[
            tuple(slice(None) if k == axis % len(shape) else slice(0, 1) for k in range(p.ndim))
        ]
        (found,) = native(functools.partial(lookup("gather_along"), axis=axis), x, wide)
        np.testing.assert_array_equal(found, np.take_along_axis(x, wide, axis))


def test_sorted_values_have_gradients():
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(3, 9)), rng.normal(size=(3, 9))
    p = np.argsort(x, 1)
    gather = lookup("gather_along")
    (found,) = native(
        lambda x, p, w: wg.grad(lambda x: (gather(x, p, axis=1, unique=True) * w).sum())(x), x, p, w
    )
    wanted = np.zeros_like(x)
    np.put_along_axis(wanted, p, w, 1)
    np.testing.assert_array_equal(found, wanted)


def test_labels_beside_a_range_are_read_and_written_where_they_are():
    """x[arange(n), labels], as a cross-entropy reads it: the range is not stored in memory."""
    rng = np.random.default_rng(5)
    x, labels = rng.normal(size=(6, 4)), rng.integers(0, 4, 6)
    graph = wg.trace(lambda x, k: x[np.arange(6), k])(x, labels)
    program = Program(graph)
    assert not program.host_callbacks and not program.constants
    assert (
        LoadedProgram(program).run([x, labels], {})[0].tolist() == x[np.arange(6), labels].tolist()
    )
    (found,) = native(lambda x, k: wnp.take_along_axis(x, k[:, None], 1), x, labels)
    np.testing.assert_array_equal(found[:, 0], x[np.arange(6), labels])


# ---- positions that there are not ----------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize("bad", [5, -6, 2**40])
@pytest.mark.parametrize("where", [0, 3, 40])
def test_positions_out_of_range_raise_numpys_error(bad, where):
    x, i = np.arange(10.0).reshape(5, 2), np.arange(41) % 5
    i[where] = bad
    programs = [
        lambda x, i: x[i],
        lambda x, i: x[:, 0][i] * 2.0,
        lambda x, i: x[i, i % 2].sum(),
        lambda x, i: wg.grad(lambda x: (x[i] ** 2).sum())(x),
        lambda x, i: written(x, i, 1.0),
        lambda x, i: scatter(i * 1.0, i, index=split_index(i)[0], shape=(5,)),
        lambda x, i: wnp.take_along_axis(x, wnp.stack([i, i], axis=1), 0),
    ]
    for program in programs:
        with pytest.raises(
            IndexError, match=f"index {bad} is out of bounds for axis 0 with size 5"
        ):
            wg.jit(program)(x, i)


def test_a_position_that_is_not_asked_for_does_not_count():
    """What comes in at the end of a vector, and is computed from nothing, is not looked at."""
    x = np.arange(3.0)
    for n in (1, 7, 9, 33):
        i = np.full(n, -98)
        (found,) = native(lambda x, i: x[i + 100], x, i)
        np.testing.assert_array_equal(found, np.full(n, 2.0))


def test_one_position():
    x = np.arange(6.0).reshape(2, 3)
    for i in (np.array(1), np.int8(-2), np.uint64(0)):
        found = native(lambda x, i: (x[i], x[:, i], x[i, i]), x, np.asarray(i))
        for got, wanted in zip(found, (x[i], x[:, i], x[i, i]), strict=True):
            np.testing.assert_array_equal(got, wanted)
    with pytest.raises(IndexError, match="index 2 is out of bounds for axis 0 with size 2"):
        wg.jit(lambda x, i: x[i])(x, np.array(2))


# ---- nothing, and symbolic sizes ---------------------------------------------------------------


def test_empty_index_arrays():
    x, i = np.ones((3, 4)), np.zeros((0,), np.int64)
    found = native(lambda x, i: (x[i], x[:, i], written(x, i, 2.0), x[i].sum()), x, i)
    assert [np.shape(f) for f in found] == [(0, 4), (3, 0), (3, 4), ()]
    np.testing.assert_array_equal(found[2], x)
    (found,) = native(lambda x, i: wg.grad(lambda x: x[i].sum())(x), x, i)
    np.testing.assert_array_equal(found, np.zeros((3, 4)))


def test_nothing_to_choose_from_raises():
    x = np.ones((3, 0))
    assert wg.jit(lambda x, i: x[i])(x, np.array([2])).shape == (1, 0)
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        wg.jit(lambda x, i: x[i])(x, np.array([3]))
    with pytest.raises(IndexError):
        wg.jit(lambda x, i: x[i])(np.ones(0), np.array([0]))


def test_one_program_for_all_sizes():
    graph = wg.trace(lambda x, i: (x[i], wg.grad(lambda x: (x[i] ** 2).sum())(x), x[i, i % 3]))(
        wg.spec(("n", 3)), wg.spec("m", np.int64)
    )
    compiled = LoadedProgram(Program(graph))
    assert not compiled.program.host_callbacks
    rng = np.random.default_rng(6)
    for sizes in ({"n": 1, "m": 1}, {"n": 17, "m": 100}, {"n": 5, "m": 0}):
        a = rng.normal(size=(sizes["n"], 3))
        k = rng.integers(-sizes["n"], sizes["n"], sizes["m"])
        one, two, three = compiled.run([a, k], sizes)
        np.testing.assert_array_equal(one, a[k])
        wanted = np.zeros_like(a)
        np.add.at(wanted, k, 2 * a[k])
        np.testing.assert_allclose(two, wanted, rtol=1e-14)
        np.testing.assert_array_equal(three, a[k, k % 3])
    assert compiled.run([np.ones((2, 3)), np.array([2])], {"n": 2, "m": 1}) is None


def test_views_are_gathered_from_where_they_are():
    """No copy is made of what is read through a slice, a transposition, a diagonal."""
    rng = np.random.default_rng(7)
    x, i = rng.normal(size=(6, 6, 2)), rng.integers(-2, 2, 9)
    for view in (
        lambda x: x[1:4],
        lambda x: x.T,
        lambda x: x[::-2],
        lambda x: x.reshape(12, 6)[:, 1:],
        lambda x: wnp.diagonal(x),
        lambda x: x[None, 2],
    ):
        k = i if view(x).shape[0] > 1 else i * 0
        graph = wg.trace(lambda x, k, view=view: view(x)[k])(x, k)
        program = Program(graph)
        assert not program.plan.stored[:-1]
        np.testing.assert_array_equal(LoadedProgram(program).run([x, k], {})[0], view(x)[k])


def test_interpreter_and_native_agree_on_long_rows():
    rng = np.random.default_rng(8)
    for width in (1, 3, 8, 67):
        x, i = rng.normal(size=(20, width)), rng.integers(-20, 20, 50)

        def program(x, i):
            return x[i], written(x, i, x[i] * 2.0), wg.grad(lambda x: (x[i] ** 2).sum())(x)

        graph = wg.trace(program)(x, i)
        wanted = backend("interpret").compile(graph, {})([x, i])
        for got, want in zip(native(program, x, i), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-14)


def test_positions_of_nothing_are_looked_at_without_python():
    for x, index in [
        (np.ones((3, 0)), lambda i: (i,)),
        (np.ones((2, 3, 0)), lambda i: (slice(None), i, slice(None))),
        (np.ones((3, 4)), lambda i: (i, slice(2, 2))),
    ]:
        (found,) = native(lambda x, i, index=index: x[index(i)], x, np.array([2, -3]))
        assert found.shape == x[index(np.array([2, -3]))].shape
        assert native(lambda x, i, index=index: x[index(i)], x, np.array([2, 3])) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [((4, 6), (3, 8)), ((2, 3, 4), (6, 4)), ((12,), (3, 4)), ((3, 4), 12), ((0, 16), (1, 0, 32))],
)
def test_reshapes_by_columns_are_loops(old, new):
    x = np.random.default_rng(0).normal(size=old)
    f = lambda x: np.reshape(x, new, order="F") * 2.0  # noqa: E731
    compiled = wg.jit(f)
    assert "0 host callbacks" in compiled.lower(x).loops
    assert np.array_equal(compiled(x), f(x))
    slope = wg.jit(wg.grad(lambda x: np.sum(np.sin(f(x)))))(x)
    assert np.allclose(slope, 2.0 * np.cos(2.0 * x), rtol=1e-13)
