"""Quantities as arguments: a derivative has the unit of the output divided by that of x."""

import warnings

import numpy as np
import pytest

import wengert as wg
from wengert.errors import NotDifferentiableError, StructureError

pint = pytest.importorskip("pint", reason="needs pint")

UNITS = pint.UnitRegistry()
X = UNITS.Quantity(np.array([1.0, 2.0, 3.0]), "m")
K = UNITS.Quantity(2.0, "N/m")


def energy(x, k):
    return (0.5 * k * x**2).sum()


def same(found, values, unit):
    assert found.units == UNITS.Unit(unit), found.units
    np.testing.assert_allclose(found.magnitude, values)


def test_units_of_gradients():
    value, (force, area) = wg.value_and_grad(energy, argnums=(0, 1))(X, K)
    same(value, 14.0, "N*m")
    same(force, [2.0, 4.0, 6.0], "N")
    same(area, 7.0, "m**2")
    same(wg.grad(lambda x: (x.to("cm") ** 2).sum())(X), [2e4, 4e4, 6e4], "cm**2/m")
    same(wg.grad(lambda x: np.exp(x / UNITS.m).sum())(X), np.exp([1.0, 2.0, 3.0]), "1/m")
    same(wg.grad(lambda x: np.sqrt((x * x).sum()))(X), np.arange(1.0, 4.0) / 14**0.5, "")
    same(wg.grad(lambda x: (x * x).sum().magnitude)(X), [2.0, 4.0, 6.0], "1/m")
    same(wg.grad(lambda t: t**2 * K)(3.0), 12.0, "N/m")  # of a plain number


def test_units_of_jacobians_and_hessians():
    same(wg.jacobian(lambda x: x**2)(X), np.diag([2.0, 4.0, 6.0]), "m")
    same(wg.hessian(energy)(X, K), 2.0 * np.eye(3), "N/m")
    mixed = wg.hessian(energy, argnums=(0, 1))(X, K)
    same(mixed[0][1], [1.0, 2.0, 3.0], "m")
    same(mixed[1][0], [1.0, 2.0, 3.0], "m")
    same(mixed[1][1], 0.0, "m**3/N")
    same(wg.hvp(lambda x: energy(x, K), (X,), (X,)), [2.0, 4.0, 6.0], "N")


def test_units_of_tangents():
    def f(x):
        return x**2

    same(wg.jvp(f, (X,), (X,))[1], [2.0, 8.0, 18.0], "m**2")
    same(wg.jvp(f, (X,), (UNITS.Quantity(np.ones(3), "cm"),))[1], [0.02, 0.04, 0.06], "m**2")
    same(wg.jvp(f, (X,), (UNITS.Quantity(np.ones(3), "m/s"),))[1], [2.0, 4.0, 6.0], "m**2/s")
    same(wg.jvp(f, (X,), (np.ones(3),))[1], [2.0, 4.0, 6.0], "m")
    speeds = UNITS.Quantity(np.ones(3), "m/s"), UNITS.Quantity(1.0, "N/m/ms")
    dot = wg.jvp(lambda x, k: k * x, (X, K), speeds)[1]
    same(dot, [1002.0, 2002.0, 3002.0], "N/s")
    with pytest.raises(StructureError, match="different dimensions"):
        wg.jvp(lambda x, k: k * x, (X, K), (speeds[0], K))


def test_units_of_cotangents():
    _, pull = wg.vjp(lambda x: x**2, X)
    same(pull(np.ones(3))[0], [2.0, 4.0, 6.0], "m")
    same(pull(UNITS.Quantity(np.ones(3), "J"))[0], [2.0, 4.0, 6.0], "J*m")
    _, pull = wg.vjp(lambda x: (x, x.to("cm")), X)
    same(pull((np.ones(3), np.ones(3)))[0], [2.0] * 3, "")  # 1 cm/m and 1 m/m, in m/m
    _, pull = wg.vjp(lambda x: (x, x**2), X)
    with pytest.raises(StructureError, match="different dimensions"):
        pull((np.ones(3), np.ones(3)))


def test_compiled_functions():
    f = wg.jit(energy)
    same(f(X, K), 14.0, "N*m")
    same(f(2 * X, K), 56.0, "N*m")
    assert f.cache_info().traces == 1
    same(f(X.to("cm"), K).to("N*m"), 14.0, "N*m")
    assert f.cache_info().traces == 2
    for g in (wg.jit(wg.grad(energy)), wg.grad(f)):
        same(g(X, K), [2.0, 4.0, 6.0], "N")
    same(wg.jit(lambda t: t * K)(2.0), 4.0, "N/m")


@pytest.mark.parametrize(
    ("f", "values", "unit"),
    [
        (lambda x: np.where(x > 1.5 * UNITS.m, x, 0 * x).sum(), [0.0, 1.0, 1.0], ""),
        (lambda x: np.dot(np.ones(3), x), [1.0] * 3, ""),
        (lambda x: np.concatenate([x, 2 * x]).sum(), [3.0] * 3, ""),
        (lambda x: np.max(x), [0.0, 0.0, 1.0], ""),
        (lambda x: np.linalg.norm(x) ** 2, [2.0, 4.0, 6.0], "m"),
    ],
)
def test_functions_of_numpy_keep_units(f, values, unit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(wg.grad(f)(X), values, unit)
        assert wg.jit(f)(X).units == f(X).units


def test_units_are_not_lost_beside_tensors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f in (lambda t: np.dot(t, X), lambda t: np.where(t > 2, t * UNITS.m, X).sum()):
            assert wg.grad(f)(np.array([1.0, 2.5, 3.0])).units == UNITS.m


def test_what_is_refused():
    hot = UNITS.Quantity(20.0, "degC")
    with pytest.raises(NotDifferentiableError, match=r"degree_Celsius.*x\.to_base_units\(\)"):
        wg.grad(lambda x: x.to("K") ** 2)(hot)
    same(wg.grad(lambda x: x**2)(hot.to_base_units()), 2 * 293.15, "K")
    with pytest.raises(NotDifferentiableError, match="is int64"):
        wg.grad(lambda x: x.sum())(UNITS.Quantity(np.arange(3), "m"))
    with pytest.raises(pint.DimensionalityError):
        wg.grad(lambda x: np.exp(x).sum())(X)


def test_units_and_labels():
    xr = pytest.importorskip("xarray")
    a = xr.DataArray(X, dims="place", coords={"place": list("abc")})
    gradient = wg.grad(lambda a: (a**2).sum())(a)
    assert gradient.dims == ("place",) and gradient.place.data.tolist() == list("abc")
    same(gradient.data, [2.0, 4.0, 6.0], "m")
    pd = pytest.importorskip("pandas")
    s = pd.Series([1.0, 2.0])
    assert wg.grad(lambda s: (s.sum() * K).magnitude)(s).tolist() == [2.0, 2.0]
    with pytest.raises(StructureError, match="pandas stores no units"):
        wg.grad(lambda s: s.sum() * K)(s)
