"""Series and DataFrames as arguments: results are those of pandas, with its labels, or errors."""

import operator
import pickle
import warnings

import numpy as np
import pytest

import wengert as wg
from wengert.errors import (
    ArgumentError,
    NotDifferentiableError,
    OperandError,
    ReadOnlyError,
    ShapeError,
    StructureError,
    TraceError,
)

pd = pytest.importorskip("pandas", reason="needs pandas")

S = pd.Series([1.5, -2.0, np.nan, 4.0, 0.5], index=list("abcde"), name="n")
W = pd.Series([1.0, 2.0, 3.0, 4.0, 5.0], index=list("abcde"), name="w")
D = pd.DataFrame({"p": [1.0, 2.0, 4.0], "q": [3.0, np.nan, 7.0]}, index=[10, 20, 30])
ROW = pd.Series([2.0, 3.0], index=["p", "q"])
COLUMN = pd.Series([1.0, 2.0, 3.0], index=[10, 20, 30])
TIMES = pd.Series([1.0, 3.0, 2.0], index=pd.date_range("2024-01-01", periods=3))
MULTI = pd.Series([1.0, 2.0, 3.0], index=pd.MultiIndex.from_tuples([("x", 1), ("x", 2), ("y", 1)]))
INTEGERS = pd.Series([3, 1, 2], index=list("abc"))

