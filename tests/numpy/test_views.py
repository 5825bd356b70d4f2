"""Views of tensors share memory like those of NumPy: eager, traced and compiled.

Each view is written to (or its base is), and the base (or the view) compared with NumPy's own;
where NumPy refuses to write, so do tensors.  Random programs of views: test_inplace.py.
"""

import warnings

import numpy as np
import pytest
from wengert.rewrite import simplify

import wengert as wg
from wengert.errors import DtypeError, ReadOnlyError, TraceError

windows = np.lib.stride_tricks.sliding_window_view

VIEWS = {
    "diagonal": np.diagonal,
    "diagonal of tensor": lambda v: v.diagonal(),
    "diag": lambda v: np.diag(v[0] if v.ndim > 2 else v),
    "linalg.diagonal": np.linalg.diagonal,
    "broadcast_to": lambda v: np.broadcast_to(v, (2, *v.shape)),
    "broadcast_to same": lambda v: np.broadcast_to(v, v.shape),
    "windows": lambda v: windows(v, 2, axis=0),
    "windows twice": lambda v: windows(v, (1, 2), axis=(0, 1)),
    "swapaxes": lambda v: np.swapaxes(v, 0, 1),
    "moveaxis": lambda v: np.moveaxis(v, 0, -1),
    "rollaxis": lambda v: np.rollaxis(v, 1),
    "transpose": np.transpose,
    "permute_dims": lambda v: np.permute_dims(v, tuple(np.roll(range(v.ndim), 1))),
    "T": lambda v: v.T,
    "mT": lambda v: v.mT,
    "matrix_transpose": np.matrix_transpose,
    "squeeze": lambda v: np.squeeze(v[:, None]),
    "squeeze axis": lambda v: v[..., None].squeeze(-1),
    "expand_dims": lambda v: np.expand_dims(v, (0, 2)),
    "atleast_1d": np.atleast_1d,
    "atleast_2d": lambda v: np.atleast_2d(v[0]),
    "atleast_3d": np.atleast_3d,
    "split": lambda v: np.split(v, [1])[1],
    "array_split": lambda v: np.array_split(v, 2, axis=1)[0],
    "hsplit": lambda v: np.hsplit(v, [1])[1],
    "vsplit": lambda v: np.vsplit(v, [1])[0],
    "unstack": lambda v: np.unstack(v, axis=1)[1],
    "flip": np.flip,
    "flipud": np.flipud,
    "fliplr": np.fliplr,
    "rot90": np.rot90,
    "rot90 by nothing": lambda v: np.rot90(v, 0),
    "rot90 backwards": lambda v: np.rot90(v, 3),
    "real": np.real,
    "imag": np.imag,
    "imag of tensor": lambda v: v.imag,
    "view": lambda v: v.view(),
    "the same": lambda v: v.astype(v.dtype, copy=False),
    "row": lambda v: list(v)[1],
    "new axes": lambda v: v[None, :, None, ::2],
    "views of views": lambda v: v[None][0, 1:][..., None][..., 0].T,
    "einsum diagonal": lambda v: np.einsum("ii...->i...", v),
    "einsum diagonal last": lambda v: np.einsum("ii...->...i", v),
    "einsum transpose": lambda v: np.einsum("ij...->ji...", v),
    "einsum the same": lambda v: np.einsum("ij...", v),
    "einsum implicit": lambda v: np.einsum("ji...", v),
    "einsum dots": lambda v: np.einsum("...", v),
    "einsum sublists": lambda v: np.einsum(v, [0, 1, Ellipsis], [1, 0, Ellipsis]),
    "einsum optimized": lambda v: np.einsum("ij...->ji...", v, optimize=True),
    "einsum dtype": lambda v: np.einsum("ij...->ji...", v, dtype=np.complex128),
    "einsum of einsum": lambda v: np.einsum("ji...->ij...", np.einsum("ij...->ji...", v))[1:].T,
    "einsum thrice": lambda v: np.einsum("iii->i" if v.ndim == 3 else "ii->i", v),
    # These are copies: writes do not change the base.
    "einsum sum": lambda v: np.einsum("ij...->i...", v) if v.ndim > 1 else v,
    "copy": lambda v: v.copy(),
    "flatten": lambda v: v.flatten(),
    "rows": lambda v: v[[0, 1]],
    "where all": lambda v: np.where(True, v, v),
    "take": lambda v: np.take(v, [1, 0], axis=0),
}
WRITES = {
    "all": lambda v, w: w.__setitem__(Ellipsis, 0.5),
    "first": lambda v, w: w.__setitem__(0, 0.25 * v[-1, ..., -1].sum()),
    "added": lambda v, w: w.__iadd__(1.0),
    "times two": lambda v, w: w[..., ::2].__imul__(2.0),
}
RNG = np.random.default_rng(0)
OPERANDS = {
    "square": RNG.normal(size=(3, 3)),
    "rows": RNG.normal(size=(2, 3)),
    "cube": RNG.normal(size=(2, 2, 2)),
    "complex": RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3)),
    "single": RNG.normal(size=(2, 2)).astype(np.float32),
}


