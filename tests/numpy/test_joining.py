"""Joining and splitting agree with NumPy, on arrays and tensors, with derivatives."""

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp

A = np.arange(6.0).reshape(2, 3) + 0.5
B = -np.arange(3.0) - 0.25

CASES = {
    "concatenate": lambda xp, a, b: xp.concatenate([a, b[None], a]),
    "concatenate last": lambda xp, a, b: xp.concatenate((a, a[:, :1]), axis=-1),
    "concatenate flat": lambda xp, a, b: xp.concatenate([a, b], axis=None),
    "concatenate dtype": lambda xp, a, b: xp.concatenate([a, a * 2], dtype=np.float64),
    "concatenate with lists": lambda xp, a, b: xp.concatenate([b, [1, 2]]),
    "concatenate of a tensor": lambda xp, a, b: xp.concatenate(a),
    "concat": lambda xp, a, b: xp.concat([b, b]),
    "stack": lambda xp, a, b: xp.stack([a[0], b]),
    "stack last": lambda xp, a, b: xp.stack([a[0], b, a[1]], axis=-1),
    "stack numbers": lambda xp, a, b: xp.stack([a[0, 0], b[1], 3.0]),
    "vstack": lambda xp, a, b: xp.vstack([a, b]),
    "hstack": lambda xp, a, b: xp.hstack([a[0], b, 1.0]),
    "hstack of matrices": lambda xp, a, b: xp.hstack([a, a]),
    "dstack": lambda xp, a, b: xp.dstack([a, a]),
    "dstack of vectors": lambda xp, a, b: xp.dstack([b, b]),
    "column_stack": lambda xp, a, b: xp.column_stack([b, a.T]),
    "block": lambda xp, a, b: xp.block([[a, a[:, :1]], [b, b[:1]]]),
    "block of numbers": lambda xp, a, b: xp.block([a[0, 0], b]),
    "append": lambda xp, a, b: xp.append(a, b),
    "append axis": lambda xp, a, b: xp.append(a, b[None], axis=0),
    "append a list": lambda xp, a, b: xp.append(b, [1.0, 2.0]),
    "insert": lambda xp, a, b: xp.insert(a, 1, b[0]),
    "insert axis": lambda xp, a, b: xp.insert(a, 1, b, axis=0),
    "insert column": lambda xp, a, b: xp.insert(a, 1, b[:2], axis=1),
    "insert several": lambda xp, a, b: xp.insert(a, [0, 2, 2], b, axis=1),
    "insert one of list": lambda xp, a, b: xp.insert(a, [1], b[:2, None], axis=1),
    "insert slice": lambda xp, a, b: xp.insert(b, slice(0, 3, 2), a[0, :2]),
    "insert negative": lambda xp, a, b: xp.insert(b, -1, a[0, 0]),
    "insert mask": lambda xp, a, b: xp.insert(b, np.array([True, False, True]), a[0, 0]),
    "delete": lambda xp, a, b: xp.delete(a, 1),
    "delete axis": lambda xp, a, b: xp.delete(a, -1, axis=1),
    "delete several": lambda xp, a, b: xp.delete(a, [0, 2], axis=1),
    "delete slice": lambda xp, a, b: xp.delete(a, slice(None, None, 2)),
    "delete mask": lambda xp, a, b: xp.delete(b, np.array([True, False, True])),
    "tile": lambda xp, a, b: xp.tile(a, (2, 1, 3)),
    "tile less": lambda xp, a, b: xp.tile(a, 2),
    "repeat": lambda xp, a, b: xp.repeat(a, 3),
    "repeat axis": lambda xp, a, b: xp.repeat(a, 2, axis=0),
    "repeat counts": lambda xp, a, b: xp.repeat(a, [2, 0, 1], axis=1),
    "split": lambda xp, a, b: xp.split(a, 3, axis=1),
    "split at": lambda xp, a, b: xp.split(b, [1, 1, 5]),
    "array_split": lambda xp, a, b: xp.array_split(b, 2),
    "array_split many": lambda xp, a, b: xp.array_split(b, 5),
    "hsplit": lambda xp, a, b: xp.hsplit(a, 3) + xp.hsplit(b, 3),
    "vsplit": lambda xp, a, b: xp.vsplit(a, 2),
    "dsplit": lambda xp, a, b: xp.dsplit(a[None], [1]),
    "unstack": lambda xp, a, b: xp.unstack(a, axis=1),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_numpy(name, agree):
    agree(CASES[name], A, B)


@pytest.mark.parametrize("name", ["concatenate", "stack", "block", "insert several", "repeat"])
def test_order_two(name, agree):
    agree(lambda xp, a, b: CASES[name](xp, a * a, b * b) ** 2, A, B, order=2)


def test_empty(agree):
    empty = np.zeros((0, 3))
    agree(lambda xp, a, b: xp.concatenate([a, b]), empty, A)
    agree(lambda xp, a, b: xp.stack([a, a]), empty, A)
    agree(lambda xp, a, b: xp.tile(a, (2, 2)), empty, A)
    agree(lambda xp, a, b: xp.repeat(a, 2, axis=0), empty, A)
    agree(lambda xp, a, b: xp.tile(b, 0), A, A)
    agree(lambda xp, a, b: xp.split(a, [0], axis=0), empty, A)


def test_dtypes_join_as_in_numpy():
    single, whole = wg.tensor(np.float32([1.5])), wg.tensor([2])
    assert np.concatenate([single, whole]).dtype == np.float64
    assert np.concatenate([single, single]).dtype == np.float32
    assert np.concatenate([whole, [True]]).dtype == np.int64
    assert np.concatenate([single], dtype=int, casting="unsafe").dtype == np.int64
    with pytest.raises(TypeError, match="cannot be cast"):
        np.concatenate([single], dtype=int)
    left, right = wg.grad(lambda a, b: np.sum(np.concatenate([a, b]) ** 2), argnums=(0, 1))(
        np.float32([1.0]), np.array([2.0])
    )
    assert left.dtype == np.float32 and right.dtype == np.float64


def test_out():
    out = wg.tensor(np.zeros(4))
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    assert np.concatenate([x, x], out=out) is out
    np.sum(out * out).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [4.0, 8.0])


