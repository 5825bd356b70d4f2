"""Creation: plain arrays from plain arguments, tensors from tensors; derivatives of ranges."""

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert.testing import check_grads

V = np.array([0.5, 1.5, 2.5])


# ---- plain in, plain out -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda xp: xp.zeros((2, 3)),
        lambda xp: xp.zeros(3, int),
        lambda xp: xp.ones((2, 1), dtype=np.float32),
        lambda xp: xp.full((2, 2), 7),
        lambda xp: xp.full(2, [1.0, 2.0], dtype=complex),
        lambda xp: xp.eye(3, 2, 1),
        lambda xp: xp.identity(2),
        lambda xp: xp.tri(3, k=-1),
        lambda xp: xp.arange(5),
        lambda xp: xp.arange(1, 2, 0.25),
        lambda xp: xp.arange(stop=3),
        lambda xp: xp.linspace(0, 1, 5),
        lambda xp: xp.logspace(0, 2, 3),
        lambda xp: xp.geomspace(1, 8, 4),
        lambda xp: xp.array([[1, 2], [3, 4]]),
        lambda xp: xp.array([1.0], dtype=np.float32, ndmin=2),
        lambda xp: xp.asarray([1, 2.0]),
        lambda xp: xp.ascontiguousarray(3.0),
        lambda xp: xp.asfortranarray([[1.0, 2.0]]),
        lambda xp: xp.zeros_like(V),
        lambda xp: xp.full_like(V, 3),
        lambda xp: xp.vander(V),
        lambda xp: xp.indices((2, 3)),
        lambda xp: xp.array(["a", "b"]),
        lambda xp: xp.array([None, 1], dtype=object),
    ],
)
def test_plain_arguments_give_the_results_of_numpy(make):
    got, want = make(wnp), make(np)
    assert type(got) is type(want) and got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_asarray_does_not_copy():
    x = np.zeros(3)
    assert wnp.asarray(x) is x and wnp.array(x) is not x
    t = wg.tensor(x)
    assert wnp.asarray(t) is t and wnp.asanyarray(t) is t and wnp.ascontiguousarray(t) is t
    assert wnp.array(t) is not t and wnp.array(t, copy=False) is t


# ---- of tensors --------------------------------------------------------------------------------


def test_nested_lists_of_tensors_are_stacked():
    def f(x):
        return wnp.array([[x[0], 2.0], [x[1] * x[0], x[2]]]) ** 2

    np.testing.assert_array_equal(f(V), [[0.25, 4.0], [0.5625, 6.25]])
    check_grads(f, (V,), order=2)
    check_grads(lambda x: wnp.array([x, [x[0], 1.0, 2.0], V]), (V,))
    check_grads(lambda x: wnp.asarray([x[0], x[1]], dtype=complex), (V,))
    check_grads(lambda x: wnp.array(x[0], ndmin=2), (V,))
    assert wnp.array([wg.tensor(np.float32(1.0)), np.float32(2)]).dtype == np.float32
    assert wnp.array([wg.tensor(np.float32(1.0)), 2]).dtype == np.float64
    with pytest.raises(ValueError):
        wnp.array([wg.tensor([1.0, 2.0]), [1.0]])


def test_copies_are_separate_handles():
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    y = wnp.array(x)
    y[0] = 5.0
    np.testing.assert_array_equal(x.numpy(), [1.0, 2.0])
    np.sum(y * y).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 4.0])


def test_like_a_tensor():
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    for made, want in [
        (np.zeros_like(x), np.zeros(2)),
        (np.ones_like(x, dtype=int), np.ones(2, int)),
        (np.zeros_like(x, shape=(3, 1)), np.zeros((3, 1))),
        (np.full_like(x, 3.0), np.full(2, 3.0)),
        (np.zeros(3, like=x), np.zeros(3)),
        (np.ones((2, 2), like=x), np.ones((2, 2))),
        (np.full(2, 5.0, like=x), np.full(2, 5.0)),
        (np.eye(2, like=x), np.eye(2)),
        (np.identity(2, like=x), np.identity(2)),
        (np.tri(2, like=x), np.tri(2)),
        (np.arange(3, like=x), np.arange(3)),
        (np.array([1, 2], like=x), np.array([1, 2])),
        (np.asarray([1.0], like=x), np.array([1.0])),
        (wnp.zeros(3, like=x), np.zeros(3)),
        (wnp.array([1.0], like=x), np.array([1.0])),
        (wnp.arange(3, like=x), np.arange(3)),
    ]:
        assert isinstance(made, wg.Tensor) and not made.requires_grad
        assert made.dtype == want.dtype
        np.testing.assert_array_equal(made.numpy(), want)
    assert np.empty_like(x).shape == np.empty(2, like=x).shape == (2,)


