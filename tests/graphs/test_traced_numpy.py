"""NumPy's functions on traced tensors, with symbolic sizes.

The programs of tests/numpy are all traced there.  Here: arrays made of sizes, programs that write
in place, and the methods of tensors, each compared with plain NumPy at several sizes.
"""

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from wengert._engine.core.symbolic.dim import Dim
from wengert.errors import ShapeError, TraceError
from wengert.testing.op_checks import check_traced

SIZES = [(1, 1), (1, 4), (2, 3), (5, 2)]


def serves_all(f, plain, dtype="float64"):
    """The graph of `f(np-like, x)` with sizes n, m agrees with NumPy for all of SIZES."""
    graph = wg.trace(lambda x: f(wnp, x))(wg.spec(("n", "m"), dtype))
    for n, m in SIZES:
        x = (np.arange(n * m).reshape(n, m) + 1).astype(dtype)
        got, want = graph(x), plain(np, x)
        gots, wants = (v if isinstance(v, tuple | list) else [v] for v in (got, want))
        assert len(gots) == len(wants)
        for g, w in zip(gots, wants, strict=True):
            assert np.shape(g) == np.shape(w)
            assert np.asarray(g).dtype == np.asarray(w).dtype
            np.testing.assert_allclose(g, w, rtol=1e-13)


CREATION = {
    "zeros": lambda xp, x: xp.zeros(x.shape),
    "zeros of one": lambda xp, x: xp.zeros(x.shape[0], np.float32),
    "ones": lambda xp, x: xp.ones((2, x.shape[1]), dtype=int),
    "empty filled": lambda xp, x: filled(xp.empty(x.shape)),
    "full": lambda xp, x: xp.full((x.shape[0], 3), 2.5),
    "full of int": lambda xp, x: xp.full(x.shape[0] * x.shape[1], 7),
    "full of an array": lambda xp, x: xp.full((x.shape[0], 2), [1.0, 2.0]),
    "full of a tensor": lambda xp, x: xp.full((x.shape[0], 2), x[0, 0]),
    "eye": lambda xp, x: xp.eye(x.shape[0]),
    "eye of two": lambda xp, x: xp.eye(x.shape[0], x.shape[1], 1, dtype=np.float32),
    "identity": lambda xp, x: xp.identity(x.shape[1]),
    "tri": lambda xp, x: xp.tri(x.shape[0], x.shape[1], -1),
    "indices": lambda xp, x: xp.indices(x.shape),
    "indices sparse": lambda xp, x: xp.indices(x.shape, sparse=True),
    "arange": lambda xp, x: xp.arange(x.shape[0]),
    "arange from": lambda xp, x: xp.arange(2, x.shape[0] + 5, 2),
    "arange down": lambda xp, x: xp.arange(x.shape[0], -1, -1),
    "arange float": lambda xp, x: xp.arange(x.shape[1], dtype=np.float32),
    "linspace": lambda xp, x: xp.linspace(0.0, 1.0, x.shape[0] + 1),
    "linspace of one": lambda xp, x: xp.linspace(2.0, 3.0, x.shape[0]),
    "linspace open": lambda xp, x: xp.linspace(0, 5, x.shape[0], endpoint=False),
    "linspace of tensors": lambda xp, x: xp.linspace(x[0, 0], x[0] * 2, x.shape[0], axis=-1),
    "logspace": lambda xp, x: xp.logspace(0.0, 2.0, x.shape[0]),
    "zeros_like": lambda xp, x: xp.zeros_like(x),
    "ones_like": lambda xp, x: xp.ones_like(x, dtype=int),
    "full_like": lambda xp, x: xp.full_like(x, 3),
    "full_like of a tensor": lambda xp, x: xp.full_like(x, x[0, 0]),
    "zeros_like of a shape": lambda xp, x: xp.zeros_like(x, shape=(x.shape[1],)),
    "meshgrid": lambda xp, x: xp.meshgrid(x[:, 0], x[0]),
    "meshgrid ij": lambda xp, x: xp.meshgrid(x[:, 0], x[0], indexing="ij", sparse=True),
    "vander": lambda xp, x: xp.vander(x[0], 3),
    "vander of size": lambda xp, x: xp.vander(x[0]),
    "diag": lambda xp, x: xp.diag(x[0], 1),
    "diag below": lambda xp, x: xp.diag(x[:, 0], -2),
    "diagflat": lambda xp, x: xp.diagflat(x),
    "tril": lambda xp, x: xp.tril(x),
    "triu": lambda xp, x: xp.triu(x, 1),
    "diag_indices_from": lambda xp, x: xp.diag_indices_from(x @ x.T),
    "broadcast_to": lambda xp, x: xp.broadcast_to(x[0], (4, x.shape[1])),
}


