"""Operations along an axis, positions along it, and conditions: on the device, as on the host."""

import numpy as np
import pytest
from wengert.backends import emulated_device

import wengert as wg
from wengert._engine.backends.cuda import scan_kernels
from wengert._engine.core.op import lookup
from wengert.errors import ConvergenceError, MatrixError, SingularError
from wengert.scipy.ndimage.splines import decaying_sum

pytestmark = pytest.mark.usefixtures("no_host_callbacks")
X = np.random.default_rng(0).normal(size=(3, 40, 2))


def agree(f, *args, rtol=1e-12):
    """The results of a function on a device are those of the interpreter."""
    wanted = f(*args)
    with emulated_device():
        found = wg.device_get(wg.jit(f, backend="cuda")(*args))
    for got, want in zip(wg.tree.leaves(found), wg.tree.leaves(wanted), strict=True):
        assert np.allclose(got, want, rtol=rtol, atol=rtol * np.max(np.abs(want)))


SCANS = {
    "running maximum": np.maximum.accumulate,
    "running minimum": lambda x, axis: np.minimum.accumulate(x, axis=axis),
    "products": lambda x, axis: np.cumprod(x, axis=axis),
    "decaying sums": lambda x, axis: decaying_sum(x, axis=axis, factor=-0.4),
    "from the end": lambda x, axis: decaying_sum(x, axis=axis, factor=0.4, reverse=True),
}


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("long", [False, True])
def test_scans_and_their_gradients(name, long, monkeypatch):
    if long:
        monkeypatch.setattr(scan_kernels, "_LONG_LINE", 8)
    f = SCANS[name]
    for axis in (0, 1, 2):
        agree(lambda x, axis=axis: f(x, axis=axis), X)
    agree(wg.grad(lambda x: np.sum(np.sin(f(x, axis=1)))), X)


def test_a_running_maximum_of_nan_and_infinities():
    x = np.array([[1.0, -np.inf, np.nan, 3.0], [np.inf, 1.0, 2.0, np.inf]])
    with emulated_device():
        found = wg.device_get(wg.jit(lambda x: np.maximum.accumulate(x, axis=1), backend="cuda")(x))
    assert np.array_equal(found, np.maximum.accumulate(x, axis=1), equal_nan=True)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gradients_of_sorted_and_taken_elements(axis):
    agree(wg.grad(lambda x: np.sum(np.cos(np.sort(x, axis=axis)) * np.cumsum(x, axis=axis))), X)
    k = np.array([[[0, 1]], [[1, 1]], [[0, -1]]])
    agree(wg.grad(lambda x: np.sum(np.take_along_axis(x[:, :1], k, axis=-1) ** 3)), X)


def test_positions_out_of_range():
    f = wg.jit(lambda t, k: lookup("scatter_along")(t, k, axis=0, length=3), backend="cuda")
    with emulated_device(), pytest.raises(IndexError, match="out of bounds"):
        f(np.ones(2), np.array([0, 3]))


def test_conditions_that_do_not_hold_are_errors():
    x = np.ones(3)
    accepted = wg.jit(lambda x: lookup("accepted")(x, x > 0, why="not positive"), backend="cuda")
    near = wg.jit(lambda x: lookup("refuse_residual")(x, x, np.float64(2.0)), backend="cuda")
    regular = wg.jit(lambda x: lookup("refuse_singular")(x, x), backend="cuda")
    with emulated_device():
        for f in (accepted, near, regular):
            assert np.array_equal(wg.device_get(f(x)), x)
        with pytest.raises(MatrixError, match=r"not positive.*test_scans"):
            accepted(-x)
        with pytest.raises(ConvergenceError, match="residual at the solution is 3"):
            near(3.0 * x)
        with pytest.raises(SingularError, match="condition number is infinite"):
            regular(0.0 * x)
        assert np.isnan(wg.device_get(regular(np.nan * x))).all()
