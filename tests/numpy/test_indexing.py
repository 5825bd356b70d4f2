"""Indexing: all indices of NumPy, in reading and assignment; functions that index."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import wengert as wg
import wengert.numpy as wnp
from wengert.testing import check_grads

X = np.arange(24.0).reshape(2, 3, 4) + 1.0
I = np.array([1, 0, 1])  # noqa: E741
J = np.array([[0], [3]])
MASK = X[0] % 3 == 0

INDICES = {
    "int": 1,
    "negative": -1,
    "numpy int": np.int64(1),
    "tuple": (1, 2, 3),
    "nothing": (),
    "ellipsis": Ellipsis,
    "ellipsis int": (Ellipsis, 0),
    "none": None,
    "none and slice": (slice(None), None, slice(1, None)),
    "slice": slice(0, 1),
    "step": (slice(None), slice(None, None, 2)),
    "backwards": (Ellipsis, slice(None, None, -1)),
    "backwards step": (Ellipsis, slice(3, 0, -2)),
    "empty slice": slice(2, 2),
    "out of range slice": slice(0, 99),
    "list": [0, 1, 1],
    "empty list": [],
    "range": range(2),
    "ranges": (range(2), range(1, 3)),
    "tuples": ((0, 1), slice(None), (3, 0)),
    "array": I,
    "array of two axes": J % 2,
    "0-d array": np.array(1),
    "0-d array and slice": (slice(None), np.array(1)),
    "two arrays": (I, np.array([2, 2, 0])),
    "broadcast arrays": (slice(None), I, J),
    "split arrays": (I, slice(None), np.array([1, -1, 0])),
    "array and int": (I, 0),
    "array none array": (I, None, np.array([0, 1, 2])),
    "mask": X > 7,
    "mask of rows": np.array([True, False]),
    "mask of two axes": (slice(None), MASK),
    "mask of the first two": X[..., 0] > 4,
    "mask and array": (np.array([True, True]), [0, 2]),
    "mask of nothing": np.zeros_like(X, bool),
    "true": True,
    "false": False,
    "ix_": np.ix_([0, 1], [2, 0], [1, 1, 3]),
    "ix_ mask": np.ix_([True, False], [0, 2], [1]),
    "unsigned": np.array([0, 1], np.uint8),
    "slice of numpy ints": slice(np.int64(0), np.int32(1)),
}


@pytest.mark.parametrize("name", INDICES)
def test_reading(name):
    index = INDICES[name]
    want = X[index]
    got = wg.tensor(X)[index]
    assert type(got.node.value) is type(want)
    np.testing.assert_array_equal(got.numpy(), want)
    check_grads(lambda x: x[index] ** 2, (X,), order=2)
    counts = np.zeros_like(X)
    np.add.at(counts, index, 1.0)
    np.testing.assert_array_equal(wg.grad(lambda x: np.sum(x[index]))(X), counts)


@pytest.mark.parametrize("name", INDICES)
def test_assignment(name, rng):
    index = INDICES[name]
    shape = X[index].shape
    values = [rng.normal(size=shape), rng.normal(size=()), rng.normal(size=(1, *shape))]
    if shape:
        values.append(rng.normal(size=shape[1:]))
        values.append(rng.normal(size=shape).tolist())
    for v in values:

        def f(x, v):
            x = x * 1.0
            x[index] = v
            return x

        try:
            want = f(X, v)
        except (ValueError, TypeError):
            with pytest.raises((ValueError, TypeError)):
                f(wg.tensor(X), v)
            continue
        np.testing.assert_array_equal(f(wg.tensor(X), v).numpy(), want)
        if not isinstance(v, list):
            np.testing.assert_array_equal(f(wg.tensor(X), wg.tensor(v)).numpy(), want)
            check_grads(f, (X, np.asarray(v)), order=1)


def test_tensors_are_indices():
    x = wg.tensor(X, requires_grad=True)
    i, mask, one = wg.tensor(I), x > 7, wg.tensor(1)
    np.testing.assert_array_equal(x[i].numpy(), X[I])
    np.testing.assert_array_equal(x[mask].numpy(), X[X > 7])
    np.testing.assert_array_equal(x[one].numpy(), X[1])
    np.testing.assert_array_equal(x[:one, one].numpy(), X[:1, 1])
    np.testing.assert_array_equal(x[[one, 0]].numpy(), X[[1, 0]])
    np.testing.assert_array_equal(x[i, wg.tensor([0, 1, 2])].numpy(), X[I, [0, 1, 2]])
    np.testing.assert_array_equal(wg.tensor(X)[np.argmax(wg.tensor([0.0, 1.0]))].numpy(), X[1])
    assert X[one.item()].shape == X[wg.tensor(1)].shape  # a plain array takes it by __index__
    order = wg.grad(lambda x: np.sum(x[np.argsort(x)] * np.arange(3.0)))(np.array([3.0, 1.0, 2.0]))
    np.testing.assert_array_equal(order, [2.0, 0.0, 1.0])


@pytest.mark.parametrize(
    "index", [5, -3, (0, 3), (0, 0, 4), [0, 9], (slice(None), [-4]), (0, 0, 0, 0),
              np.zeros((3, 3), bool), ([0, 1], [0, 1, 2]), 1.0, "a", (Ellipsis, Ellipsis)]
)  # fmt: skip
def test_bad_indices_are_numpys_errors(index):
    x = wg.tensor(X, requires_grad=True)
    with pytest.raises(IndexError) as theirs:
        X[index]
    with pytest.raises(IndexError) as ours:
        x[index]
    assert str(theirs.value) == str(ours.value)
    with pytest.raises(IndexError):
        x[index] = 0.0


def test_floating_tensors_are_no_indices():
    with pytest.raises((TypeError, IndexError), match=r"astype\(int\)"):
        wg.tensor(X)[wg.tensor([1.0])]


def test_last_write_to_a_repeated_index_wins():
    def f(x, v):
        x = x * 1.0
        x[[0, 1, 0]] = v
        return x

    got, pull = wg.vjp(f, np.zeros(3), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(got, [3.0, 2.0, 0.0])
    x_bar, v_bar = pull(np.array([10.0, 20.0, np.nan]))
    np.testing.assert_array_equal(x_bar, [0.0, 0.0, np.nan])
    np.testing.assert_array_equal(v_bar, [0.0, 20.0, 10.0])


def test_values_of_other_dtypes_are_cast_as_in_numpy():
    whole = wg.tensor([1, 2, 3])
    whole[0] = 7.9
    np.testing.assert_array_equal(whole.numpy(), [7, 2, 3])
    single = wg.tensor(np.float32([1, 2]))
    single[0] = np.float64(0.1)
    assert single.dtype == np.float32
    flags = wg.tensor([True, False])
    flags[1] = 5
    assert flags.dtype == bool and flags.numpy().all()
    with pytest.raises(TypeError, match="astype"):
        whole[0] = wg.tensor(1.5, requires_grad=True)
    with pytest.raises(ValueError):
        single[0] = [1.0, 2.0]
    z = wg.tensor([1j, 2j], requires_grad=True)
    y = z * 1.0
    y[0] = 3.0
    np.sum(np.abs(y) ** 2).backward()
    np.testing.assert_array_equal(z.grad.numpy(), [0, 4j])


@given(data=st.data())
def test_any_index(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=4))
    x = np.arange(float(np.prod(shape))).reshape(shape)
    basic = hnp.basic_indices(shape, allow_newaxis=True, max_dims=5)
    fancy = hnp.integer_array_indices(shape)
    mask = hnp.arrays(bool, shape)
    index = data.draw(st.one_of(basic, fancy, mask))
    want = x[index]
    np.testing.assert_array_equal(wg.tensor(x)[index].numpy(), want)
    t = np.linspace(1.0, 2.0, max(want.size, 1))[: want.size].reshape(want.shape)
    expected = np.zeros(shape)
    np.add.at(expected, index, t)
    for f in (lambda x: np.sum(x[index] * t), lambda x: np.sum(wg.tensor(t) * x[index])):
        np.testing.assert_allclose(wg.grad(f)(x), expected)
    hess = wg.grad(lambda x: np.sum(wg.grad(lambda x: np.sum(x[index] ** 2))(x) * expected))(x)
    counts = np.zeros(shape)
    np.add.at(counts, index, 1.0)
    np.testing.assert_allclose(hess, 2 * counts * expected)

    def g(x, v):
        y = x * 1.0
        y[index] = v
        return y

    values, pull = wg.vjp(g, x, t)
    plain = g(x, t)
    np.testing.assert_array_equal(values, plain)
    u = np.linspace(-1.0, 1.0, x.size).reshape(shape)
    x_bar, v_bar = pull(u)
    np.testing.assert_array_equal(x_bar, np.where(counts > 0, 0.0, u))
    assert np.sum(v_bar) == pytest.approx(np.sum(u[counts > 0]))


# ---- functions ---------------------------------------------------------------------------------

V = np.array([0.5, -1.5, 2.5, -3.5])
CASES = {
    "take": lambda xp, x, v: xp.take(x, [3, 0, 0]),
    "take axis": lambda xp, x, v: xp.take(x, [[2, 0], [1, 1]], axis=1),
    "take one": lambda xp, x, v: xp.take(x, 1, axis=-1),
    "take wrap": lambda xp, x, v: xp.take(v, [5, -1, 9], mode="wrap"),
    "take clip": lambda xp, x, v: xp.take(v, [5, -1, 1], mode="clip"),
    "take_along_axis": lambda xp, x, v: xp.take_along_axis(x, np.argsort(-X, axis=1)[:, :2], 1),
    "take_along_axis flat": lambda xp, x, v: xp.take_along_axis(v, np.array([1, 1]), None),
    "compress": lambda xp, x, v: xp.compress([True, False, True], x, axis=1),
    "compress flat": lambda xp, x, v: xp.compress([False, True, True], x),
    "extract": lambda xp, x, v: xp.extract(X > 5, x),
    "choose": lambda xp, x, v: xp.choose(np.array([2, 0, 1, 0]), [v, x[0, 0], 3.0 * v]),
    "choose clip": lambda xp, x, v: xp.choose(np.array([9, -1, 1, 0]), [v, x[0, 0]], mode="clip"),
    "choose broadcast": lambda xp, x, v: xp.choose(np.array([[1], [0]]), [v, x[0, 0]]),
    "select": lambda xp, x, v: xp.select([V > 2, V > 0], [v * 2, v**2], default=-1.0),
    "select first": lambda xp, x, v: xp.select([V > 0, V > -2], [v, x[0]], default=0.0),
    "where": lambda xp, x, v: xp.where(V > 0, v, x),
    "where numbers": lambda xp, x, v: xp.where(V > 0, v, 0.0),
    "piecewise": lambda xp, x, v: xp.piecewise(
        v, [V < -2, V > 1], [lambda t: t**2, 3.0, xp.negative]
    ),
    "meshgrid": lambda xp, x, v: xp.meshgrid(v, x[0, 0, :2]),
    "meshgrid ij": lambda xp, x, v: xp.meshgrid(v, x[0, 0], v[:2], indexing="ij"),
    "meshgrid sparse": lambda xp, x, v: xp.meshgrid(v, x[0, 0], sparse=True),
    "apply_along_axis": lambda xp, x, v: xp.apply_along_axis(lambda t: t[:2] * t[-1], 1, x),
    "apply_along_axis number": lambda xp, x, v: xp.apply_along_axis(lambda t: t.sum(), 0, x),
    "apply_along_axis matrix": lambda xp, x, v: xp.apply_along_axis(lambda t: xp.outer(t, t), 1, x),
    "apply_over_axes": lambda xp, x, v: xp.apply_over_axes(xp.sum, x, [0, -1]),
}  # fmt: skip


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", CASES)
def test_functions_agree_with_numpy(name, agree):
    agree(CASES[name], X, V)


def put(xp, x, v):
    xp.put(x, [0, 5, 0, -1], v)


def put_cycles(xp, x, v):
    xp.put(x, [[1, 2], [3, 30]], v[:2], mode="wrap")


def put_clip(xp, x, v):
    xp.put(x, [99, -99], v[:2], mode="clip")


def put_along_axis(xp, x, v):
    xp.put_along_axis(x, np.argmax(X, axis=1, keepdims=True), v, axis=1)


def put_along_axis_flat(xp, x, v):
    xp.put_along_axis(x, np.array([1, 7, 2, 3]), v, axis=None)


def place(xp, x, v):
    xp.place(x, X % 2 == 0, v[:3])


def putmask(xp, x, v):
    xp.putmask(x, X % 2 == 0, v[:3])


def copyto(xp, x, v):
    xp.copyto(x, v)


def copyto_where(xp, x, v):
    xp.copyto(x, v, where=X > 5)


def methods(xp, x, v):
    x.put([3, 4], v[:2])
    x[0].fill(v[3])
    x[1, 0].sort()
    x.flat[2:4] = v[:2]
    x.flat[-1] = v[0]


@pytest.mark.parametrize(
    "program",
    [put, put_cycles, put_clip, put_along_axis, put_along_axis_flat, place, putmask, copyto,
     copyto_where, methods],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_writing_functions_agree_with_numpy(program, agree):
    def f(xp, x, v):
        y = x * 1.0
        program(xp, y, v)
        return y

    agree(f, X, V)


def test_writing_recorded_values_to_plain_arrays_is_an_error():
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    for write in (
        lambda: np.put(np.zeros(3), [0, 1], x),
        lambda: np.copyto(np.zeros(2), x),
        lambda: np.place(np.zeros(2), [True, True], x),
        lambda: np.put_along_axis(np.zeros(2), np.array([0, 1]), x, 0),
        lambda: np.putmask(np.zeros(2), [True, True], x),
    ):
        with pytest.raises(TypeError, match=r"wengert\.tensor"):
            write()
    target = np.zeros(2)
    np.copyto(target, x.detach())
    np.testing.assert_array_equal(target, [1.0, 2.0])


def test_where_with_only_a_condition():
    for got in (np.where(wg.tensor(X) > 20), wnp.where(wg.tensor(X) > 20)):
        for g, w in zip(got, np.where(X > 20), strict=True):
            np.testing.assert_array_equal(np.asarray(g), w)
    with pytest.raises(ValueError):
        np.where(wg.tensor(X) > 20, 1.0)


def test_errors_of_functions():
    x = wg.tensor(V, requires_grad=True)
    for bad in (
        lambda: np.take(x, [4]),
        lambda: np.put(x * 1.0, [4], 0.0),
        lambda: np.take(x, 0, axis=1),
    ):
        with pytest.raises(IndexError):
            bad()
    for bad in (
        lambda: np.select([], [x]),
        lambda: np.choose([0, 0, 0, 5], [x, x]),
        lambda: np.take_along_axis(x, np.zeros((1, 1), int), 0),
        lambda: wnp.meshgrid(x, indexing="ba"),
        lambda: np.piecewise(x, [V > 0], [1.0, 2.0, 3.0]),
        lambda: np.place(x * 1.0, V > 0, []),
    ):
        with pytest.raises(ValueError):
            bad()
    with pytest.raises(TypeError):
        np.select([1], [x])
    with pytest.raises(TypeError, match="same_kind"):
        np.copyto(wg.tensor([1, 2]), 1.5)


def test_vectorize(agree):
    agree(lambda xp, x, v: wnp.vectorize(lambda a, b: a * b if a > b else a - b)(x, v), X, V)
    add = wnp.vectorize(lambda a, b=2.0: (a, a + b))
    first, second = add(wg.tensor(V), b=wg.tensor(1.0))
    np.testing.assert_array_equal(first.numpy(), V)
    np.testing.assert_array_equal(second.numpy(), V + 1)
    scaled = wnp.vectorize(lambda a, table: a * table[0], excluded={1})
    np.testing.assert_array_equal(scaled(wg.tensor(V), [3.0]).numpy(), 3 * V)
    with pytest.raises(ValueError, match="signature"):
        wnp.vectorize(lambda a: a, signature="(n)->(n)")(wg.tensor(V))


def test_branch_not_taken_has_zero_gradient():
    got = wg.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)))(np.array([4.0, 0.0]))
    np.testing.assert_array_equal(got, [0.25, 0.0])
    got = wg.grad(lambda x: np.sum(np.select([x > 0], [np.sqrt(x)])))(np.array([4.0, 0.0]))
    np.testing.assert_array_equal(got, [0.25, 0.0])


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "window, axis", [((2, 2), None), (2, 0), (2, -1), ((1, 3), (1, 0)), ((2, 2), (1, 1)), (0, 0)]
)
def test_sliding_windows(window, axis):
    x = np.arange(12.0).reshape(3, 4) ** 2
    view = np.lib.stride_tricks.sliding_window_view
    want = view(x, window, axis)
    for run in (lambda f: f(wg.tensor(x)).numpy(), lambda f: wg.trace(f)(x)(x)):
        np.testing.assert_array_equal(run(lambda x: view(x, window, axis)), want)
    weights = np.arange(1.0, 1 + want.size).reshape(want.shape)
    wg.check_grads(lambda x: np.sum(weights * view(x, window, axis) ** 2), (x,))
    with pytest.raises(wg.errors.ShapeError):
        view(wg.tensor(x), 5, 0)
    with pytest.raises(wg.errors.ShapeError):
        view(wg.tensor(x), (2, 2, 2))


NONE = np.zeros(0, int)
FROM_NOTHING = {
    "repeat": lambda x: np.repeat(x, []),
    "repeat along an axis": lambda x: x.repeat([], axis=0),
    "repeat an array of counts": lambda x: np.repeat(x, NONE),
    "take, wrapped": lambda x: np.take(x, NONE, mode="wrap", axis=0),
    "take, clipped": lambda x: x.take(NONE, axis=0, mode="clip"),
    "take a list": lambda x: np.take(x, [], mode="wrap"),
    "insert": lambda x: np.insert(x, [], []),
    "delete": lambda x: np.delete(x, [], axis=0),
    "put": lambda x: np.put(x * 1.0, NONE, 1.0, mode="wrap") or x,
    "maximum.at": lambda x: np.maximum.at(x * 1.0, NONE, 1.0) or x,
}


@pytest.mark.parametrize("name", FROM_NOTHING)
def test_nothing_is_chosen_from_nothing(name):
    f = FROM_NOTHING[name]
    for x in (np.zeros(0), np.zeros((0, 3))):
        wanted = f(x)
        for found in (f(wg.tensor(x)).numpy(), wg.trace(f)(x)(x)):
            assert found.shape == wanted.shape and found.dtype == wanted.dtype
        assert wg.grad(lambda x: np.sum(f(x)))(x).shape == x.shape


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_something_is_chosen_from_nothing(mode):
    for f in (
        lambda x: np.take(x, [0], mode=mode, axis=0),
        lambda x: np.put(x * 1.0, [0], 1.0, mode=mode),
    ):
        for run in (f, lambda x, f=f: f(wg.tensor(x)), lambda x, f=f: wg.jit(f)(x)):
            with pytest.raises(IndexError):
                run(np.zeros(0))


def test_counts_must_be_integers():
    for f in (np.repeat, np.insert, np.delete):
        more = ([],) if f is np.insert else ()
        for x in (np.zeros(0), wg.tensor(np.zeros(0))):
            with pytest.raises((TypeError, IndexError)):
                f(x, np.zeros(0), *more)


def test_ufunc_at_of_a_symbolic_size():
    def f(x):
        y = x * 1.0
        np.maximum.at(y, [0, 0], [1.0, 5.0])
        np.multiply.at(y, (slice(None),), 2.0)
        return y

    graph = wg.trace(f)(wg.spec(("n",)))
    for n in (1, 4):
        np.testing.assert_array_equal(graph(np.arange(1.0 * n)), f(np.arange(1.0 * n)))


def test_pandas_objects_as_indices():
    pandas = pytest.importorskip("pandas")
    x = np.array([1.0, 2.0, 3.0])
    for part in (pandas.Series([True, False, True]), pandas.Series([2, 0]), pandas.Index([0, 2])):

        def read(x, part=part):
            return np.sum(x[part] ** 2)

        def written(x, part=part):
            y = 1.0 * x
            y[part] = 2.0 * x[part]
            return np.sum(y**2)

        for f, right in ((read, [2.0, 0.0, 6.0]), (written, [8.0, 4.0, 24.0])):
            assert wg.grad(f)(x).tolist() == right
            assert wg.jit(wg.grad(f))(x).tolist() == right
            assert np.diag(wg.hessian(f)(x)).tolist() == (np.array(right) / x).tolist()
            assert wg.jit(wg.hessian(f))(x).shape == (3, 3)


def test_a_pandas_mask_that_is_modified_later():
    pandas = pytest.importorskip("pandas")

    def f(x):
        mask = pandas.Series([True, False, True])
        y = x[mask]
        mask[:] = False
        return np.sum(y**2)

    assert wg.grad(f)(np.array([1.0, 2.0, 3.0])).tolist() == [2.0, 0.0, 6.0]