def filled(x):
    x[...] = 3.0
    return x


@pytest.mark.sample(35)
@pytest.mark.parametrize("name", CREATION)
def test_arrays_made_of_sizes(name):
    serves_all(CREATION[name], CREATION[name])


LIKE = {
    "ones": lambda n, x: np.ones((n, 2), like=x),
    "full": lambda n, x: np.full(n, 2.0, like=x),
    "eye": lambda n, x: np.eye(n, like=x),
    "identity": lambda n, x: np.identity(n, like=x),
    "tri": lambda n, x: np.tri(n, like=x),
    "arange": lambda n, x: np.arange(n, like=x),
    "arange from": lambda n, x: np.arange(1, n, like=x),
}


@pytest.mark.parametrize("name", LIKE)
def test_numpys_own_functions_with_like(name):
    graph = wg.trace(lambda x: LIKE[name](x.shape[0], x))(wg.spec(("n", 2)))
    for n in (1, 4):
        want = LIKE[name](n, np.empty(0))
        got = graph(np.zeros((n, 2)))
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


SYMBOLIC = {
    "mean": lambda xp, x: x.mean(),
    "var": lambda xp, x: (x.var(), x.var(0), x.std(axis=1)),
    "average": lambda xp, x: xp.average(x, axis=0),
    "average returned": lambda xp, x: xp.average(x, axis=0, returned=True),
    "average weighted": lambda xp, x: xp.average(x, axis=0, weights=x[:, 0]),
    "mean by hand": lambda xp, x: x.sum() / x.shape[0],
    "sizes as values": lambda xp, x: x * x.shape[0] + 1.0 / x.shape[1] - x.size,
    "reshape": lambda xp, x: x.reshape(-1),
    "reshape product": lambda xp, x: x.reshape(x.shape[0] * x.shape[1]),
    "reshape two": lambda xp, x: x.reshape(x.shape[1], -1),
    "reshape more": lambda xp, x: xp.reshape(x, (x.shape[0], 1, -1)),
    "ravel": lambda xp, x: x.T.ravel(),
    "flatten F": lambda xp, x: x.flatten("F"),
    "transpose": lambda xp, x: x.transpose(1, 0),
    "tile": lambda xp, x: xp.tile(x, (2, 3)),
    "tile by size": lambda xp, x: xp.tile(x[0], x.shape[0]),
    "repeat": lambda xp, x: xp.repeat(x, 3, axis=1),
    "repeat by size": lambda xp, x: xp.repeat(x, x.shape[1], axis=0),
    "pad": lambda xp, x: xp.pad(x, ((1, 2), (0, 3))),
    "pad edge": lambda xp, x: xp.pad(x, 2, mode="edge"),
    "pad wrap": lambda xp, x: xp.pad(x, 2, mode="wrap"),
    "pad reflect": lambda xp, x: xp.pad(x, 1, mode="reflect"),
    "pad symmetric": lambda xp, x: xp.pad(x, 3, mode="symmetric"),
    "pad mean": lambda xp, x: xp.pad(x, 1, mode="mean"),
    "pad ramp": lambda xp, x: xp.pad(x, 2, mode="linear_ramp", end_values=-1.0),
    "pad by size": lambda xp, x: xp.pad(x, x.shape[0]),
    "pad by sizes": lambda xp, x: xp.pad(x, ((x.shape[0], 1), (0, x.shape[1])), mode="wrap"),
    "table": lambda xp, x: wnp.take(np.arange(99.0), x.astype(int)),
    "roll": lambda xp, x: xp.roll(x, 1, axis=0),
    "roll by size": lambda xp, x: xp.roll(x, x.shape[0], axis=1),
    "stack": lambda xp, x: xp.stack([x, x * 2], axis=1),
    "concatenate": lambda xp, x: xp.concatenate([x, x[:1], np.ones((2, 1)) * x[:1]]),
    "vstack": lambda xp, x: xp.vstack([x, x[0]]),
    "hstack": lambda xp, x: xp.hstack([x, x]),
    "column_stack": lambda xp, x: xp.column_stack([x[:, 0], x]),
    "block": lambda xp, x: xp.block([[x, x], [x, x]]),
    "append": lambda xp, x: xp.append(x, x[:1], axis=0),
    "insert": lambda xp, x: xp.insert(x, 0, 5.0, axis=0),
    "insert last": lambda xp, x: xp.insert(x, -1, x[0], axis=0),
    "delete": lambda xp, x: xp.delete(x, -1, axis=1),
    "split": lambda xp, x: xp.split(xp.concatenate([x, x, x]), 3),
    "split at": lambda xp, x: xp.split(xp.concatenate([x, x]), [x.shape[0]]),
    "array_split": lambda xp, x: xp.array_split(xp.hstack([x, x]), 2, axis=1),
    "kron": lambda xp, x: xp.kron(x, x),
    "outer": lambda xp, x: xp.outer(x, x[0]),
    "einsum": lambda xp, x: xp.einsum("ij,kj->ik", x, x),
    "matmul": lambda xp, x: x @ x.T,
    "dot": lambda xp, x: xp.dot(x.T, x),
    "tensordot": lambda xp, x: xp.tensordot(x, x, ([0, 1], [0, 1])),
    "inner": lambda xp, x: xp.inner(x, x),
    "matrix_power": lambda xp, x: xp.linalg.matrix_power(x @ x.T / 9, 3),
    "matrix_power 0": lambda xp, x: xp.linalg.matrix_power(x @ x.T, 0),
    "multi_dot": lambda xp, x: xp.linalg.multi_dot([x, x.T, x]),
    "norm": lambda xp, x: (xp.linalg.norm(x), xp.linalg.norm(x, axis=1), xp.linalg.norm(x, 1)),
    "solve": lambda xp, x: xp.linalg.solve(x @ x.T + 9 * xp.eye(x.shape[0]), x),
    "cumsum": lambda xp, x: (x.cumsum(), xp.cumsum(x, 0), xp.cumprod(x / 9, axis=1)),
    "diff": lambda xp, x: xp.diff(x, axis=0, prepend=0.0),
    "trapezoid": lambda xp, x: xp.trapezoid(x),
    "interp": lambda xp, x: xp.interp([0.5, 1.5, 9.0], x[0], x[0] ** 2),
    "sort": lambda xp, x: (xp.sort(-x), xp.argsort(-x, axis=0), xp.max(x), xp.argmax(x)),
    "median": lambda xp, x: (xp.median(x), xp.median(x, axis=0)),
    "quantile": lambda xp, x: (xp.quantile(x, 0.3), xp.percentile(x, [20, 75], axis=0)),
    "nan": lambda xp, x: (xp.nanmean(x), xp.nanvar(x, axis=0), xp.nanmedian(x), xp.nanmax(x)),
    "cov": lambda xp, x: xp.cov(xp.vstack([x[:, 0], x[:, 0] ** 2, x[:, 0]]), ddof=0),
    "corrcoef": lambda xp, x: xp.corrcoef(xp.hstack([x, x**2 + 1])[:1], xp.hstack([x, -x])[:1]),
    "where": lambda xp, x: xp.where(x > 3, x, 0),
    "select": lambda xp, x: xp.select([x > 4, x > 2], [x, -x], 9.0),
    "piecewise": lambda xp, x: xp.piecewise(x, [x < 2, x > 4], [lambda v: v * v, -1, xp.sqrt]),
    "choose": lambda xp, x: xp.choose((x > 3).astype(int), [x, -x]),
    "take": lambda xp, x: xp.take(x, [0, 0], axis=0),
    "take wrap": lambda xp, x: xp.take(x, [0, 5], axis=1, mode="wrap"),
    "take clip": lambda xp, x: xp.take(x, [0, 5], axis=1, mode="clip"),
    "take_along_axis": lambda xp, x: xp.take_along_axis(x, xp.argsort(-x, axis=1), axis=1),
    "isin": lambda xp, x: xp.isin(x, [1.0, 4.0, 7.0]),
    "searchsorted": lambda xp, x: xp.searchsorted(x[0], 2.5),
    "allclose": lambda xp, x: xp.where(xp.allclose(x, x), 1, 2),
    "array_equal": lambda xp, x: xp.where(xp.array_equal(x, x + 1), 1, 2),
    "convolve": lambda xp, x: xp.convolve(x[0], [1.0, 2.0]),
    "flip": lambda xp, x: (xp.flip(x), xp.rot90(x), xp.fliplr(x)),
    "resize": lambda xp, x: xp.resize(x, (3, 7)),
    "unwrap": lambda xp, x: xp.unwrap(x * 2.5, axis=1),
    "gradient": lambda xp, x: xp.gradient(xp.concatenate([x, x[:1] ** 2, x]), axis=0),
    "histogram": lambda xp, x: xp.histogram(x, bins=4, range=(0, 9))[0],
    "histogram weighted": lambda xp, x: xp.histogram(x, [0.0, 2.0, 6.0], weights=x),
    "polyint": lambda xp, x: (xp.polyint(x[0]), xp.polyder(x[0])),
    "size": lambda xp, x: x * xp.size(x) + xp.size(x, 0),
    "accumulate": lambda xp, x: np.maximum.accumulate(x, axis=0),
    "reduce": lambda xp, x: np.logaddexp.reduce(x, axis=1),
    "outer of ufunc": lambda xp, x: np.subtract.outer(x[0], x[:, 0]),
    "clip": lambda xp, x: x.clip(2.0, x.shape[0] + 2.0),
    "methods": lambda xp, x: (x.T, x.mT, x.real, x.round(), x.swapaxes(0, 1), x.conj()),
}


