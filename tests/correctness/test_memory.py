"""How an array lies in memory does not matter: strides, order, alignment, byte order, overlaps.

The answer is that of a fresh array with the same elements; nothing that was passed is written to.
"""

import numpy as np
import pytest

import wengert as wg

BASE = np.arange(12.0).reshape(3, 4) / 7 + 0.1


def unaligned(x):
    memory = np.zeros(x.nbytes + 1, np.uint8)
    view = memory[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    assert not view.flags.aligned
    return view


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS = {
    "Fortran order": np.asfortranarray(BASE),
    "transposed": BASE.copy().T,
    "reversed": BASE[::-1],
    "reversed columns, Fortran order": np.asfortranarray(BASE)[:, ::-1],
    "every second": np.repeat(BASE, 2, axis=1)[:, ::2],
    "broadcast": np.broadcast_to(BASE[0], (3, 4)),
    "one number, broadcast": np.broadcast_to(1.5, (3, 4)),
    "overlapping windows": np.lib.stride_tricks.sliding_window_view(BASE.ravel(), 4)[:3],
    "unaligned": unaligned(BASE),
    "read-only": read_only(BASE),
    "big-endian": BASE.astype(">f8"),
    "big-endian, reversed": BASE.astype(">f8")[:, ::-1],
    "of bytes": np.frombuffer(BASE.tobytes()).reshape(3, 4),
    "a field of a record": np.rec.fromarrays([BASE, BASE], names="a,b")["a"],
    "column": BASE[:, 1:2],
    "four axes": BASE.reshape(3, 1, 2, 2).swapaxes(0, 3),
}


def program(x):
    rows = np.cumsum(np.sin(x), axis=-1) * x[..., ::-1]
    return np.sum(rows) + np.sum(np.sort(x, axis=0)[0]) * np.max(x) + np.vdot(x, np.sqrt(x))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", LAYOUTS)
def test_derivatives_do_not_depend_on_the_layout(name):
    given = np.asarray(LAYOUTS[name])
    before = given.copy()
    fresh = np.ascontiguousarray(given, np.float64)
    gradient = wg.grad(program)
    want, curve = gradient(fresh), wg.hessian(program)(fresh)
    np.testing.assert_allclose(program(wg.tensor(given)).numpy(), program(fresh), rtol=1e-14)
    for run in (gradient, wg.jit(gradient), wg.trace(gradient)(given), wg.jacfwd(program)):
        np.testing.assert_allclose(run(given), want, rtol=1e-12, atol=1e-12)
    for run in (wg.hessian(program), wg.jit(wg.hessian(program))):
        np.testing.assert_allclose(run(given), curve, rtol=1e-11, atol=1e-11)
    rows = wg.vmap(gradient)(np.stack([fresh, given]))
    np.testing.assert_allclose(rows[1], want, rtol=1e-12, atol=1e-12)
    tangent = wg.jvp(program, (given,), (given,))[1]
    np.testing.assert_allclose(tangent, np.vdot(want, fresh), rtol=1e-12)
    captured = wg.grad(lambda y: np.sum(given * y * given))(np.ones(given.shape))
    np.testing.assert_allclose(captured, fresh**2, rtol=1e-14)
    np.testing.assert_array_equal(given, before)
    assert want.flags.writeable


@pytest.mark.parametrize("make", [lambda f: f, wg.jit], ids=["eager", "native"])
def test_arguments_that_overlap(make):
    """Two arguments are two arguments, also where they share memory."""
    x = np.arange(1.0, 6.0)
    f = make(wg.grad(lambda a, b: np.sum(a * b**2), argnums=(0, 1)))
    for a, b in ((x, x), (x[1:], x[:-1]), (x, x[::-1])):
        left, right = f(a, b)
        np.testing.assert_array_equal(left, b**2)
        np.testing.assert_array_equal(right, 2 * a * b)
        assert not np.may_share_memory(left, x) and not np.may_share_memory(left, right)


def test_views_of_a_tensor_that_overlap():
    def f(x):
        y = x * 1.0
        a, b = y[1:], y[:-1]
        a *= 2.0  # y[0], 2 y[1], 2 y[2]
        b += a  # NumPy copies what overlaps: old values are read
        return np.sum(y * np.array([1.0, 10.0, 100.0]))

    x = np.array([1.0, 2.0, 3.0])
    y = x.copy()
    y[1:] *= 2.0
    y[:-1] += y[1:].copy()
    assert f(x) == y @ [1.0, 10.0, 100.0]
    np.testing.assert_array_equal(wg.grad(f)(x), [1.0, 2.0 + 20.0, 20.0 + 200.0])
    np.testing.assert_array_equal(wg.jit(wg.grad(f))(x), [1.0, 2.0 + 20.0, 20.0 + 200.0])


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", [">f4", ">f8", ">c8", ">c16", "<f2", ">f2"])
def test_gradients_have_the_dtype_of_their_argument(dtype):
    x = np.array([1.0, 2.0]).astype(dtype)
    f = lambda x: np.sum(np.abs(x) ** 2)  # noqa: E731
    for g in (wg.grad(f)(x), wg.jit(wg.grad(f))(x)):
        assert g.dtype == x.dtype
        np.testing.assert_allclose(g, 2 * x)
