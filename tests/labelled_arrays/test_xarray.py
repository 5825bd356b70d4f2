"""DataArrays as arguments: in a function they hold tensors, and results have dims and coords."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ArgumentError, ConversionError, NotDifferentiableError, StructureError

xr = pytest.importorskip("xarray", reason="needs xarray")

A = xr.DataArray(
    [[1.0, 2.0, np.nan], [4.0, 5.0, 7.0]],
    dims=("time", "place"),
    coords={"time": [10, 20], "height": 5.0},
    name="temperature",
    attrs={"units": "K"},
)
FUNCTIONS = {
    "elementwise": lambda a: 2 * a**2 - np.exp(-a),
    "sum": lambda a: a.sum(),
    "mean of a dim": lambda a: a.mean("time"),
    "std": lambda a: a.std("place", ddof=1),
    "max": lambda a: a.max("time"),
    "sel": lambda a: a.sel(time=20) * a.isel(time=0),
    "broadcast": lambda a: a * a.mean("place"),
    "where": lambda a: a.where(a > 2.5, 0.0),
    "rolling": lambda a: a.rolling(time=2).mean(),
    "groupby": lambda a: a.groupby("time").mean(),
    "cumsum": lambda a: a.cumsum("place"),
    "diff": lambda a: a.diff("time"),
    "shift": lambda a: a.shift(time=1),
    "transpose": lambda a: a.T,
    "np.mean": lambda a: np.mean(a),
    "dot": lambda a: a.fillna(0.0).dot(a.fillna(1.0), dim="place"),
    "data": lambda a: np.nansum(a.data, axis=0),
    "concat": lambda a: xr.concat([a, 2 * a], "time"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_values_and_gradients(f):
    expected = f(A)
    found = wg.jit(f)(A)
    if isinstance(expected, xr.DataArray):
        xr.testing.assert_allclose(found, expected)
        assert found.name == expected.name and found.attrs == expected.attrs
    else:
        np.testing.assert_allclose(found, expected)
    full = A.fillna(3.0)

    def scalar(a):
        out = f(a)
        return np.nansum(out.data if isinstance(out, xr.DataArray) else out)

    gradient = wg.grad(scalar)(full)
    assert isinstance(gradient, xr.DataArray) and gradient.dims == A.dims
    assert gradient.coords.equals(A.coords)
    wg.check_grads(lambda x: scalar(full.copy(data=x)), (full.to_numpy(),))
    np.testing.assert_allclose(
        gradient.data, wg.grad(lambda x: scalar(full.copy(data=x)))(full.to_numpy())
    )


def test_gradients_keep_dims_coordinates_and_name_but_no_attributes():
    value, gradient = wg.value_and_grad(lambda a: (a**2).sum())(A)
    assert isinstance(value, xr.DataArray) and value.shape == () and value == 95.0
    assert gradient.name == "temperature" and gradient.attrs == {}
    assert gradient.coords["height"] == 5.0 and gradient.sel(time=20).data[2] == 14.0
    assert gradient.data[0, 2] == 0.0  # NaN is skipped
    assert isinstance(gradient.data, np.ndarray)


def test_jacobians_have_the_dims_of_output_and_argument():
    f = lambda a: (a**2).sum("place").rename(time="end")  # noqa: E731
    jacobian = wg.jacobian(f)(A)
    assert jacobian.dims == ("end", "time", "place") and jacobian.end.data.tolist() == [10, 20]
    assert float(jacobian.sel(end=10, time=10).isel(place=1)) == 4.0
    with pytest.raises(StructureError, match=r"share the dims time.*y\.rename\(time='out'\)"):
        wg.jacobian(lambda a: a.sum("place"))(A)
    with pytest.raises(StructureError, match=r"x\.to_numpy\(\)"):
        wg.hessian(lambda a: (a**2).sum())(A)
    with pytest.raises(StructureError, match="without dims"):
        wg.jacobian(lambda a: a.data[0])(A)
    by_number = wg.jacobian(lambda k: A * k)(2.0)
    xr.testing.assert_equal(by_number, A.drop_attrs())


def test_tangents_and_cotangents():
    y, dot = wg.jvp(lambda a: a * a, (A,), (A,))
    xr.testing.assert_allclose(dot, 2.0 * A * A)
    assert y.attrs == (A * A).attrs
    _, pull = wg.vjp(lambda a: a.mean("time"), A.fillna(1.0))
    assert pull(xr.DataArray(np.ones(3), dims="place"))[0].data.tolist() == [[0.5] * 3] * 2
    with pytest.raises(StructureError, match="labels of a tangent"):
        wg.jvp(lambda a: a, (A,), (A.T,))
    with pytest.raises(StructureError, match="labels of a tangent"):
        wg.jvp(lambda a: a, (A,), (A.assign_coords(time=[10, 30]),))


def test_compiled_functions():
    f = wg.jit(lambda a: a - a.mean("time"))
    xr.testing.assert_allclose(f(A), A - A.mean("time"))
    xr.testing.assert_allclose(f(2 * A), 2 * A - 2 * A.mean("time"))
    assert f.cache_info().traces == 1
    other = A.assign_coords(time=[1, 2])
    xr.testing.assert_allclose(f(other), other - other.mean("time"))
    assert f(other).time.data.tolist() == [1, 2] and f.cache_info().traces == 2
    g = lambda a: (a.sel(time=10) * a.sel(time=20)).sum()  # noqa: E731
    for h in (wg.jit(wg.grad(g)), wg.grad(wg.jit(g))):
        xr.testing.assert_allclose(h(A), wg.grad(g)(A))


def test_what_is_refused():
    with pytest.raises(NotDifferentiableError, match=r"DataArray of object.*x\.astype\(float\)"):
        wg.grad(lambda a: a.sum())(A.astype(object))
    with pytest.raises(ArgumentError, match="DataArray of object"):
        wg.jit(lambda a: a.sum())(A.astype(object))
    with pytest.raises(NotDifferentiableError, match="is int64"):
        wg.grad(lambda a: a.sum())(A.fillna(0).astype(int))
    with pytest.raises(NotDifferentiableError, match=r"a Dataset.*dict\(x\.data_vars\)"):
        wg.grad(lambda a: a.temperature.sum())(A.to_dataset())
    with pytest.raises(ArgumentError, match=r"a Dataset.*dict\(x\.data_vars\)"):
        wg.jit(lambda a: a.temperature.sum())(A.to_dataset())
    gradient = wg.grad(lambda a: a["temperature"].sum())(dict(A.to_dataset().data_vars))
    xr.testing.assert_equal(gradient["temperature"], wg.grad(lambda a: a.sum())(A))
    for f in (lambda a: np.where(a > 2, a, 0.0).sum(), lambda a: float(a.sum())):
        with pytest.raises(ConversionError):
            wg.grad(f)(A)


def test_the_result_of_a_function_of_arrays():
    weights = xr.DataArray([1.0, 2.0], dims="x")
    f = lambda t: weights * t  # noqa: E731
    x = np.array([3.0, 4.0])
    xr.testing.assert_identical(wg.jit(f)(x), f(x))
    y, pull = wg.vjp(f, x)
    assert y.dims == ("x",) and pull(weights)[0].tolist() == [1.0, 4.0]
    assert wg.grad(lambda t: (weights * t).sum())(x).tolist() == [1.0, 2.0]
