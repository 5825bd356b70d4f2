"""Traced programs that once gave another value, shape or dtype than NumPy: each as a case.

They were found by random programs, run plainly, on tensors, as graphs, simplified, as rows.
"""

import itertools

import numpy as np
import pytest

import wengert as wg


def assert_same(found, wanted):
    if isinstance(found, wg.Tensor):
        found = found.numpy()
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    assert np.shape(found) == np.shape(wanted)
    assert np.array_equal(found, wanted, equal_nan=np.asarray(wanted).dtype.kind in "fc")


# ---- booleans of Python --------------------------------------------------------------------

COUNTED = {
    "add": lambda x: (x > 0) + (x > 0),
    "negative": lambda x: -(x > 0),
    "subtract": lambda x: (x > 0) - (x > 1),
    "times True": lambda x: (x > 0) * True,
    "power": lambda x: (x > 0) ** (x > 1),
    "absolute": lambda x: abs(x > 0),
    "shift": lambda x: (x > 0) << (x > 0),
    "beside an array": lambda x: ((x > 0) + (x > 0)) * np.ones(2, np.float32),
}


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("x", [3.0, -2.0, 2])
def test_booleans_of_python_numbers_count_as_in_python(name, x):
    f = COUNTED[name]
    graph = wg.trace(f)(x)
    assert_same(graph(x), f(x))
    assert_same(graph.simplify()(x), f(x))
    assert_same(wg.trace(lambda y: graph(y))(x)(x), f(x))
    if isinstance(x, float):
        seen = []
        wg.grad(lambda y: (seen.append(f(y)), y)[1])(x)
        assert_same(seen[0], f(x))


def test_a_python_boolean_as_an_argument_counts():
    def f(x, flag):
        return x * (flag + flag) - x * -flag

    assert_same(wg.trace(f)(2.0, True)(2.0, True), f(2.0, True))
    assert wg.trace(f)(2.0, True)(2.0, False) == 0.0


def test_the_inverse_of_a_boolean_is_a_boolean():
    def f(x):
        return np.where(~(x > 0), 0.0, x)

    assert wg.grad(f)(3.0) == 1.0
    assert wg.trace(f)(3.0)(3.0) == 3.0


# ---- indices -----------------------------------------------------------------------------------

PARTS = [0, -1, np.array(1), slice(1, 3), slice(None, None, -1), Ellipsis, None, [0, 1],
         np.array([[0, 1], [1, 0]]), np.array([True, False, True])]  # fmt: skip


@pytest.mark.sample(2)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_index_has_the_shape_that_numpy_gives_it(count):
    x = np.arange(60.0).reshape(5, 4, 3)
    tried = 0
    for index in itertools.product(PARTS, repeat=count):
        try:
            wanted = x[index]
        except IndexError:
            continue
        tried += 1
        graph = wg.trace(lambda x, index=index: x[index])(x)
        assert graph.outputs[0].spec.shape == wanted.shape, index
        assert_same(graph(x), wanted)
    assert tried > 5


@pytest.mark.parametrize("rows", [2, 4])
@pytest.mark.parametrize("index", [(1, ..., [0, 1]), ([0, 1], ..., 0), (..., [0, 1]), (1, ..., 0)])
def test_an_ellipsis_without_axes_separates_index_arrays_of_rows_too(rows, index):
    x = np.random.default_rng(0).normal(size=(rows, 3, 3))
    wanted = np.stack([row[index] for row in x])
    assert_same(wg.vmap(lambda row: row[index])(x), wanted)
    assert_same(wg.trace(wg.vmap(lambda row: row[index]))(x)(x), wanted)


def test_true_beside_a_number_is_refused():
    x = np.ones((5, 4, 3))
    assert_same(wg.trace(lambda x: x[True])(x)(x), x[True])
    with pytest.raises(wg.errors.TraceError, match="mask of shape"):
        wg.trace(lambda x: x[0, :, True])(x)


# ---- reductions --------------------------------------------------------------------------------

WHOLE, SINGLE, TRUTHS = (
    np.array([1, -2, 3]),
    np.array([1, 2, 3], np.float32),
    np.array([True, False]),
)
REDUCED = {
    "max from": lambda x: np.max(x, initial=1.5),
    "min from": lambda x: np.min(x, initial=-0.5),
    "max where": lambda x: np.max(x, initial=-3.0, where=x > 1),
    "sum from": lambda x: np.sum(x, initial=1.5),
    "sum from a wide number": lambda x: np.sum(x, initial=np.float64(1.5)),
    "product from": lambda x: np.prod(x, initial=2.5),
    "nanmax": np.nanmax,
    "nanmin along": lambda x: np.nanmin(x, axis=0),
    "nanargmax": np.nanargmax,
    "average": lambda x: np.average(x, weights=np.ones(np.shape(x), np.float16)),
    "weights": lambda x: np.average(np.ones(np.shape(x), np.float16), weights=x),
}