# Functions of one object: what they return with plain values is what they must return.
SERIES = {
    "operators": lambda s: 2 * s**2 - s / 3 + (1 - s) + abs(-s),
    "a Series on the right": lambda s: s * W,
    "a Series on the left": lambda s: W / s,
    "an array": lambda s: s + np.arange(5.0),
    "an array on the left": lambda s: np.arange(5.0) - s,
    "a list": lambda s: s * [1.0, 2.0, 3.0, 4.0, 5.0],
    "methods of operators": lambda s: s.mul(W).add(1.0).rsub(2.0),
    "ufuncs": lambda s: np.exp(np.sin(s)) + np.maximum(s, 0.0),
    "a ufunc of two": lambda s: np.hypot(s, W),
    "modulo": lambda s: s % 1.3 + s // 0.83,
    "sum": lambda s: s.sum(),
    "sum with NaN": lambda s: s.sum(skipna=False),
    "np.sum": lambda s: np.sum(s),
    "prod": lambda s: s.prod(),
    "mean": lambda s: s.mean(),
    "np.mean": lambda s: np.mean(s),
    "median": lambda s: s.median(),
    "np.median": lambda s: np.median(s),
    "max": lambda s: s.max() - s.min(),
    "std": lambda s: s.std(),
    "np.std": lambda s: np.std(s),
    "var": lambda s: s.var(ddof=0),
    "np.var": lambda s: np.var(s, ddof=1),
    "cumsum": lambda s: s.cumsum(),
    "cumprod": lambda s: s.cumprod(),
    "np.cumsum": lambda s: np.cumsum(s),
    "label": lambda s: s["b"] * s.loc["d"] * s.at["a"],
    "attribute": lambda s: s.a + s.d,
    "position": lambda s: s.iloc[-1] + s.iat[0],
    "labels": lambda s: s[["d", "a"]],
    "slice of labels": lambda s: s["b":"d"],
    "slice of positions": lambda s: s.iloc[1:4:2],
    "head": lambda s: s.head(2),
    "tail": lambda s: s.tail(3),
    "drop": lambda s: s.drop(["a", "b"]),
    "reindex": lambda s: s.reindex(["e", "z", "a"]),
    "shift": lambda s: s.shift(1),
    "diff": lambda s: s.diff(),
    "pct_change": lambda s: s.fillna(2.0).pct_change(),
    "pct_change of two": lambda s: s.fillna(2.0).pct_change(periods=2),
    "rolling sum": lambda s: s.rolling(2).sum(),
    "rolling mean": lambda s: s.fillna(1.0).rolling(3).mean(),
    "rolling moments": lambda s: s.fillna(1.0).rolling(3).std() + s.rolling(2).var(ddof=0),
    "rolling extremes": lambda s: s.rolling(2).max() - s.rolling(2).min() + s.rolling(1).median(),
    "rolling over more": lambda s: s.rolling(9).mean(),
    "returns": lambda s: s / s.shift(1) - 1.0,
    "rename": lambda s: s.rename("other"),
    "sort_index": lambda s: s.sort_index(ascending=False),
    "abs": lambda s: s.abs(),
    "fillna": lambda s: s.fillna(7.0),
    "where": lambda s: s.where(s > 0, -1.0),
    "mask": lambda s: s.mask(s > 0),
    "where of a Series": lambda s: s.where(W > 2.5, W),
    "clip": lambda s: s.clip(0.0, 2.0),
    "np.clip": lambda s: np.clip(s, 0.0, 2.0),
    "astype": lambda s: s.astype(np.float32),
    "any and all": lambda s: s.fillna(0.0).any() + 2 * s.all() + 4 * (s > 100).any(),
    "any of NaN": lambda s: (s * np.nan).any(),
    "fillna of a Series": lambda s: s.fillna(W),
    "comparison": lambda s: (s > 0.0) & s.notna(),
    "isna": lambda s: s.isna(),
    "dot": lambda s: s.fillna(0.0).dot(W),
    "matmul": lambda s: s.fillna(0.0) @ np.arange(5.0),
    "functions of arrays": lambda s: np.where(s > 0, s, 0.0),
    "np.dot": lambda s: np.dot(s.fillna(1.0), s.fillna(2.0)),
    "norm": lambda s: np.linalg.norm(s.fillna(1.0)),
    "concatenate": lambda s: np.concatenate([s, s]),
    "values": lambda s: s.to_numpy()[:2] * s.values[1:3],
    "np.asarray": lambda s: np.asarray(s).cumsum(),
    "index": lambda s: s * len(s.index) + s.size + s.ndim + s.shape[0],
    "iteration": lambda s: [x for x in s][3] + dict(s.items())["a"],
    "in": lambda s: s * ("a" in s) + ("z" in s),
    "isinstance": lambda s: s * isinstance(s, pd.Series),
    "nothing": lambda s: s,
}
TABLES = {
    "rolling": lambda d: d.rolling(2).mean(),
    "relative changes": lambda d: d.pct_change().iloc[:, 0],
    "operators": lambda d: 2 * d**2 - d / 3,
    "rows": lambda d: d * ROW,
    "a row on the left": lambda d: ROW - d,
    "columns": lambda d: d.mul(COLUMN, axis=0),
    "an array of a row": lambda d: d + np.array([1.0, 2.0]),
    "an array of a column": lambda d: d + np.array([[1.0], [2.0], [3.0]]),
    "an array": lambda d: np.ones((3, 2)) - d,
    "a table": lambda d: d * D + D,
    "centered": lambda d: (d - d.mean()) / d.std(),
    "sum": lambda d: d.sum(),
    "sum of rows": lambda d: d.sum(axis=1),
    "mean of columns": lambda d: d.mean(axis="columns"),
    "np.sum of an axis": lambda d: np.sum(d, axis=0),
    "max": lambda d: d.max(axis=1) - d.min(axis=1),
    "var": lambda d: d.var(),
    "median": lambda d: d.median(),
    "cumsum": lambda d: d.cumsum(axis=1),
    "column": lambda d: d["p"] * d.q,
    "columns of a list": lambda d: d[["q", "p"]],
    "row": lambda d: d.loc[20] + d.iloc[0],
    "element": lambda d: d.loc[10, "q"] * d.iloc[2, 0] * d.at[30, "p"],
    "block": lambda d: d.loc[10:20, ["p"]],
    "mask of rows": lambda d: d[np.array([True, False, True])],
    "transpose": lambda d: d.T,
    "shift": lambda d: d.shift(1).fillna(0.0),
    "product with a Series": lambda d: d.fillna(1.0) @ ROW,
    "product with an array": lambda d: d.fillna(1.0) @ np.array([1.0, 2.0]),
    "product of an array": lambda d: np.ones(3) @ d.fillna(1.0),
    "product of tables": lambda d: d.fillna(1.0).T @ d.fillna(2.0),
    "items": lambda d: sum(column.sum() for _, column in d.items()),
    "iteration": lambda d: sum(d[name].std() for name in d),
    "drop": lambda d: d.drop(columns="p"),
    "rename": lambda d: d.rename(columns={"p": "r"}),
    "where": lambda d: d.where(d > 2.5, 0.0),
    "mask": lambda d: d.where(d > 1.5).sum(),
    "ufuncs": lambda d: np.exp(-d),
    "nothing": lambda d: d,
}
CASES = [(S, f, f"Series: {name}") for name, f in SERIES.items()]
CASES += [(D, f, f"DataFrame: {name}") for name, f in TABLES.items()]
CASES += [
    (TIMES, lambda s: s["2024-01-02":] * 2, "dates"),
    (MULTI, lambda s: s["x"] * 2, "MultiIndex"),
    (MULTI, lambda s: s.unstack(), "unstack"),
    (INTEGERS, lambda s: s * 2 + s.sum() + s.cumsum(), "integers"),
    (INTEGERS, lambda s: s / 2 + s.std(), "integers divided"),
]


