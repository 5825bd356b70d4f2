"""Stabilising rules are at least as accurate as what they replace; mpmath is the judge."""

import mpmath as mp
import numpy as np
import pytest
from wengert.rewrite import simplify

import wengert as wg
from wengert._engine.ops.elementwise.exponential import sigmoid
from wengert.nn import functional as F

TINY = [1e-300, 1e-17, 1e-9, 1e-4]
EASY = [0.01, 0.3, 0.9, 1.7, 3.0, 6.0]
HUGE = [20.0, 40.0, 100.0, 700.0, 750.0, 1e4]
POSITIVE = [*TINY, *EASY, *HUGE]
REAL = [*POSITIVE, *(-x for x in POSITIVE)]

# name: function, the same in mpmath, points
ONE = {
    "log(1 + x)": (lambda x: np.log(1 + x), lambda x: mp.log1p(x), POSITIVE),
    "log(1 - x)": (lambda x: np.log(1 - x), lambda x: mp.log1p(-x), [*TINY, 0.1, 0.9]),
    "exp(x) - 1": (lambda x: np.exp(x) - 1, mp.expm1, [x for x in REAL if x < 700]),
    "1 - exp(x)": (lambda x: 1 - np.exp(x), lambda x: -mp.expm1(x), [x for x in REAL if x < 700]),
    "log(exp(x))": (lambda x: np.log(np.exp(x)), lambda x: x, REAL),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), lambda x: 1 / (1 + mp.exp(-x)), REAL),
    "the other sigmoid": (
        lambda x: np.exp(x) / (1 + np.exp(x)),
        lambda x: 1 / (1 + mp.exp(-x)),
        REAL,
    ),
    "1 - sigmoid": (
        lambda x: 1 - 1 / (1 + np.exp(-x)),
        lambda x: 1 / (1 + mp.exp(x)),
        REAL,
    ),
    "log(sigmoid)": (lambda x: np.log(sigmoid(x)), lambda x: -mp.log1p(mp.exp(-x)), REAL),
    "log(1 - sigmoid)": (
        lambda x: np.log(1 - sigmoid(x)),
        lambda x: -mp.log1p(mp.exp(x)),
        REAL,
    ),
    "log(1 + exp(x))": (lambda x: np.log(1 + np.exp(x)), lambda x: mp.log1p(mp.exp(x)), REAL),
    "sqrt(x * x)": (lambda x: np.sqrt(x * x), abs, [*REAL, 1e200, -1e-200]),
    "sqrt(x ** 2)": (lambda x: np.sqrt(x**2), abs, [*REAL, 1e200, -1e-200]),
    "x ** -1": (lambda x: x**-1, lambda x: 1 / x, REAL),
    "x ** 2": (lambda x: x**2, lambda x: x * x, [x for x in REAL if abs(x) > 1e-150]),
    "log1p(expm1(x))": (lambda x: np.log1p(np.expm1(x)), lambda x: x, REAL),
}


def errors(f, truth, x):
    """The relative error at each point."""
    with np.errstate(all="ignore"):
        values = np.asarray(f(x))
    out = []
    for value, point in zip(values, x, strict=True):
        with mp.workdps(60):
            wanted = truth(mp.mpf(float(point)))
            if float(wanted) == 0.0 and np.isfinite(value) is not False and value == 0.0:
                out.append(0.0)
            elif not np.isfinite(value):
                out.append(0.0 if float(wanted) == value else np.inf)
            else:
                out.append(float(abs(mp.mpf(float(value)) - wanted) / abs(wanted)))
    return np.array(out)


@pytest.mark.sample(16)
@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_operand(name, dtype):
    f, truth, points = ONE[name]
    with np.errstate(all="ignore"):
        x = np.array(points).astype(dtype)
    tiny = np.finfo(dtype).smallest_normal
    x = x[np.isfinite(x) & (abs(x) >= tiny)]
    x = x[[bool(tiny <= abs(truth(mp.mpf(float(v)))) < np.finfo(dtype).max) for v in x]]
    graph = wg.trace(f)(x)
    after = simplify(graph)
    assert after is not graph
    before, now = errors(graph, truth, x), errors(after, truth, x)
    eps = np.finfo(dtype).eps
    assert (now <= np.maximum(before, 4 * eps)).all(), (x[now > np.maximum(before, 4 * eps)], now)
    assert now.max() < 16 * eps  # and right where the original is not


@pytest.mark.parametrize("scale", [1.0, 100.0, 1000.0])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_sums_of_exponentials(scale, axis, rng):
    x = rng.normal(size=(4, 5)) * scale
    with mp.workdps(50):
        e = np.vectorize(lambda v: mp.exp(mp.mpf(float(v))), otypes=[object])(x)
        total = e.sum(axis=axis, keepdims=True)
        logs = np.vectorize(lambda v: float(mp.log(v)), otypes=[float])
        lse, logp = logs(total), logs(e / total)
        p = np.vectorize(float, otypes=[float])(e / total)

    def three(x):
        e = np.exp(x)
        s = np.sum(e, axis=axis, keepdims=True)
        return np.log(s), np.log(e / s), e / s

    after = simplify(wg.trace(three)(x))
    got = after(x)
    np.testing.assert_allclose(got[0], lse, rtol=1e-14)
    np.testing.assert_allclose(got[1], logp, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(got[2], p, rtol=1e-12, atol=1e-300)


def test_log_of_a_mean_of_exponentials():
    x = np.array([1000.0, 1001.0, 999.0, -5.0])
    f = simplify(wg.trace(lambda x: np.log(np.mean(np.exp(x))))(x))
    with mp.workdps(50):
        wanted = float(mp.log(sum(mp.exp(mp.mpf(v)) for v in x) / 4))
    assert float(f(x)) == pytest.approx(wanted, rel=1e-15)


def test_a_variance_far_from_zero(rng):
    x = rng.normal(size=100) + 1e9
    f = simplify(wg.trace(lambda x: np.mean(x**2) - np.mean(x) ** 2)(x))
    np.testing.assert_allclose(f(x), np.var(x), rtol=1e-12)
    assert abs(np.mean(x**2) - np.mean(x) ** 2 - np.var(x)) > 0.1


# ---- compounds: the derivative of what was stabilised ------------------------------------------

LOGITS = np.array([[800.0, -800.0, 3.0], [0.0, 1.0, -2000.0]])
TARGET = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


def cross_entropy(x, y):
    p = np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True)
    return -np.sum(y * np.log(p))


