"""ufunc.reduce, accumulate, outer, at, reduceat on tensors; ufuncs with out=, where=, dtype=."""

import functools
import operator

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ConversionError
from wengert.testing import check_grads


def same(f, *arrays):
    got, want = f(*map(wg.tensor, arrays)), f(*arrays)
    assert isinstance(got, wg.Tensor)
    assert got.dtype == np.asarray(want).dtype
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-13, atol=1e-13)


def check(f, *arrays):
    same(f, *arrays)
    check_grads(f, arrays, 2)


REORDERABLE = [np.add, np.multiply, np.maximum, np.minimum, np.logaddexp, np.logaddexp2, np.hypot]
ORDERED = [np.subtract, np.divide, np.power, np.arctan2]


@pytest.mark.sample(1)
@pytest.mark.parametrize("ufunc", REORDERABLE, ids=lambda u: u.__name__)
def test_reduce(ufunc, rng):
    x = rng.normal(size=(3, 2, 2))
    for axis in (0, -1, None, (0, 2)):
        check(lambda x, axis=axis: ufunc.reduce(x, axis=axis), x)
        check(lambda x, axis=axis: ufunc.reduce(x, axis, keepdims=True), x)
    same(lambda x: ufunc.reduce(x), x)


@pytest.mark.parametrize("ufunc", ORDERED, ids=lambda u: u.__name__)
def test_reduce_by_folding(ufunc, rng):
    x = rng.random((4, 3)) + 0.5
    check(lambda x: ufunc.reduce(x), x)
    # Compared with the definition: NumPy 2.4's own power and arctan2 are wrong along a contiguous
    # axis on machines with AVX-512, where a vector loop reads elements that it has overwritten.
    rows = ufunc.reduce(wg.tensor(x), axis=1, keepdims=True)
    np.testing.assert_allclose(rows, functools.reduce(ufunc, x.T)[:, None], rtol=1e-14)
    with pytest.raises(ValueError, match="reorderable"):
        ufunc.reduce(wg.tensor(x), axis=None)


@pytest.mark.sample(3)
@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.hypot, np.logaddexp])
def test_reduce_with_where_and_initial(ufunc, rng):
    x = rng.normal(size=(3, 4))
    mask = rng.random((3, 4)) > 0.4
    mask[0] = mask[:, 1] = True
    check(lambda x: ufunc.reduce(x, axis=0, where=mask, initial=0.5), x)
    check(lambda x: ufunc.reduce(x, axis=1, initial=0.5), x)
    if ufunc is not np.maximum:
        check(lambda x: ufunc.reduce(x, axis=1, where=mask), x)
        same(lambda x: ufunc.reduce(x, axis=1), np.zeros((2, 0)))


def test_reduce_of_booleans(rng):
    x = rng.normal(size=(3, 4))
    same(lambda x: np.logical_and.reduce(x > 0, axis=1), x)
    same(lambda x: np.logical_or.reduce(x > 0, axis=None), x)
    same(lambda x: np.logical_xor.reduce(x > 0), x)
    same(lambda x: np.bitwise_or.reduce(x), np.array([1, 4, 8]))
    same(lambda x: np.add.reduce(x, dtype=float), np.array([1, 4, 8]))


def test_reduce_out(rng):
    x = wg.tensor([3.0, 4.0], requires_grad=True)
    z = wg.tensor(0.0)
    assert np.add.reduce(x * x, out=z) is z
    assert float(np.asarray(z.detach())) == 25.0 and z.requires_grad
    with pytest.raises(ConversionError):
        np.add.reduce(x, out=np.zeros(()))


ACCUMULATED = [np.add, np.multiply, np.maximum, np.minimum, np.logaddexp, np.subtract, np.hypot]


@pytest.mark.sample(3)
@pytest.mark.parametrize("ufunc", ACCUMULATED, ids=lambda u: u.__name__)
def test_accumulate(ufunc, rng):
    x = rng.normal(size=(3, 5)) + 2.0
    for axis in (0, -1):
        check(lambda x, axis=axis: ufunc.accumulate(x, axis=axis), x)
    same(lambda x: ufunc.accumulate(x), x)
    same(lambda x: ufunc.accumulate(x, dtype=float), x.astype(np.float32))
    with pytest.raises((TypeError, ValueError)):
        ufunc.accumulate(wg.tensor(1.0))


def test_running_extremes_share_ties_and_keep_nan():
    x = np.array([1.0, 3.0, 3.0, 2.0, 3.0, np.nan, 9.0])
    same(np.maximum.accumulate, x)
    slope = wg.grad(lambda x: np.maximum.accumulate(x)[4])(x)
    np.testing.assert_allclose(slope, [0, 1 / 3, 1 / 3, 0, 1 / 3, 0, 0])
    dots = wg.jvp(np.maximum.accumulate, (x,), (np.arange(7.0),))[1]
    np.testing.assert_allclose(dots, [0, 1, 1.5, 1.5, 7 / 3, 5, 5])