def same(found, expected):
    """Assert equal values, labels, names and classes."""
    assert type(found) is type(expected) or not isinstance(expected, pd.Series | pd.DataFrame)
    if isinstance(expected, pd.Series):
        pd.testing.assert_series_equal(found, expected, check_freq=False)
    elif isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected, check_freq=False)
    else:
        np.testing.assert_allclose(found, expected)


@pytest.mark.sample(14)
@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize(("x", "f"), [c[:2] for c in CASES], ids=[c[2] for c in CASES])
def test_compiled_functions_return_what_pandas_returns(x, f):
    same(wg.jit(f)(x), f(x))


def numeric_gradient(f, x):
    """Central differences of a scalar function of an object of pandas."""
    found = np.zeros(x.shape)
    for k in np.ndindex(x.shape):
        ends = []
        for step in (1e-6, -1e-6):
            values = x.to_numpy(copy=True)
            values[k] += step
            moved = x.copy()
            moved[:] = values
            ends.append(f(moved))
        found[k] = (ends[0] - ends[1]) / 2e-6
    return found


@pytest.mark.sample(8)
@pytest.mark.parametrize(("x", "f"), [c[:2] for c in CASES], ids=[c[2] for c in CASES])
def test_gradients_are_those_of_the_function_of_pandas(x, f):
    y = f(x)
    if np.asarray(y).dtype.kind != "f" or x.to_numpy().dtype.kind != "f":
        pytest.skip("no derivative")
    x = x.fillna(0.7)  # differences with NaN are NaN
    weight = np.cos(np.arange(np.size(f(x)))).reshape(np.shape(f(x)))

    def scalar(x):
        out = f(x)
        values = out.to_numpy() if isinstance(out, pd.Series | pd.DataFrame) else out
        return np.nansum(values * weight)

    found = wg.grad(scalar)(x)
    assert type(found) is type(x) and found.index.equals(x.index)
    expected = numeric_gradient(scalar, x)
    tolerance = 0.05 if np.asarray(y).dtype == np.float32 else 1e-6
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=tolerance, atol=tolerance)


def test_elements_that_are_nan_have_the_gradient_zero_in_sums():
    assert wg.grad(lambda s: s.sum())(S).tolist() == [1.0, 1.0, 0.0, 1.0, 1.0]
    gradient = wg.grad(lambda s: s.std())(S)
    assert gradient["c"] == 0.0
    np.testing.assert_allclose(
        gradient.dropna().to_numpy()[[0, 1, 3, 4]],
        wg.grad(lambda x: np.std(x, ddof=1))(S.dropna().to_numpy()),
    )


# ---- transformations -----------------------------------------------------------------------------


def test_gradient_of_a_table():
    gradient = wg.grad(lambda d: (d["p"] ** 2 * 3).sum())(D)
    expected = pd.DataFrame({"p": [6.0, 12.0, 24.0], "q": 0.0}, index=[10, 20, 30])
    pd.testing.assert_frame_equal(gradient, expected)