def writing(view, write):
    def f(x):
        v = x * 1.5
        write(v, view(v))
        return v * x

    return f


def written_below(view):
    def f(x):
        v = x * 1.5
        w = view(v)
        v[...] = np.sin(v)
        v[0] += 1.0
        return w * 2.0

    return f


def outcome(f, x):
    """The result, or the type of the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return f(x.copy())
        except (ValueError, TypeError) as error:
            return error


@pytest.mark.sample(20)
@pytest.mark.parametrize("name", VIEWS)
def test_views_are_those_of_numpy(name):
    view = VIEWS[name]
    for k, x in enumerate(OPERANDS.values()):
        write = list(WRITES.values())[(k + len(name)) % len(WRITES)]
        for f in (written_below(view), writing(view, write)):
            wanted = outcome(f, x)
            ways = {
                "eager": lambda x, f=f: f(wg.tensor(x)).numpy(),
                "recorded": lambda x, f=f: wg.vjp(f, x)[0],
                "traced": lambda x, f=f: simplify(wg.trace(f)(x))(x),
            }
            for way, run in ways.items():
                found = outcome(run, x)
                if isinstance(wanted, Exception):
                    assert isinstance(found, Exception), (way, wanted)
                    assert isinstance(found, ReadOnlyError) or "read-only" not in str(wanted)
                    continue
                if isinstance(found, Exception):
                    raise AssertionError(way) from found
                assert found.dtype == wanted.dtype and found.shape == wanted.shape
                np.testing.assert_allclose(found, wanted, 1e-6 if x.dtype == "f4" else 1e-14)


def test_views_of_einsum_compiled():
    def f(x):
        v = x * 1.5
        np.einsum("ii->i", v[:, :, 0])[...] = np.sin(x[0, 0])
        np.einsum("iji->ji", v)[1:] *= x[1, 1]
        np.einsum("ijk->kji", v)[0] += x[2]
        w = np.einsum("...ij->...ji", v)[1]
        v[1, 0] = 7.0
        return v * x, w

    def loss(x):
        v, w = f(x)
        return np.sum(v**2) + np.sum(np.sin(w))

    x = np.random.default_rng(1).normal(size=(3, 3, 3))
    for found, wanted in zip(wg.jit(f)(x), f(x), strict=True):
        np.testing.assert_allclose(found, wanted, 1e-14)
    slope = wg.grad(loss)
    np.testing.assert_allclose(wg.jit(slope)(x), slope(x), 1e-13, 1e-14)
    direction = np.cos(np.arange(27.0)).reshape(x.shape)
    h = 1e-6
    along = (loss(x + h * direction) - loss(x - h * direction)) / (2 * h)
    assert np.sum(slope(x) * direction) == pytest.approx(along, rel=1e-7)
    assert wg.jvp(loss, (x,), (direction,))[1] == pytest.approx(along, rel=1e-7)
    rows = np.stack([x, 2.0 * x])
    each = np.stack([slope(row) for row in rows])
    np.testing.assert_allclose(wg.vmap(slope)(rows), each, 1e-13, 1e-14)


def test_diagonals_of_a_symbolic_size():
    def f(x):
        v = x * 2.0
        np.einsum("ii->i", v)[...] = np.sum(x, 0)
        return v

    graph = wg.trace(f)(wg.spec(("n", "n")))
    for n in (1, 2, 5):
        x = np.arange(1.0 * n * n).reshape(n, n)
        np.testing.assert_array_equal(graph(x), f(x))
        np.testing.assert_array_equal(graph.run(x, backend="llvm"), f(x))


def test_parts_of_complex_numbers_are_assigned():
    def f(x, v):
        z = x * (1.0 + 2.0j)
        z.real = v
        z.imag[1:] = 3.0
        z.imag += v
        z.real[0] *= 2.0
        return z

    x, v = np.array([1.0, 2.0, 3.0]), np.array([0.5, 4.0, -1.0])
    wanted = f(x, v)
    for run in (f, wg.trace(f)(x, v), wg.jit(f)):
        np.testing.assert_array_equal(run(x, v), wanted)
    np.testing.assert_array_equal(f(wg.tensor(x), wg.tensor(v)).numpy(), wanted)
    slope = wg.grad(lambda x, v: np.sum(np.abs(f(x, v)) ** 2), (0, 1))
    for run in (slope, wg.jit(slope)):
        dx, dv = run(x, v)
        # z = (2 v0, v1, v2) + i (2 x0 + v0, 3 + v1, 3 + v2)
        np.testing.assert_allclose(dx, [4.0 * wanted.imag[0], 0.0, 0.0])
        np.testing.assert_allclose(dv, 2 * (wanted.real * [2.0, 1.0, 1.0] + wanted.imag))

    def infinite(x, v):
        z = x * (1.0 + 2.0j)
        z[0] = complex(-0.0, np.inf)
        z.real[:2] = v[:2]
        z.imag[1:] = x[1:]
        return z

    x, v = np.array([1.0, -0.0, np.inf]), np.array([-0.0, np.inf, np.nan])
    with np.errstate(all="ignore"):
        wanted = infinite(x, v)
        for run in (wg.trace(infinite)(x, v), wg.jit(infinite)):
            found = run(x, v)
            np.testing.assert_array_equal(found.view(float), wanted.view(float))
            np.testing.assert_array_equal(np.signbit(found.real[0]), np.signbit(wanted.real[0]))
        found = infinite(wg.tensor(x), v).numpy()
        np.testing.assert_array_equal(found.view(float), wanted.view(float))
    x = np.array([1.0, 2.0, 3.0])

    def real(x):
        y = x * 1.0
        y.real = 2.0 * x
        y.real += 1.0
        return y

    np.testing.assert_array_equal(wg.jit(real)(x), real(x))
    with pytest.raises(DtypeError, match="does not have an imaginary part to set"):
        wg.tensor(x).imag = 1.0


def test_reshapes_may_be_written_to_in_graphs():
    """Whether the arrays share memory is unknown in a trace: reading the other one is an error."""

    def alone(x):
        r = (x * 2.0).reshape(-1)
        r[1:][::2] = 5.0
        s = r.reshape(2, -1)
        s[0] *= x[0, 0]
        return s

    def below(x):
        v = x * 2.0
        v.reshape(-1)[0] = 5.0
        return v

    def above(x):
        v = x * 2.0
        r = np.ravel(v[:, 0])  # other than reshape a copy, as the elements lie apart
        v[...] = 0.0
        return r

    def beside(x):
        v = x * 2.0
        w, r = v[1:], v.ravel()
        r[0] = 5.0
        return w

    def argument(x):
        np.ravel(x)[0] = 1.0
        return 2.0

    x = np.arange(6.0).reshape(3, 2) + 0.5
    for make in (lambda f: wg.trace(f)(x), wg.jit):
        np.testing.assert_array_equal(make(alone)(x), alone(x))
        for refused in (below, above, beside):
            with pytest.raises(TraceError, match=r"may share its memory .*, in "):
                make(refused)(x)
    with pytest.raises(TraceError, match="may share its memory"):  # jit writes to its arguments
        wg.jit(argument)(x.copy())
    for f in (below, above, beside):
        np.testing.assert_array_equal(f(wg.tensor(x)).numpy(), f(x))