def test_pieces_of_a_split_are_views():
    x = wg.tensor(np.zeros(4))
    first, _ = np.split(x, 2)
    first += 1.0
    np.testing.assert_array_equal(x.numpy(), [1.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.concatenate([x, x[0]]),
        lambda x: np.concatenate([x, x], axis=2),
        lambda x: np.stack([x, x[0]]),
        lambda x: np.stack([x], axis=4),
        lambda x: np.split(x, 2, axis=1),
        lambda x: np.hsplit(x[0, 0], 1),
        lambda x: np.vsplit(x[0], 1),
        lambda x: np.dsplit(x, 1),
        lambda x: np.unstack(x[0, 0]),
        lambda x: np.block([[x, x], [x]]),
        lambda x: np.repeat(x, -1),
        lambda x: np.repeat(x, [1, 2], axis=1),
        lambda x: np.insert(x, 1, [1.0, 2.0, 3.0, 4.0], axis=0),
    ],
)
def test_raises_where_numpy_raises(call):
    with pytest.raises(ValueError):
        call(np.zeros((2, 3)))
    with pytest.raises(ValueError):
        call(wg.tensor(np.zeros((2, 3)), requires_grad=True))


def test_index_errors_are_numpys():
    for call in (lambda x: np.insert(x, 9, 1.0), lambda x: np.delete(x, 9)):
        with pytest.raises(IndexError):
            call(wg.tensor(np.zeros(3)))


def test_long_stack_is_one_node():
    def f(x):
        return np.sum(np.stack([x[i] for i in range(len(x))]) ** 2)

    x = np.arange(2000.0)
    np.testing.assert_array_equal(wg.grad(f)(x), 2 * x)


def test_row_stack():
    np.testing.assert_array_equal(wnp.row_stack([wg.tensor([1.0]), [2.0]]).numpy(), [[1.0], [2.0]])
