"""Shapes: each function agrees with NumPy, on arrays and tensors, with derivatives."""

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp

CASES = {
    "reshape": lambda xp, x: xp.reshape(x, (3, -1)),
    "reshape order F": lambda xp, x: xp.reshape(x, (4, 6), order="F"),
    "reshape order A": lambda xp, x: xp.reshape(xp.transpose(x), (4, 6), order="A"),
    "reshape int": lambda xp, x: xp.reshape(x, 24),
    "reshape copy": lambda xp, x: xp.reshape(x, (4, 6), copy=True),
    "ravel": lambda xp, x: xp.ravel(x),
    "ravel F": lambda xp, x: xp.ravel(x, order="F"),
    "ravel K": lambda xp, x: xp.ravel(xp.transpose(x, (1, 0, 2)), order="K"),
    "transpose": lambda xp, x: xp.transpose(x),
    "transpose axes": lambda xp, x: xp.transpose(x, (1, -1, 0)),
    "permute_dims": lambda xp, x: xp.permute_dims(x, (2, 0, 1)),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, -1),
    "moveaxis several": lambda xp, x: xp.moveaxis(x, [0, 1], [-1, -2]),
    "swapaxes": lambda xp, x: xp.swapaxes(x, 0, -1),
    "rollaxis": lambda xp, x: xp.rollaxis(x, 2, 1),
    "matrix_transpose": lambda xp, x: xp.matrix_transpose(x),
    "squeeze": lambda xp, x: xp.squeeze(xp.reshape(x, (1, 24, 1))),
    "squeeze axis": lambda xp, x: xp.squeeze(xp.reshape(x, (1, 24, 1)), axis=-1),
    "expand_dims": lambda xp, x: xp.expand_dims(x, (0, -1)),
    "atleast_1d": lambda xp, x: xp.atleast_1d(x[0, 0, 0]),
    "atleast_2d": lambda xp, x: xp.atleast_2d(x[0, 0]),
    "atleast_2d several": lambda xp, x: xp.atleast_2d(x[0, 0], x[0, 0, 0], 2.0),
    "atleast_3d of 0": lambda xp, x: xp.atleast_3d(x[0, 0, 0]),
    "atleast_3d of 1": lambda xp, x: xp.atleast_3d(x[0, 0]),
    "atleast_3d of 2": lambda xp, x: xp.atleast_3d(x[0]),
    "resize": lambda xp, x: xp.resize(x, (5, 7)),
    "resize smaller": lambda xp, x: xp.resize(x, 5),
    "flip": lambda xp, x: xp.flip(x),
    "flip axis": lambda xp, x: xp.flip(x, (0, -1)),
    "fliplr": lambda xp, x: xp.fliplr(x),
    "flipud": lambda xp, x: xp.flipud(x),
    "roll": lambda xp, x: xp.roll(x, 5),
    "roll axis": lambda xp, x: xp.roll(x, -2, axis=1),
    "roll axes": lambda xp, x: xp.roll(x, (1, 2), axis=(0, 2)),
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, (2, 2, 3, 4)),
    "broadcast_arrays": lambda xp, x: xp.broadcast_arrays(x, x[0], x[0, 0]),
    "diagonal": lambda xp, x: xp.diagonal(x),
    "diagonal offset": lambda xp, x: xp.diagonal(x, 1, 1, 2),
    "diag of vector": lambda xp, x: xp.diag(x[0, 0]),
    "diag of vector above": lambda xp, x: xp.diag(x[0, 0], 2),
    "diag of vector below": lambda xp, x: xp.diag(x[0, 0], -1),
    "diag of matrix": lambda xp, x: xp.diag(x[0], -1),
    "diagflat": lambda xp, x: xp.diagflat(x[0], 1),
    "tril": lambda xp, x: xp.tril(x, 1),
    "triu": lambda xp, x: xp.triu(x, -1),
    "triu of vector": lambda xp, x: xp.triu(x[0, 0]),
    "trace": lambda xp, x: xp.trace(x),
    "trace axes": lambda xp, x: xp.trace(x, 1, 2, 1),
    "copy": lambda xp, x: xp.copy(x),
    "astype": lambda xp, x: xp.astype(x, np.float64),
    "pad": lambda xp, x: xp.pad(x, 2),
    "pad constant": lambda xp, x: xp.pad(
        x, ((1, 0), (0, 2), (1, 1)), constant_values=((1, 2), (3, 4), (5, 6))
    ),
    "pad constant from x": lambda xp, x: xp.pad(x, 1, constant_values=3.0) * x[0, 0, 0],
    "pad edge": lambda xp, x: xp.pad(x, (3, 1), mode="edge"),
    "pad reflect": lambda xp, x: xp.pad(x, (2, 5), mode="reflect"),
    "pad reflect odd": lambda xp, x: xp.pad(x, (1, 4), mode="reflect", reflect_type="odd"),
    "pad symmetric": lambda xp, x: xp.pad(x, (2, 5), mode="symmetric"),
    "pad symmetric odd": lambda xp, x: xp.pad(x, (2, 3), mode="symmetric", reflect_type="odd"),
    "pad wrap": lambda xp, x: xp.pad(x, (2, 7), mode="wrap"),
    "pad linear_ramp": lambda xp, x: xp.pad(x, (2, 3), mode="linear_ramp", end_values=(1.0, -2.0)),
    "pad mean": lambda xp, x: xp.pad(x, 2, mode="mean"),
    "pad maximum": lambda xp, x: xp.pad(x, 1, mode="maximum", stat_length=2),
    "pad minimum": lambda xp, x: xp.pad(x, 1, mode="minimum", stat_length=((1, 2), (2, 1), (3, 3))),
    "pad median": lambda xp, x: xp.pad(x, 1, mode="median"),
    "pad dict": lambda xp, x: xp.pad(x, {1: (1, 2)}, mode="edge"),
    "pad function": lambda xp, x: xp.pad(x, 1, _doubled),
    "trim_zeros": lambda xp, x: xp.trim_zeros(xp.pad(x[0, 0], 2)),
    "T": lambda xp, x: x.T,
    "mT": lambda xp, x: x.mT,
    "methods": lambda xp, x: x.reshape(4, 6).transpose(1, 0).swapaxes(0, 1).ravel().flatten(),
    "method squeeze": lambda xp, x: x.reshape((1, 24)).squeeze(0),
    "method repeat": lambda xp, x: x.repeat(2, axis=1),
    "method diagonal": lambda xp, x: x.diagonal(0, 1, 2),
    "method trace": lambda xp, x: x.trace(),
    "method take": lambda xp, x: x.take([1, 1, 0], axis=1),
    "method compress": lambda xp, x: x.compress([True, False], axis=0),
}