def test_value_auxiliary_data_and_containers():
    (value, aux), bars = wg.value_and_grad(
        lambda p, k: ((p["w"] * k).sum(), {"scaled": p["w"] * k, "word": "x"}), has_aux=True
    )({"w": W, "b": np.ones(2)}, 2.0)
    assert value == 30.0 and aux["word"] == "x"
    pd.testing.assert_series_equal(aux["scaled"], W * 2.0)
    pd.testing.assert_series_equal(bars["w"], W * 0.0 + 2.0)
    assert bars["b"].tolist() == [0.0, 0.0]
    both = wg.grad(lambda s, k: (s * k).sum(), argnums=(0, 1))(W, 2.0)
    assert both[1] == 15.0 and both[0].name == "w"
    by_name = wg.grad(lambda s, k: (s * k).sum(), argnames="k")(s=W, k=W)
    pd.testing.assert_series_equal(by_name, W)


def test_jacobians_are_tables():
    jacobian = wg.jacobian(lambda s: (s * s)[["b", "a"]])(W)
    assert jacobian.index.tolist() == ["b", "a"] and jacobian.columns.equals(W.index)
    assert jacobian.loc["a", "a"] == 2.0 and jacobian.loc["b", "a"] == 0.0
    for f in (wg.jacfwd, wg.jacrev):
        pd.testing.assert_frame_equal(f(lambda s: (s * s)[["b", "a"]])(W), jacobian)
    hessian = wg.hessian(lambda s: (s**3).sum())(W)
    pd.testing.assert_frame_equal(
        hessian, pd.DataFrame(np.diag(6.0 * W.to_numpy()), W.index, W.index)
    )
    of_array = wg.jacobian(lambda s: s.to_numpy()[:2])(W)
    assert of_array.shape == (2, 5) and of_array.columns.equals(W.index)
    by_array = wg.jacobian(lambda s, k: s * k.sum(), argnums=1)(W, np.ones(3))
    assert by_array.index.equals(W.index) and by_array.columns.tolist() == [0, 1, 2]
    assert wg.jacobian(lambda s: s * s)(MULTI).columns.equals(MULTI.index)


def test_results_with_labels_of_functions_of_arrays():
    x = np.array([1.0, 3.0, 2.0, 5.0, 4.0])
    f = lambda t: W * t  # noqa: E731
    compiled = wg.jit(f)
    for _ in range(2):
        same(compiled(x), f(x))
    assert compiled.cache_info().programs == 1
    same(wg.value_and_grad(lambda t: ((W * t).sum(), W * t), has_aux=True)(x)[0][1], f(x))
    y, pull = wg.vjp(f, x)
    same(y, f(x))
    assert pull(W)[0].tolist() == (W * W).tolist()
    same(wg.jvp(f, (x,), (x,))[1], f(x))
    assert wg.jacobian(f)(x).index.equals(W.index)
    with pytest.raises(NotDifferentiableError, match="a Series was returned"):
        wg.trace(f)(x)


@pytest.mark.parametrize(
    "call",
    [
        lambda: wg.jacobian(lambda d: d * 2)(D),
        lambda: wg.jacobian(lambda d: d["p"])(D),
        lambda: wg.hessian(lambda d: (d**2).sum().sum())(D),
        lambda: wg.jacobian(lambda s: np.outer(s, s))(W),
    ],
)
def test_jacobians_of_more_axes_are_refused(call):
    with pytest.raises(StructureError, match=r"Pass the values, x\.to_numpy\(\)"):
        call()


def test_tangents_and_cotangents():
    y, dot = wg.jvp(lambda s: s * s, (W,), (W,))
    pd.testing.assert_series_equal(dot, 2.0 * W * W)
    pd.testing.assert_series_equal(y, W * W)
    _, push = wg.linearize(lambda s: s["a"] * s, W)
    pd.testing.assert_series_equal(push(W.rename("direction")), 2.0 * W["a"] * W)
    y, pull = wg.vjp(lambda s: s * s, W)
    pd.testing.assert_series_equal(pull(W)[0], 2.0 * W * W)
    pd.testing.assert_series_equal(pull(np.ones(5))[0], 2.0 * W)
    pd.testing.assert_series_equal(wg.hvp(lambda s: (s**3).sum(), (W,), (W,)), 6.0 * W * W)
    with pytest.raises(StructureError, match="labels of a tangent are not those of its primal"):
        wg.jvp(lambda s: s, (W,), (W[::-1],))
    with pytest.raises(StructureError, match="labels of a cotangent are not those of its output"):
        pull(W.rename(index={"a": "z"}))
    _, pull, aux = wg.vjp(lambda s: (s.sum(), s), W, has_aux=True)
    pd.testing.assert_series_equal(aux, W)
    assert pull(2.0)[0].tolist() == [2.0] * 5