def test_long_accumulations():
    x = np.linspace(1.0, 1.0 + 1e-6, 50_001)
    slope = wg.grad(lambda x: np.cumprod(x)[-1])(x)
    np.testing.assert_allclose(slope, np.prod(x) / x, rtol=1e-10)
    slope = wg.grad(lambda x: np.sum(np.maximum.accumulate(x)))(x)
    np.testing.assert_array_equal(slope, np.ones_like(x))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "ufunc", [np.add, np.multiply, np.divide, np.maximum, np.hypot], ids=lambda u: u.__name__
)
def test_outer(ufunc, rng):
    x, y = rng.normal(size=(2, 2)), rng.random(3) + 0.5
    check(ufunc.outer, x, y)
    check(lambda x: ufunc.outer(x, 2.0), x)
    check(lambda x: ufunc.outer([1.0, 2.0], x), x + 5.0)
    same(lambda x, y: np.less.outer(x, y), x, y)


def test_reduceat(rng):
    x = rng.normal(size=(3, 6))
    for ufunc in (np.add, np.multiply, np.maximum, np.logaddexp):
        check(lambda x, u=ufunc: u.reduceat(x, [0, 4, 1, 5], axis=1), x)
    with pytest.raises(IndexError):
        np.add.reduceat(wg.tensor(x), [0, 7], axis=1)


# ---- at ----------------------------------------------------------------------------------------

INDICES = {
    "repeated": [0, 2, 0, 0],
    "array": np.array([[1, 1], [3, 0]]),
    "slice": slice(1, 4),
    "mask": np.array([True, False, True, False, True]),
    "one": 2,
}


def written(ufunc, index):
    """`ufunc.at` as a function of values, for arrays and tensors."""

    def f(x, v):
        z = x * 1.0
        if isinstance(v, wg.Tensor) and not isinstance(z, wg.Tensor):
            z = wg.tensor(z)
        ufunc.at(z, index, v)
        return z

    return f


@pytest.mark.sample(4)
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize(
    "ufunc",
    [np.add, np.subtract, np.multiply, np.divide, np.maximum, np.power, np.hypot],
    ids=lambda u: u.__name__,
)
def test_at(ufunc, index, rng):
    x = np.arange(1.0, 6.0) / 3.0
    v = rng.permutation(9)[: x[INDICES[index]].size].reshape(x[INDICES[index]].shape) / 3.0 + 0.5
    check(written(ufunc, INDICES[index]), x, v)
    check(written(ufunc, INDICES[index]), x, np.array(1.7))


def test_at_in_several_dimensions(rng):
    x, v = rng.normal(size=(3, 4)), rng.normal(size=(2, 4))
    check(written(np.add, ([0, 0],)), x, v)
    check(written(np.multiply, ([0, 0],)), x, v)
    check(written(np.add, (slice(None), [1, 1, 2])), x, rng.normal(size=(3, 3)))
    check(written(np.maximum, (1, ...)), x, v[0])


def test_at_of_one_operand_and_of_views():
    x = wg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1.0
    np.negative.at(y, [0, 0, 2])
    np.testing.assert_array_equal(y.detach(), [1.0, 2.0, -3.0])
    y[0:2].sum()
    np.add.at(y[1:], [0, 0], 10.0)
    np.testing.assert_array_equal(y.detach(), [1.0, 22.0, -3.0])
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, [1.0, 1.0, -1.0])


def test_at_raises_if_a_derivative_would_be_lost():
    v = wg.tensor([1.0], requires_grad=True)
    with pytest.raises(ConversionError, match="plain array"):
        np.add.at(np.zeros(3), [0], v)
    plain = np.zeros(3)
    np.add.at(plain, [0, 0], wg.tensor([1.0, 2.0]))
    np.testing.assert_array_equal(plain, [3.0, 0.0, 0.0])
    whole = wg.tensor([1, 2])
    with pytest.raises(TypeError, match="Cast"):
        np.add.at(whole, [0], v)


def test_at_with_a_tensor_as_index():
    x = wg.tensor([1.0, 2.0])
    np.add.at(x, wg.tensor([1, 1]), 1.0)
    np.testing.assert_array_equal(x, [1.0, 4.0])
    x32 = wg.tensor(np.zeros(2, np.float32))
    np.add.at(x32, [0], np.array([0.1]))
    assert x32.dtype == np.float32


AT = [
    np.maximum, np.minimum, np.multiply, np.divide, np.power, np.hypot, np.add, np.subtract,
    np.fmax,
]  # fmt: skip