def test_results_are_written_into_a_constant():
    def f(x):
        y = np.zeros_like(x)
        for i in range(len(x)):
            y[i] = x[i] ** 2
        z = np.zeros((2, 2), like=x)
        z[0] = y[:2]
        return np.sum(y) + np.sum(z)

    np.testing.assert_array_equal(wg.grad(f)(V), 2 * V * [2, 2, 1])


def test_full_of_a_tensor():
    check_grads(lambda x: wnp.full((2, 2), x[0]), (V,))
    check_grads(lambda x: wnp.full((2, 3), x), (V,))
    check_grads(lambda x: wnp.full_like(V, x[0]), (V,))
    check_grads(lambda x: np.full_like(x, x[0]), (V,))
    y = wnp.full(3, wg.tensor(1.0))
    y[0] = 2.0
    np.testing.assert_array_equal(y.numpy(), [2.0, 1.0, 1.0])


# ---- ranges ------------------------------------------------------------------------------------

A, B = np.array(0.5), np.array(2.0)
RANGES = {
    "arange": lambda xp, a, b: wnp.arange(a, b, 0.42),
    "arange step": lambda xp, a, b: wnp.arange(0.0, 4.0, b * 0.35),
    "linspace": lambda xp, a, b: xp.linspace(a, b, 5),
    "linspace open": lambda xp, a, b: xp.linspace(a, b, 5, endpoint=False),
    "linspace one": lambda xp, a, b: xp.linspace(a, b, 1),
    "linspace none": lambda xp, a, b: xp.linspace(a, b, 0),
    "linspace number": lambda xp, a, b: xp.linspace(0, b, 4),
    "linspace step": lambda xp, a, b: xp.linspace(a, b, 5, retstep=True),
    "linspace rows": lambda xp, a, b: xp.linspace(a, b * np.ones(3), 4),
    "linspace axis": lambda xp, a, b: xp.linspace(a * np.ones((2, 1)), b * np.ones(3), 4, axis=1),
    "logspace": lambda xp, a, b: xp.logspace(a, b, 4),
    "logspace base": lambda xp, a, b: xp.logspace(a, b, 4, base=np.array([2.0, 3.0])),
    "geomspace": lambda xp, a, b: xp.geomspace(a, b, 4),
    "geomspace open": lambda xp, a, b: xp.geomspace(a, b, 4, endpoint=False),
    "geomspace below": lambda xp, a, b: xp.geomspace(-a, -b, 4),
    "geomspace one": lambda xp, a, b: xp.geomspace(a, b, 1),
    "geomspace axis": lambda xp, a, b: xp.geomspace(a * np.ones(2), b, 4, axis=-1),
    "vander": lambda xp, a, b: xp.vander(xp.stack([a, b])),
    "vander increasing": lambda xp, a, b: xp.vander(xp.stack([a, b]), 4, increasing=True),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", RANGES)
def test_ranges(name, agree):
    agree(RANGES[name], A, B, order=2)


def test_ranges_of_integers_and_dtypes():
    n = wg.tensor(5)
    np.testing.assert_array_equal(wnp.arange(n).numpy(), np.arange(5))
    np.testing.assert_array_equal(wnp.arange(1, n).numpy(), np.arange(1, 5))
    assert wnp.arange(n).dtype == np.int64
    assert np.linspace(wg.tensor(np.float32(0)), np.float32(1), 3).dtype == np.float32
    got = np.linspace(wg.tensor(0.0), 9.9, 5, dtype=int)
    np.testing.assert_array_equal(got.numpy(), np.linspace(0.0, 9.9, 5, dtype=int))
    for bad in (
        lambda: np.linspace(wg.tensor(0.0), 1.0, -1),
        lambda: np.geomspace(wg.tensor(0.0), 1.0),
        lambda: np.vander(wg.tensor([[1.0]])),
    ):
        with pytest.raises(ValueError):
            bad()


def test_asarray_chkfinite():
    x = wg.tensor([1.0, 2.0])
    assert wnp.asarray_chkfinite(x) is x
    with pytest.raises(ValueError):
        wnp.asarray_chkfinite(wg.tensor([np.inf]))