def test_nested_and_compiled_derivatives():
    f = lambda s: (s**3 * W).sum()  # noqa: E731
    first = 3.0 * W**3
    pd.testing.assert_series_equal(wg.grad(f)(W), first, check_names=False)
    for g in (wg.jit(wg.grad(f)), wg.grad(wg.jit(f)), wg.grad(wg.checkpoint(f))):
        pd.testing.assert_series_equal(g(W), wg.grad(f)(W))
    second = wg.grad(lambda s: (wg.grad(f)(s) * s).sum())(W)
    np.testing.assert_allclose(second.to_numpy(), 9.0 * W.to_numpy() ** 3)
    pd.testing.assert_frame_equal(wg.jit(wg.hessian(f))(W), wg.hessian(f)(W))
    inner = wg.grad(lambda s: wg.jacobian(lambda z: z**2)(s).sum().sum())(W)
    assert inner.tolist() == [2.0] * 5
    wg.check_grads(f, (W,))


# ---- compiled functions --------------------------------------------------------------------------


def test_labels_are_part_of_the_structure_of_a_call():
    f = wg.jit(lambda s: s / s.sum())
    same(f(W), W / W.sum())
    same(f(2.0 * W), W / W.sum())
    assert f.cache_info().traces == 1
    other = W.rename("v").rename(index={"a": "z"})
    same(f(other), other / other.sum())
    same(f(W), W / W.sum())  # the program of the first call, with its labels
    assert f.cache_info().traces == 2 and f.cache_info().programs == 2
    same(f(W.head(2)), W.head(2) / W.head(2).sum())
    f.clear_cache()
    assert f.cache_info().traces == 0


def test_labels_of_results_follow_captured_values():
    names = ["a", "b"]
    f = wg.jit(lambda s: s[names])
    same(f(W), W[["a", "b"]])
    names[1] = "d"
    same(f(W), W[["a", "d"]])
    names[1] = "b"
    same(f(W), W[["a", "b"]])


def test_static_arguments_methods_and_tensors():
    class Model:
        scale = 3.0

        @wg.jit
        def scaled(self, s):
            return s * self.scale

    same(Model().scaled(W), W * 3.0)
    f = wg.jit(lambda s, mode, k: s * k if mode == "times" else s + k, static_argnums=1)
    same(f(W, "times", 2.0), W * 2.0)
    same(f(W, "plus", 2.0), W + 2.0)
    of_static = wg.jit(lambda x, s: x * s.sum(), static_argnames="s")
    assert of_static(2.0, s=W) == 30.0
    t = wg.tensor(2.0, requires_grad=True)
    out = wg.jit(lambda s, k: (s * k).sum())(W, t)
    out.backward()
    assert t.grad == 15.0


def test_loops_of_compiled_functions():
    def decayed(s):
        for _ in range(50):
            s = s * 0.9 + 0.1
        return s

    same(wg.jit(decayed)(W), decayed(W))
    with pytest.raises(TraceError):
        wg.jit(lambda s: s * 2 if s.sum() > 0 else s)(W)


def test_arguments_that_cannot_be_traced_are_refused():
    for f in (wg.trace(lambda s: s.to_numpy() * 2), wg.explain):
        with pytest.raises(NotDifferentiableError, match=r"Pass its values, x\.to_numpy\(\)"):
            f(W) if f is not wg.explain else wg.explain(lambda s: s.sum())(W)
    with pytest.raises(StructureError, match="no batch axis"):
        wg.vmap(lambda s: s)(W)
    with pytest.raises(StructureError, match="no first axis"):
        wg.scan(lambda c, x: (c + x, None), 0.0, W)