@pytest.mark.sample(37)
@pytest.mark.parametrize("name", SYMBOLIC)
def test_programs_for_all_sizes(name):
    with np.errstate(all="ignore"):
        serves_all(SYMBOLIC[name], SYMBOLIC[name])


def test_shapes_are_expressions():
    seen = {}

    def f(x):
        n = x.shape[0]
        seen["padded"] = wnp.pad(x, 1).shape
        seen["flat"] = x.reshape(-1).shape
        seen["joined"] = np.concatenate([x, x, x[:1]]).shape
        seen["arange"] = wnp.arange(1, n, 2).shape
        return x

    wg.trace(f)(wg.spec(("n", "m")))
    n, m = Dim({(("n", 1),): 1}), Dim({(("m", 1),): 1})
    assert seen["padded"] == (n + 2, m + 2)
    assert seen["flat"] == (n * m,)
    assert seen["joined"] == (2 * n + 1, m)
    assert seen["arange"] == (n // 2,)


def test_a_mean_over_a_symbolic_batch_has_a_derivative():
    graph = wg.trace(wg.grad(lambda x: np.mean(x**2)))(wg.spec(("n", 2)))
    for n in (1, 3):
        x = np.arange(2.0 * n).reshape(n, 2)
        np.testing.assert_allclose(graph(x), 2 * x / (2 * n))


def test_sizes_beside_arrays_are_values():
    def f(x):
        n = x.shape[0]
        assert isinstance(np.ones(2) / n, wg.Tensor)
        return (
            np.ones(2) / n,
            np.float64(3.0) * n,
            n * np.arange(2),
            np.minimum([1.0, 9.0], n),
            2**n,
        )

    graph = wg.trace(f)(wg.spec(("n",)))
    for n in (1, 4):
        for got, want in zip(graph(np.zeros(n)), f_plain(n), strict=True):
            assert np.asarray(got).dtype == np.asarray(want).dtype
            np.testing.assert_array_equal(got, want)


def f_plain(n):
    return np.ones(2) / n, np.float64(3.0) * n, n * np.arange(2), np.minimum([1.0, 9.0], n), 2**n


def test_what_has_other_sizes_is_refused_when_it_runs():
    graph = wg.trace(lambda x: x[:3] + x[1:4])(wg.spec("n"))
    np.testing.assert_array_equal(graph(np.arange(5.0)), [1.0, 3.0, 5.0])
    with pytest.raises(ShapeError, match="is not valid for the sizes n = 2"):
        graph(np.zeros(2))


# ---- in place ----------------------------------------------------------------------------------


def loop(x):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = x[i] * (y[i - 1] if i else 1.0)
    return y


def views(x):
    row, column = x[0], x[:, 1]
    row[...] = 2 * column[:3]
    column += 1.0
    x.T[2] *= row[0]
    return x, row, column


def ufuncs(x):
    z = np.empty_like(x)
    np.multiply(x, x, out=z)
    np.add(z, 1.0, out=z, where=x > 2)
    np.exp(x / 9, out=x)
    return x, z


def functions(x):
    z = x.copy()
    np.put(z, [0, 4, 0], [7.0, x[0, 0], 8.0])
    np.put_along_axis(z, np.argmax(x, axis=1)[:, None], -1.0, axis=1)
    np.copyto(x, z, where=z < 0)
    np.fill_diagonal(z, x[0])
    np.place(x, x > 5, [10.0, 20.0])
    np.putmask(z, z > 3, x)
    return x, z


def methods(x):
    y, z = x.copy(), x.copy()
    x.sort(axis=0)
    y.fill(x[0, 0])
    z.put([1, 2], 5.0)
    z.flat[3] = x[1, 1]
    z.partition(1)
    return x, y, z


def masks(x):
    x[x > 4] = 0.0
    x[x[:, 0] > 1] = [1.0, 2.0, 3.0]
    x[np.array([True, False, True])] *= 2.0
    return x


def at_indices(x):
    np.add.at(x, (np.array([0, 0, 2]), 1), [1.0, 2.0, x[0, 0]])
    np.subtract.at(x, 1, 3.0)
    np.multiply.at(x, ([0, 0],), 2.0)
    x[[0, 2], [1, 1]] = x[1, :2]
    return x


def augmented(x):
    x += 1.0
    x *= x
    x[0] -= x[1]
    x[:, 0] **= 2
    x[1:] /= 2.0
    x[np.newaxis, :, 1] = 4.0
    return x


def swap(x):
    x[0], x[1] = x[1].copy(), x[0].copy()
    x[[0, 2]] = x[[2, 0]]
    x[:, ::-1][0] = np.arange(3.0)
    return x


PROGRAMS = [loop, views, ufuncs, functions, methods, masks, at_indices, augmented, swap]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_programs_that_write_in_place(f, rng):
    x = rng.permutation(9).reshape(3, 3) + 0.5 + 0.1 * rng.random((3, 3))
    got, want = wg.trace(f)(x)(x.copy()), f(x.copy())
    gots, wants = (v if isinstance(v, tuple) else (v,) for v in (got, want))
    for g, w in zip(gots, wants, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-14)
    check_traced(lambda x: f(x * 1.0), [x], sizes=False)


def test_a_reshaped_array_of_which_the_original_was_written_to():
    def used(x):
        flat = x.T.ravel()
        x[0] = 7.0
        return flat

    def used_by_way_of_another(x):
        part = x.reshape(-1)[1:]
        x *= 2.0
        return part + 1.0

    for f in (used, used_by_way_of_another, lambda x: np.isnan(used(x))):
        with pytest.raises(TraceError, match=r"x\.reshape\(\.\.\.\)\.copy\(\)"):
            wg.trace(f)(np.ones((2, 3)))

    def unused(x):
        flat, before = x.reshape(-1), x.reshape(-1).copy()
        total, column = flat.sum(), x.reshape(2, 1, 3)
        x *= 2.0
        column[0] = -1.0
        return total, before, column, x

    x = np.arange(6.0).reshape(2, 3)
    for got, want in zip(wg.trace(unused)(x)(x), unused(x.copy()), strict=True):
        np.testing.assert_array_equal(got, want)


def test_in_place_with_sizes():
    def f(xp, x):
        y = xp.zeros((x.shape[0] + 1, x.shape[1]))
        y[1:] = x
        y[0] = x.sum(axis=0)
        y[-1, :] += 1.0
        y *= 2
        xp.put(y, 0, 5.0)
        xp.put_along_axis(y, xp.argmax(y, axis=1)[:, None], 0.0, axis=1)
        xp.place(y, y > 20, [1.0, 2.0])
        xp.putmask(y, y > 10, x[0, 0])
        xp.copyto(y[:1], x[:1] * 3)
        z = xp.ones((x.shape[0], x.shape[0]))
        xp.fill_diagonal(z, x[:, 0])
        return y, z

    serves_all(f, f)


def test_a_tensor_made_while_tracing_may_be_written_to():
    def f(x):
        state = wg.tensor(np.zeros(3))
        state[1] = x
        return state * 2

    np.testing.assert_array_equal(wg.trace(f)(wg.spec())(4.0), [0.0, 8.0, 0.0])
    outside = wg.tensor(np.zeros(3))
    with pytest.raises(TraceError, match=r"wengert\.variable"):
        wg.trace(lambda x: outside.__setitem__(0, x))(wg.spec())


def test_the_argument_of_the_caller_is_not_written_to(rng):
    x = rng.normal(size=(2, 2))
    before = x.copy()
    wg.trace(augmented)(np.ones((3, 3)))
    graph = wg.trace(lambda x: x.fill(0.0) or x)(x)
    graph(x)
    np.testing.assert_array_equal(x, before)


def test_warnings_of_values_are_not_given_while_tracing():
    f = lambda x: (np.nanmax(x, 0), np.nanmean(x, 0), np.nanvar(x, 0), np.nanmedian(x, 0))  # noqa: E731
    graph = wg.trace(f)(wg.spec((2, 2)))
    with np.errstate(all="ignore"):
        for part in graph(np.array([[np.nan, 1.0], [np.nan, 3.0]])):
            assert np.isnan(part[0]) and not np.isnan(part[1])
    position = wg.trace(lambda x: np.nanargmax(x, axis=0))(wg.spec((2, 2)))
    np.testing.assert_array_equal(position(np.array([[np.nan, 1.0], [np.nan, 3.0]])), [-1, 1])


def test_levels_out_of_range_are_nan():
    graph = wg.trace(lambda x, q: np.quantile(x, q))(wg.spec("n"), wg.spec(()))
    x = np.arange(5.0)
    assert graph(x, 0.5) == 2.0
    assert np.isnan(graph(x, 1.5)) and np.isnan(graph(x, -0.1))


def test_positions_that_do_not_exist_raise_when_the_graph_runs():
    graph = wg.trace(lambda k, x: np.choose(k, [x, -x]))(wg.spec(2, int), wg.spec(2))
    np.testing.assert_array_equal(graph(np.array([0, 1]), np.ones(2)), [1.0, -1.0])
    for wrong in ([0, 2], [-1, 0]):
        with pytest.raises(IndexError):
            graph(np.array(wrong), np.ones(2))
