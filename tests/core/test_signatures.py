"""Functions whose annotations name what only type checkers import."""

import functools
import sys

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.user_functions import copy_annotations, signature_of
from wengert.compat import autograd
from wengert.scipy.optimize import curve_fit

X = np.arange(3.0)


def energy(x: int, scale: float = 2.0) -> float:
    return np.sum((x * scale) ** 2)


def exponential(t: int, a: int, b: int) -> int:
    return a * np.exp(-b * t)


def test_signatures_and_copies_of_annotations():
    assert list(signature_of(energy).parameters) == ["x", "scale"]
    assert list(signature_of(functools.partial(energy, X)).parameters) == ["scale"]

    def copy(x, scale):
        return x

    copy_annotations(copy, energy)
    assert copy.__annotations__ == {"x": int, "scale": float, "return": float}
    energy_with_own = functools.update_wrapper(lambda x: x, energy)
    energy_with_own.__annotations__ = {"x": str}
    copy_annotations(copy, energy_with_own)
    assert copy.__annotations__ == {"x": str}


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are evaluated by `def`")
def test_annotations_are_not_evaluated(monkeypatch):
    def unknown(format):  # as the compiler makes it
        if format > 2:
            raise NotImplementedError
        return {"x": OnlyForTypeCheckers}  # noqa: F821

    for f in (energy, exponential):
        monkeypatch.setattr(f, "__annotate__", unknown)
    with pytest.raises(NameError):
        _ = energy.__annotations__
    want = 8.0 * X
    np.testing.assert_array_equal(wg.jit(wg.grad(energy))(X), want)
    np.testing.assert_array_equal(wg.grad(energy, argnames="x")(X), want)
    np.testing.assert_array_equal(wg.grad(wg.custom_jvp(energy).fun)(X), want)
    np.testing.assert_array_equal(autograd.grad_named(energy, "x")(X), want)
    assert wg.trace(energy)(X)(X) == energy(X) == 20.0
    assert wg.jit(energy, static_argnames="scale")(X, scale=1.0) == 5.0
    for report in (wg.why(energy, X), wg.explain(energy)(X)):
        assert str(report)
    t = np.linspace(0.0, 1.0, 20)
    np.testing.assert_allclose(curve_fit(exponential, t, 2.0 * np.exp(-t))[0], [2.0, 1.0])


def test_annotations_of_captured_functions_are_not_evaluated(monkeypatch):
    total = [0.0]

    def scaled(v: int) -> int:
        total[0] = total[0] + np.sum(v)
        return v * 3.0

    def outer(x):
        return np.sum(scaled(x) * x)

    if sys.version_info >= (3, 14):
        monkeypatch.setattr(scaled, "__annotate__", lambda _: 1 / 0)
    compiled = wg.jit(outer)
    assert [compiled(X), compiled(X)] == [15.0, 15.0] and total[0] == 6.0