class Derived(pd.Series):
    @property
    def _constructor(self):
        return Derived


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (pd.Series(["a", "b"]), "Series of dtype"),
        (pd.Series([1.0, 2.0], dtype="Float64"), r"Series of dtype Float64.*x\.astype\(float\)"),
        (pd.Series(["a", "b"], dtype="category"), "Series of dtype category"),
        (pd.Series([1.0, "a"], dtype=object), "Series of dtype object"),
        (pd.DataFrame({"a": [1.0], "b": [1]}), r"several dtypes \(float64, int64\)"),
        (pd.DataFrame({"a": [1.0], "b": ["x"]}), "several dtypes"),
        (pd.DataFrame({"a": [1.0], "b": np.float32([1.0])}), "several dtypes"),
        (pd.DataFrame(index=[1, 2]), "without columns"),
    ],
)
def test_objects_without_a_clear_meaning(x, message):
    with pytest.raises(NotDifferentiableError, match=message):
        wg.grad(lambda x: x.sum())(x)
    with pytest.raises(ArgumentError, match=message):
        wg.jit(lambda x: x.sum())(x)


def test_integers_and_derived_classes():
    with pytest.raises(NotDifferentiableError, match=r"int64\[3\].*x\.astype\(float\)"):
        wg.grad(lambda x: x.sum())(INTEGERS)
    for call in (wg.grad(lambda x: x.sum()), wg.jit(lambda x: x.sum())):
        with pytest.raises((NotDifferentiableError, ArgumentError), match="Derived"):
            call(Derived([1.0, 2.0]))


# ---- what is not supported raises ----------------------------------------------------------------


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda s: s.ewm(alpha=0.5).mean(), OperandError, r"Series\.ewm is not supported"),
        (lambda s: s.rolling(2, center=True).sum(), ArgumentError, "was given center"),
        (lambda s: s.rolling("2D").sum(), ArgumentError, "was given '2D'"),
        (lambda s: s.rolling(2).skew(), AttributeError, "no 'skew', only sum, mean"),
        (lambda s: pd.DataFrame({"a": W}).assign(b=s), OperandError, "hold plain numbers"),
        (lambda s: s.groupby(level=0).sum(), OperandError, r"Series\.groupby is not supported"),
        (lambda s: s.apply(np.sin), OperandError, "apply"),
        (lambda s: s * W.rename(index={"a": "z"}), ShapeError, r"x\.reindex\(y\.index\)"),
        (lambda s: s * W[::-1], ShapeError, "pandas would align them"),
        (lambda s: s + np.ones(3), ShapeError, "matched by position"),
        (lambda s: s @ W[::-1], ShapeError, "a product sums over"),
        (lambda s: np.flip(s), OperandError, r"numpy\.flip"),
        (lambda s: np.argsort(s), OperandError, r"numpy\.argsort"),
        (lambda s: s.shift(1, fill_value=0.0), ArgumentError, "fill_value"),
        (lambda s: s.sum(axis=1), ArgumentError, "axis=1"),
        (lambda s: np.add(s, 1.0, where=s > 0), OperandError, "where"),
        (lambda s: np.sum(s, keepdims=True), OperandError, "keepdims"),
        (lambda s: bool(s), OperandError, "ambiguous"),
        (lambda s: s.clip(W), ArgumentError, "takes numbers"),
        (lambda s: s.clip(np.nan), ArgumentError, "a bound is NaN"),
        (lambda s: s.fillna(W[::-1]), ShapeError, "pandas would align"),
        (lambda s: s.fillna({"a": 1.0}), OperandError, "a dict"),
        (lambda s: s * object(), OperandError, "object as operand"),
        (lambda s: s.nothing, AttributeError, "no attribute 'nothing'"),
        (lambda s: s["z"], KeyError, "z"),
        (lambda s: operator.setitem(s, "a", 1.0), ReadOnlyError, r"x\.where\(condition, other\)"),
        (lambda s: operator.setitem(s.loc, "a", 1.0), ReadOnlyError, "assignment to a Series"),
        (lambda s: setattr(s, "name", "x"), ReadOnlyError, "assignment to a Series"),
    ],
)
def test_unsupported_programs_raise(f, error, message):
    for transformed in (wg.grad(f), wg.jit(f)):
        with pytest.raises(error, match=message):
            transformed(W)