def test_at_with_positions_that_are_not_known():
    """Repeated indices are processed in order, in graphs and compiled as in NumPy."""

    def every(x, i, v):
        found = []
        for ufunc in AT:
            y = x * 1.0
            ufunc.at(y, i, v)
            found.append(y)
        z = np.outer(x, x)
        np.maximum.at(z, (i, slice(None)), 5.0)
        np.multiply.at(z, (i[:2], i[1:3]), v[:2])
        np.negative.at(z[1:], (0, i[3:]))
        return [*found, z]

    def slopes(x, i, v):
        def loss(x, v):
            return sum(np.sum(np.sin(y)) for y in every(x, i, v))

        return wg.grad(loss, (0, 1))(x, v)

    x, v = np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 2.0, 1.0, 7.0, 6.0])
    i = np.array([0, 0, 2, -1, 0])
    for f in (every, slopes):
        graph, native = wg.trace(f)(x, i, v), wg.jit(f)
        for places in (i, np.array([3, 1, 2, 0, 1])):
            wanted = f(x, places, v)
            for found in (graph(x, places, v), native(x, places, v)):
                for a, b in zip(found, wanted, strict=True):
                    np.testing.assert_allclose(a, b, 1e-13, 1e-14)
    rows = np.stack([i, i[::-1]])
    found = wg.vmap(lambda i: every(x + 0.0 * i[0], i, v)[0])(rows)
    np.testing.assert_array_equal(found, [every(x, r, v)[0] for r in rows])
    for bad in (4, -5):
        with pytest.raises(IndexError, match=f"index {bad} is out of bounds"):
            native(x, np.array([0, 0, 2, bad, 0]), v)
    with pytest.raises(ConversionError, match="Make the array a tensor first"):
        wg.jit(lambda i: np.maximum.at(np.zeros(3), i, 1.0), source=False)(i)


# ---- out=, where=, dtype= of plain calls -------------------------------------------------------


def test_out_is_the_tensor_given():
    x, y = wg.tensor([1.0, 2.0], requires_grad=True), wg.tensor([3.0, 4.0], requires_grad=True)
    z = wg.tensor([0.0, 0.0])
    assert np.multiply(x, y, out=z) is z
    np.exp(z, out=z)
    z.sum().backward()
    np.testing.assert_allclose(x.grad, [3 * np.exp(3), 4 * np.exp(8)])
    with pytest.raises(ValueError, match="shape"):
        np.add(x, y, out=wg.tensor([0.0]))
    with pytest.raises(TypeError, match="kind"):
        np.add(x, y, out=wg.tensor([0, 0]))


def test_out_casts_to_its_dtype():
    z = wg.tensor(np.zeros(2, np.float32))
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    np.multiply(x, x, out=z)
    assert z.dtype == np.float32
    z.sum().backward()
    assert x.grad.dtype == np.float64


def test_where_argument_of_plain_calls():
    x = np.array([0.0, 2.0, -1.0])

    def f(x):
        z = wg.tensor(np.full(3, 7.0))
        return np.sum(np.log(x, where=x > 0, out=z)) + 0.0 * np.sum(x)

    with np.errstate(all="ignore"):
        np.testing.assert_allclose(wg.grad(f)(x), [0.0, 0.5, 0.0])
        value = wg.value_and_grad(f)(x)[0]
    assert value == pytest.approx(14.0 + np.log(2.0))


def test_where_argument_keeps_the_dtype_for_all_outputs():
    x, mask = wg.tensor([1.25, -2.5]), np.array([True, False])
    assert np.add(wg.tensor([1, 2]), 1, where=mask).dtype == np.int64
    assert np.less(x, 2.0, where=mask).dtype == bool
    whole = wg.tensor([9.0, 9.0])
    part, got = np.modf(x, where=mask, out=(None, whole))
    assert got is whole
    np.testing.assert_array_equal(whole, [1.0, 9.0])
    np.testing.assert_array_equal(part, [0.25, 0.0])


def test_dtype_of_a_plain_call():
    x = wg.tensor(np.ones(2, np.float32))
    assert np.add(x, x, dtype=np.float64).dtype == np.float64


@pytest.mark.parametrize("op", [operator.iadd, operator.imul, operator.isub, operator.itruediv])
def test_in_place_operations_on_plain_arrays_are_an_error(op):
    plain = np.ones(2)
    with pytest.raises(ConversionError, match="plain array"):
        op(plain, wg.tensor([1.0, 2.0], requires_grad=True))
    np.testing.assert_array_equal(plain, np.ones(2))
    op(plain, wg.tensor([1.0, 1.0]))
    assert type(plain) is np.ndarray


def test_only_binary_ufuncs_can_be_reduced():
    for call in (np.exp.reduce, np.exp.accumulate, np.modf.reduce):
        with pytest.raises((TypeError, ValueError)):
            call(wg.tensor([1.0]))
