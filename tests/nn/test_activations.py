"""Activation functions: large arguments, infinities, NaN; single precision; as modules.

Values are compared with PyTorch in test_against_torch.py; silu, gelu, mish and softsign are
operations, and are checked by the laws.
"""

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F
from wengert import errors, nn
from wengert.testing import check_grads
from wengert.testing.op_checks import check_traced

INF = np.inf
# The limits at -inf and inf of each function and of its derivative.
LIMITS = {
    "relu": (0, INF, 0, 1),
    "relu6": (0, 6, 0, 0),
    "leaky_relu": (-INF, INF, 0.01, 1),
    "elu": (-1, INF, 0, 1),
    "selu": (-1.7580993408473766, INF, 0, 1.0507009873554805),
    "celu": (-1, INF, 0, 1),
    "hardtanh": (-1, 1, 0, 0),
    "hardsigmoid": (0, 1, 0, 0),
    "hardswish": (0, INF, 0, 1),
    "softshrink": (-INF, INF, 1, 1),
    "hardshrink": (-INF, INF, 1, 1),
    "tanhshrink": (-INF, INF, 1, 1),
    "sigmoid": (0, 1, 0, 0),
    "log_sigmoid": (-INF, 0, 1, 0),
    "softplus": (0, INF, 0, 1),
    "softsign": (-1, 1, 0, 0),
    "tanh": (-1, 1, 0, 0),
    "silu": (0, INF, 0, 1),
    "mish": (0, INF, 0, 1),
    "gelu": (0, INF, 0, 1),
    "gelu_tanh": (0, INF, 0, 1),
}


def function(name):
    if name == "gelu_tanh":
        return lambda x: F.gelu(x, approximate="tanh")
    return getattr(F, name)


def slopes(f, x):
    ones = np.ones_like(x)
    (reverse,) = wg.vjp(f, x)[1](ones)
    return reverse, wg.jvp(f, (x,), (ones,))[1]


@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize("name", LIMITS)
def test_limits(name, dtype):
    """No overflow and no 0 * inf, also in branches that are not selected."""
    f, limits = function(name), LIMITS[name]
    x = np.array([-INF, INF], dtype)
    with np.errstate(all="raise", under="ignore"):
        assert f(x).dtype == dtype
        np.testing.assert_allclose(f(x), limits[:2], rtol=1e-6, atol=1e-300)
        for slope in slopes(f, x):
            assert slope.dtype == dtype
            np.testing.assert_allclose(slope, limits[2:], rtol=1e-6, atol=1e-300)
        far = np.array([-1e4, 1e4], dtype)
        want = np.where(np.isinf(limits[:2]), far * np.where(f(far) == 0, 0, 1), limits[:2])
        np.testing.assert_allclose(np.abs(f(far)) <= np.abs(want) * 1.1 + 1, True)
        for slope in slopes(f, far):
            np.testing.assert_allclose(slope, limits[2:], rtol=1e-6, atol=2e-8)
        assert np.all(np.isfinite(f(np.array([-1e30, 1e30], dtype))))
    with np.errstate(invalid="ignore"):
        assert np.isnan(f(np.array([np.nan], dtype))[0])


def test_in_graphs_and_native(rng):
    x = np.concatenate([rng.normal(size=9) * 3, [-INF, INF, 0.0, -1e4, 1e4]])

    def every(x):
        return [function(name)(x) for name in LIMITS]

    with np.errstate(invalid="ignore"):
        native, eager = wg.jit(every)(x), every(x)
        for name, a, b in zip(LIMITS, native, eager, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-300, err_msg=name)
    ordinary = rng.normal(size=(3, 4))
    check_traced(lambda x: sum(every(x)), [ordinary])


def test_second_order_where_smooth():
    names = "silu mish gelu gelu_tanh softsign tanhshrink elu celu selu softplus".split()
    points = np.array([-2.7, 0.8])
    check_grads(
        lambda x: sum(np.sum(function(n)(x) * (x + k)) for k, n in enumerate(names)),
        (points,),
        order=2,
        entries=False,
    )