def test_values_that_are_taken_are_not_the_values_of_the_object():
    def f(s):
        values = s.to_numpy()
        values[0] = 100.0
        return s.sum() + 2.0 * values.sum()

    assert wg.jit(f)(W) == 15.0 + 2.0 * 114.0 and W["a"] == 1.0
    assert wg.grad(f)(W).tolist() == [1.0, 3.0, 3.0, 3.0, 3.0]


def test_elements_that_are_nan_are_left_out_where_they_are_known():
    x = pd.Series([1.0, 3.0, 2.0], index=list("abc"))
    returns = lambda x: (np.log(x / x.shift(1)).dropna() ** 2).sum()  # noqa: E731
    slope = wg.grad(returns)(x)
    for label in x.index:
        step = pd.Series({k: 1e-6 * (k == label) for k in x.index})
        expected = (returns(x + step) - returns(x - step)) / 2e-6
        np.testing.assert_allclose(slope[label], expected, rtol=1e-8, atol=1e-9)
    value, _ = wg.vjp(lambda d: d.dropna(), D)
    pd.testing.assert_frame_equal(value, D.dropna())
    with pytest.raises(TraceError, match="where"):
        wg.jit(returns)(x)


def test_masks():
    same(
        wg.grad(lambda d: d[d > 1.5].sum().sum())(D),
        pd.DataFrame({"p": [0.0, 1.0, 1.0], "q": [1.0, 0.0, 1.0]}, index=[10, 20, 30]),
    )
    f = lambda s: s[s > 1.5].sum()  # noqa: E731
    assert wg.grad(f)(W).tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]
    same(wg.jit(lambda s: s[W > 1.5])(W), W[W > 1.5])
    with pytest.raises(TraceError, match=r"x\.where\(mask\)"):
        wg.jit(f)(W)
    with pytest.raises(OperandError, match="% of integers"):
        wg.jit(lambda s: s % 2)(INTEGERS)
    with pytest.raises(OperandError, match="would be NaN"):
        wg.jit(lambda s: s.shift(1))(INTEGERS)


def test_a_mutated_argument_is_not_kept():
    s = W.copy()
    f = wg.jit(lambda s: s.sum())
    assert f(s) == 15.0
    s["a"] = 11.0
    assert f(s) == 25.0 and wg.grad(lambda s: (s**2).sum())(s)["a"] == 22.0


# ---- beside tensors ------------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "f",
    [
        lambda t: (W * t).std(),
        lambda t: (t * W).std(),
        lambda t: (t - W).var(),
        lambda t: np.multiply(W, t).std(),
        lambda t: np.multiply(t, W).std(),
        lambda t: (np.exp(W / 9) / t).std(),
        lambda t: (S * t).sum(),
        lambda t: (t[:3] @ D.fillna(1.0)).std(),
        lambda t: (D * t[:2]).std().sum(),
        lambda t: np.where(t < W, W, t).sum(),
        lambda t: np.dot(t, W),
    ],
)
def test_operators_with_captured_objects_have_the_meaning_of_pandas(f):
    x = np.array([1.1, 3.0, 2.5, 7.0, -1.0])
    for value in (wg.jit(f)(x), wg.value_and_grad(f)(x)[0]):
        np.testing.assert_allclose(value, f(x))
    wg.check_grads(f, (x,))
    np.testing.assert_allclose(wg.jit(wg.grad(f))(x), wg.grad(f)(x))


def test_pickled_derivatives():
    gradient = pickle.loads(pickle.dumps(wg.grad(np.sum)))
    assert gradient(W).tolist() == [1.0] * 5


def test_no_library_is_imported_before_it_is_needed():
    import subprocess
    import sys

    program = (
        "import sys, numpy as np, wengert as wg\n"
        "wg.grad(lambda x: (x * x).sum())(np.ones(3))\n"
        "assert not {'pandas', 'xarray', 'pint'} & sys.modules.keys()\n"
        "assert 'wengert._engine.labelled_arrays' not in sys.modules\n"
        "import pandas as pd\n"
        "wg.grad(lambda s: s.sum())(pd.Series([1.0]))\n"
        "assert not {'xarray', 'pint'} & sys.modules.keys()\n"
    )
    with warnings.catch_warnings():
        subprocess.run([sys.executable, "-c", program], check=True)