def test_cross_entropy_of_a_softmax_gets_p_minus_y():
    with np.errstate(all="ignore"):
        assert np.isnan(cross_entropy(LOGITS, TARGET))
    stable = simplify(wg.trace(cross_entropy)(LOGITS, TARGET))
    assert float(stable(LOGITS, TARGET)) == pytest.approx(
        float(F.cross_entropy(LOGITS, TARGET, "sum")), rel=1e-14
    )
    shares = F.softmax(LOGITS, axis=1)
    np.testing.assert_allclose(wg.grad(stable)(LOGITS, TARGET), shares - TARGET, atol=1e-15)
    traced = simplify(wg.trace(wg.grad(stable))(LOGITS, TARGET))
    np.testing.assert_allclose(traced(LOGITS, TARGET), shares - TARGET, atol=1e-15)


def binary(x, y):
    s = 1 / (1 + np.exp(-x))
    return -np.sum(y * np.log(s) + (1 - y) * np.log(1 - s))


@pytest.mark.parametrize(
    "loss", [binary, lambda x, y: F.binary_cross_entropy(1 / (1 + np.exp(-x)), y, "sum")]
)
def test_binary_cross_entropy_of_a_sigmoid_gets_s_minus_y(loss):
    x, y = np.array([800.0, -800.0, 40.0, 0.5]), np.array([0.0, 1.0, 1.0, 0.25])
    stable = simplify(wg.trace(loss)(x, y))
    wanted = F.binary_cross_entropy_with_logits(x, y, "sum")
    assert float(stable(x, y)) == pytest.approx(float(wanted), rel=1e-14)
    # s - y, written so that it keeps its digits
    gradient = (1 - y) * sigmoid(x) - y * sigmoid(-x)
    np.testing.assert_allclose(wg.grad(stable)(x, y), gradient, rtol=1e-13)


def test_the_derivative_at_the_kink_of_a_root_is_zero():
    norm = simplify(wg.trace(lambda x: np.sum(np.sqrt(x * x)))(np.zeros(3)))
    np.testing.assert_array_equal(wg.grad(norm)(np.array([0.0, -2.0, 3.0])), [0.0, -1.0, 1.0])


# ---- derivatives that were taken first ---------------------------------------------------------

FAR = np.array([[1000.0, -1000.0, 3.0], [0.5, 710.0, -746.0], [40.0, -40.0, 0.0]])


def softmax_of(x):
    return F.softmax(x, axis=1)


@pytest.mark.parametrize(
    ("f", "wanted"),
    [
        (lambda x: np.log(1 + np.exp(x)), sigmoid),
        (lambda x: np.log(np.exp(x)), np.ones_like),
        (lambda x: 1 / (1 + np.exp(-x)), lambda x: sigmoid(x) * sigmoid(-x)),
        (lambda x: 1 / (1 + np.exp(x)), lambda x: -sigmoid(x) * sigmoid(-x)),
        (lambda x: np.log(1 / (1 + np.exp(-x))), lambda x: sigmoid(-x)),
        (lambda x: np.log(np.sum(np.exp(x), axis=1)), softmax_of),
        (lambda x: np.log(np.sum(np.exp(x), axis=1, keepdims=True)), softmax_of),
        (lambda x: np.log(np.sum(np.exp(x))), lambda x: F.softmax(x.ravel()).reshape(x.shape)),
        (lambda x: np.exp(x) - 1, lambda x: np.exp(np.minimum(x, 700))),
    ],
)
def test_gradients_of_what_overflows(f, wanted):
    x = np.minimum(FAR, 700) if wanted(np.zeros((1, 1)))[0, 0] == 1.0 else FAR
    gradient = wg.trace(wg.grad(lambda x: np.sum(f(x))))(x)
    after = simplify(gradient)
    np.testing.assert_allclose(after(x), wanted(x), rtol=1e-12, atol=1e-300)


def test_the_gradient_of_a_binary_cross_entropy_that_was_taken_first():
    x, y = np.array([800.0, -800.0, 40.0, 0.5]), np.array([0.0, 1.0, 1.0, 0.25])
    after = simplify(wg.trace(wg.grad(binary))(x, y))
    gradient = (1 - y) * sigmoid(x) - y * sigmoid(-x)
    np.testing.assert_allclose(after(x, y), gradient, rtol=1e-13)


def test_the_gradient_of_a_cross_entropy_that_was_taken_first():
    x, y = LOGITS, TARGET
    gradient = wg.trace(
        wg.grad(
            lambda x, y: -np.sum(y * np.log(np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True)))
        )
    )
    with np.errstate(all="ignore"):
        assert np.isnan(gradient(x, y)(x, y)).any()
    easy = x / 400.0
    after = simplify(gradient(x, y))
    np.testing.assert_allclose(after(easy, y), F.softmax(easy, axis=1) - y, rtol=1e-12, atol=1e-15)