def test_options(rng):
    x = rng.normal(size=(4, 6))
    np.testing.assert_allclose(F.softplus(x, beta=3.0), np.log1p(np.exp(3.0 * x)) / 3.0)
    np.testing.assert_array_equal(F.threshold(x, 0.3, 9.0), np.where(x > 0.3, x, 9.0))
    np.testing.assert_allclose(F.celu(x, 0.5), np.where(x > 0, x, 0.5 * np.expm1(x / 0.5)))
    np.testing.assert_array_equal(F.maxout(x, 3), x.reshape(4, 2, 3).max(axis=-1))
    np.testing.assert_array_equal(F.maxout(x, 2, axis=0), x.reshape(2, 2, 6).max(axis=1))
    drawn = F.rrelu(-np.ones(1000), training=True, rng=0)
    assert -1 / 3 <= drawn.min() < -0.3 and -0.15 < drawn.max() <= -1 / 8
    stream = nn.RReLU(rng=wg.random.Stream(1))
    f = wg.jit(stream)
    assert np.any(f(-np.ones(5)) != f(-np.ones(5)))


LAYERS = [
    *(nn.ReLU6(), nn.SiLU(), nn.Mish(), nn.SELU(), nn.Softsign(), nn.Hardsigmoid()),
    *(nn.Hardswish(), nn.Tanhshrink(), nn.LogSigmoid(), nn.LeakyReLU(0.2), nn.ELU(0.5)),
    *(nn.CELU(2.0), nn.GELU("tanh"), nn.GLU(), nn.Softplus(2.0), nn.Hardtanh(-0.5, 2.0)),
    *(nn.Threshold(0.1, 2.0), nn.Softshrink(0.2), nn.Hardshrink(0.1), nn.Maxout(2)),
    *(nn.Softmin(0), nn.PReLU(), nn.PReLU(4), nn.RReLU().eval()),
]


def _options(layer):
    return getattr(layer, "options", ())


@pytest.mark.parametrize("layer", LAYERS, ids=repr)
def test_layers_are_the_functions(layer, rng):
    x = rng.normal(size=(3, 4))
    name = type(layer).__name__.lower()
    f = getattr(F, {"leakyrelu": "leaky_relu"}.get(name, name))
    options = [layer.weight] if name == "prelu" else [getattr(layer, n) for n in _options(layer)]
    with wg.no_grad():
        np.testing.assert_array_equal(np.asarray(layer(x)), np.asarray(f(x, *options)))
    assert type(layer).__name__ in repr(layer)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: F.gelu(x, "erf"), "must be 'none' or 'tanh', got 'erf'"),
        (lambda x: F.hardtanh(x, 1.0, -1.0), "min_val=1.0 must be less than max_val=-1.0"),
        (lambda x: F.softshrink(x, -1.0), "lambd must not be negative, got -1.0"),
        (lambda x: F.glu(x), r"axis 1 of shape \(2, 3\) must have an even length"),
        (lambda x: F.maxout(x, 2), r"axis 1 of shape \(2, 3\) cannot be divided into groups of 2"),
        (lambda x: F.prelu(x, np.ones(2)), r"slopes of shape \(2,\) for x of shape \(2, 3\)"),
        (lambda x: F.celu(x, 0.0), "alpha must not be 0"),
        (lambda x: F.softplus(x, 0.0), "beta must be positive, got 0.0"),
        (lambda x: F.rrelu(x, 0.5, 0.1), "lower=0.5 must not be greater than upper=0.1"),
        (lambda x: wg.trace(lambda x: F.rrelu(x, training=True))(x), "Stream"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(errors.WengertError, match=rf"{words}.*test_activations\.py"):
        call(np.zeros((2, 3)))