@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.parametrize("x", [WHOLE, SINGLE, TRUTHS, np.float32(2.0), 2.5, 3], ids=str)
def test_reductions_keep_the_dtypes_of_numpy(name, x):
    f = REDUCED[name]
    assert_same(wg.trace(f)(x)(x), f(x))
    if isinstance(x, np.ndarray):
        assert_same(f(wg.tensor(x)), f(x))


def test_copyto_writes_python_numbers():
    def f(x, flag):
        y = x * 1.0
        np.copyto(y, flag, where=x > 1)
        return y

    x = np.array([1.0, 2.0, 3.0], np.float32)
    assert_same(wg.trace(f)(x, True)(x, True), f(x, True))
    assert_same(wg.trace(f)(x, 0.5)(x, 0.5), f(x, 0.5))
    with pytest.raises(TypeError, match="Cannot cast"):
        wg.trace(lambda x, v: np.copyto(x + 0, v))(np.arange(3), 0.5)


# ---- rewriting ---------------------------------------------------------------------------------


def test_a_mask_times_minus_one_is_simplified_to_no_negative_of_booleans():
    def f(x):
        return (x > 0) * -1.0 + (x > 1) * -1

    x = np.array([-1.0, 0.5, 2.0])
    assert_same(wg.trace(f)(x).simplify()(x), f(x))


# ---- what NumPy takes as more or less than it is -----------------------------------------------

NUMBERS = {
    "argsort": np.argsort,
    "argpartition": lambda x: np.argpartition(x, 0),
    "argsort of all": lambda x: np.argsort(x, axis=None),
    "sort of all": lambda x: np.sort(x, axis=None),
    "angle": np.angle,
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("x", [np.float32(2.0), np.float64(-1.5), np.int8(-3), np.bool_(True)])
def test_numbers_are_taken_as_numpy_takes_them(name, x):
    f = NUMBERS[name]
    graph = wg.trace(f)(x)
    assert graph.outputs[0].spec.shape == np.shape(f(x))
    assert_same(graph(x), f(x))
    assert_same(f(wg.tensor(x)), f(x))


def test_a_maximum_of_nothing_has_the_dtype_of_what_is_not_there():
    x = np.zeros((0, 3), np.int32)
    assert_same(np.max(wg.tensor(x), initial=0.5), np.max(x, initial=0.5))


def test_interp_of_other_lengths_is_a_shape_error():
    with pytest.raises(wg.errors.ShapeError, match="interp"):
        wg.trace(lambda y: np.interp(0.5, np.arange(3.0), y))(wg.spec("n"))


# ---- variables ---------------------------------------------------------------------------------

OF_VARIABLES = {
    "std": np.std,
    "max": np.max,
    "sort": lambda w: np.sum(np.sort(w) * np.array([1.0, 2.0, 3.0])),
    "median": np.median,
    "nanmean": np.nanmean,
    "nanmax": np.nanmax,
    "quantile": lambda w: np.quantile(w, 0.3),
    "clip": lambda w: np.sum(np.clip(w, 0.0, 2.5) ** 2),
    "sinc": lambda w: np.sum(np.sinc(w)),
    "hypot": lambda w: np.sum(np.hypot(w, w - w)),
    "where": lambda w: np.sum(np.where(w > 0, np.sqrt(np.where(w > 0, w, 1.0)), 0.0)),
    "along": lambda w: np.take_along_axis(w, np.argsort(w), 0)[0] ** 2,
    "of rows": lambda w: np.sum(wg.vmap(lambda v: np.max(w) * v)(w)),
}


@pytest.mark.parametrize("name", OF_VARIABLES)
def test_a_graph_decides_nothing_by_the_value_a_variable_had_when_it_was_built(name):
    f = OF_VARIABLES[name]
    w = wg.variable([1.0, 2.0, 3.0])
    value = wg.trace(lambda x: f(w) * x)(1.0)
    slope = wg.trace(lambda x: wg.gradients(f(w) * x, w))(1.0)
    inner = wg.trace(lambda x: wg.grad(f)(w) * x)(1.0)
    assert np.array_equal(w.numpy(), [1.0, 2.0, 3.0])
    for new in ([1.0, 2.0, 3.0], [2.0, 2.0, 2.0], [0.0, -1.0, 5.0]):
        with wg.no_grad():
            w[...] = new
        np.testing.assert_allclose(value(2.0), 2.0 * f(np.array(new)))
        np.testing.assert_allclose(slope(2.0), 2.0 * wg.grad(f)(np.array(new)))
        np.testing.assert_allclose(inner(2.0), 2.0 * wg.grad(f)(np.array(new)))


@pytest.mark.usefixtures("unconverted")
def test_a_branch_on_a_variable_is_refused_as_any_other():
    w = wg.variable([1.0, 2.0])
    with pytest.raises(wg.errors.TracedBranchError):
        wg.trace(lambda x: x if w[0] > 0 else -x)(1.0)
    with pytest.raises(wg.errors.TraceError, match="needs the value"):
        wg.trace(lambda x: x * w[0].item())(1.0)
    wg.trace(lambda x: (repr(w), f"{w}", x)[2])(1.0)
    assert w[0] > 0 and w[0].item() == 1.0