def _doubled(line, width, axis, options):
    line[: width[0]] = 2.0 * line[width[0]]
    line[-width[1] :] = -1.0


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_numpy(name, agree, rng):
    agree(CASES[name], rng.normal(size=(2, 3, 4)))


@pytest.mark.sample(10)
@pytest.mark.parametrize("k", [-1, 0, 1, 2, 3, 6])
@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (2, 0), (-1, 1)])
def test_rot90(k, axes, agree, rng):
    agree(lambda xp, x: xp.rot90(x, k, axes), rng.normal(size=(2, 3, 4)))


EMPTY = ["reshape int", "ravel", "transpose", "flip", "roll", "copy", "tril", "diag of matrix"]


@pytest.mark.sample(12)
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
@pytest.mark.parametrize(
    "f",
    [
        lambda xp, x: xp.ravel(x),
        lambda xp, x: xp.transpose(x),
        lambda xp, x: xp.flip(x),
        lambda xp, x: xp.roll(x, 2),
        lambda xp, x: xp.atleast_3d(x),
        lambda xp, x: xp.tril(x),
        lambda xp, x: xp.expand_dims(x, 1),
        lambda xp, x: xp.resize(x, (2, 2)),
        lambda xp, x: xp.pad(x, 1),
    ],
)
def test_empty(f, shape, agree):
    agree(f, np.zeros(shape))


def test_numbers_without_axes(agree):
    x = np.array(2.5)
    for f in (
        lambda xp, x: xp.reshape(x, (1, 1)),
        lambda xp, x: xp.ravel(x),
        lambda xp, x: xp.transpose(x),
        lambda xp, x: xp.expand_dims(x, 0),
        lambda xp, x: xp.broadcast_to(x, (2, 3)),
        lambda xp, x: xp.atleast_2d(x),
    ):
        agree(f, x)


def test_order_two_passes(agree, rng):
    agree(
        lambda xp, x: xp.pad(xp.tril(x) ** 2, 1, mode="reflect") * xp.flip(x)[0, 0],
        rng.normal(size=(2, 3)),
        order=2,
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.reshape(x, (5, 5)),
        lambda x: np.reshape(x.T, -1, copy=False),
        lambda x: np.squeeze(x, 0),
        lambda x: np.transpose(x, (0, 0)),
        lambda x: np.moveaxis(x, 0, 5),
        lambda x: np.flip(x, 4),
        lambda x: np.diag(x[None]),
        lambda x: np.matrix_transpose(x[0]),
        lambda x: np.broadcast_to(x, (2, 2)),
        lambda x: np.pad(x, -1),
        lambda x: np.pad(x, 1, mode="nonsense"),
        lambda x: np.pad(x, 1, mode="edge", end_values=1),
        lambda x: np.fliplr(x[0]),
        lambda x: np.rot90(x, axes=(0, 0)),
    ],
)
def test_raises_where_numpy_raises(call):
    with pytest.raises(ValueError) as theirs:
        call(np.zeros((2, 3)))
    with pytest.raises(ValueError) as ours:
        call(wg.tensor(np.zeros((2, 3)), requires_grad=True))
    assert type(theirs.value).__name__ and str(ours.value)


def test_constant_values_differentiate():
    def f(c):
        return np.sum(wnp.pad(np.ones((2, 2)), 1, constant_values=c) ** 2)

    assert wg.grad(f)(3.0) == pytest.approx(12 * 2 * 3.0)


def test_astype_to_integers_stops_derivatives():
    assert wg.grad(lambda x: np.sum(x * np.astype(x, int)))(np.array([2.5])) == 2.0
    with pytest.warns(np.exceptions.ComplexWarning):
        wg.tensor([1.0 + 1j]).astype(float)


def test_fill_diagonal(rng):
    x, v = rng.normal(size=(5, 3)), rng.normal(size=2)
    for wrap in (False, True):

        def f(x, v, wrap=wrap):
            x = x * 1.0
            np.fill_diagonal(x, v, wrap)
            return x

        want = f(x, v)
        got, pull = wg.vjp(f, x, v)
        np.testing.assert_array_equal(got, want)
        x_bar, v_bar = pull(np.ones_like(x))
        np.testing.assert_array_equal(x_bar, np.where(np.isin(want, v), 0.0, 1.0))
        assert v_bar.sum() == np.isin(want, v).sum()
    cube = wg.tensor(np.zeros((3, 3, 3)))
    np.fill_diagonal(cube, 1.0)
    assert np.array_equal(cube.numpy().nonzero(), [[0, 1, 2]] * 3)
